"""Types of the compiled half."""

from typing import Any

class Book:
    symbols: list[str]
    def __init__(
        self, symbols: list[str], sell: bytes, buy: bytes, amount: bytes, limits: bytes | list[str], /
    ) -> None: ...
    def __len__(self) -> int: ...
    def clear(
        self, epsilon: str, mu: str, solver: str, last: list[str] | None, threads: int | None, /
    ) -> Outcome: ...
    def claimed(
        self, epsilon: str, mu: str, prices: list[str], trades: list[tuple[int, int, int]], full: bool, /
    ) -> Outcome: ...
    def verify(self, outcome: Outcome, /) -> tuple[int, list[int]]: ...
    def fills(self, outcome: Outcome, /) -> list[bytes]: ...
    def explain(self, outcome: Outcome, row: int, /) -> dict[str, Any]: ...

class Outcome:
    prices: list[str]
    trades: list[bytes]
    full: bool
    epsilon: str
    mu: str
    unrealized_utility_ratio: float
    short: list[int]
    solver: tuple[str, int, int, float, float | None]
