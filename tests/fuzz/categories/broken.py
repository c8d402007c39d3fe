"""Cases that go wrong in every way, for tests of the driver: which way depends on the seed."""

from __future__ import annotations

import faulthandler
import time

from fuzz.trial import Trial

WAYS = ("right", "fails", "raises", "crashes", "hangs")


def case(t: Trial) -> None:
    t.check(True, "two and two are four")
    way = WAYS[t.seed % len(WAYS)]
    t.about(way=way)
    if way == "raises":
        raise KeyError("what nobody expects")
    if way == "crashes":
        faulthandler._sigsegv()  # type: ignore[attr-defined]
    if way == "hangs":
        time.sleep(3600)
    t.check(way != "fails", "two and two are five", sum=4)
