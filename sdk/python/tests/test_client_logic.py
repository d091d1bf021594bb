"""The client without a node: bytes, amounts, numbers, stores, proofs and the stream's logic."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from walras.client import (
    AddressError,
    AmountError,
    Asset,
    Assets,
    Block,
    Book,
    Candle,
    ClientError,
    Ed25519Key,
    EthereumKey,
    FolderStore,
    ForeignAnswerError,
    KeyFileError,
    Level,
    MemoryStore,
    Missed,
    OrderFate,
    OrderTerms,
    SentBeforeError,
    StoreError,
    StreamError,
    Trade,
    UnknownAssetError,
    to_pandas,
    to_polars,
)
from walras.client import operations
from walras.client.amounts import assets_of, bound_of, inverse_limit, limit_of, market_limit, plain, price_of
from walras.client.calls import Session
from walras.client.core import Core, host_of
from walras.client.encoding import (
    NO_CLIENT,
    RESTS,
    Body,
    Field,
    Operation,
    Signed,
    Structure,
    address_bytes,
    checked_address,
    pool_keeps,
    raw,
    slot_of,
    slot_sequence,
)
from walras.client.fate import fate_of, told
from walras.client.flow import Answer, Ask, Flow
from walras.client.operations import Burn
from walras.client.policy import KeyConsent, PolicyRequest, missing_weight, policy_salt
from walras.client.proof import (
    ProofError,
    ProvedHolder,
    prove_holder,
    prove_keys,
    prove_parameters,
    window_of,
)
from walras.client.sending import Numbers, Sender
from walras.client.stream import Feed

DOCS = Path(__file__).resolve().parents[3] / "docs"
PUBLISHED = json.loads((DOCS / "vectors.json").read_text())


def value_of(field: Field, given: Any) -> Any:
    match field.form:
        case "list":
            return tuple(made(field.more[0], entry) for entry in given)
        case "price":
            return Decimal(given)
        case "u8" | "u16" | "u32" | "u64":
            return int(given)
    return given


def made(structure: type[Structure], given: dict[str, Any]) -> Any:
    """The structure with the values of its fields, by their names in typed data."""
    return structure(*(value_of(one, given[one.name]) for one in structure.FIELDS))


def operation(name: str, given: dict[str, Any]) -> Operation | None:
    """The operation of a structure's name, if it is asked for by its fields."""
    return made(getattr(operations, name), given) if name in operations.__all__ else None


def test_transactions_are_signed_as_the_published_vectors_are() -> None:
    checked = set()
    for vector in PUBLISHED["vectors"]:
        given = vector["operation"]
        # Vectors name these two as JSON does.
        given |= {"registered": given.get("account"), "host": given.get("address")}
        asked = operation("".join(part.capitalize() for part in given["type"].split("_")), given)
        if asked is None:
            continue
        key = Ed25519Key(vector["seed"])
        sequence, until = int(vector["sequence"]), int(vector["until"])
        body = Body(int(vector["chain"]), key.address, sequence, until, asked)
        signed = key.sign(body, vector["network"])
        assert signed.encoded == raw(vector["transaction"]) and signed.id == vector["id"]
        assert (signed.account, signed.sequence, signed.until) == (vector["account"], sequence, until)
        checked.add(vector["operation"]["type"])
    assert len(checked) == 36


def test_typed_data_is_signed_as_the_published_vectors_are() -> None:
    checked = 0
    for vector in PUBLISHED["typed_data"]:
        asked = operation(vector["typed_data"]["primaryType"], vector["typed_data"]["message"])
        if asked is None:
            continue
        key = EthereumKey(vector["key"])
        body = Body(31337, key.address, int(vector["sequence"]), int(vector["until"]), asked)
        assert "0x" + body.typed_hash(vector["network"]).hex() == vector["hash"]
        signed = key.sign(body, vector["network"])
        assert signed.encoded == raw(vector["transaction"]) and signed.id == vector["id"]
        checked += 1
    assert checked == 48


def test_requests_of_a_policy_are_signed_as_the_published_vectors_are() -> None:
    for vector in PUBLISHED["requests"]:
        asked = operation(vector["typed_data"]["primaryType"], vector["typed_data"]["message"])
        assert asked is not None
        chain = int(vector["typed_data"]["domain"]["chainId"])
        body = Body(chain, vector["account"], int(vector["sequence"]), int(vector["until"]), asked)
        request = PolicyRequest(body, vector["last"], vector["network"])
        assert policy_salt(vector["network"], vector["account"], vector["last"]) == vector["salt"]
        assert request.signing_bytes == raw(vector["signing_bytes"])
        assert request.typed_hash == raw(vector["hash"])
        for seed in reversed(vector["seeds"]):
            request = request.signed(Ed25519Key(seed))
        request = request.signed(EthereumKey(vector["wallet"]))
        assert request.encode() == raw(vector["transaction"]) and request.id == vector["id"] and request.is_valid()
        forged = replace(request, last="0x" + "00" * 32)
        assert not forged.is_valid(), "signatures name the last change of keys"
        policy = {"keys": [{"key": next(iter(request.keys)), "weight": 2}], "wallets": [], "move": 3, "govern": 5}
        assert (missing_weight(policy, request), missing_weight(policy, request, "govern")) == (1, 3)
    assert len(PUBLISHED["requests"]) == 4


def test_consents_to_changes_of_keys_are_signed_as_the_published_vectors_are() -> None:
    for vector in PUBLISHED["consents"]:
        name = {"signers": "SetKeys", "guardians": "RecoverKeys"}[vector["by"]]
        given = vector["typed_data"]["message"] | {"keySignatures": [], "walletSignatures": [], "first": "0x" + "11" * 32}
        asked = operation(name, given)
        consent = KeyConsent(asked, 31337, vector["network"])
        assert consent.change == raw(vector["change"]) and consent.change_id == vector["change_id"]
        assert consent.signing_bytes == raw(vector["signing_bytes"])
        assert Ed25519Key(vector["seed"]).sign_bytes(consent.signing_bytes) == vector["key_signature"]
        assert EthereumKey(vector["wallet"]).sign_hash(raw(vector["hash"])) == vector["wallet_signature"]


def test_a_policy_is_proved_and_a_changed_proof_proves_none() -> None:
    vectors = PUBLISHED["key_proofs"]
    assert [vector["keys"] is None for vector in vectors] == [True, False, True]
    for vector in vectors:
        account, root, proof = address_bytes(vector["account"]), raw(vector["root"]), raw(vector["proof"])
        assert prove_keys(account, root, proof) == vector["keys"]
        for at in range(len(proof)):
            with pytest.raises(ProofError):
                prove_keys(account, root, proof[:at] + bytes([proof[at] ^ 1]) + proof[at + 1 :])
        with pytest.raises(ProofError):
            prove_keys(account, root[:-1] + bytes([root[-1] ^ 1]), proof)
        with pytest.raises(ProofError):
            prove_keys(account, root, proof[:-1])
    policy, absence = vectors[1:]
    # The attack: the proof of another account's policy, or of its absence, is shown for this one.
    for account, shown in [(absence, policy), (policy, absence)]:
        with pytest.raises(ProofError):
            prove_keys(address_bytes(account["account"]), raw(shown["root"]), raw(shown["proof"]))


def test_a_holder_is_proved_frozen_admitted_or_free_and_a_changed_proof_proves_nothing() -> None:
    vectors = PUBLISHED["holder_proofs"]
    said = [(vector["control"], vector["is_open"]) for vector in vectors]
    free, admitted = ("recoverable", True), ("admitted", True)
    assert said == [("open", True), ("recoverable", False), free, admitted, ("admitted", False)]
    for vector in vectors:
        asset, account = vector["asset"], address_bytes(vector["account"])
        root, proof = raw(vector["root"]), raw(vector["proof"])
        proved = ProvedHolder(vector["control"], vector["is_open"], vector["since"])
        assert prove_holder(asset, account, root, proof) == proved
        # What a chain without controls fills the place of its trie with means nothing.
        for at in range(len(proof) if proved.control != "open" else 0):
            with pytest.raises(ProofError):
                prove_holder(asset, account, root, proof[:at] + bytes([proof[at] ^ 1]) + proof[at + 1 :])
        with pytest.raises(ProofError):
            prove_holder(asset, account, root, proof[:-1])
    _, frozen, other, *_ = vectors
    # The attack: that nothing was said of somebody else is shown for the frozen holder.
    with pytest.raises(ProofError):
        prove_holder(frozen["asset"], address_bytes(frozen["account"]), raw(other["root"]), raw(other["proof"]))


def test_parameters_are_proved_and_a_changed_proof_proves_none() -> None:
    vectors = PUBLISHED["parameter_proofs"]
    assert [vector["parameters"] is None for vector in vectors] == [True, False]
    for vector in vectors:
        root, proof = raw(vector["root"]), raw(vector["proof"])
        assert prove_parameters(root, proof) == vector["parameters"]
        for at in range(len(proof)):
            with pytest.raises(ProofError):
                prove_parameters(root, proof[:at] + bytes([proof[at] ^ 1]) + proof[at + 1 :])
        with pytest.raises(ProofError):
            prove_parameters(root, proof[:-1])
    # The attack: the proof that nothing was ever proposed is shown for a state in which a dearer fee waits.
    with pytest.raises(ProofError):
        prove_parameters(raw(vectors[1]["root"]), raw(vectors[0]["proof"]))
    assert vectors[1]["parameters"]["coming"][0]["values"]["fee"] == "9"


def test_a_checksum_is_in_the_capitals_of_an_address() -> None:
    right = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
    assert checked_address(right.lower()) == right
    assert address_bytes(right) == address_bytes(right.lower())
    for wrong in (
        right.replace("A", "a").replace("F6F", "f6F"),
        right[:-1],
        right[2:],
        "0x" + "g" * 40,
        "0x" + " 1" * 20,
    ):
        with pytest.raises(AddressError):
            address_bytes(wrong)


def asset(number: int, symbol: str, decimals: int) -> Asset:
    return Asset(number, symbol, decimals, "0x", Decimal(1), Decimal(0), None, None)


USD, EUR, JPY = asset(0, "USD", 2), asset(1, "EUR", 4), asset(2, "JPY", 0)
ASSETS = Assets([USD, EUR, JPY])


def test_an_opening_says_what_stays_in_its_pool_for_ever() -> None:
    assert pool_keeps(1_000_000_000, 900_000_000) == (3_906_250, 3_515_625)
    assert pool_keeps(257, 1) == (2, 1)


def test_amounts_lose_nothing() -> None:
    assert (USD.units("12.50"), USD.units(Decimal("1e3")), JPY.units(7)) == (1250, 100_000, 7)
    assert USD.units("92233720368547758.07") == 2**63 - 1 and str(USD.amount(2**63 - 1)) == "92233720368547758.07"
    wrong: list[Any] = ["12.505", 12.5, True, "", "NaN", "1e999999999", "-1", 0, "92233720368547758.08", "1_0x", None]
    for amount in wrong:
        with pytest.raises(AmountError):
            USD.units(amount)
    with pytest.raises(UnknownAssetError, match="there are USD, EUR, JPY"):
        ASSETS["XYZ"]
    with pytest.raises(UnknownAssetError, match="EUR/USD"):
        ASSETS.market("EURUSD")


def test_prices_move_only_the_point_between_whole_assets_and_units() -> None:
    # One unit of EUR is 0.0001, one of USD 0.01: 1.05 USD for one EUR are 0.0105 units for one.
    assert limit_of("1.05", EUR, USD) == Decimal("0.0105")
    assert price_of(Decimal("0.0105"), EUR, USD) == Decimal("1.05")
    assert plain(limit_of("1250", USD, JPY)) == "12.5"
    for wrong in ("0", "-1", "1.23456789012345678", "1e30"):
        with pytest.raises(AmountError):
            limit_of(wrong, EUR, USD)


def test_to_buy_never_costs_more_than_was_written() -> None:
    assert inverse_limit(1_000_000, Decimal("0.0125")) == (12_500, Decimal(80))
    # Parts of a unit are paid, and the inverse is rounded up in the ledger's digits.
    assert inverse_limit(3333, Decimal("0.0107"))[0] == 36
    assert inverse_limit(1, Decimal("0.000108"))[1] == Decimal("9259.2592592592593")
    for seed in range(200):
        chance = random.Random(seed)
        price = Decimal(chance.randrange(1, 10 ** chance.randrange(1, 17))).scaleb(-chance.randrange(0, 17))
        _, inverse = inverse_limit(chance.randrange(1, 10**12), price)
        assert inverse * price >= 1 and len(inverse.normalize().as_tuple().digits) <= 17


def test_an_order_becomes_the_terms_of_the_published_vectors() -> None:
    told = json.loads((DOCS / "order-vectors.json").read_text())
    zero = Decimal(0)
    listed = [
        Asset(at, one["symbol"], one["decimals"], "0x", zero, zero, None, None) for at, one in enumerate(told["assets"])
    ]
    assets, seen = Assets(listed), 0
    for vector in told["orders"]:
        order, terms = vector["order"], vector["terms"]
        if not vector["is_written"]:
            continue
        base, quote = assets[order["base"]], assets[order["quote"]]
        units, limit = base.units(order["amount"]), limit_of(order["price"], base, quote)
        if order["side"] == "sell":
            assert [str(units), plain(limit)] == [terms["amount"], terms["limit"]], vector
        else:
            cost, inverse = inverse_limit(units, limit)
            assert [str(cost), plain(inverse)] == [terms["amount"], terms["limit"]], vector
            assert cost - 1 <= bound_of(units, limit) <= cost
        body = {**order, "amount": units, "price_units": "1"}
        asked = OrderTerms.of(body, assets)
        assert asked is not None and (asked.amount, asked.price) == (Decimal(order["amount"]), Decimal(order["price"]))
        seen += 1
    assert seen > 30
    assert plain(market_limit("buy", Decimal("1.2"))) == "1.26" and plain(market_limit("sell", Decimal("1.2"))) == "1.14"


def test_numbers_are_handed_out_once_and_those_of_refused_transactions_again() -> None:
    numbers = Numbers(64)
    numbers.learn(10, 11)
    taken = [numbers.take(0) for _ in range(64)]
    assert taken == [(number, 0) for number in range(11, 75)] and numbers.take(0) is None
    numbers.release(20, 300)
    numbers.release(20, 200)
    # The substitute ends later, so that the refused one can never count.
    assert numbers.take(0) == (20, 301)
    numbers.release(12, 300)
    numbers.learn(80, 81)
    assert numbers.take(0) == (81, 0), "a number that is too old is not used again"
    assert numbers.take(90) == (91, 0) and numbers.take(10_000) is None


def test_a_session_key_has_a_window_of_its_own_in_its_accounts_proof() -> None:
    def number(value: int, count: int = 8) -> bytes:
        return value.to_bytes(count, "little")

    # Three slots were given; the second one's key is there: it has used 5 and 3 of its numbers.
    record = number(2, 4) + bytes(32 + 1 + 1 + 8 + 8) + number(5) + number(0b101) + number(1, 4) + bytes(4 + 8 + 8)
    account = bytes(20) + b"\0" + number(7) + number(1) + bytes(4) + b"\0" + b"\1" + number(3, 4) + number(1, 4) + record
    proof = bytes(4) + b"\1" + account

    def is_free(slot: int, n: int) -> bool:
        sequence = slot_sequence(slot, n)
        assert slot_of(sequence) == slot
        return window_of(proof, sequence).is_free(sequence)

    assert [is_free(0, n) for n in (6, 7, 8)] == [True, False, True]
    assert [is_free(2, n) for n in range(1, 7)] == [True, True, False, True, False, True]
    # No number of a slot that is gone is free, all of one that was not given yet are.
    assert not any(is_free(slot, n) for slot in (1, 3) for n in (1, 64, 2**43 - 1))
    assert is_free(4, 1) and slot_of(2**63 + 5) == 0


@pytest.mark.parametrize("durable", [True, False])
def test_a_stored_transaction_stays_until_it_is_forgotten(durable: bool, tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "key.json") if durable else MemoryStore()
    key = EthereumKey("0x" + "07" * 32)
    one, two = (key.sign(Body(1, key.address, n, 100, Burn(0, 5)), "0x" + "4e" * 32) for n in (1, 2))
    with store.reserved():
        store.keep(one, "invoice 7")
        store.keep(two, None)
    assert {signed.id for signed in store.all()} == {one.id, two.id}
    store.forget(one.id)
    store.forget(one.id)
    assert store.get(one.id) is None and store.get(two.id) == two
    assert store.referenced("invoice 7") == one, "the record of a reference outlives its transaction"
    if durable:
        assert FolderStore(tmp_path / "key.json").referenced("invoice 7") == one
        for content in (b"", two.encoded[:50], bytes(len(two.encoded)), one.encoded):
            (tmp_path / "key.json.pending" / two.id).write_bytes(content)
            assert (store.all(), store.get(two.id), store.torn()) == ([], None, [two.id])
        store.took(key.address, 7)
        (tmp_path / f"key.json.{key.address}.number").write_bytes(b"")
        assert store.highest(key.address) == 0
    store.release("invoice 7", two.id)
    assert store.referenced("invoice 7") == one, "the record is of another transaction"
    store.release("invoice 7", one.id)
    assert store.referenced("invoice 7") is None


def test_a_key_file_is_private_and_opens_with_its_passphrase_alone(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "a.json"
    key = Ed25519Key.generate()
    key.save(path, "right")
    assert path.stat().st_mode & 0o777 == 0o600
    assert Ed25519Key.open(path, "right").address == key.address
    refusals: list[tuple[Callable[[], object], str]] = [
        (lambda: Ed25519Key.open(path, "wrong"), "passphrase is wrong"),
        (lambda: key.save(path, "right"), "never overwritten"),
        (lambda: Ed25519Key.open(tmp_path / "none", "right"), "No such file"),
    ]
    for refused, words in refusals:
        with pytest.raises(KeyFileError, match=words):
            refused()
    text = path.read_text()
    path.write_text(text.replace('"memory_kib": 65536', '"memory_kib": 99999999'))
    with pytest.raises(KeyFileError, match="at most"):
        Ed25519Key.open(path, "right")
    path.chmod(0o644)
    with pytest.raises(KeyFileError, match="chmod 600"):
        Ed25519Key.open(path, "right")


def run(flow: Flow[Any], answer: Callable[[Ask], Any] | None = None) -> Any:
    """Brings a flow the answers of a node that exists here alone."""
    try:
        step = next(flow)
        while True:
            assert isinstance(step, Ask) and answer is not None
            body = answer(step)
            status = 404 if body is None else 200
            told = body or {"error": {"code": "not_found", "message": "it is not kept"}}
            step = flow.send(Answer(status, json.dumps(told).encode()))
    except StopIteration as end:
        return end.value


def feed(*channels: str, from_height: int | None = None) -> Feed:
    session = Session("http://here", None)
    session._assets = ASSETS
    return Feed(session, channels, from_height)


def block(height: int) -> dict[str, Any]:
    names = ["time_ms", "transactions", "applied", "refused", "fills", "pairs"]
    return {"height": height, "block": "0x", "parent": "0x", "full": True, **dict.fromkeys(names, 0)}


def test_a_stream_resumes_without_a_gap_and_without_doubles() -> None:
    followed = feed("blocks")

    def snapshot(heights: range) -> str:
        blocks = [block(height) for height in reversed(heights)]
        return json.dumps({"type": "snapshot", "channel": "blocks", "blocks": blocks, "sequence": 0})

    def increment(height: int, sequence: int) -> str:
        return json.dumps({"type": "block", "sequence": sequence, **block(height)})

    assert json.loads(followed.connected()) == {"subscribe": ["blocks"]}
    assert [one.height for one in run(followed.receive(snapshot(range(1, 4))))] == [1, 2, 3]
    # On its way when the snapshot was read.
    assert run(followed.receive(increment(3, 1))) == []
    assert [one.height for one in run(followed.receive(increment(4, 2)))] == [4]
    with pytest.raises(ForeignAnswerError, match="were missed"):
        run(followed.receive(increment(6, 4)))
    followed.connected()

    def older(ask: Ask) -> Any:
        before = int(ask.params["before"])
        return {"blocks": [block(height) for height in range(before - 1, max(before - 4, 7), -1)]}

    events = run(followed.receive(snapshot(range(20, 22))), older)
    assert events[0] == Missed("blocks", 5, 7), "what the node no longer keeps is named"
    assert [one.height for one in events[1:]] == list(range(8, 22))


def test_a_stream_keeps_a_book_whose_checksum_is_the_nodes_and_goes_on_where_it_was() -> None:
    followed = feed("book:EUR/USD")

    def hear(kind: str, number: int, **body: Any) -> list[Any]:
        said = {"type": kind, "sequence": number, "market": "EUR/USD", **body}
        return list(run(followed.receive(json.dumps(said))))

    def level(units: str, amount: int, offers: int = 1) -> dict[str, Any]:
        return {"price": units, "price_units": units, "amount": str(amount), "offers": offers}

    def snapshot(number: int) -> list[Any]:
        sells, buys = [level("110", 100_000), level("120", 50_000, 2)], [level("100", 70_000)]
        body = {"height": 5, "sells": sells, "buys": buys, "checksum": 981593380}
        return hear("snapshot", number, channel="book:EUR/USD", **body)

    assert json.loads(followed.connected()) == {"subscribe": ["book:EUR/USD"]}
    (first,) = snapshot(0)
    assert len(first.changes) == 3 and first.book.best_sell == Level(Decimal(110), Decimal(10), 1)
    assert (first.book.middle, first.book.height) == (Decimal(105), 5)
    with pytest.raises(ForeignAnswerError, match="leads on from block 7"):
        hear("book", 1, height=9, previous=7, sells=[], buys=[], checksum=981593380)
    assert json.loads(followed.connected()) == {"subscribe": ["book:EUR/USD"]}, "what was given up is not resumed"
    snapshot(0)
    assert json.loads(followed.connected())["resume"] == {"book:EUR/USD": 5}
    change: dict[str, Any] = {"height": 9, "previous": 5, "buys": [], "checksum": 4203873026}
    change["sells"] = [level("110", 0, 0), level("120", 40_000)]
    (second,) = hear("book", 0, **change)
    assert [(one.side, one.price, one.amount) for one in second.changes] == [
        ("sell", Decimal(110), Decimal(0)),
        ("sell", Decimal(120), Decimal(4)),
    ]
    assert hear("book", 1, **change) == [], "it is known already"
    with pytest.raises(ForeignAnswerError, match="another one than the node's"):
        hear("book", 2, **{**change, "height": 10, "previous": 9, "checksum": 1})
    followed.connected()
    assert hear("error", 0, code="resume_gone", message="a snapshot follows") == []


def test_a_stream_of_trades_resumes_from_the_history() -> None:
    followed = feed("trades:EUR/USD", from_height=10)
    trade = {"market": "EUR/USD", "height": 14, "price": "1.1", "base_volume": "10000", "quote_volume": "110"}
    message = {"type": "snapshot", "channel": "trades:EUR/USD", "trades": [trade], "sequence": 0}

    def history(ask: Ask) -> Any:
        heights = [] if "before" in ask.params else [8, 11, 14]
        return {"points": [{"height": at, "time_ms": 0, "price": "1", "base_volume": "20000"} for at in heights]}

    events = run(followed.receive(json.dumps(message)), history)
    assert [(one.height, one.quote_volume) for one in events] == [(11, None), (14, Decimal("1.10"))]


def test_a_refused_channel_and_a_broken_message_are_told_apart() -> None:
    followed = feed("nonsense")
    refusal = {"type": "error", "code": "unknown_channel", "message": "no channel", "sequence": 0}
    with pytest.raises(StreamError, match="unknown_channel"):
        run(followed.receive(json.dumps(refusal)))
    for wrong in ("", "[]", '{"sequence": "x"}', '{"type": "block", "sequence": 1}'):
        with pytest.raises(ClientError):
            run(followed.receive(wrong))
    pauses = [followed.broken("it broke", lambda: 0.0).retry_s for _ in range(8)]
    assert pauses == [0.5, 1, 2, 4, 8, 15, 15, 15]


def test_frames_have_a_row_for_each_entry() -> None:
    price = Decimal("1.1")
    candles = [Candle("EUR/USD", "1m", at * 60_000, *[price] * 4, Decimal(3), Decimal(4), 1, True) for at in (1, 2)]
    exact, floats = to_pandas(candles), to_pandas(candles, exact=False)
    assert exact["close"][0] == price and floats["close"].dtype == float
    assert str(exact["time"][1]) == "1970-01-01 00:02:00+00:00"
    columns = to_polars(candles)
    assert columns["close"].to_list() == [price, price] and columns.shape[0] == 2
    assert len(to_pandas([])) == 0 and len(to_polars([Trade("EUR/USD", 1, price, price, None)])) == 1


def test_bytes_that_are_no_transaction_are_known_as_such() -> None:
    assert not Signed(b"").is_whole() and not Signed(bytes(200)[:-97] + b"\7" + bytes(96)).is_whole()


ASSET = {"decimals": 2, "issuer": "0x", "least_units": "1", "issued": "0"}
KEY = EthereumKey("0x" + "07" * 32)


@dataclass
class Node:
    """A node that exists here alone: it knows no transaction, and has kept blocks from `kept` on."""

    height: int = 1000
    highest: int = 0
    used: int = 0
    kept: int = 1
    user: str = ""
    """The transaction that used number 1, in block 1000."""

    def answer(self, ask: Ask) -> Any:
        proof = bytes(4) + b"\1" + address_bytes(KEY.address) + b"\0"
        proof += self.highest.to_bytes(8, "little") + self.used.to_bytes(8, "little") + bytes(6)
        sequence = {"highest": str(self.highest), "next": str(self.highest + 1)}
        match ask.path.split("/")[2:]:
            case ["limits"]:
                numbers = dict.fromkeys(["until_max", "block_interval_ms", "stream_channels", "chain", "fee"], 1)
                return {"network": "0x" + "4e" * 32, "fee_asset": "USD", "sequence_window": 64, **numbers}
            case ["assets"]:
                return {"assets": [{"asset": 0, "symbol": "USD", **ASSET}]}
            case ["status"]:
                texts = dict.fromkeys(["version", "engine", "stalled"], "")
                numbers = dict.fromkeys(["chain", "time_ms", "accounts", "offers", "transactions_per_second"], 1)
                return {"height": self.height, "mempool": {"transactions": 0}, **texts, **numbers}
            case ["accounts", address]:
                return {"address": address, "height": self.height, "sequence": sequence, "balances": []}
            case ["accounts", _, "proof"]:
                return {"height": self.height, "proof": "0x" + proof.hex()}
            case ["blocks", height, *_] if int(height) < self.kept:
                return None
            case ["blocks", height, "accounts", _]:
                return {"changed": int(height) == 1000 and self.user != ""}
            case ["blocks", _]:
                used = {"account": KEY.address, "sequence": "1", "operation": {"type": "burn"}}
                refused = {"id": "0x00", "outcome": {"result": "refused"}, **used}
                return {
                    "outcomes": [refused, {"id": self.user, "outcome": {"result": "applied"}, **used}],
                    "next": None,
                }
            case []:
                return {"ready": True}
        return None


def sender(store: MemoryStore) -> Sender:
    return Sender(Session("http://here", None), KEY.address, KEY, store, 1.0, 256)


def test_senders_with_one_store_take_different_numbers_whatever_the_node_says() -> None:
    store, node = MemoryStore(), Node()
    taken = []
    for _ in range(3):
        # The node does not know what was sent before, and the store has forgotten it, as when it was executed.
        signed, _ = run(sender(store).sign(Burn(0, 5), None), node.answer)
        store.forget(signed.id)
        taken.append(signed.sequence)
    assert taken == [1, 2, 3]


def test_what_was_sent_without_a_result_is_not_signed_again_without_a_reference() -> None:
    store, node = MemoryStore(), Node()
    first, _ = run(sender(store).sign(Burn(0, 5), None), node.answer)
    again = sender(store)
    with pytest.raises(SentBeforeError, match=first.id):
        run(again.sign(Burn(0, 5), None), node.answer)
    assert run(again.sign(Burn(0, 6), None), node.answer)[0].sequence == 2
    assert run(again.sign(Burn(0, 5), "the second one"), node.answer)[0].sequence == 3
    # When it can never count, its number is used again, with a later end.
    signed, is_new = run(sender(store).sign(Burn(0, 5), None), Node(height=2000).answer)
    assert is_new and signed.sequence == 1 and signed.until > first.until


@dataclass
class Market(Node):
    """A node with two assets, whose next batch takes a share of what is asked about. It commits all that it is sent."""

    takes: int = 0
    """The per cent of an offer that it says the next batch would take."""
    fills: bool = True
    """Whether exact orders are filled."""
    charges: int = 120
    """What it says that the next batch would charge, in cents."""
    sent: list[bytes] = field(default_factory=list)

    def answer(self, ask: Ask) -> Any:
        if ask.path == "/v1/assets":
            return {"assets": [{"asset": at, "symbol": one, **ASSET} for at, one in enumerate(("USD", "EUR"))]}
        if ask.path == "/v1/quote":
            amount = int(ask.params["amount"])
            bought = amount * 100 // self.charges
            return {"amount": str(amount), "sold": str(amount * self.takes // 100), "bought": str(bought)}
        if ask.path == "/v1/transactions" and ask.body is not None:
            signed = Signed(ask.body)
            self.sent.append(signed.body[44:])
            return self.committed(signed.id)
        if ask.path.startswith("/v1/transactions/"):
            return self.committed(ask.path.rpartition("/")[2]) if self.sent else None
        return super().answer(ask)

    def committed(self, id: str) -> Any:
        exact = {"result": "exact", "sold": "0", "bought": "0", "returned": "0", "why": "filled" if self.fills else "no_room"}
        offered = {"result": "offered", "sold": "0", "bought": "0", "left": "60", "returned": "0", "why": "not_taken"}
        outcome = exact if self.sent[-1][0] == BUY_EXACTLY[0] else offered
        return {"id": id, "status": "committed", "height": 1001, "outcome": outcome}


BUY_EXACTLY = operations.Exact(0, 1, "buy", 5_000, 6_000, NO_CLIENT).encode()
BUY_AS_OFFER = operations.CreateOffer(0, 1, 6_000, Decimal("0.83333333333333334"), RESTS, NO_CLIENT).encode()


@pytest.mark.parametrize(("side", "sell", "buy"), [("buy", "USD", "EUR"), ("sell", "EUR", "USD")])
def test_a_quote_of_an_exact_order_asks_in_units_of_both_assets(side: str, sell: str, buy: str) -> None:
    asked: list[Mapping[str, Any]] = []

    def answer(ask: Ask) -> Any:
        if ask.path != "/v1/quote":
            return Market().answer(ask)
        asked.append(ask.params)
        prices = {"price": None, "last_price": None}
        return {**ask.params, "height": 7, "sold": "0", "bought": "0", "left": "0", "returned": "5500", "why": "no_room", **prices}

    quote = run(Core("http://here", KEY, None, None, MemoryStore(), 1.0, 256).session.quote_exact(side, "EUR/USD", "50", "55"), answer)
    assert {name: str(value) for name, value in asked[0].items()} == {
        "sell": sell, "buy": buy, "exact": side, "amount": "5000", "bound": "5500"
    }
    assert (quote.why, quote.returned, quote.asked) == ("no_room", Decimal(55), None)


def bought(store: MemoryStore, node: Market, reference: str | None = None) -> Any:
    core = Core("http://here", KEY, None, None, store, 1.0, 256)
    return run(core.order("buy", "EUR/USD", "50", "1.2", (RESTS, NO_CLIENT), reference, True), node.answer)


def test_a_purchase_that_the_next_batch_would_fill_whole_stops_at_its_amount() -> None:
    for takes, sent in ((100, BUY_EXACTLY), (99, BUY_AS_OFFER), (0, BUY_AS_OFFER)):
        node = Market(takes=takes)
        bought(MemoryStore(), node)
        assert node.sent == [sent]


def test_what_the_batch_does_not_fill_whole_waits_as_an_offer_once_however_often_it_is_sent() -> None:
    store, node = MemoryStore(), Market(takes=100, fills=False)
    assert bought(store, node, "mine").outcome.result == "offered"
    assert node.sent == [BUY_EXACTLY, BUY_AS_OFFER]
    # Another call finds both, whatever the next batch would do or charge by now.
    known = [store.referenced("mine").id, store.referenced("mine as an offer").id]
    node.takes, node.charges = 0, 100
    bought(store, node, "mine")
    assert [store.referenced("mine").id, store.referenced("mine as an offer").id] == known
    assert set(node.sent) == {BUY_EXACTLY, BUY_AS_OFFER}


def test_where_there_is_no_room_for_an_exact_order_an_offer_has_what_the_batch_would_charge() -> None:
    node = Market(takes=100, fills=False, charges=100)
    bought(MemoryStore(), node)
    # With 5 % of room below the limit of 1.2.
    _, roomy = inverse_limit(5_000, Decimal("1.05"))
    tight = operations.CreateOffer(0, 1, 5_000, roomy, RESTS, NO_CLIENT).encode()
    assert node.sent == [BUY_EXACTLY, tight]


def test_a_purchase_without_a_result_is_not_placed_in_another_form() -> None:
    exact = operations.Exact(0, 1, "buy", 5_000, 6_000, NO_CLIENT)
    tight = operations.CreateOffer(0, 1, 5_000, Decimal(1), RESTS, NO_CLIENT)
    for form in (exact, tight):
        store, node = MemoryStore(), Market()
        first, _ = run(sender(store).sign(form, None), node.answer)
        with pytest.raises(SentBeforeError, match=first.id):
            bought(store, node)
        assert node.sent == []
    # A dearer one, a larger one and one of another life are other orders.
    store, node = MemoryStore(), Market()
    others = [(6_000, Decimal("0.8"), RESTS), (6_001, Decimal(1), RESTS), (5_000, Decimal(1), "one batch")]
    for amount, limit, life in others:
        run(sender(store).sign(operations.CreateOffer(0, 1, amount, limit, life, NO_CLIENT), None), node.answer)
    bought(store, node)
    assert node.sent == [BUY_AS_OFFER]


def test_a_transaction_that_nobody_knows_is_void_only_when_it_can_never_count() -> None:
    signed, _ = run(sender(MemoryStore()).sign(Burn(0, 5), None), Node().answer)
    assert 1000 < signed.until <= 1256

    def fate(**node: Any) -> tuple[str, str | None]:
        told = run(fate_of(Session("http://here", None), signed.id, signed), Node(**node).answer)
        return told.state, told.code

    assert fate(height=signed.until - 1) == ("unknown", None)
    assert fate(height=signed.until) == ("void", "ended")
    assert fate(highest=1, used=1) == ("void", "number_taken")
    assert fate(highest=65, used=1) == ("void", "number_taken")
    assert fate(highest=1, used=1, user="0x" + "77" * 32) == ("void", "number_taken")
    # The index has forgotten it, the blocks have not.
    assert fate(highest=1, used=1, user=signed.id) == ("executed", None)
    # Another number was used, this one may still count.
    assert fate(highest=2, used=1) == ("unknown", None)
    # The node began from a later snapshot: it may have forgotten that the transaction was executed.
    assert fate(highest=1, used=1, kept=1001) == ("unknown", None)


@pytest.mark.parametrize("status", ["reverted", "Committed", ""])
def test_a_status_that_this_client_does_not_know_is_an_error_that_names_it(status: str) -> None:
    session = Session("http://here", None)
    body = {"id": "0x" + "11" * 32, "height": 7, "outcome": {"result": "applied"}}
    assert told(session, {**body, "status": "committed"}, None).state == "executed"
    with pytest.raises(ForeignAnswerError, match=f"the status {status!r} of a transaction"):
        told(session, {**body, "status": status}, None)
    order = {"status": status, "until": "9", "why": None, "id": body["id"], "sequence": "1", "order": None, "fills": []}
    with pytest.raises(ValueError, match=f"the status {status!r} of an order"):
        OrderFate.of({**order, "known_from": 1}, Assets([]))


@pytest.mark.parametrize(
    ("server", "host"),
    [
        ("http://127.0.0.1:8080", "127.0.0.1:8080"),
        ("http://node.example:80", "node.example"),
        ("https://Node.Example", "node.example"),
        ("https://node.example:8443/", "node.example:8443"),
        ("http://[::1]:8080", "[::1]:8080"),
    ],
)
def test_the_server_of_a_login_is_the_host_of_its_requests(server: str, host: str) -> None:
    assert host_of(server) == host


def test_an_asset_that_was_listed_since_is_asked_for_and_one_that_is_not_is_refused() -> None:
    def asset(number: int, symbol: str) -> dict[str, Any]:
        terms = {"height": 5, "control": "open", "supply_max": "1000", "document": "0x" + "0" * 64}
        listed = {"listed": terms, "closes": 77} if number else {}
        figures = {"decimals": 2, "issuer": "0x" + "1" * 40, "least_units": "4096", "issued": "0", "valuation": None}
        return {"asset": number, "symbol": symbol, **figures, **listed}

    def ran(flow: Flow[Any], answers: list[dict[str, Any]]) -> tuple[Any, list[str]]:
        asked, step = [], next(flow)
        while True:
            assert isinstance(step, Ask)
            asked.append(step.path)
            try:
                step = flow.send(Answer(200, json.dumps(answers.pop(0)).encode()))
            except StopIteration as end:
                return end.value, asked

    session = Session("http://node", None)
    session._assets = Assets([])
    session._assets.learn(assets_of({"assets": [asset(0, "USD")]}))
    known, asked = ran(session.assets("GBP.1"), [{"assets": [asset(0, "USD"), asset(1, "GBP.1")]}])
    assert (known["GBP.1"].supply_max, known["GBP.1"].closes, asked) == (Decimal("10"), 77, ["/v1/assets"])
    # What everybody shares has learnt it, and a body that names a later one is read again.
    every = {"assets": [asset(0, "USD"), asset(1, "GBP.1"), asset(2, "GBP.2")]}
    one = session.get("/v1/one", lambda body: known[body["asset"]].number)
    assert ran(one, [{"asset": "GBP.2"}, every, {"asset": "GBP.2"}]) == (2, ["/v1/one", "/v1/assets", "/v1/one"])
    with pytest.raises(ForeignAnswerError, match="does not list"):
        ran(session.get("/v1/one", lambda body: known[body["asset"]].number), [{"asset": "JPY.3"}, every])
    with pytest.raises(UnknownAssetError):
        ran(session.assets("JPY.3"), [every])[0]["JPY.3"]
