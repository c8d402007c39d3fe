"""The choice of a coloring by predicted time."""
