"""From a coloring to what sweeps read: the permutation and the color blocks."""

from mcprecond.storage.color_blocks import ColorBlocks
from mcprecond.storage.node_blocks import NodeBlocks
from mcprecond.storage.triangle import Triangle

__all__ = ["ColorBlocks", "NodeBlocks", "Triangle"]
