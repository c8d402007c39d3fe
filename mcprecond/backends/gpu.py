"""The GPU: CuPy arrays and matrices, CUDA kernels compiled when first used and kept on disk."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Hashable
from types import ModuleType
from typing import Any

import numpy as np

from mcprecond.backends.ahead import variants_ahead
from mcprecond.backends.cubins import Program, compile_ahead, machine_code, read_kept
from mcprecond.backends.cuda_source import BLOCK, cuda_source
from mcprecond.backends.determinism import REFERENCE, is_same_on_all_gpus
from mcprecond.backends.kernels import Kernels, KernelSet, Launch
from mcprecond.backends.loops import repeat_on_device, repeat_on_host
from mcprecond.backends.zeros import Zeros
from mcprecond.typing import Device

ZEROS = Zeros()
WARPS_PER_PROCESSOR = 32  # that a kernel with many registers may still count on
C_TYPES = {
    np.dtype(np.uint8): "unsigned char",
    np.dtype(np.uint16): "unsigned short",
    np.dtype(np.uint32): "unsigned int",
    np.dtype(np.int32): "int",
    np.dtype(np.int64): "long long",
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
    np.dtype(np.complex64): "Complex<float>",
    np.dtype(np.complex128): "Complex<double>",
}


def compile_options(macros: dict[str, Any]) -> tuple[str, ...]:
    """NVRTC options for a kernel set's compile-time choices; a dtype becomes its C type."""
    values = {name: C_TYPES[np.dtype(value)] if not isinstance(value, int) else value for name, value in macros.items()}
    return ("--std=c++17", *(f"-D{name}={value}" for name, value in sorted(values.items())))


@functools.cache
def _attributes_of(device: int) -> dict[str, int]:
    """What CUDA says of a device; CuPy asks for each of a hundred attributes anew."""
    import cupy

    return dict(cupy.cuda.Device(device).attributes)


def most_blocks_of(attributes: dict[str, int]) -> int:
    """How many blocks a device with these attributes can hold at most, of kernels that need little."""
    return attributes["MultiProcessorCount"] * attributes["MaxThreadsPerMultiProcessor"] // BLOCK


class GpuBackend:
    """See `Backend`. Everything runs on the caller's current device and stream."""

    name: Device = "gpu"
    iterations_per_read = 512

    @functools.cached_property
    def xp(self) -> ModuleType:
        import cupy

        return cupy

    @functools.cached_property
    def sparse(self) -> ModuleType:
        import cupyx.scipy.sparse

        return cupyx.scipy.sparse

    @functools.cached_property
    def linalg(self) -> ModuleType:
        import cupyx.scipy.sparse.linalg

        return cupyx.scipy.sparse.linalg

    def kernels(self, kernel_set: KernelSet, **macros: Any) -> Kernels:
        return _variant(self, kernel_set, tuple(macros.items()), self.xp.cuda.Device().id)

    def record(self, fields: tuple[Any, ...], of_cuda: tuple[Any, ...] = ()) -> tuple[Any, ...]:
        words = [field if isinstance(field, int) else field.data.ptr for field in fields + of_cuda]
        return (np.array(words, np.int64).view(f"V{8 * len(words)}"),)  # an array of one element is passed by value

    def repeatable(self, function: Callable[[], None]) -> Callable[[], None]:
        import cupy

        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            try:
                stream.begin_capture()
                function()
                graph = stream.end_capture()
                graph.upload(stream)  # otherwise the first launch would
            except BaseException:
                with contextlib.suppress(Exception):  # the first error is the one to tell
                    stream.end_capture()
                raise
        return graph.launch

    def loop(self, function: Callable[[], None], states: Any, captures: bool, bundle: int) -> Callable[[int], None]:
        if captures and (loop := repeat_on_device(function, states, bundle)):
            return loop
        return repeat_on_host(self.repeatable(function) if captures else function, states, self.to_host)

    def zeros(self, count: int, dtype: Any) -> Any:
        return ZEROS.take(count, dtype, self.stream, self.xp)

    @property
    def resident_warps(self) -> int:
        return self._attributes["MultiProcessorCount"] * WARPS_PER_PROCESSOR

    @property
    def most_blocks(self) -> int:
        return most_blocks_of(self._attributes)

    @property
    def shared_cache(self) -> int:
        return self._attributes["L2CacheSize"]

    @property
    def memory_speed(self) -> float:
        kilohertz, bits = (self._attributes.get(name, 0) for name in ("MemoryClockRate", "GlobalMemoryBusWidth"))
        return 2e3 * kilohertz * bits / 8

    @property
    def _attributes(self) -> dict[str, int]:
        return REFERENCE if is_same_on_all_gpus() else _attributes_of(self.xp.cuda.Device().id)

    @property
    def stream(self) -> Hashable:
        cuda = self.xp.cuda
        pointer = cuda.get_current_stream().ptr
        # The per-thread default stream is another one in each thread, under one name.
        thread = threading.get_ident() if pointer == cuda.runtime.streamPerThread else None
        return cuda.Device().id, pointer, thread

    def to_host(self, array: Any) -> np.ndarray:
        return self.xp.asnumpy(array)

    def fetcher(self, array: Any) -> Callable[[], np.ndarray]:
        import cupyx

        fetched = cupyx.empty_pinned(array.shape, array.dtype)

        def fetch() -> np.ndarray:
            array.get(out=fetched, blocking=False)
            self.synchronize()
            return fetched

        return fetch

    def synchronize(self) -> None:
        self.xp.cuda.get_current_stream().synchronize()

    def __reduce__(self) -> Any:
        from mcprecond.backends import get_backend

        return get_backend, (self.name,)  # which says why, where there is no GPU


@functools.cache
def _variant(backend: GpuBackend, kernel_set: KernelSet, macros: tuple[tuple[str, Any], ...], device: int) -> Kernels:
    """The launchers of one variant, found by its choices as they are given: a call costs next to nothing."""
    chosen = dict(macros)
    program = _program(kernel_set, chosen, device)
    if not read_kept(program):
        compile_ahead(_program(*other, device) for other in variants_ahead(kernel_set, chosen, device))
    return Kernels(_launchers(kernel_set, program, chosen.get("LANES", 1), device), backend, kernel_set, chosen)


def _program(kernel_set: KernelSet, macros: dict[str, Any], device: int) -> Program:
    """The program of a variant."""
    options = compile_options(kernel_set.select_macros(macros))
    return Program(_text(kernel_set), options, _capability(device))


@functools.cache
def _capability(device: int) -> int:
    import cupy

    return int(cupy.cuda.Device(device).compute_capability)


@functools.cache
def _text(kernel_set: KernelSet) -> str:
    """The text that is compiled for a kernel set."""
    return cuda_source(kernel_set.source)


@functools.cache
def _launchers(kernel_set: KernelSet, program: Program, lanes: int, device: int) -> dict[str, Any]:
    """Load one variant of a kernel set on one device, now and not inside somebody's graph capture."""
    import cupy

    module = cupy.cuda.Module()
    module.load(machine_code(program))
    return {
        name: _launcher(module.get_function(name), side.launch, lanes, device)
        for name, side in kernel_set.functions.items()
    }


def _launcher(kernel: Any, launch_mode: Launch, lanes: int, device: int) -> Callable[..., None]:
    resident = None if launch_mode == "per_item" else _resident_blocks(kernel, device)
    cooperative = launch_mode == "resident"

    def launch(items: int, *args: Any) -> None:
        blocks = -(-items * lanes // BLOCK)
        if resident is not None:
            # Each block leaves a number, and kernels add these up.
            most = most_blocks_of(REFERENCE) if is_same_on_all_gpus() else resident
            blocks = min(blocks, most, resident) if cooperative else min(blocks, most)
        if blocks:
            kernel((blocks,), (BLOCK,), (items, *args), enable_cooperative_groups=cooperative)

    return launch


def _resident_blocks(kernel: Any, device: int) -> int:
    """How many blocks of a kernel the device holds at once."""
    import cupy

    per_processor = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(kernel.ptr, BLOCK, 0)
    return per_processor * _attributes_of(device)["MultiProcessorCount"]
