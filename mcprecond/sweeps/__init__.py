"""Sweeps with the triangles of color blocks."""
