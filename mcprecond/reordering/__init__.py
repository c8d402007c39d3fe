"""From a coloring to the storage that sweeps read: permutation and color blocks."""

from mcprecond.reordering.color_blocks import ColorBlocks, Triangle
from mcprecond.reordering.color_order import in_best_order
from mcprecond.reordering.node_blocks import NodeBlocks

__all__ = ["ColorBlocks", "NodeBlocks", "Triangle", "in_best_order"]
