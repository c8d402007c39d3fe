"""What is there for the papers: colorings to compare with, and the rounds that papers have.

A module stands here if no default and no "auto" can choose what it computes: neither `color`, nor a preconditioner, nor
a hierarchy runs it unless it is asked for by name. "auto" chooses among "ecl_gc", "greedy" and "jp", which are in
`mcprecond.coloring`; every other method is here, with what "ecl_gc" and "eb" do for ``published=True``. Kernels run as
the papers have them; on a CPU most methods color by one thread, in the fewest lines that find a right result. Modules
are imported when a method is looked up in `COLORINGS`.
"""
