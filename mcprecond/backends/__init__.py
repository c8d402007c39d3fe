"""Where arrays live: NumPy and Numba on the CPU, CuPy and CUDA on the GPU, behind one small protocol."""

from __future__ import annotations

from typing import Any

from mcprecond.backends.arguments import describe, did_you_mean
from mcprecond.backends.base import Backend
from mcprecond.backends.cpu import CpuBackend
from mcprecond.backends.drivers import cuda_of_driver, what_to_install
from mcprecond.backends.gpu import GpuBackend
from mcprecond.backends.kernels import (
    NUMBERS,
    ROWS,
    Kernels,
    KernelSet,
    compile_inlined,
    compile_loop,
    compile_part,
    compile_row,
    offset_type,
    unsigned,
)

__all__ = [
    "NUMBERS",
    "ROWS",
    "Backend",
    "KernelSet",
    "Kernels",
    "backend_of",
    "compile_inlined",
    "compile_loop",
    "compile_part",
    "compile_row",
    "get_backend",
    "gpu_problem",
    "offset_type",
    "unsigned",
]

_CPU = CpuBackend()
_GPU = GpuBackend()
#: DLPack's numbers of what CuPy can read: memory of a device, and managed memory.
CUDA_DEVICES = (2, 13)


def gpu_problem() -> str | None:
    """Say in one line why no GPU can be used, or return None if one can."""
    try:
        import cupy
    except Exception as error:  # what CuPy or the libraries that it loads raise
        if isinstance(error, ModuleNotFoundError) and error.name == "cupy":
            return f"CuPy is not installed; {what_to_install(cuda_of_driver())}"
        return f"CuPy cannot be imported ({' '.join(str(error.__cause__ or error).split())})"
    runtime = cupy.cuda.runtime
    try:
        if runtime.getDeviceCount() > 0:
            return None
        return "CuPy finds no CUDA device"
    except runtime.CUDARuntimeError as error:
        driver, needed = runtime.driverGetVersion(), runtime.runtimeGetVersion() // 1000
        if 0 < driver // 1000 < needed:
            instead = ", after uninstalling that CuPy" if driver >= 12000 else ""
            return f"CuPy is for CUDA {needed}; {what_to_install(driver)}{instead}"
        return f"CuPy finds no CUDA device ({error})"


def get_backend(device: str) -> Backend:
    """Return the backend named "cpu" or "gpu".

    Raises
    ------
    TypeError
        For what is not a name.
    ValueError
        For another name, or for "gpu" where CuPy or a device is missing; the message says which.
    """
    if not isinstance(device, str):
        raise TypeError(f"device must be 'cpu' or 'gpu', got {describe(device)}")
    if device == "cpu":
        return _CPU
    if device == "gpu":
        if problem := gpu_problem():
            raise ValueError(f"device='gpu' cannot be used: {problem}")
        return _GPU
    raise ValueError(f"device must be 'cpu' or 'gpu', got {device!r}{did_you_mean(device, ('cpu', 'gpu'))}")


def backend_of(array: Any) -> Backend:
    """Return the backend on which a NumPy, SciPy or CuPy object lives, by its type; of another library, by what it
    tells DLPack.

    Raises
    ------
    ValueError
        For an object on the GPU where CuPy is missing or finds no device.
    """
    library = type(array).__module__.split(".")[0]
    if library in ("numpy", "scipy"):
        return _CPU
    if library in ("cupy", "cupyx"):
        return get_backend("gpu")
    device = getattr(array, "__dlpack_device__", None)
    return get_backend("gpu") if callable(device) and device()[0] in CUDA_DEVICES else _CPU
