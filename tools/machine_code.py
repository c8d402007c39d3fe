"""The machine code of CUDA kernels, from NVRTC, which needs no GPU: a hash of each kernel's code, and what it uses."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

Kernels = dict[str, dict[str, Any]]  # of one variant, by name

NO_BITS = 8  # the ELF type of a section that has a size only
#: The sections that belong to one kernel: its instructions with relocations, its constants and its shared memory.
OF_KERNEL = re.compile(r"\.(text|rela?\.text|nv\.constant\d+|nv\.shared)\.(.+)")
#: The sections that all kernels of a variant share: device variables and constants.
OF_ALL = re.compile(r"\.nv\.(global|global\.init|constant\d+)")
ALL = "(device variables)"
USED = {
    "registers": r"Used (\d+) registers",
    "stack": r"(\d+) bytes stack frame",
    "spill_stores": r"(\d+) bytes spill stores",
    "spill_loads": r"(\d+) bytes spill loads",
    "shared": r"(\d+) bytes smem",
}


def of_all_variants(processes: int) -> dict[str, Kernels]:
    """The kernels of every variant that the tests compile, by the variant's source, architecture and macros."""
    variants = [parameters.values for parameters in tested()]
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        found = pool.map(of_variant, variants, chunksize=4)
        return {name_of(*variant): kernels for variant, kernels in zip(variants, found, strict=True)}


def tested() -> Iterator[Any]:
    """What tests/kernel_variants.py samples: source, macros, architecture."""
    from kernel_variants import compilations

    return compilations()


def name_of(source: str, macros: dict[str, Any], architecture: int) -> str:
    """As in "solvers/pcg.cu sm_90 LANES=2 VALUE=double"."""
    from mcprecond.backends.gpu import compile_options

    chosen = [option.removeprefix("-D") for option in compile_options(macros) if option.startswith("-D")]
    return " ".join([source, f"sm_{architecture}", *(macro.replace(" ", "_") for macro in chosen)])


def of_variant(variant: tuple[str, dict[str, Any], int]) -> Kernels:
    """The kernels of one variant."""
    from kernel_variants import SOURCES

    from mcprecond.backends.cuda_source import cuda_source
    from mcprecond.backends.gpu import compile_options

    name, macros, architecture = variant
    return compiled(cuda_source(SOURCES[name]), name, (*compile_options(macros), f"-arch=sm_{architecture}"))


def compiled(source: str, name: str, options: tuple[str, ...]) -> Kernels:
    """The kernels of a source."""
    from cupy.cuda import nvrtc

    program = nvrtc.createProgram(source, name, [], [])
    try:
        nvrtc.compileProgram(program, (*options, "--ptxas-options=-v"))
    except nvrtc.NVRTCError:
        raise SystemExit(f"{name} does not compile with {options}:\n{nvrtc.getProgramLog(program)}") from None
    cubin, log = nvrtc.getCUBIN(program), nvrtc.getProgramLog(program)
    nvrtc.destroyProgram(program)
    used = used_in(log)
    return {kernel: {"code": code} | used.get(kernel, {}) for kernel, code in codes(cubin).items()}


def used_in(log: str) -> dict[str, dict[str, int]]:
    """Registers, and bytes of the stack, of spills and of shared memory, by kernel, from the log of ptxas."""
    _, *parts = re.split(r"Compiling entry function '(\w+)'", log)
    return {
        kernel: {what: int(match[1]) if (match := re.search(regex, text)) else 0 for what, regex in USED.items()}
        for kernel, text in zip(parts[::2], parts[1::2], strict=True)
    }


def codes(cubin: bytes) -> dict[str, str]:
    """A hash of the code of each kernel in a cubin, and one of the device's variables, where there are any.

    Symbols, debug information and notes do not count, nor the order of kernels.
    """
    parts: dict[str, list[tuple[str, bytes]]] = {}
    for name, content in sections(cubin):
        if match := OF_KERNEL.fullmatch(name):
            parts.setdefault(match[2], []).append((match[1], content))
        elif OF_ALL.fullmatch(name):
            parts.setdefault(ALL, []).append((name, content))
    with_code = {name for name, found in parts.items() if name == ALL or "text" in dict(found)}
    return {name: hashlib.sha256(repr(sorted(parts[name])).encode()).hexdigest()[:16] for name in sorted(with_code)}


def sections(elf: bytes) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the sections of a 64-bit ELF file.

    Relocations are where and of which kind, without the symbols: their numbers depend on the other kernels. Of what is
    not in the file the content is the size.
    """
    (start,) = struct.unpack_from("<Q", elf, 40)
    entry_size, count, of_names = struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQ", elf, start + k * entry_size) for k in range(count)]
    names = headers[of_names][4]
    for name_at, kind, _, _, offset, size in headers:
        name = elf[names + name_at : elf.index(b"\0", names + name_at)].decode()
        content = elf[offset : offset + size] if kind != NO_BITS else struct.pack("<Q", size)
        if name.startswith((".rel.", ".rela.")):
            step = 24 if name.startswith(".rela.") else 16  # the place, the kind and the symbol, the addend
            content = b"".join(content[k : k + 12] for k in range(0, size, step))
        yield name, content
