"""One or several independent sets per round."""
