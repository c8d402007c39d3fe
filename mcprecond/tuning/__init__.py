"""The coloring with which a solve is predicted to take least time."""
