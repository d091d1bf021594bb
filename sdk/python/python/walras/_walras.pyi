"""Types of the compiled half."""

from typing import Any

class Book:
    symbols: list[str]
    priced: list[bool]
    def __init__(
        self,
        symbols: list[str],
        offers: tuple[bytes, bytes, bytes, bytes | list[str]],
        pools: list[tuple[int, int, int, int, str]],
        buys: list[tuple[int, int, int, int]],
        /,
    ) -> None: ...
    def __len__(self) -> int: ...
    def clear(
        self, epsilon: str, mu: str, solver: str, last: list[str] | None, threads: int | None, /
    ) -> Outcome: ...
    def claimed(
        self,
        shares: tuple[str, str],
        prices: list[str],
        trades: list[tuple[int, int, int]],
        pools: list[tuple[int, int, int, int, int]],
        buys: list[tuple[int, int]],
        full: tuple[bool, list[tuple[list[int], list[tuple[int, bool, int]]]]],
        /,
    ) -> Outcome: ...
    def verify(self, outcome: Outcome, /) -> tuple[int, list[int]]: ...
    def fills(self, outcome: Outcome, /) -> list[bytes]: ...
    def explain(self, outcome: Outcome, row: int, /) -> dict[str, Any]: ...

class Outcome:
    prices: list[str | None]
    trades: list[bytes]
    pools: list[tuple[int, int, int, int, int]]
    buys: list[tuple[int, int]]
    full: bool
    epsilon: str
    mu: str
    unrealized_utility_ratio: float
    short: list[int]
    reasons: list[str]
    proofs: list[tuple[list[int], list[tuple[int, bool, int]]]]
    solver: tuple[str, int, int, int, float, float | None]
    spending: tuple[int, int, int, int, int, int]

Terms = tuple[bytes, bytes, int, bytes, int, int]

def seal(
    committee: bytes, terms: Terms, operations: list[bytes], drawn: bytes, /
) -> tuple[int, bytes, bytes]: ...
def sealed_label(terms: Terms, size: int, point: bytes, /) -> bytes: ...
def opens(committee: bytes, label: bytes, key: bytes, /) -> bool: ...
def open_sealed(
    size: int, point: bytes, sealed: bytes, label: bytes, key: bytes, /
) -> list[bytes]: ...
