"""What to pay with: outputs of one owner and one home make one payment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from walras.purse.lane.collect import Holding
from walras.purse.lane.payment import INPUTS_MAX

__all__ = ["Missing", "Part", "choose"]


@dataclass(frozen=True)
class Part:
    """A payment to be built: it spends its inputs whole."""

    inputs: list[Holding]
    paid: int
    change: int


@dataclass(frozen=True)
class Missing:
    """Units that a purse lacks for an amount, with fees and least outputs."""

    units: int


Rule = Callable[[int], tuple[int, int]]
"""The least output of an asset in a home, and its fee, which each payment pays."""


def choose(held: list[Holding], asset: int, rule: Rule, amount: int, now: int) -> list[Part] | Missing:
    """Outputs that make up an amount, in as few payments as are easily found."""
    groups: dict[tuple[bytes, int], list[Holding]] = {}
    for one in held:
        if one.output.asset == asset and one.home in (now, now - 1):
            groups.setdefault((one.output.to, one.home), []).append(one)
    cut = [sorted(group, key=lambda one: -one.output.amount)[:INPUTS_MAX] for _, group in sorted(groups.items())]

    def place(group: list[Holding]) -> tuple[bool, int]:
        total = sum(one.output.amount for one in group)
        return (False, total) if total >= amount + rule(group[0].home)[1] else (True, -total)

    # The smallest group that suffices alone comes first, then the largest ones.
    parts, left = [], amount
    for group in sorted(cut, key=place):
        part = _part_of(group, rule(group[0].home), left) if left else None
        if part is not None:
            parts.append(part)
            left -= part.paid
    return parts if left == 0 else Missing(left)


def _part_of(group: list[Holding], rule: tuple[int, int], left: int) -> Part | None:
    """The part of a payment that one group contributes; None if it contributes nothing."""
    (least, fee), inputs, total = rule, [], 0
    for one in group:
        if total >= left + fee:
            break
        total += one.output.amount
        inputs.append(one)
    usable = total - fee
    paid = min(usable, left)
    # Neither the change nor the amount that others have to pay may be too small for an output.
    if 0 < usable - paid < least or 0 < left - paid < least:
        paid -= least
    change, later = usable - paid, left - paid
    if paid < max(least, 1) or 0 < change < least or 0 < later < least:
        return None
    return Part(inputs, paid, change)
