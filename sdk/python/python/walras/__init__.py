"""Batch exchange clearing: one price vector for a whole batch of limit orders, exact in integers.

An offer sells a fixed number of units of one asset for as much as possible of another, at a limit price or better. A
clearing gives every asset a valuation and every ordered pair an amount, such that every asset is conserved, no offer
trades below its limit, and every offer whose limit lies below (1 - mu) of the rate trades in full. `clear` finds one,
`verify` checks one without solving, `explain` says why an offer did or did not trade.

Offers are a pandas `DataFrame`, an Arrow `Table`, or a mapping of columns such as NumPy arrays, with

=============  ===============================================================================================
``sell``       symbol of the asset sold
``buy``        symbol of the asset bought
``amount``     whole units sold, 1 to 2**63 - 1
``min_price``  limit price in units bought per unit sold: floating point, or exact as `decimal.Decimal` or text
=============  ===============================================================================================

Beside offers a batch may hold constant-product *pools* (columns a, b, reserve_a, reserve_b, fee), which trade at the
batch's rate until their own marginal price meets it, and *buys*, orders for an exact amount (columns buy, sell, bought,
most: buy exactly `bought` units of `buy` for at most `most` units of `sell`), filled in full or not at all.

Tables come back in the kind that the offers came in. Rows are counted from 1 everywhere, as `walras clear` does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from walras import _columns
from walras._columns import OfferError
from walras._walras import Book as _Book
from walras._walras import Outcome as _Outcome

__all__ = [
    "Clearing",
    "Explanation",
    "OfferError",
    "Proof",
    "Solver",
    "Spending",
    "Verified",
    "ViolationError",
    "clear",
    "explain",
    "verify",
]

Share: TypeAlias = "str | int | float | Decimal | Fraction"
"""A share of one: text such as ``"2^-15"``, or a number."""


class ViolationError(ValueError):
    """A clearing breaks a rule; the text says which asset, pair or row, and how."""


@dataclass(frozen=True)
class Spending:
    """What a clearing spent."""

    tries: int
    """Price vectors for which amounts were computed."""
    rounds: int
    """Searches for the shortest ways from shortages to surpluses."""
    augmentations: int
    """Ways along which a shortage was moved in those."""
    repairs: int
    """Shortages that were moved unit by unit, where fills give only some amounts."""
    price_looks: int = 0
    """Looks at pairs by the price computation, what takes longer counted as more."""
    amount_looks: int = 0
    """Looks at edges by the amount step, likewise."""


@dataclass(frozen=True)
class Solver:
    """How prices were found."""

    name: str
    """``newton`` or ``tatonnement``."""
    iterations: int
    """Newton steps or Tâtonnement rounds."""
    demand_queries: int
    """Evaluations of demand."""
    interior_parts: int
    """Parts of the market for which the interior-point method ran."""
    imbalance: float
    """The largest relative imbalance of the smoothed demand."""
    seconds: float | None
    """Time of the clearing, reading apart; None for one that was read from elsewhere."""
    amounts: Spending
    """What the amounts took."""


@dataclass(frozen=True)
class Proof:
    """A proof that no clearing is full at any prices, as no whole units follow them; `verify` checks it.

    Each division is one case against the other: the offer at position `offer`, among the offers between `assets` in the
    order of pairs and limits, sells at most `most` units or more; where `is_paid` is true, it is paid them.
    """

    assets: tuple[str, ...]
    """The assets whose conservation is used."""
    divisions: tuple[tuple[int, bool, int], ...]
    """(offer, is_paid, most): each is followed by those of its first case, and then by those of its second."""


@dataclass(frozen=True, eq=False)
class Clearing:
    """Prices and trades of one batch.

    Two are equal if prices, trades, fills, what pools and buy orders did, parameters and fullness are; how they were
    found does not count. It can be copied and pickled.
    """

    prices: dict[str, Decimal]
    """Valuation by symbol, exact: one unit of A trades for prices[A] / prices[B] units of B, before commission.

    An asset to which no chain of offers leads back has no price, and is absent.
    """
    trades: Any
    """What is sold on each pair that trades: columns sell, buy, sold."""
    fills: Any
    """What each offer that trades gives and receives: columns row, sold, bought, by row."""
    pools: Any
    """What pools trade: columns row, sell, buy, sold, bought; sell is what the pool gives."""
    buys: Any
    """The buy orders that are filled: columns row, paid."""
    epsilon: str
    """The commission that the auctioneer keeps."""
    mu: str
    """How far below the rate a limit must lie for its offer to execute in full."""
    full: bool
    """Whether every offer that must execute does."""
    short: list[str]
    """The assets in short supply when the clearing is not full."""
    reasons: list[str]
    """Why it is not full, for each set of assets that trade together: units, range, prices or amounts."""
    proofs: list[Proof]
    """Where the reason is units and it could be proved: that no clearing of these offers is full."""
    unrealized_utility_ratio: float
    """Utility left on the table over utility gained, of offers whose limit lies below the rate."""
    solver: Solver
    """How the prices were found."""
    _book: _Book = field(repr=False, compare=False)
    _outcome: _Outcome = field(repr=False, compare=False)

    def rate(self, sell: str, buy: str) -> float:
        """Units of `buy` for one unit of `sell`, before commission."""
        for symbol in (sell, buy):
            if symbol not in self.prices:
                raise KeyError(f"{symbol!r} has no price: no chain of offers leads back to it")
        return float(Fraction(self.prices[sell]) / Fraction(self.prices[buy]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Clearing):
            return NotImplemented
        plain = ("prices", "epsilon", "mu", "full", "short")
        return all(getattr(self, name) == getattr(other, name) for name in plain) and all(
            _columns.same(getattr(self, name), getattr(other, name)) for name in ("trades", "fills", "pools", "buys")
        )

    def __hash__(self) -> int:
        return hash((tuple(self.prices.items()), self.epsilon, self.mu, self.full))

    def __reduce__(self) -> tuple[Any, ...]:
        told = tuple(getattr(self, item.name) for item in fields(self) if not item.name.startswith("_"))
        outcome = self._outcome
        sell, buy, sold = (_integers(column).tolist() for column in outcome.trades)
        # The compiled half counts rows from 0.
        pools = [(row - 1, *rest) for row, *rest in outcome.pools]
        buys = [(row - 1, paid) for row, paid in outcome.buys]
        trades = list(zip(sell, buy, sold, strict=True))
        # An asset without a price trades nothing, so any price will do.
        prices = [price or "1" for price in outcome.prices]
        claim = ((outcome.epsilon, outcome.mu), prices, trades, pools, buys, (outcome.full, outcome.proofs))
        return _restored, (told, self._book, claim)

    def to_json(self) -> str:
        """The text that ``walras clear --json`` prints for the same batch; ``walras verify`` reads it."""
        trades, fills = _trade_columns(self._book, self._outcome), _fill_columns(self._book, self._outcome)
        ratio = self.unrealized_utility_ratio
        solver = {
            "name": self.solver.name,
            "iterations": self.solver.iterations,
            "demand_queries": self.solver.demand_queries,
            "interior_parts": self.solver.interior_parts,
            "seconds": self.solver.seconds or 0.0,
            "imbalance": self.solver.imbalance,
            "amounts": asdict(self.solver.amounts),
        }
        pools, buys = _pool_columns(self._book, self._outcome), _buy_columns(self._outcome)
        lists = {"pools": _listed(pools), "buys": _listed(buys)}
        more: dict[str, Any] = {name: rows for name, rows in lists.items() if rows}
        if self.reasons:
            more["reasons"] = self.reasons
        if self.proofs:
            more["proofs"] = [_proof_json(proof) for proof in self.proofs]
        return json.dumps(
            {
                "prices": _priced(self._book, self._outcome),
                "trades": _listed(trades),
                "fills": _listed(fills),
                "epsilon": self.epsilon,
                "mu": self.mu,
                "full": self.full,
                "unrealized_utility_ratio": ratio if np.isfinite(ratio) else None,
                "solver": solver,
            }
            | more
        )


def _proof_json(proof: Proof) -> dict[str, Any]:
    divisions = [
        {"offer": offer, "most": str(most)} | ({"is_paid": True} if is_paid else {})
        for offer, is_paid, most in proof.divisions
    ]
    return {"assets": list(proof.assets), "divisions": divisions}


def _restored(told: tuple[Any, ...], book: _Book, claim: tuple[Any, ...]) -> Clearing:
    """A clearing that was copied or pickled."""
    state: tuple[Any, ...] = (*told, book, book.claimed(*claim))
    return Clearing(*state)


@dataclass(frozen=True)
class Verified:
    """What a clearing that passes amounts to."""

    executed: int
    """Offers that trade, in full or in part."""
    full: bool
    """Whether it is full, as it claims."""
    surplus: dict[str, int]
    """Units of each asset that the auctioneer keeps: sold to it and not paid out."""


@dataclass(frozen=True)
class Explanation:
    """Why an offer did or did not trade; `str` gives it in words."""

    row: int
    """The offer's row, counted from 1."""
    sell: str
    """The asset that it sells."""
    buy: str
    """The asset that it buys."""
    amount: int
    """Units of `sell` that it offers."""
    min_price: Decimal
    """Its limit price."""
    rate: float
    """Units of `buy` for one of `sell`, less commission."""
    offers_ahead: int
    """How many offers of the pair come first."""
    units_ahead: int
    """Units that those offer."""
    pair_sold: int
    """Units sold on the pair."""
    sold: int
    """Units of `sell` that it gives."""
    bought: int
    """Units of `buy` that it receives."""
    must_fill: bool
    """Whether a full clearing must fill it if whole units can."""
    why: Literal["full", "part", "beyond rate", "rounding", "not reached"]
    """Why it trades as much as it does."""
    missing: int | None
    """Units more that the pair would have to sell for it to trade in full, when that is what is missing."""
    text: str
    """The same in words."""

    def __str__(self) -> str:
        return self.text


def clear(
    offers: Any,
    *,
    pools: Any = None,
    buys: Any = None,
    epsilon: Share = "2^-15",
    mu: Share = "2^-10",
    solver: Literal["newton", "tatonnement"] = "newton",
    last_prices: Mapping[str, Decimal | str | float] | None = None,
    threads: int | None = None,
) -> Clearing:
    """Clear a batch of `offers` at one price vector.

    Parameters
    ----------
    offers
        A pandas DataFrame, an Arrow Table, or a mapping of columns: sell, buy, amount, min_price. Others are left
        alone. Equal limits execute in the order of their rows.
    pools, buys
        Constant-product pools and orders for exact amounts, as tables of any of the same kinds.
    epsilon, mu
        The commission that the auctioneer keeps of every pay-out, and how far below the rate a limit price must lie for
        its offer to execute in full; mu must be greater.
    solver
        ``newton``, or ``tatonnement`` to compare with.
    last_prices
        Prices of the batch before, such as `Clearing.prices`, to start from; assets without one start from 1.
    threads
        How many threads to use, at least 1; one for each core by default, and never more than that. The answer does
        not depend on it.

    Raises
    ------
    OfferError
        If an offer or parameter cannot be used; the text names row, column and remedy.
    """
    book, kind = _read(offers, pools, buys)
    last = None if last_prices is None else _last(last_prices, book.symbols)
    shares = _share(epsilon, "epsilon"), _share(mu, "mu")
    try:
        outcome = book.clear(*shares, solver, last, _threads(threads))
    except (ValueError, TypeError, OverflowError) as error:
        raise OfferError(str(error)) from None
    return _clearing(book, outcome, kind)


def verify(
    offers: Any, clearing: Clearing | str | Mapping[str, Any], *, pools: Any = None, buys: Any = None
) -> Verified:
    """Check a clearing of `offers`, and of the `pools` and `buys` cleared with them, without solving anything.

    Every asset must be conserved and every limit price kept in whole units, and where the clearing claims to be full,
    every offer that must execute has to. `clearing` is a `Clearing`, or the JSON of one, as text or parsed.

    Raises
    ------
    ViolationError
        With the first violation.
    OfferError
        If the offers themselves cannot be used.
    """
    book, _ = _read(offers, pools, buys)
    claim = _claim(clearing)
    try:
        outcome = _claimed(book, claim)
        executed, surplus = book.verify(outcome)
        _same_fills(claim, _fill_columns(book, outcome))
    except ViolationError:
        raise
    except KeyError as error:
        raise ViolationError(f"not a clearing: a row of it lacks {error}") from None
    except (ValueError, TypeError, OverflowError) as error:
        raise ViolationError(str(error)) from None
    return Verified(executed, outcome.full, dict(zip(book.symbols, surplus, strict=True)))


def explain(clearing: Clearing, row: int) -> Explanation:
    """Say why the offer of `row`, counted from 1, did or did not trade in `clearing`.

    Raises
    ------
    IndexError
        If there is no such row.
    """
    fields = clearing._book.explain(clearing._outcome, int(row))
    fields["min_price"] = Decimal(fields["min_price"])
    return Explanation(**fields)


def _claim(clearing: Clearing | str | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(clearing, Mapping):
        return clearing
    text = clearing.to_json() if isinstance(clearing, Clearing) else clearing
    try:
        claim = json.loads(text)
    except ValueError as error:
        raise ViolationError(f"not a clearing: {error}") from None
    if not isinstance(claim, Mapping):
        raise ViolationError("not a clearing: give what clear returns or prints")
    return claim


def _read(offers: Any, pools: Any, buys: Any) -> tuple[_Book, _columns.Kind]:
    columns, kind = _columns.read(offers, pools, buys)
    try:
        return _Book(*columns), kind
    except ValueError as error:
        raise OfferError(str(error)) from None


SHARE_PLACES = 32
"""Binary places of a share, and decimal ones of the text that gives them exactly."""


def _share(value: Share, name: str) -> str:
    """The text of a share; the caller's decimal context has no say in it."""
    if isinstance(value, str):
        return value
    plain: Any = value.item() if isinstance(value, np.number) else value
    try:
        # The shortest decimal that reads back as the same double is what was meant.
        exact = Fraction(str(plain) if isinstance(plain, float) else plain)
    except (TypeError, ValueError, OverflowError):
        raise OfferError(f"{name}: {value!r} is not a share: give a number from 0 to 1 or a text such as '2^-15'") from None
    if exact < 0 or exact > 1:
        raise OfferError(f"{name}: {value!r} is out of range: give a number from 0 to 1")
    # A share is read to this many binary places, rounded down: here already, so that the text is exact.
    whole, part = divmod(int(exact * 2**SHARE_PLACES), 2**SHARE_PLACES)
    return f"{whole}.{part * 10**SHARE_PLACES // 2**SHARE_PLACES:0{SHARE_PLACES}d}"


def _threads(threads: Any) -> int | None:
    """The number of threads to start: never more than there are cores."""
    if threads is None:
        return None
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise OfferError(f"threads: {threads!r} is not a number of threads: give 1 or more, or None for all cores")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(int(threads), cores)


def _last(prices: Any, symbols: list[str]) -> list[str]:
    if not isinstance(prices, Mapping):
        raise OfferError(f"last_prices: a {type(prices).__name__} is no mapping of symbols to prices")
    return [_price(symbol, prices.get(symbol, 1)) for symbol in symbols]


def _price(symbol: str, value: Any) -> str:
    try:
        return value if isinstance(value, str) else format(Decimal(str(value)), "f")
    except (ArithmeticError, ValueError):
        raise OfferError(f"last_prices: {value!r} is not a price of {symbol}: give a number above 0") from None


def _priced(book: _Book, outcome: _Outcome) -> dict[str, str]:
    """The prices of the assets that have one."""
    prices = zip(book.symbols, outcome.prices, strict=True)
    return {symbol: price for symbol, price in prices if price is not None}


def _clearing(book: _Book, outcome: _Outcome, kind: _columns.Kind) -> Clearing:
    symbols = book.symbols
    return Clearing(
        prices={symbol: Decimal(price) for symbol, price in _priced(book, outcome).items()},
        trades=_columns.written(_trade_columns(book, outcome), kind),
        fills=_columns.written(_fill_columns(book, outcome), kind),
        pools=_columns.written(_pool_columns(book, outcome), kind),
        buys=_columns.written(_buy_columns(outcome), kind),
        epsilon=outcome.epsilon,
        mu=outcome.mu,
        full=outcome.full,
        short=[symbols[asset] for asset in outcome.short],
        reasons=outcome.reasons,
        proofs=[
            Proof(tuple(symbols[asset] for asset in assets), tuple(divisions)) for assets, divisions in outcome.proofs
        ],
        unrealized_utility_ratio=outcome.unrealized_utility_ratio,
        solver=Solver(*outcome.solver, Spending(*outcome.spending)),
        _book=book,
        _outcome=outcome,
    )


def _integers(column: bytes) -> npt.NDArray[np.int64]:
    return np.frombuffer(column, dtype="<i8").astype(np.int64)


def _trade_columns(book: _Book, outcome: _Outcome) -> dict[str, npt.NDArray[Any]]:
    sell, buy, sold = (_integers(column) for column in outcome.trades)
    symbols = np.array(book.symbols, dtype=object)
    return {"sell": symbols[sell], "buy": symbols[buy], "sold": sold}


def _fill_columns(book: _Book, outcome: _Outcome) -> dict[str, npt.NDArray[Any]]:
    return dict(zip(("row", "sold", "bought"), (_integers(column) for column in book.fills(outcome)), strict=True))


def _pool_columns(book: _Book, outcome: _Outcome) -> dict[str, npt.NDArray[Any]]:
    rows = np.array(outcome.pools, dtype=np.int64).reshape(-1, 5)
    symbols = np.array(book.symbols, dtype=object)
    names = {"row": rows[:, 0], "sell": symbols[rows[:, 1]], "buy": symbols[rows[:, 2]]}
    return names | {"sold": rows[:, 3], "bought": rows[:, 4]}


def _buy_columns(outcome: _Outcome) -> dict[str, npt.NDArray[Any]]:
    rows = np.array(outcome.buys, dtype=np.int64).reshape(-1, 2)
    return {"row": rows[:, 0], "paid": rows[:, 1]}


def _listed(columns: dict[str, npt.NDArray[Any]]) -> list[dict[str, Any]]:
    """Rows for JSON: row numbers as numbers, amounts as text."""
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [
        {name: value if name == "row" else str(value) for name, value in zip(columns, row, strict=True)} for row in rows
    ]


def _claimed(book: _Book, claim: Mapping[str, Any]) -> _Outcome:
    """The clearing that `claim` states, for the assets of `book`."""
    missing = [key for key in ("prices", "trades", "fills", "epsilon", "mu", "full") if key not in claim]
    if missing:
        raise ViolationError(f"not a clearing: {missing[0]} is missing; give what clear returns or prints")
    places = {symbol: place for place, symbol in enumerate(book.symbols)}
    strangers = [symbol for symbol in claim["prices"] if symbol not in places]
    absent = [s for s, is_priced in zip(places, book.priced, strict=True) if is_priced and s not in claim["prices"]]
    if strangers:
        raise ViolationError(f"prices: asset {strangers[0]} is in none of the offers")
    if absent:
        raise ViolationError(f"prices: none for asset {absent[0]}")
    for trade in claim["trades"]:
        for symbol in (trade["sell"], trade["buy"]):
            if symbol not in places:
                raise ViolationError(f"trades: asset {symbol} is in none of the offers")
        if not (str(trade["sold"]).isdigit() and int(trade["sold"]) < 2**64):
            raise ViolationError(f"trades: {trade['sell']}/{trade['buy']} sells {trade['sold']!r}: not an amount")
    trades = [(places[t["sell"]], places[t["buy"]], int(t["sold"])) for t in claim["trades"]]
    pools = [
        (int(p["row"]) - 1, places[p["sell"]], places[p["buy"]], int(p["sold"]), int(p["bought"]))
        for p in claim.get("pools", [])
    ]
    buys = [(int(b["row"]) - 1, int(b["paid"])) for b in claim.get("buys", [])]
    proofs = [
        (
            [places[symbol] for symbol in proof["assets"]],
            [(int(d["offer"]), bool(d.get("is_paid", False)), int(d["most"])) for d in proof["divisions"]],
        )
        for proof in claim.get("proofs", [])
    ]
    prices: Sequence[str] = [claim["prices"].get(symbol, "1") for symbol in places]
    full = (bool(claim["full"]), proofs)
    return book.claimed((claim["epsilon"], claim["mu"]), list(prices), trades, pools, buys, full)


def _same_fills(claim: Mapping[str, Any], due: dict[str, npt.NDArray[Any]]) -> None:
    listed = sorted((int(f["row"]), int(f["sold"]), int(f["bought"])) for f in claim["fills"])
    for at, fill in enumerate(zip(*(column.tolist() for column in due.values()), strict=True)):
        if at >= len(listed) or listed[at] != fill:
            row, sold, bought = fill
            raise ViolationError(f"fills: row {row} sells {sold} for {bought}, but the list does not say so")
    if len(listed) > len(due["row"]):
        extra = listed[len(due["row"])]
        raise ViolationError(f"fills: row {extra[0]} does not trade, but the list says so")
