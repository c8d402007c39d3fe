"""What a case gets: random numbers, a device, and checks that count themselves."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

FLOATS = ("float32", "float64", "complex64", "complex128")


class Failure(AssertionError):
    """A check that does not hold: `what` is the same for all failures of a kind, `facts` are those of the case."""

    def __init__(self, what: str, facts: dict[str, Any]) -> None:
        super().__init__(what, facts)
        self.what, self.facts = what, facts


class Device:
    """Where cases run: "cpu", "gpu", or "emulated", which is a CPU to the callers of the package."""

    def __init__(self, name: str) -> None:
        self.name, self.is_gpu = name, name == "gpu"
        if self.is_gpu:
            import cupy
            import cupyx.scipy.sparse
            import cupyx.scipy.sparse.linalg

            self.xp: Any = cupy
            self.sparse: Any = cupyx.scipy.sparse
            self.linalg: Any = cupyx.scipy.sparse.linalg
        else:
            self.xp, self.sparse, self.linalg = np, sp, scipy.sparse.linalg

    def put(self, value: Any) -> Any:
        """Move a SciPy matrix or a NumPy array; entries stay as they stand, unsorted and repeated ones too."""
        if not self.is_gpu:
            return value
        if not sp.issparse(value):
            return self.xp.asarray(value)
        # CuPy's matrices hold floats, and are csr, csc or coo.
        data = value.data if str(value.dtype) in FLOATS else value.data.astype(np.float64)
        if value.format == "coo":
            places = tuple(map(self.xp.asarray, (value.row, value.col)))
            return self.sparse.coo_matrix((self.xp.asarray(data), places), shape=value.shape)
        kind = self.sparse.csc_matrix if value.format == "csc" else self.sparse.csr_matrix
        return kind(tuple(map(self.xp.asarray, (data, value.indices, value.indptr))), shape=value.shape)

    def get(self, array: Any) -> np.ndarray:
        """The values of an array on the host."""
        return array.get() if hasattr(array, "get") else np.asarray(array)


class Trial:
    """One case: its random numbers follow from the category's name and the case's seed alone."""

    def __init__(self, category: str, seed: int, device: Device) -> None:
        self.seed, self.rng = seed, np.random.default_rng([zlib.crc32(category.encode()), seed])
        self.device, self.put, self.get = device, device.put, device.get
        self.checks = 0
        self.notes: Counter[str] = Counter()
        self.facts: dict[str, Any] = {}

    def one_of(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def about(self, **facts: Any) -> None:
        """What the case is about; a failure shows it."""
        self.facts |= facts

    def check(self, holds: Any, what: str, **facts: Any) -> None:
        """Count a comparison, and end the case if it does not hold."""
        self.checks += 1
        if not holds:
            raise Failure(what, {**self.facts, **facts})

    def equal(self, found: Any, expected: Any, what: str, **facts: Any) -> None:
        """The same dtype and shape, and the same numbers to the last bit."""
        found, expected = self.get(found), self.get(expected)
        if found.dtype != expected.dtype or found.shape != expected.shape:
            facts |= {"found": f"{found.dtype}{found.shape}", "expected": f"{expected.dtype}{expected.shape}"}
            self.check(False, what, **facts)
        other = ~((found == expected) | ((found != found) & (expected != expected)))
        if other.any():
            place = tuple(int(k) for k in np.argwhere(other)[0])
            facts |= {"differ": int(other.sum()), "at": place, "found": found[place], "expected": expected[place]}
        self.check(not other.any(), what, **facts)

    def within(self, error: np.ndarray, bound: np.ndarray, what: str, **facts: Any) -> None:
        """Every error is at most its bound."""
        with np.errstate(all="ignore"):
            ratio = np.asarray(np.abs(error) / np.maximum(bound, np.finfo(np.longdouble).tiny), float)
        worst = float(ratio.max(initial=0.0)) if not np.isnan(ratio).any() else np.nan
        self.check(worst <= 1, what, error_over_bound=worst, **facts)

    def refuses(
        self, call: Callable[[], Any], what: str, *, naming: tuple[str, ...] = (), **facts: Any
    ) -> Exception | None:
        """The call raises TypeError or ValueError, with one of the given words in its message."""
        try:
            found = call()
        except (TypeError, ValueError) as error:
            text = str(error)
            self.check(
                not naming or any(word in text for word in naming),
                f"{what}: the message does not name it",
                message=text[:200],
                naming=naming,
                **facts,
            )
            return error
        self.check(False, f"{what}: accepted", returned=repr(found)[:100], **facts)
        return None


def frozen(A: Any, device: Device) -> list[np.ndarray]:
    """Copies of all arrays of a matrix or of an array, to see whether somebody changes them."""
    parts = ("data", "indices", "indptr", "row", "col")
    is_sparse = sp.issparse(A) or device.sparse.issparse(A)
    arrays = [getattr(A, part) for part in parts if hasattr(A, part)] if is_sparse else [A]
    return [np.array(device.get(array), copy=True) for array in arrays]
