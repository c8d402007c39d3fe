"""Better colorings out of given ones: fewer colors, or classes of equal size."""
