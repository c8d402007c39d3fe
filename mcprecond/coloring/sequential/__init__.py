"""Serial orderings: the quality reference."""
