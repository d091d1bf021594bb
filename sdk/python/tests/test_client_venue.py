"""Reports of fills: those of the published vectors are read and verified, and spoiled ones are none."""

import json
from pathlib import Path

import pytest

from walras.client.proof import ProofError
from walras.client.venue import VenueReport

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
