"""The order of colors, and of the rows within them."""

from mcprecond.ordering.color_order import in_best_order

__all__ = ["in_best_order"]
