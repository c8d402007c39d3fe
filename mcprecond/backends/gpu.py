"""The GPU: CuPy arrays and matrices, CUDA kernels compiled by CuPy when first used and cached on disk by it."""

from __future__ import annotations

import functools
import re
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from types import ModuleType
from typing import Any

import numpy as np

from mcprecond.backends.ahead import compile_ahead
from mcprecond.backends.cuda_source import BLOCK, cuda_source
from mcprecond.backends.first_use import compile_by_cupy
from mcprecond.backends.kernels import Kernels, KernelSet
from mcprecond.typing import Device

#: Seconds in which CuPy loads any kernel set that it has kept; it does not tell when it calls the compiler.
LOADED = 0.2
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


class GpuBackend:
    """See `Backend`. Everything runs on the caller's current device and stream."""

    name: Device = "gpu"
    iterations_per_look = 8

    @property
    def xp(self) -> ModuleType:
        import cupy

        return cupy

    @property
    def sparse(self) -> ModuleType:
        import cupyx.scipy.sparse

        return cupyx.scipy.sparse

    @property
    def linalg(self) -> ModuleType:
        import cupyx.scipy.sparse.linalg

        return cupyx.scipy.sparse.linalg

    def kernels(self, kernel_set: KernelSet, **macros: Any) -> Kernels:
        return _variant(self, kernel_set, tuple(macros.items()), self.xp.cuda.Device().id)

    def repeatable(self, function: Callable[[], None]) -> Callable[[], None]:
        import cupy

        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            try:
                function()
            finally:
                graph = stream.end_capture()
        return graph.launch

    @property
    def resident_warps(self) -> int:
        return self._attributes["MultiProcessorCount"] * WARPS_PER_PROCESSOR

    @property
    def shared_cache(self) -> int:
        return self._attributes["L2CacheSize"]

    @property
    def memory_speed(self) -> float:
        kilohertz, bits = (self._attributes.get(name, 0) for name in ("MemoryClockRate", "GlobalMemoryBusWidth"))
        return 2e3 * kilohertz * bits / 8

    @property
    def _attributes(self) -> dict[str, int]:
        return _attributes_of(self.xp.cuda.Device().id)

    @property
    def stream(self) -> Hashable:
        cuda = self.xp.cuda
        pointer = cuda.get_current_stream().ptr
        # The per-thread default stream is another one in each thread, under one name.
        thread = threading.get_ident() if pointer == cuda.runtime.streamPerThread else None
        return cuda.Device().id, pointer, thread

    def to_host(self, array: Any) -> np.ndarray:
        return self.xp.asnumpy(array)

    def fetcher(self, array: Any) -> Callable[[], Callable[[], np.ndarray]]:
        import cupyx

        fetched, there = cupyx.empty_pinned(array.shape, array.dtype), self.xp.cuda.Event(disable_timing=True)

        def wait() -> np.ndarray:
            there.synchronize()
            return fetched

        def ask() -> Callable[[], np.ndarray]:
            array.get(out=fetched, blocking=False)
            there.record()
            return wait

        return ask

    def synchronize(self) -> None:
        self.xp.cuda.get_current_stream().synchronize()

    def __reduce__(self) -> Any:
        from mcprecond.backends import get_backend

        return get_backend, (self.name,)  # which says why, where there is no GPU


@functools.cache
def _variant(backend: GpuBackend, kernel_set: KernelSet, macros: tuple[tuple[str, Any], ...], device: int) -> Kernels:
    """The launchers of one variant, found by its choices as they are given: a call costs next to nothing."""
    chosen = dict(macros)
    started = time.perf_counter()
    launchers = _launchers(kernel_set, _options(kernel_set, chosen), chosen.get("LANES", 1), device)
    if time.perf_counter() - started > LOADED and {"OFFSET", "VALUE", "LANES"} <= set(chosen):
        _compile_ahead(tuple((name, chosen[name]) for name in ("OFFSET", "VALUE", "LANES")), device)
    return Kernels(launchers, backend, kernel_set, chosen)


def _options(kernel_set: KernelSet, macros: dict[str, Any]) -> tuple[str, ...]:
    """The options of a variant: what the text does not mention makes no other code of it."""
    _, words = _text_and_words(kernel_set)
    return compile_options({name: value for name, value in macros.items() if name in words})


@functools.cache
def _compile_ahead(macros: tuple[tuple[str, Any], ...], device: int) -> list[Future[Any]]:
    """Once for these types, where nothing has been kept: let threads compile what follows."""
    return compile_ahead(
        lambda kernel_set, chosen: _compiled(kernel_set, _options(kernel_set, chosen), device), dict(macros), device
    )


@functools.cache
def _text_and_words(kernel_set: KernelSet) -> tuple[str, frozenset[str]]:
    """The text that is compiled for a kernel set, and its identifiers."""
    text = cuda_source(kernel_set.source)
    return text, frozenset(re.findall(r"[A-Za-z_]\w*", text))


@functools.cache
def _launchers(kernel_set: KernelSet, options: tuple[str, ...], lanes: int, device: int) -> dict[str, Any]:
    """Compile (or load from CuPy's cache) and load one variant of a kernel set on one device."""
    launchers = {}
    for name, kernel in _compiled(kernel_set, options, device).items():
        most_blocks = None if kernel_set.functions[name].launch == "per_item" else _resident_blocks(kernel)
        launchers[name] = _launcher(kernel, lanes, most_blocks)
    return launchers


#: Variants that are compiled, or that some thread compiles.
_VARIANTS: dict[tuple[KernelSet, tuple[str, ...], int], Future[dict[str, Any]]] = {}
_LOCK = threading.Lock()


def _compiled(kernel_set: KernelSet, options: tuple[str, ...], device: int) -> dict[str, Any]:
    """The kernels of one variant, compiled now, not inside somebody's graph capture; or by a thread that is at it."""
    import cupy

    with _LOCK:
        mine = (key := (kernel_set, options, device)) not in _VARIANTS
        future = _VARIANTS.setdefault(key, Future())
    if mine:
        try:
            source, _ = _text_and_words(kernel_set)
            kernels = {}
            for name, side in kernel_set.functions.items():
                kernels[name] = cupy.RawKernel(
                    source, name, options, enable_cooperative_groups=side.launch == "resident"
                )
                compile_by_cupy(kernels[name])
            future.set_result(kernels)
        except BaseException as error:
            del _VARIANTS[key]
            future.set_exception(error)
    return future.result()


def _resident_blocks(kernel: Any) -> int:
    """How many blocks of a kernel the current device holds at once."""
    import cupy

    per_processor = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(kernel.kernel.ptr, BLOCK, 0)
    return per_processor * cupy.cuda.Device().attributes["MultiProcessorCount"]


def _launcher(kernel: Any, lanes: int, most_blocks: int | None) -> Callable[..., None]:
    def launch(items: int, *args: Any) -> None:
        blocks = -(-items * lanes // BLOCK)
        if most_blocks is not None:
            blocks = min(blocks, most_blocks)
        if blocks:
            kernel((blocks,), (BLOCK,), (items, *args))

    return launch
