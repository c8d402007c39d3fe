"""Color first, repair conflicts afterwards."""
