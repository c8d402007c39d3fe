"""From a coloring to the storage that sweeps read: permutation and color blocks."""

from mcprecond.reordering.color_blocks import ColorBlocks, Triangle

__all__ = ["ColorBlocks", "Triangle"]
