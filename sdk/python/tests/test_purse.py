"""Purses without a node: what they choose, keep and refuse. Receipts and keys are those of docs/lane-vectors.json."""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import walras.purse
from walras.client.errors import AmountError, KeyFileError, UnknownAssetError
from walras.client.proof import ProofError, Reader
from walras.purse import Bill, Purse, PurseError, PurseFileError, PurseInUseError, ReceiptError
from walras.purse.choose import Missing, choose
from walras.purse.errors import WORDS, OtherLaneError
from walras.purse.folder import Deposit, Folder
from walras.purse.lane import ed25519, payment, receipt
from walras.purse.lane.collect import Holding, Inquiry, build
from walras.purse.lane.committee import read_registration
from walras.purse.lane.layout import derived, parsed, u32, u64
from walras.purse.lane.wire import Spender
from walras.purse.lineage import (
    Certificate,
    Chain,
    Handover,
    Registry,
    Schedule,
    outcome_of,
    read_certificate,
    read_parts,
)
from walras.purse.network import LaneNetwork
from walras.purse.trust import check_entries, registration_body

ALL = json.loads((Path(__file__).resolve().parents[3] / "docs" / "lane-vectors.json").read_text())
WORLD = ALL["world"]
PASSPHRASE = "a passphrase"


def raw(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def hexadecimal(data: bytes) -> str:
    return "0x" + data.hex()


REGISTERED = [parsed(read_registration, raw(one)) for one in WORLD["registrations"]]


def pinned() -> dict[str, Any]:
    return {
        "network": WORLD["network"],
        "members": [[hexadecimal(REGISTERED[0].keys[0])]] * len(WORLD["registrars"]),
        "registrars": WORLD["registrars"],
        "assets": [
            {"asset": 0, "symbol": "USD", "decimals": 2, "least_units": 1, "fee": 0},
            {"asset": 1, "symbol": "EUR", "decimals": 2, "least_units": 10, "fee": 3},
        ],
        "validators": None,
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A purse of the vectors' world, which knows the keys of its epochs."""
    from walras.client import Ed25519Key

    made = tmp_path / "purse"
    Folder.create(made, LaneNetwork(pinned()), lambda seed: Ed25519Key.generate().save(seed, PASSPHRASE))
    (made / "proved-epochs.json").write_text(json.dumps([registration_body(one) for one in REGISTERED]))
    return made


@pytest.fixture
def purse(folder: Path) -> Iterator[Purse]:
    with Purse.open(folder, PASSPHRASE) as opened:
        yield opened


def slips(part: str) -> list[dict[str, Any]]:
    return [one for one in ALL[part] if one["form"] == "slip"]


def test_a_bill_is_that_of_the_specification_and_is_paid_as_it_asks(purse: Purse) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "lane-specification.md").read_text().replace("\n", "")
    network, key = bytes([1]) * 32, bytes([0xAB]) * 32
    text = receipt.lane_bill(network, key, 1, 1_250)
    assert text in page
    assert receipt.parse_payable(f" {text.upper()} ", network) == (key, (1, 1_250))
    for at in range(len("lane:"), len(text)):
        changed = text[:at] + ("1" if text[at] == "0" else "0") + text[at + 1 :]
        with pytest.raises(receipt.Refused, match="Mistyped"):
            receipt.parse_payable(changed, network)
    bill = purse.bill("EUR", "12.50")
    assert purse.asked(bill.upper()) == Bill("EUR", Decimal("12.5"))
    assert purse.asked(purse.address()) is None
    for asset, amount in [("EUR", "12.49"), ("USD", "12.5")]:
        with pytest.raises(PurseError, match="the address asks for 12.5 EUR, not 12"):
            purse.send(bill, asset, amount)
    with pytest.raises(ReceiptError, match="mistyped"):
        purse.asked(text)
    with pytest.raises(PurseError, match=r"asks for at least 0\.1 EUR"):
        purse.bill("EUR", "0.05")
    strange = receipt.lane_bill(raw(WORLD["network"]), key, 9, 1)
    with pytest.raises(ReceiptError, match="did not carry"):
        purse.asked(strange)


def test_the_lanes_bytes_use_nothing_of_the_rest_of_the_package_and_no_code_of_the_node() -> None:
    here = Path(walras.purse.__file__).parent / "lane"
    allowed = ("walras.purse.lane", "blake3", "cryptography")
    for path in here.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                top = name.split(".")[0]
                is_outside = top == "walras" or top in ("nacl", "httpx", "socket", "os", "time", "coincurve")
                assert not is_outside or name.startswith(allowed), f"{path.name} imports {name}"


@pytest.mark.parametrize("vector", slips("verified"), ids=lambda one: one["name"])
def test_a_purse_verifies_each_slip_of_the_vectors_with_proved_keys_alone(purse: Purse, vector: dict) -> None:
    if vector["name"] == "a slip of a deposit":
        with pytest.raises(ReceiptError, match="proves no money"):
            purse.verify(vector["bytes"])
    else:
        assert purse.verify(vector["bytes"])[0].amount > 0


@pytest.mark.parametrize("vector", slips("refused"), ids=lambda one: one["name"])
def test_a_purse_refuses_each_changed_slip_with_its_reason_in_words(purse: Purse, vector: dict) -> None:
    with pytest.raises(ReceiptError) as refused:
        purse.verify(vector["bytes"])
    assert refused.value.reason == vector["reason"]
    assert WORDS.get(vector["reason"], "proves nothing") in str(refused.value)


def test_a_receipt_of_an_epoch_whose_keys_are_not_proved_proves_nothing(folder: Path) -> None:
    (folder / "proved-epochs.json").unlink()
    good = next(one for one in slips("verified") if "receipt" in one["name"])
    with Purse.open(folder, PASSPHRASE) as purse, pytest.raises(ReceiptError, match="not proved here") as refused:
        purse.verify(good["bytes"])
    assert refused.value.reason == "UnknownCommittee"


def test_what_is_asked_wrongly_is_refused_before_anything_is_stored(folder: Path, purse: Purse) -> None:
    with pytest.raises(UnknownAssetError, match="no asset 'XYZ'; there are USD, EUR"):
        purse.send(purse.address(), "XYZ", "1")
    with pytest.raises(ReceiptError, match="mistyped or belongs to another lane"):
        purse.send(receipt.lane_address(bytes(32), bytes(32)), "USD", "1")
    with pytest.raises(PurseError, match="give it one, such as Client"):
        purse.send(purse.address(), "USD", "1")
    with pytest.raises(AmountError, match="2 places after the point"):
        purse.bill("USD", "0.001")
    with pytest.raises(PurseError, match="give it one, such as Client"):
        purse.deposit("EUR", "0.05")
    with pytest.raises(PurseError, match="is no payment of this purse"):
        purse.export("0x12")
    with pytest.raises(ReceiptError, match="no receipt"):
        purse.receive(" \n")
    assert list((folder / "outbox").iterdir()) == [] and list((folder / "deposits").iterdir()) == []
    assert purse.balance(offline=True) == [] and purse.history() == []


def test_no_file_of_a_receipt_is_overwritten_and_none_is_left_where_nothing_was_paid(
    purse: Purse, tmp_path: Path
) -> None:
    there = tmp_path / "there.txt"
    there.write_text("of somebody")
    with pytest.raises(PurseFileError, match="is not overwritten"):
        purse.send(purse.address(), "USD", "1", receipt=there)
    assert there.read_text() == "of somebody"
    with pytest.raises(PurseError, match="without a client"):
        purse.send(purse.address(), "USD", "1", receipt=tmp_path / "new.txt")
    assert not (tmp_path / "new.txt").exists()
    with pytest.raises(PurseFileError, match="nothing was paid"):
        purse.send(purse.address(), "USD", "1", receipt=tmp_path / "no" / "folder.txt")


def test_a_folder_is_opened_once_and_made_once(folder: Path, tmp_path: Path) -> None:
    with Purse.open(folder, PASSPHRASE):
        with pytest.raises(PurseInUseError):
            Purse.open(folder, PASSPHRASE)
        with pytest.raises(PurseFileError, match="is a purse already"):
            Folder.create(folder, LaneNetwork(pinned()), None)
    with pytest.raises(KeyFileError, match="passphrase is wrong"):
        Purse.open(folder, "another")
    with Purse.open(folder) as shown, pytest.raises(PurseError, match="without its passphrase"):
        shown.address()
    with pytest.raises(PurseFileError, match="is not a purse"):
        Purse.open(tmp_path / "none", PASSPHRASE)


@pytest.mark.parametrize("name", ["lane.json", "keys.json", "proved-epochs.json", "boards.json"])
def test_a_damaged_file_is_named_with_what_to_do(folder: Path, name: str) -> None:
    (folder / name).write_text('[{"network": 1}]')
    with pytest.raises(PurseFileError, match=rf"{name}: it is damaged .*: (restore|remove)"):
        Purse.open(folder, PASSPHRASE)


def test_a_copy_of_a_folder_is_told_apart_and_makes_other_keys(folder: Path, tmp_path: Path) -> None:
    with Purse.open(folder, PASSPHRASE) as purse:
        assert not purse.is_copy
        purse.address()
    shutil.copytree(folder, tmp_path / "copy")
    with Purse.open(tmp_path / "copy", PASSPHRASE) as copy:
        assert copy.is_copy
        copy._folder.settle_in()
        assert not copy.is_copy
        made = copy.address()
    with Purse.open(folder, PASSPHRASE) as purse:
        assert not purse.is_copy and purse.address() != made


def test_a_restored_purse_finds_keys_of_its_earlier_life(folder: Path, purse: Purse) -> None:
    keys, seed = purse._folder.keys, purse._session.seed
    kept = (folder / "keys.json").read_text()
    lost = [keys.make(seed) for _ in range(3)]
    (folder / "keys.json").write_text(kept)
    again = type(keys)(folder / "keys.json")
    assert lost[2] not in again
    again.find_lost(seed, {lost[2]})
    assert again.secret(seed, lost[2]) and lost[2] in type(keys)(folder / "keys.json")
    with pytest.raises(PurseError, match="belong to different purses"):
        again.secret(bytes(32), lost[2])


def held(owner: int, home: int, amount: int, number: int) -> Holding:
    return Holding(bytes([number] * 32), payment.Output(0, bytes([owner] * 32), 0, amount), home)


def chosen(of: list[Holding], rule: tuple[int, int], amount: int) -> list[tuple[int, int, int]] | Missing:
    parts = choose(of, 0, lambda _: rule, amount, 5)
    return parts if isinstance(parts, Missing) else [(len(part.inputs), part.paid, part.change) for part in parts]


def test_outputs_of_one_owner_and_home_make_one_payment() -> None:
    of = [held(1, 5, 40, 1), held(1, 5, 30, 2), held(2, 5, 100, 3), held(3, 4, 60, 4), held(4, 3, 500, 5)]
    assert chosen(of, (1, 0), 55) == [(1, 55, 5)]
    assert chosen(of, (1, 0), 65) == [(2, 65, 5)], "the smallest group that suffices"
    assert chosen(of, (1, 0), 165) == [(1, 100, 0), (2, 65, 5)]
    assert isinstance(found := chosen(of, (1, 0), 230), list) and len(found) == 3
    assert chosen(of, (1, 0), 231) == Missing(1), "what is too old is not spent"


def test_a_payment_pays_the_fee_of_its_home() -> None:
    of = [held(1, 5, 100, 1), held(2, 4, 100, 2)]
    parts = choose(of, 0, lambda home: (1, 9) if home == 5 else (1, 2), 150, 5)
    assert isinstance(parts, list)
    assert sorted((one.inputs[0].home, one.paid + one.change) for one in parts) == [(4, 98), (5, 91)]


def terms(number: int, symbol: str, since: int, fee: int, deposits: str = "taken") -> dict[str, Any]:
    sizes = {"least_units": "10", "fee": str(fee), "outflow_most": "0", "outflow_per_height": "0"}
    return {"asset": symbol, "number": number, "decimals": 2, "from": since, "deposits": deposits, **sizes}


TOLD = [terms(0, "USD", 0, 1), terms(7, "GBP.7", 4, 2), terms(7, "GBP.7", 6, 3, "refused")]


def test_a_home_has_the_last_terms_before_it_and_a_purse_keeps_what_a_node_told(folder: Path) -> None:
    class Node:
        server = "http://node"

    network = LaneNetwork.read(folder)
    assert network.rule(0, 5) == (1, 0), "as it was pinned"
    with pytest.raises(UnknownAssetError):
        network.money("GBP.7")
    network._learn_terms(Node(), TOLD)
    for known in (network, LaneNetwork.read(folder)):
        assert [known.rule(7, home) for home in (4, 5, 6)] == [(10, 2), (10, 2), (10, 3)]
        assert known.rules(5).of(0) == (10, 1) and known.money("GBP.7").asset == 7
        known.check_deposit(known.money("GBP.7"), 10, 5)
        with pytest.raises(PurseError, match=r"no deposits of GBP\.7 in this lane epoch"):
            known.check_deposit(known.money("GBP.7"), 10, 6)
        with pytest.raises(PurseError, match=r"at least 0\.1 USD"):
            known.check_deposit(known.money("USD"), 9, 5)


def test_no_node_renames_an_asset_that_the_purse_knows(folder: Path) -> None:
    class Node:
        server = "http://node"

    network = LaneNetwork.read(folder)
    moved = terms(0, "USD", 0, 1) | {"decimals": 0}
    alike = [terms(7, "X", 0, 1), terms(8, "X", 0, 1)]
    for wrong in ([terms(7, "USD", 0, 1)], [terms(0, "GBP", 0, 1)], [moved], alike):
        with pytest.raises(OtherLaneError, match="nothing was sent"):
            network._learn_terms(Node(), wrong)
    assert not (folder / "terms.json").exists()


def test_fees_are_paid_and_no_output_is_too_small() -> None:
    of = [held(1, 5, 40, 1), held(2, 5, 100, 3)]
    assert chosen(of, (1, 3), 97) == [(1, 97, 0)]
    assert chosen(of, (1, 3), 98) == [(1, 97, 0), (1, 1, 36)]
    assert chosen(of, (1, 3), 135) == Missing(1), "a fee for each of two payments"
    assert chosen(of, (10, 0), 95) == [(1, 85, 15), (1, 10, 30)]
    assert isinstance(chosen([held(1, 5, 15, 1)], (10, 0), 10), Missing), "change of 5 is none"
    for amount in range(1, 200):
        parts = chosen(of, (7, 2), amount)
        if isinstance(parts, list):
            assert sum(paid for _, paid, _ in parts) == amount
            assert all(paid >= 7 and (change == 0 or change >= 7) for _, paid, change in parts)


def test_an_answer_about_a_spender_counts_only_with_the_owners_signature(purse: Purse) -> None:
    committee = purse._session.committee(REGISTERED[0].epoch)
    seed, network = bytes([9] * 32), purse._session.network
    owner = ed25519.public(seed)
    output = payment.Output(0, owner, 0, 100)
    holding = Holding(bytes([1] * 32), output, committee.epoch)
    rules, paid = network.rules(committee.epoch), payment.Output(0, bytes([3] * 32), 0, 100)
    made = build(rules, seed, [holding], committee.epoch, [paid])
    data = made.payment.encode()
    other = replace(holding, output=replace(output, amount=99))
    another = build(network.rules(committee.epoch), seed, [other], committee.epoch, [replace(output, amount=99)])
    lies = [
        (bytes(64), data),
        (made.signature, data + b"\0"),
        (another.signature, another.payment.encode()),
    ]
    inquiry = Inquiry(committee, holding, seed)
    for lie in lies:
        assert inquiry.add(0, Spender(holding.id, lie)) is None and inquiry.liars == {0}
    assert inquiry.add(0, Spender(bytes(32), None)) is None, "about another output"
    assert [inquiry.add(member, Spender(holding.id, None)) for member in (0, 0, 1, 2)] == [None, None, None, True]
    assert Inquiry(committee, holding, seed).add(0, Spender(holding.id, (made.signature, data))) == (
        made.payment, made.signature,
    )


# The ledger's proofs.

SEEDS = [bytes([number] * 32) for number in range(1, 5)]
NETWORK = bytes([7] * 32)


def chain(seeds: list[bytes], epoch: int = 0, schedule: Schedule = Schedule(10, 2)) -> Chain:
    return Chain(NETWORK, schedule, epoch, tuple(map(ed25519.public, seeds)))


def certified(seeds: list[bytes], signers: list[int], outcome: bytes, epoch: int = 0, height: int = 5) -> Certificate:
    block = bytes([5] * 32)
    digest = derived("walras 2026 consensus commit v1", NETWORK + u64(epoch) + u64(height) + block + outcome)
    return Certificate(epoch, height, block, outcome, tuple((one, ed25519.sign(seeds[one], digest)) for one in signers))


def test_a_certificate_needs_a_quorum_of_known_validators_in_order_and_of_its_epoch() -> None:
    here, outcome = chain(SEEDS), bytes([8] * 32)
    certified(SEEDS, [0, 2, 3], outcome).verify(here)
    for signers, why in [([0, 1], "3 are needed"), ([0, 0, 1], "ascending"), ([2, 1, 0], "ascending")]:
        with pytest.raises(ProofError, match=why):
            certified(SEEDS, signers, outcome).verify(here)
    others = [bytes([20 + number] * 32) for number in range(4)]
    with pytest.raises(ProofError, match="validator 0 is wrong"):
        certified(others, [0, 1, 2], outcome).verify(here)
    with pytest.raises(ProofError, match="not of epoch"):
        certified(SEEDS, [0, 1, 2], outcome, height=13).verify(here)
    with pytest.raises(ProofError, match="not of epoch"):
        certified(SEEDS, [0, 1, 2], outcome, epoch=1, height=14).verify(here)
    with pytest.raises(ProofError, match="wrong"):
        replace(certified(SEEDS, [0, 1, 2], outcome), outcome=bytes(32)).verify(here)


def test_a_handover_shows_the_next_committee_only_as_the_one_before_signed_it() -> None:
    here, next_keys = chain(SEEDS), tuple(ed25519.public(bytes([40 + number] * 32)) for number in range(4))
    registry = Registry(bytes(32), NETWORK, here.schedule, 2, 0, (here.keys, next_keys))
    state, receipts = bytes([1] * 32), bytes([2] * 32)
    good = Handover(certified(SEEDS, [0, 1, 2], outcome_of(state, receipts), height=12), receipts, state, registry)
    assert good.follow(here) == Chain(NETWORK, here.schedule, 1, next_keys)
    for wrong, why in [
        (replace(good, state=bytes(32)), "another outcome"),
        (replace(good, registry=replace(registry, network=bytes(32))), "another network"),
        (replace(good, registry=replace(registry, committees=(here.keys,))), "without its committee"),
        (replace(good, certificate=certified(SEEDS, [0, 1], outcome_of(state, receipts))), "are needed"),
    ]:
        with pytest.raises(ProofError, match=why):
            wrong.follow(here)


def test_the_parts_of_a_state_are_in_order_and_a_proof_of_keys_is_of_this_state() -> None:
    parts = u32(1) + b"\x04" + derived("walras 2026 bridge root v1", bytes(64))
    state, found = read_parts(Reader(parts))
    assert list(found) == [4]
    with pytest.raises(ProofError, match="order of their tags"):
        read_parts(Reader(u32(2) + b"\x04" + bytes(32) + b"\x04" + bytes(32)))
    proof = parts + bytes(64) + u32(0)
    check_entries(state, proof, [])
    with pytest.raises(ProofError, match="another state root"):
        check_entries(bytes(32), proof, [])
    with pytest.raises(ProofError, match="another number"):
        check_entries(state, proof, [REGISTERED[0]])
    with pytest.raises(ProofError):
        check_entries(state, parts + bytes(64) + u32(1) + u32(0), [REGISTERED[0]])
    with pytest.raises(ProofError, match="cut off"):
        read_certificate(Reader(bytes(40)))


def test_what_walras_pay_follow_began_is_finished_when_the_purse_is_opened(folder: Path) -> None:
    deposit = Deposit("0x" + "11" * 32, "0x" + "22" * 20, 0, "0x" + "33" * 32, 0, 5, 0, "0x" + "44" * 32)
    (folder / "received" / "old").write_text("evidence")
    plan = {"lane": pinned(), "before": "before-1", "deposits": [deposit.body()]}
    (folder / "follow.json").write_text(json.dumps(plan))
    with Purse.open(folder, PASSPHRASE) as purse:
        assert purse._folder.deposits() == [deposit] and not (folder / "follow.json").exists()
    assert (folder / "before-1" / "received" / "old").read_text() == "evidence"
