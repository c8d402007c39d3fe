"""The driver of NVIDIA on this machine, and the extra of this package that brings the CuPy it takes."""

from __future__ import annotations

import ctypes
import sys


def cuda_of_driver() -> int:
    """The newest CUDA that the driver takes, as 1000 times the first number and 10 times the second one; 0 without a
    driver. CuPy is not needed.
    """
    version = ctypes.c_int()
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        driver.cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return 0
    return version.value


def what_to_install(driver: int) -> str:
    """Say which extra brings the CuPy that a driver takes; see `cuda_of_driver` for its number."""
    gpu, gpu_cuda12 = ("pip install '.[gpu]'", "pip install '.[gpu-cuda12]'")
    if driver >= 13000:
        return f"from a clone: {gpu}"
    if driver >= 12000:
        return f"the driver is for CUDA 12, so from a clone: {gpu_cuda12}"
    if driver:
        return f"the driver is for CUDA {driver // 1000}, so install driver 580 or newer, then from a clone: {gpu}"
    return (
        f"no driver of NVIDIA is found either; from a clone: {gpu}, or {gpu_cuda12} where the driver is older than 580"
    )
