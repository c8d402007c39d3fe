"""Random priorities of vertices: the Numba side of `mix` in backends/device.cuh, equal to the last bit."""

from __future__ import annotations

from mcprecond.backends import compile_part


@compile_part
def mix(v, seed):
    """Hash a vertex number and a seed to 32 well-mixed bits."""
    h = (v ^ ((seed * 0x9E3779B9) & 0xFFFFFFFF)) & 0xFFFFFFFF
    h ^= h >> 16
    h = (h * 0x85EBCA6B) & 0xFFFFFFFF
    h ^= h >> 13
    h = (h * 0xC2B2AE35) & 0xFFFFFFFF
    h ^= h >> 16
    return h
