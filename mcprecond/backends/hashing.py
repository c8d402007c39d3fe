"""Hashes, for random priorities of vertices and to tell patterns apart; cuda/hash.cuh has them for CUDA."""

from __future__ import annotations

import numpy as np

from mcprecond.backends import compile_row


@compile_row
def mix(v, seed):
    """Hash a vertex number and a seed to 32 well-mixed bits."""
    h = (v ^ ((seed * 0x9E3779B9) & 0xFFFFFFFF)) & 0xFFFFFFFF
    h ^= h >> 16
    h = (h * 0x85EBCA6B) & 0xFFFFFFFF
    h ^= h >> 13
    h = (h * 0xC2B2AE35) & 0xFFFFFFFF
    h ^= h >> 16
    return h


@compile_row
def mix64(x):
    """Mix the bits of a 64-bit number well."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
