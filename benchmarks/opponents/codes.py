"""The codes that we compare with: how each is built from its sources, called, and what it prints.

None of their code is here. Versions print other things: a run whose output lacks what is looked for is an error, which
shows the output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Line = dict[str, Any]
NUMBER = r"([-+0-9.eE]+)"


@dataclass(frozen=True)
class Code:
    """An opponent.

    Attributes
    ----------
    suffix : str
        Of the graphs that it reads; "" where it reads systems.
    commands : function of the folder with the sources, one to build in, and the GPU's architecture, as in 90
        What builds it, in this order.
    binary : str
        Where the binary is then in that folder, as a pattern.
    variants : tuple of str
        What it can be asked for; each is called and has a line.
    call : function of the binary, a file and a variant
        The command.
    parse : function of what it has printed
        A line with "ms" and "colors", or "setup_ms", "solve_ms" and "iters".
    edits : dict
        Patterns and what to put in their place in the C++ and CUDA sources before they are compiled, for versions of
        CUDA that lack what they use, or to time a warm run. Each has to match somewhere.
    ours : dict
        Names of lines, and a method and options of ours that are timed beside it.
    """

    suffix: str
    commands: Callable[[Path, Path, int], list[list[str]]]
    binary: str
    variants: tuple[str, ...]
    call: Callable[[str, str, str], list[str]]
    parse: Callable[[str], Line]
    edits: dict[str, str] = field(default_factory=dict)
    ours: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)


def found(pattern: str, text: str, what: str) -> Any:
    """The last match in what a code has printed, a tuple where the pattern has several groups.

    Raises
    ------
    ValueError
        If there is none.
    """
    matches = re.findall(pattern, text, re.MULTILINE)
    if not matches:
        raise ValueError(f"no {what} in its output:\n{text[-2000:]}")
    return matches[-1]


def cuda(sources: Path, files: Sequence[str], build: Path, name: str, arch: int, *flags: str) -> list[list[str]]:
    return [["nvcc", "-O3", f"-arch=sm_{arch}", *(str(sources / f) for f in files), *flags, "-o", str(build / name)]]


def cmake(sources: Path, build: Path, target: str, *settings: str) -> list[list[str]]:
    configure = ["cmake", "-S", str(sources), "-B", str(build), "-DCMAKE_BUILD_TYPE=Release"]
    return [[*configure, *(f"-D{s}" for s in settings)], ["cmake", "--build", str(build), "-j", "--target", target]]


def ecl_gc(sources: Path, build: Path, arch: int) -> list[list[str]]:
    files = sorted(path.name for path in sources.glob("ECL-GC_*.cu"))
    if not files:
        raise ValueError(f"no ECL-GC_*.cu in {sources}; give the folder that has it")
    return cuda(sources, files[-1:], build, "ecl-gc", arch)


def parse_ecl_gc(text: str) -> Line:
    return {
        "ms": 1e3 * float(found(rf"^runtime:\s+{NUMBER} s", text, "runtime")),
        "colors": int(found(r"^colors used: (\d+)", text, "number of colors")),
        "valid": "result verification passed" in text,
    }


def parse_sirg(text: str) -> Line:
    """It prints no check: the name of the file, and of ten runs the mean time in ms, the mean number of colors and the
    bytes of the palettes.
    """
    last = found(rf"^\S+ {NUMBER} {NUMBER} {NUMBER}$", text, "time and colors")
    return {"ms": float(last[0]), "colors": round(float(last[1]))}


def parse_chengc(text: str) -> Line:
    return {
        "ms": float(found(rf"^avg_runtime {NUMBER} ms", text, "runtime")),
        "colors": int(found(r"^Num Colors: (\d+)", text, "number of colors")),
        "valid": re.search(r"^correct\.", text, re.MULTILINE) is not None,
    }


def parse_gunrock(text: str) -> Line:
    return {
        "ms": float(found(rf"^GPU Elapsed Time : {NUMBER} \(ms\)", text, "time")),
        "colors": int(found(r"^Number of colors : (\d+)", text, "number of colors")),
        "valid": found(r"^Number of errors : (\d+)", text, "number of errors") == "0",
    }


def parse_kokkos(text: str) -> Line:
    """It prints no check; the first of its repetitions warms up."""
    times = [float(seconds) for seconds in re.findall(rf"^Time:{NUMBER} sec\.", text, re.MULTILINE)]
    if len(times) < 2:
        raise ValueError(f"two times at least were expected in its output:\n{text[-2000:]}")
    colors = int(found(r"Num colors:(\d+)", text, "number of colors"))
    warm = sorted(times[1:])
    return {"ms": 1e3 * warm[len(warm) // 2], "colors": colors}


def parse_amgx(text: str) -> Line:
    """Its times are those of one cold setup and solve."""
    reduction = float(found(rf"Total Reduction in Residual:\s+{NUMBER}", text, "residual"))
    return {
        "setup_ms": 1e3 * float(found(rf"^\s+setup: {NUMBER} s", text, "time of the setup")),
        "solve_ms": 1e3 * float(found(rf"^\s+solve: {NUMBER} s", text, "time of the solve")),
        "iters": int(found(r"Total Iterations:\s+(\d+)", text, "number of iterations")),
        "relres": reduction,
        "status": SUCCESS if reduction <= AMGX_TOLERANCE else "not_converged",
    }


AMGX_TOLERANCE, SUCCESS = 1e-8, "success"
#: Preconditioners of AmgX's PCG. All rows get colors.
AMGX = {
    "none": "NOSOLVER",
    "block-Jacobi": "BLOCK_JACOBI",
    "DILU": "MULTICOLOR_DILU, p:matrix_coloring_scheme=PARALLEL_GREEDY, p:max_uncolored_percentage=0",
    "GS": "MULTICOLOR_GS, p:symmetric_GS=1, p:matrix_coloring_scheme=PARALLEL_GREEDY, p:max_uncolored_percentage=0",
    "multigrid": "AMG, p:algorithm=CLASSICAL, p:selector=PMIS, p:interpolator=D2, p:interp_max_elements=4, "
    "p:max_row_sum=0.9, p:strength_threshold=0.25, p:aggressive_levels=1, p:cycle=V, p:presweeps=1, p:postsweeps=1, "
    "p:smoother(sm)=JACOBI_L1, sm:relaxation_factor=1, p:coarse_solver=DENSE_LU_SOLVER",
}


def amgx_settings(variant: str) -> str:
    """The configuration, in AmgX's own form."""
    return (
        f"config_version=2, solver(main)=PCG, main:preconditioner(p)={AMGX[variant]}, p:max_iters=1, "
        f"main:max_iters=5000, main:convergence=RELATIVE_INI_CORE, main:tolerance={AMGX_TOLERANCE:g}, main:norm=L2, "
        "main:monitor_residual=1, main:print_solve_stats=1, main:obtain_timings=1, main:store_res_history=1"
    )


KOKKOS = ("COLORING_EB", "COLORING_VB", "COLORING_VBBIT", "COLORING_VBD")
CODES = {
    "ecl-gc": Code(
        ".egr",
        ecl_gc,
        "ecl-gc",
        ("",),
        lambda binary, file, _: [binary, file],
        parse_ecl_gc,
        edits={
            r"deviceProp\.(memoryClockRate|clockRate)": "0",  # which CUDA 13 does not tell
            r"(?s)(GPUTimer timer;.*?)const (float runtime) = (.*?;)": r"\2; for (int i = 0; i < 5; ++i) {"
            r" \1runtime = \3 }",  # the last of five, which is warm
        },
        ours={"published": ("ecl_gc", {"published": True}), "default": ("ecl_gc", {})},
    ),
    "sirg": Code(
        ".mtx",
        lambda sources, build, arch: cuda(
            sources / "sirg" / "src", ["graphColoring.cu", "sirgL32.cu", "sirg.cu"], build, "sirg", arch, "-lcurand"
        ),
        "sirg",
        ("",),
        lambda binary, file, _: [binary, file, "0"],  # the rule by degree
        parse_sirg,
        edits={
            r"int array\[\]": "int shared_array[]",  # the name is one of CUDA 13, too
            "= array;": "= shared_array;",
            r"(#include <thrust/)scan\.h>": r"\1scan.h>\n\1reduce.h>\n\1functional.h>",
        },
        ours={"published": ("sirg", {})},
    ),
    "chengc": Code(
        ".mtx",
        lambda sources, build, arch: [
            ["make", "-C", str(sources / "chenGC" / "src" / "code"), f"NVCC=nvcc -arch=sm_{arch}", f"BIN={build}"]
        ],
        "chengc",
        ("",),
        lambda binary, file, _: [binary, file],
        parse_chengc,
    ),
    "gunrock": Code(
        ".mtx",
        lambda sources, build, arch: cmake(sources, build, "color", f"CMAKE_CUDA_ARCHITECTURES={arch}"),
        "bin/color",
        ("",),
        lambda binary, file, _: [binary, file],
        parse_gunrock,
    ),
    "kokkos": Code(
        ".mtx",
        # Kokkos itself is found by Kokkos_ROOT in the environment; it decides on the architecture.
        lambda sources, build, arch: cmake(sources, build, "all", "KokkosKernels_ENABLE_PERFTESTS=ON"),
        "perf_test/graph/*graph_color",
        KOKKOS,
        lambda binary, file, variant: [
            *(binary, "--cuda", "0", "--amtx", file, "--algorithm", variant, "--repeat", "11")
        ],
        parse_kokkos,
    ),
    "amgx": Code(
        "",
        lambda sources, build, arch: cmake(sources, build, "amgx_capi", f"CUDA_ARCH={arch}"),
        "examples/amgx_capi",
        tuple(AMGX),
        lambda binary, file, variant: [binary, "-mode", "dDDI", "-m", file, "-amg", amgx_settings(variant)],
        parse_amgx,
    ),
}
