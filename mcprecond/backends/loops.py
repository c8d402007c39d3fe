"""Loops that end as soon as a state on the device says so.

On a GPU a loop is one graph with a conditional node, which repeats its body for as long as a kernel in the body asks
for that, so that nothing runs for nothing and the host waits once. CuPy has no functions for such nodes: the CUDA
driver is called by ctypes. Drivers have them since CUDA 12.4; that kernel is linked with libcudadevrt, which comes with
the toolkit. Without one of the two, where something cannot be captured, where the driver refuses the graph, as it may
under MPS, and under compute-sanitizer, which cannot follow it, the host repeats the body and looks at the states now
and then.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys
import weakref
from collections.abc import Callable
from typing import Any

#: One repetition in so many may be one for nothing, where the host decides whether to go on.
SHARE = 16
#: A variable that compute-sanitizer sets.
UNDER_SANITIZER = "NV_SANITIZER_INJECTION_PORT_BASE"
#: Values of the driver's interface.
CONDITIONAL, WHILE, ASSIGN_DEFAULT, RELAXED = 13, 1, 1, 2
SOURCE = r"""
extern "C" __device__ __cudart_builtin__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);

extern "C" __global__ void go_on(long long* left, const long long* states, long long stride, long long count,
                                 unsigned long long handle) {
    bool runs = false;
    for (long long k = 0; k < count; ++k) runs |= states[k * stride] == 0;
    cudaGraphSetConditional(handle, --*left > 0 && runs);
}
"""


class NodeParams(ctypes.Structure):
    """CUgraphNodeParams of a conditional node."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("reserved", ctypes.c_int * 3),
        ("handle", ctypes.c_ulonglong),
        ("kind", ctypes.c_int),
        ("size", ctypes.c_uint),
        ("bodies", ctypes.POINTER(ctypes.c_void_p)),
        ("context", ctypes.c_void_p),
        ("unused", ctypes.c_longlong * 25),
        ("reserved_too", ctypes.c_longlong),
    )


def repeat_on_host(run: Callable[[], None], states: Any, to_host: Callable[[Any], Any]) -> Callable[[int], None]:
    """Return a loop in which the host decides whether to go on; see `Backend.loop`."""

    def loop(most: int) -> None:
        done = 0
        while done < most:
            more = min(done // SHARE + 1, most - done)
            for _ in range(more):
                run()
            done += more
            if done < most and not (to_host(states) == 0).any():
                return

    return loop


def repeat_on_device(function: Callable[[], None], states: Any, bundle: int) -> Callable[[int], None] | None:
    """Return a loop that is one graph; None where that is not possible. See `Backend.loop`."""
    import cupy

    kernel = _kernel(cupy.cuda.Device().id)
    if kernel is None:
        return None
    left, layout = cupy.empty(1, cupy.int64), (states.strides[0] // states.itemsize, states.size)

    @functools.cache
    def graph_of(times: int) -> Graph:
        """With so many calls of the function in each pass."""

        def body() -> None:
            for _ in range(times):
                function()

        return Graph(body, lambda handle: kernel((1,), (1,), (left, states, *layout, handle)))

    try:
        graph_of(bundle)
    except DriverError:
        return None

    def loop(most: int) -> None:
        times = bundle if most >= bundle else 1
        graph = graph_of(times)
        left.fill(-(-most // times))
        graph.launch()

    return loop


class DriverError(RuntimeError):
    """What the CUDA driver says of a call that has failed."""


class Graph:
    """A graph that repeats its body.

    Parameters
    ----------
    body : function
        Launches kernels and does nothing else.
    decide : function of an int
        Launches a kernel, which decides by the handle that it is given whether the body runs once more.
    """

    def __init__(self, body: Callable[[], None], decide: Callable[[Any], None]) -> None:
        import cupy

        graph, handle, node, context = ctypes.c_void_p(), ctypes.c_ulonglong(), ctypes.c_void_p(), ctypes.c_void_p()
        _call("cuGraphCreate", ctypes.byref(graph), 0)
        self._close = weakref.finalize(self, _driver().cuGraphDestroy, graph)
        self._close.atexit = False
        _call("cuCtxGetCurrent", ctypes.byref(context))
        _call("cuGraphConditionalHandleCreate", ctypes.byref(handle), graph, context, 1, ASSIGN_DEFAULT)
        params = NodeParams(type=CONDITIONAL, handle=handle.value, kind=WHILE, size=1, context=context)
        _call("cuGraphAddNode", ctypes.byref(node), graph, None, ctypes.c_size_t(0), ctypes.byref(params))
        stream, ended = cupy.cuda.Stream(non_blocking=True), ctypes.c_void_p()
        pointer = ctypes.c_void_p(stream.ptr)
        with stream:
            inside = ctypes.c_void_p(params.bodies[0])
            # All inside, so that whatever ends it, Ctrl-C too, leaves no stream that captures: to free one is a crash.
            try:
                _call("cuStreamBeginCaptureToGraph", pointer, inside, None, None, ctypes.c_size_t(0), RELAXED)
                body()
                decide(cupy.uint64(handle.value))
                _call("cuStreamEndCapture", pointer, ctypes.byref(ended))
            except BaseException:
                with contextlib.suppress(DriverError):  # the first error is the one to tell
                    _call("cuStreamEndCapture", pointer, ctypes.byref(ended))
                raise
        self._graph = ctypes.c_void_p()
        _call("cuGraphInstantiateWithFlags", ctypes.byref(self._graph), graph, ctypes.c_ulonglong(0))
        weakref.finalize(self, _driver().cuGraphExecDestroy, self._graph).atexit = False

    def launch(self) -> None:
        """Enqueue it on the current stream."""
        import cupy

        _call("cuGraphLaunch", self._graph, ctypes.c_void_p(cupy.cuda.get_current_stream().ptr))


@functools.cache
def _driver() -> Any:
    """The CUDA driver."""
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


def _call(name: str, *arguments: Any) -> None:
    """Call a function of the driver; a DriverError says what has failed."""
    if error := getattr(_driver(), name)(*arguments):
        text = ctypes.c_char_p()
        _driver().cuGetErrorString(error, ctypes.byref(text))
        raise DriverError(f"{name}: {(text.value or b'unknown error').decode()}")


@functools.cache
def _kernel(device: int) -> Any:
    """The kernel that decides whether a body runs once more, loaded on a device; None where there is no such thing."""
    import cupy

    if not hasattr(_driver(), "cuGraphConditionalHandleCreate") or UNDER_SANITIZER in os.environ:
        return None
    try:
        return cupy.RawModule(code=SOURCE, options=("-dc",)).get_function("go_on")
    except (RuntimeError, cupy.cuda.compiler.CompileException, cupy.cuda.driver.CUDADriverError):
        return None
