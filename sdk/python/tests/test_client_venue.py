"""Reports of fills: those of the published vectors are read and verified, and spoiled ones are none."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from walras.client.proof import ProofError
from walras.client.venue import VenueMarket, VenueReport, VenueTrade

VENUE = json.loads((Path(__file__).resolve().parents[3] / "docs" / "venue-vectors.json").read_text())
STEP, NETWORK = VENUE["step"], VENUE["network"]


def is_report(text: str) -> bool:
    try:
        return VenueReport.read(text).is_signed(NETWORK)
    except ProofError:
        return False


@pytest.mark.parametrize("place", range(STEP["size"]))
def test_every_report_of_a_step_is_read_and_signed_for_its_network_alone(place: int) -> None:
    report, leaf = VenueReport.read(STEP["reports"][place]), STEP["leaves"][place]
    assert report.is_signed(NETWORK) and not report.is_signed("0x" + "11" * 32)
    assert (str(report.index), report.leaf, report.account) == (leaf["index"], leaf["leaf"], leaf["account"])
    assert report.step is not None
    assert (str(report.step.number), report.step.size, report.step.place) == (STEP["number"], STEP["size"], place)


@pytest.mark.parametrize("spoiled", STEP["refused"], ids=lambda spoiled: spoiled["why"])
def test_a_spoiled_report_of_a_step_is_none(spoiled: dict) -> None:
    assert not is_report(spoiled["bytes"])


def test_bytes_of_a_report_have_one_reading() -> None:
    single, of_step = VENUE["report"]["bytes"], STEP["reports"][0]
    assert is_report(single) and is_report(of_step)
    assert VenueReport.read(single).step is None
    for other in ["0x", "0x01", "0xzz", of_step[:-2], of_step + "00", "0x00" + of_step[4:], "0x00" + single[2:]]:
        assert not is_report(other)


def test_markets_and_trades_of_a_venue_are_read() -> None:
    day = {"since_ms": 60_000, "complete": True, "open": 100, "high": 120, "low": 90, "close": 110, "trades": 3}
    day |= {"change_percent": "10.00", "lots": "7", "base_volume": "7000", "quote_volume": "770"}
    numbers = {"market": 0, "base": 1, "quote": 0, "bid": 99, "ask": None, "last": 110, "lots_max": 9, "lots_min": 1}
    numbers |= {"fee_cap_ppm": 2_000, "maker_ppm": -50, "taker_ppm": 200, "least_quote_units": "0"}
    texts = {"symbol": "M0", "phase": "trading", "lot_units": "1000", "tick_units": "1"}
    told = VenueMarket.of({**numbers, **texts, "day": day})
    assert told.day is not None and (told.day.change_percent, told.day.lots) == (Decimal("10.00"), 7)
    assert VenueMarket.of({**numbers, **texts, "last": None, "day": None}).day is None
    trade = VenueTrade.of({"index": "9007199254740993", "time_ms": 5, "side": "sell", "tick": 110, "lots": 2})
    assert (trade.index, trade.side) == (9007199254740993, "sell")
