"""What kernels and the CPU's implementations are compared with: definitions, serial or dense, written to be read.

There is a module for each algorithm. Nothing here is fast, and no user runs it. None of it calls what it defines: of
the package it takes constants, and the hash function `mix`, by which methods draw their random numbers.
"""
