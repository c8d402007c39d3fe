"""From a coloring to what sweeps read: the permutation and the color blocks."""

from mcprecond.storage.color_blocks import ColorBlocks, Triangle
from mcprecond.storage.node_blocks import NodeBlocks

__all__ = ["ColorBlocks", "NodeBlocks", "Triangle"]
