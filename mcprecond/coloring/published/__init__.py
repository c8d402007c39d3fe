"""What is there for the papers: colorings to compare with, and the rounds that papers have.

A module stands here if no default and no "auto" can choose what it computes: neither `color`, nor a preconditioner, nor
a hierarchy runs it unless it is asked for by name. "auto" chooses among "ecl_gc", "greedy" and "jp", which are in
`mcprecond.coloring`; every other method is here, with the schedules of ``published=True``. Modules are imported when a
method is looked up in `COLORINGS`.
"""
