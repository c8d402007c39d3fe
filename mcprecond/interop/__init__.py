"""Other packages: what they give us, and what we give them."""
