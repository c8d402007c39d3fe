"""A program that compiles a CUDA source by NVRTC. It needs nothing but Python, and no GPU:

    python nvrtc.py LIBRARY CAPABILITY [OPTION ...] < SOURCE > OUTPUT

LIBRARY is the path of NVRTC, CAPABILITY the compute capability of the device, 90 for 9.0. The output is machine code.
What NVRTC says of an error goes to stderr.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence


def compile_source(library: str, source: bytes, capability: int, options: Sequence[str]) -> bytes:
    """Machine code for a device of this compute capability, or PTX for one that is newer than NVRTC.

    Raises
    ------
    RuntimeError
        What NVRTC says, where it refuses the source; or that it knows no device that is so old.
    OSError
        If the library cannot be loaded.
    """
    nvrtc, program = ctypes.CDLL(library), ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None)

    def result(name: str) -> bytes:
        size = ctypes.c_size_t()
        getattr(nvrtc, f"nvrtcGet{name}Size")(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        getattr(nvrtc, f"nvrtcGet{name}")(program, text)
        return text.raw

    known = _known_capabilities(nvrtc)
    if capability < min(known):
        raise RuntimeError(
            f"the GPU has compute capability {capability / 10}, and NVRTC compiles for {min(known) / 10} and newer; "
            "install a CuPy for an older CUDA"
        )
    target = f"sm_{capability}" if capability in known else f"compute_{max(c for c in known if c <= capability)}"
    words = [word.encode() for word in (*options, f"-arch={target}")]
    if nvrtc.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words)):
        raise RuntimeError(result("ProgramLog").rstrip(b"\0").decode(errors="replace"))
    return result("CUBIN" if capability in known else "PTX")


def _known_capabilities(nvrtc: ctypes.CDLL) -> list[int]:
    count = ctypes.c_int()
    nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    known = (ctypes.c_int * count.value)()
    nvrtc.nvrtcGetSupportedArchs(known)
    return list(known)


def main() -> None:
    """Compile what the command line says."""
    library, capability, *options = sys.argv[1:]
    try:
        code = compile_source(library, sys.stdin.buffer.read(), int(capability), options)
    except (RuntimeError, OSError) as error:
        raise SystemExit(str(error)) from None
    sys.stdout.buffer.write(code)


if __name__ == "__main__":
    main()
