"""Vertices wait for their neighbors of higher priority (Jones and Plassmann)."""
