"""docs/factorizations.md: which preconditioner wins where, and why."""

from __future__ import annotations

from report.noise import fastest
from report.noise import total as time_of
from report.results import Row
from report.tables import number

ORDERS = ("color", "first-fit")  # of colorings
COLORED = [f"{kind} {order}" for order in ORDERS for kind in ("SGS", "DILU", "ILU0")]
OURS = ("plain CG", "Jacobi", *COLORED, "ILU0 natural")


def winner(name: str, rows: dict[str, Row]) -> str:
    """Which of ours is the fastest on a matrix, and what the next one and the last one lose by."""
    ours = sorted((rows[kind] for kind in OURS if kind in rows), key=lambda row: row["total_ms"])
    best, others = ours[0], ours[1:]
    text = f"**{name}**: {best['name']} has the least time, {number(best['total_ms'])} ms: {cost(best)}"
    if best["setup_ms"]:
        text += f" and {number(best['setup_ms'])} ms of setup"
    losses = []
    for which, row in zip(("next", "slowest"), [*others[:1], *others[1:][-1:]], strict=False):
        loss = f"The {which}, {row['name']}, takes {row['total_ms'] / best['total_ms']:.2f} times as long"
        decided = fastest(time_of(best), [time_of(row)]) == "yes"
        losses.append(loss if decided else f"{loss}, which is not decided")
    return ". ".join([text, *losses]) + "."


def cost(row: Row) -> str:
    return f"{row['iterations']} iterations of {number(row['solve_ms'] / max(row['iterations'], 1))} ms"
