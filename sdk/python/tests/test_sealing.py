"""Envelopes against the vectors of docs/sealed-vectors.json, and against a library of another house."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from py_arkworks_bls12381 import GT, G1Point, G2Point

from walras.client.encoding import Body, Signed
from walras.client.operations import CreateOffer
from walras.sealing import (
    Enclosure,
    Envelope,
    EnvelopeTerms,
    is_opening_key,
    label_of,
    open_envelope,
    seal,
)

VECTORS = json.loads(
    (Path(__file__).resolve().parents[3] / "docs" / "sealed-vectors.json").read_text()
)
MADE: list[dict[str, Any]] = VECTORS["made"]


def unhex(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def terms_of(made: dict[str, Any]) -> EnvelopeTerms:
    terms = made["terms"]
    return EnvelopeTerms(
        network=unhex(terms["network"]),
        signer=unhex(terms["signer"]),
        key=int(terms["key"]),
        payer=unhex(terms["payer"]),
        sequence=int(terms["sequence"]),
        until=int(terms["until"]),
    )


def envelope_of(made: dict[str, Any]) -> Envelope:
    return Envelope(made["size"], unhex(made["point"]), unhex(made["box"]))


@pytest.mark.parametrize("made", MADE)
def test_an_envelope_has_the_same_bytes_here(made: dict[str, Any]) -> None:
    operations = [unhex(one) for one in made["operations"]]
    sealed = seal(unhex(made["committee"]), terms_of(made), operations, unhex(made["drawn"]))
    assert sealed == envelope_of(made)
    assert label_of(terms_of(made), sealed.size, sealed.point) == unhex(made["label"])


@pytest.mark.parametrize("made", MADE)
def test_the_committees_signature_opens_it(made: dict[str, Any]) -> None:
    label, key = unhex(made["label"]), unhex(made["opening_key"])
    assert is_opening_key(unhex(made["committee"]), label, key)
    assert open_envelope(envelope_of(made), label, key) == [unhex(one) for one in made["operations"]]


def test_without_bytes_it_draws_them() -> None:
    made = MADE[0]
    one, other = (seal(unhex(made["committee"]), terms_of(made), []) for _ in range(2))
    assert one.point != other.point


def coefficients(element: GT) -> bytes:
    """The twelve coefficients of an element, big-endian, the lowest first: arkworks has them little-endian."""
    little = bytes.fromhex(str(element).removeprefix("0x"))
    return b"".join(little[at : at + 48][::-1] for at in range(0, 576, 48))


@pytest.mark.parametrize("made", MADE)
def test_another_library_opens_it(made: dict[str, Any]) -> None:
    point = G2Point.from_compressed_bytes(unhex(made["point"]))
    key = G1Point.from_compressed_bytes(unhex(made["opening_key"]))
    shared = coefficients(GT.pairing(key, point))
    assert shared == unhex(made["pairing"])
    secret = blake3(shared + unhex(made["label"]), derive_key_context="walras 2026 sealed key v1")
    stream = blake3(b"", key=secret.digest()).digest(length=len(unhex(made["box"])))
    text = bytes(one ^ other for one, other in zip(unhex(made["box"]), stream, strict=True))
    at, operations = 1, []
    for _ in range(text[0]):
        length = int.from_bytes(text[at : at + 2], "little")
        operations.append(text[at + 2 : at + 2 + length])
        at += 2 + length
    assert operations == [unhex(one) for one in made["operations"]]
    assert not any(text[at:])


@pytest.mark.parametrize("inside", VECTORS["inside"])
def test_what_is_inside_is_signed_for_its_envelope(inside: dict[str, str]) -> None:
    within = Enclosure(unhex(inside["network"]), unhex(inside["payer"]), int(inside["sequence"]))
    encoded = unhex(inside["body"])
    account = "0x" + encoded[8:28].hex()
    body = Body(31337, account, 9, 250, CreateOffer(1, 0, 10_000, Decimal(1)))
    assert body.encode() == encoded
    assert within.signing_bytes(body) == unhex(inside["signing_bytes"])
    assert within.salt() == unhex(inside["salt"])
    assert within.typed_hash(body) == unhex(inside["hash"])
    signed = Signed(unhex(inside["transaction"]))
    assert within.id_of(signed) == inside["id"] != signed.id


@pytest.mark.parametrize("refused", VECTORS["refused_points"])
def test_points_that_no_client_may_take_are_refused(refused: dict[str, str]) -> None:
    made, wrong = MADE[-1], unhex(refused["bytes"])
    label, key = unhex(made["label"]), unhex(made["opening_key"])
    envelope = envelope_of(made)
    with pytest.raises(ValueError, match="no point of the subgroup"):
        if refused["what"] == "point":
            open_envelope(Envelope(envelope.size, wrong, envelope.box), label, key)
        else:
            open_envelope(envelope, label, wrong)
    if refused["what"] == "point":
        with pytest.raises(ValueError, match="no point of the subgroup"):
            seal(wrong, terms_of(made), [])
    else:
        assert not is_opening_key(unhex(made["committee"]), label, wrong)


def test_what_cannot_be_sealed_is_told() -> None:
    made = MADE[1]
    committee, terms = unhex(made["committee"]), terms_of(made)
    operation = unhex(made["operations"][0])
    with pytest.raises(ValueError, match="at most 32"):
        seal(committee, terms, [operation] * 33)
    with pytest.raises(ValueError, match="operation 1 is no signed transaction"):
        seal(committee, terms, [operation, b"abc"])
    with pytest.raises(ValueError, match="it is garbage"):
        open_envelope(envelope_of(made), unhex(made["label"]), unhex(MADE[2]["opening_key"]))
