import numpy as np
import pytest

from mcprecond.linalg.vectors import signs


@pytest.mark.parametrize("seed", [1, 7, 2**31])
def test_signs_are_bits_of_the_hash(seed, backend):
    n = 500
    k = [i * 0x9E3779B1 % 2**32 for i in range(seed * n, (seed + 1) * n)]
    bits = [((i ^ i >> 15) * 0x2C1B3C6D % 2**32) >> 17 & 1 for i in k]
    found = backend.to_host(signs(n, seed, backend))
    np.testing.assert_array_equal(found, 2.0 * np.array(bits) - 1)
    assert abs(found.sum()) < 5 * n**0.5
