"""One M serves several Python threads at once: each gets what it would get alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz import matrices
from fuzz.trial import Trial
from mcprecond import ILU0, MulticolorDILU, MulticolorGS, MulticolorSGS, pcg

THREADS = 8


def case(t: Trial) -> None:
    dtype = t.one_of("float64", "float64", "float32", "complex128")
    A, dense = matrices.dominant(t, dtype, symmetric=True, most=400, scaled=False)
    A = A.tocsr()
    n, moved = len(dense), t.put(A)
    kinds: dict[str, Callable[[], Any]] = {
        "sgs": lambda: MulticolorSGS(moved, "greedy"),
        "sweeps": lambda: MulticolorGS(moved, "greedy", sweeps=2),
        "blocks": lambda: MulticolorSGS(moved, "greedy", block_size=next(b for b in (3, 2, 1) if n % b == 0)),
        "dilu": lambda: MulticolorDILU(moved, "greedy"),
        "ilu0": lambda: ILU0(moved, coloring="greedy"),
    }
    kind = t.one_of(*kinds)
    M = kinds[kind]()
    r = [
        t.put(matrices.numbers(t, n * k, dtype).reshape((n, k) if k > 1 else (n,)))
        for k in t.rng.integers(1, 5, THREADS)
    ]
    work = t.one_of("apply", "apply", "transpose", "plain", "auto", "smooth")
    if work == "smooth" and not hasattr(M, "smooth"):
        work = "apply"
    t.about(kind=kind, work=work)
    zero = t.put(np.zeros(n, dtype))

    def vector(k: int) -> Any:
        return r[k] if r[k].ndim == 1 else r[k][:, 0].copy()

    todo: dict[str, Callable[[int], Any]] = {
        "apply": lambda k: M @ r[k],
        "transpose": lambda k: M.T @ r[k],
        "plain": lambda k: pcg(moved, vector(k), M=M, rtol=1e-6, form="plain").x,
        "auto": lambda k: pcg(moved, vector(k), M=M, rtol=1e-6).x,
        "smooth": lambda k: M.smooth(zero, vector(k)),
    }
    do, repeats = todo[work], 6 if work in ("apply", "smooth") else 2
    expected = [do(k) for k in range(THREADS)]
    found: list[list[Any]] = [[] for _ in range(THREADS)]
    raised: list[BaseException] = []
    begin = threading.Barrier(THREADS)

    def run(k: int) -> None:
        try:
            begin.wait()
            found[k] = [do(k) for _ in range(repeats)]
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    t.check(not raised, "a thread raises", error=raised[:1])
    for k in range(THREADS):
        for z in found[k]:
            t.equal(z, expected[k], "a thread gets another result than alone", thread=k)
