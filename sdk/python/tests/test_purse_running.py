"""Purses of the package with a lane of four processes, in turns with those of the command line: one folder, two
programs."""

from __future__ import annotations

import json
import selectors
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from conftest import BINARY, PASSPHRASE
from lane_network import Network

from walras.client import Client, Ed25519Key
from walras.purse import (
    MissingMoneyError,
    OtherLaneError,
    Purse,
    PurseInUseError,
    ReceiptError,
    Scheme,
    UnconfirmedError,
    UnprovedError,
)
from walras.purse.lane import ed25519, payment, receipt
from walras.purse.lane.collect import Holding, build
from walras.purse.lane.committee import Registration, shard_of
from walras.purse.lane.layout import Refused
from walras.purse.network import LaneNetwork, LaneNow
from walras.purse.shards import Link, Shards
from walras.purse.trust import registration, registration_body


@pytest.fixture(scope="module", params=["trees", "group key"])
def network(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    if not BINARY.exists():
        pytest.skip(f"{BINARY} is not built")
    more = ["--lane-bls", "threshold", "--lane-epoch-heights", "150"] if request.param == "group key" else []
    with ExitStack() as nodes:
        made = Network(tmp_path_factory.mktemp("lane"), nodes, *more)
        if more:
            wait_for_group_key(made)
        yield made


@pytest.fixture
def client(network: Network) -> Iterator[Client]:
    """The node, with the key of the account that has all the money."""
    key = network.folder / "issuer-key.json"
    with Client(network.url, key=Ed25519Key.open(key, PASSPHRASE), store=key) as made:
        yield made


def wait_for_group_key(network: Network) -> None:
    """Blocks are made, each with a payment, until the present lane epoch has a group key and has just begun."""
    network.pay("new", purse="filler")
    issuer = str(network.folder / "issuer-key.json")
    while True:
        body = network.get("/v1/lane")
        if body["epoch"] in body["group_keys"] and body["heights_left"] > 100:
            return
        assert body["epoch"] < 8, "no group key in eight lane epochs"
        if sum(one["epoch"] == body["epoch"] + 1 for one in body["registrations"]) < 4:
            # Members register and deal by themselves: other blocks would let the time for that pass.
            time.sleep(0.05)
            continue
        network.pay("deposit", "--key", issuer, "--asset", "USD", "--amount", "0.01", purse="filler")


def scheme_of(network: Network) -> Scheme:
    return "threshold" if "threshold" in json.dumps(network.get("/v1/lane")["bls"]) else "merkle"


def settled(purse: Purse, asset: str = "EUR") -> Decimal:
    return sum((one.settled for one in purse.balance() if one.asset == asset), Decimal(0))


def test_money_goes_from_a_purse_to_the_command_line_and_back_in_one_folder(
    network: Network, client: Client, tmp_path: Path
) -> None:
    scheme, issuer = scheme_of(network), str(network.folder / "issuer-key.json")
    # The command line makes a purse and fills it; the package opens it and pays from it.
    network.pay("new", purse="alice")
    network.pay("deposit", "--key", issuer, "--asset", "EUR", "--amount", "100", purse="alice")
    bob = Purse.new(tmp_path / "bob", PASSPHRASE, client, network=network.get("/v1/lane")["network"], patience=300)
    to = bob.address()
    with Purse.open(network.folder / "alice", PASSPHRASE, client, patience=300) as alice:
        assert settled(alice) == 100
        sent = alice.send(to, "EUR", "30.25", receipt=tmp_path / "r.txt", scheme=scheme)
        assert (tmp_path / "r.txt").read_text().strip() == sent.receipt == alice.export(sent.payments[0].payment)
        assert sent.payments[0].settled_s is not None and settled(alice) == Decimal("69.75")
    assert network.pay("balance", purse="alice")["balances"][0]["settled"] == "6975"

    # The payee checks the receipt with the proved keys of the lane alone, and takes it once.
    if scheme == "threshold":
        with pytest.raises(ReceiptError, match="keys of the receipt's lane epoch are not proved here"):
            bob.verify(sent.receipt)
        bob.balance()
    (proved,) = bob.verify(sent.receipt)
    assert (proved.to, proved.asset, proved.amount) == (to, "EUR", Decimal("30.25"))
    (taken,) = bob.receive(sent.receipt)
    assert taken.is_new and taken.is_settled
    (again,) = bob.receive(sent.receipt + "\n" + sent.receipt)
    assert not again.is_new and settled(bob) == Decimal("30.25"), "taken again, it is the same money"

    # A purse of the package, filled by the package, is opened by the command line, which pays from it.
    done = bob.deposit("EUR", "9.75")
    assert done.is_spendable and settled(bob) == 40
    bob.close()
    there = network.pay("address", purse="alice")["address"]
    where = str(tmp_path / "bob")
    network.pay("send", "--to", there, "--asset", "EUR", "--amount", "35", "--receipt", "back.txt", purse=where)
    received = network.pay("receive", "back.txt", purse="alice")["received"]
    assert [(one["amount"], one["settled"]) for one in received] == [("3025", True), ("475", True)], "of two owners"

    # And back to the ledger, each by the other program.
    with Purse.open(network.folder / "alice", PASSPHRASE, client, patience=300) as alice:
        before = client.account().balance("EUR").available
        redeemed = alice.redeem("EUR", "104.75")
        assert redeemed.waiting_claims == 0
        assert client.account().balance("EUR").available == before + Decimal("104.75")
        assert [one.kind for one in alice.history()] == ["deposited", "sent", *["received"] * 2, *["sent"] * 2]
    assert [one["kind"] for one in network.pay("history", purse="alice")["history"]].count("sent") == 3
    assert network.pay("redeem", "--key", issuer, "--asset", "EUR", "--amount", "5", purse=where)["waiting_claims"] == 0
    with Purse.open(tmp_path / "bob", PASSPHRASE, client) as bob:
        assert settled(bob) == 0


def test_a_purse_that_is_open_is_not_opened_twice_by_any_program(
    network: Network, client: Client, tmp_path: Path
) -> None:
    with Purse.new(tmp_path / "p", PASSPHRASE, client) as purse:
        with pytest.raises(PurseInUseError, match="another program uses this purse"):
            Purse.open(tmp_path / "p", PASSPHRASE, client)
        with pytest.raises(AssertionError, match="another command uses this purse"):
            network.pay("address", purse=str(tmp_path / "p"))
        assert purse.address().startswith("lane:")
    assert network.pay("address", purse=str(tmp_path / "p"))["address"].startswith("lane:")


def test_a_copied_purse_learns_from_a_quorum_what_it_has_spent_and_pays_nothing_twice(
    network: Network, client: Client, tmp_path: Path
) -> None:
    with Purse.new(tmp_path / "p", PASSPHRASE, client, patience=300) as purse:
        payee = purse.address()
        purse.deposit("EUR", "20")
    shutil.copytree(tmp_path / "p", tmp_path / "copy")
    with Purse.open(tmp_path / "p", PASSPHRASE, client, patience=300) as purse:
        assert not purse.is_copy
        other = Purse.new(tmp_path / "other", PASSPHRASE, client)
        first = purse.send(other.address(), "EUR", "12")
        there = other.address()
        other.close()
    with Purse.open(tmp_path / "copy", PASSPHRASE, client, patience=300) as copy:
        assert copy.is_copy and settled(copy) == 20, "it does not know yet"
        assert copy.address() != payee
        sent = copy.send(there, "EUR", "3")
        assert not copy.is_copy and settled(copy) == 5, "the lost payment was found, with its change"
        assert {one.id for one in copy.history()} >= {first.payments[0].payment, sent.payments[0].payment}
    # The command line finds what the copy spent in the folder that was rolled back.
    shutil.rmtree(tmp_path / "p")
    shutil.copytree(tmp_path / "copy", tmp_path / "p")
    assert network.pay("repair", purse=str(tmp_path / "p"))["found"] == 0


def test_a_payment_is_stored_before_it_is_sent_and_finished_with_the_same_bytes(
    network: Network, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Purse.new(tmp_path / "p", PASSPHRASE, client, patience=300) as purse:
        purse.deposit("EUR", "7")
    places = LaneNow.places
    with Purse.open(tmp_path / "p", PASSPHRASE, client, patience=0.2) as purse, monkeypatch.context() as patch:
        # No shard is where the node says, and of one member the node knows no address.
        patch.setattr(LaneNow, "places", lambda self, home: [[("127.0.0.1", 1)]] * 3 + [[]])
        with pytest.raises(UnconfirmedError, match=r"knows no address of its shard 0.*`settle\(\)` sends") as error:
            purse.send(purse.address(), "EUR", "7", receipt=tmp_path / "none.txt")
        assert not (tmp_path / "none.txt").exists(), "no place is held for a receipt that does not exist"
        stored = (tmp_path / "p" / "outbox" / f"payment-{error.value.payment}").read_bytes()
        with pytest.raises(MissingMoneyError, match="7 EUR are missing"):
            purse.send(purse.address(), "EUR", "7")
        assert len(list((tmp_path / "p" / "outbox").iterdir())) == 1, "its money is spent for nothing else"
    seen: list[bytes] = []
    ask = Shards.ask
    monkeypatch.setattr(LaneNow, "places", places)

    def noted(self: Shards, asking: Any, data: bytes, wait: float) -> Any:
        seen.append(data)
        return ask(self, asking, data, wait)

    monkeypatch.setattr(Shards, "ask", noted)
    with Purse.open(tmp_path / "p", PASSPHRASE, client, patience=300) as purse:
        done = purse.settle()
        assert done.finished == 1 and done.failed == [] and settled(purse) == 7
    assert stored.endswith(seen[0])


def test_a_shard_without_the_registered_key_is_no_shard_and_money_is_spent_once(
    network: Network, client: Client, tmp_path: Path
) -> None:
    with Purse.new(tmp_path / "p", PASSPHRASE, client, patience=300) as purse:
        purse.deposit("EUR", "4")
        session = purse._session
        now = session.now()
        (held,) = purse._folder.contents().holdings
        payee, _ = receipt.parse_payable(purse.address(), session.network.id)
        paid = purse.send(purse.address(), "EUR", "4")
        assert paid.receipt == "", "what stays in the purse has no receipt"
        secret = purse._folder.keys.secret(session.seed, held.output.to)
        again = payment.Output(0, payee, held.output.asset, 400)
        second = build(session.network.rules(held.home), secret, [held], now.epoch, [again])
        with pytest.raises(UnconfirmedError, match="is spent by payment"):
            session.confirm(now, second)

        link = Link(now.places(held.home)[0][0], bytes(32))
        with selectors.DefaultSelector() as ready, pytest.raises(Refused, match="another key"):
            ready.register(link.socket, link.wants)
            while True:
                for _, events in ready.select(60):
                    link.move(events)
                    ready.modify(link.socket, link.wants)
        link.socket.close()


def test_money_of_several_shards_is_paid_received_and_redeemed(tmp_path: Path) -> None:
    if not BINARY.exists():
        pytest.skip(f"{BINARY} is not built")
    shards = 3
    with ExitStack() as nodes:
        (tmp_path / "lane").mkdir()
        network = Network(tmp_path / "lane", nodes, shards=shards)
        key = network.folder / "issuer-key.json"
        client = nodes.enter_context(Client(network.url, key=Ed25519Key.open(key, PASSPHRASE), store=key))
        assert {len(one) for one in network.get("/v1/lane")["addresses"]} == {shards}
        purse, other = (
            nodes.enter_context(Purse.new(tmp_path / name, PASSPHRASE, client, patience=300)) for name in "ab"
        )
        # Each deposit has a key of its own, whose hash chooses the shard.
        owners: list[bytes] = []
        while len({shard_of(owner, shards) for owner in owners}) < shards:
            purse.deposit("EUR", "1")
            owners = [held.output.to for held in purse._folder.contents().holdings]
        whole = Decimal(len(owners))
        sent = purse.send(other.address(), "EUR", whole)
        assert len(sent.payments) == len(owners), "each owner pays in its shard"
        taken = other.receive(sent.receipt)
        assert settled(purse) == 0 and settled(other) == whole and all(one.is_settled for one in taken)
        assert other.redeem("EUR", whole).waiting_claims == 0


@contextmanager
def lying(url: str, lie: Any) -> Iterator[str]:
    """A node that passes questions on, and changes the answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with Client(url) as honest:
                answer = honest._http.get(self.path)
            body = lie(self.path, answer.content)
            self.send_response(answer.status_code)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def forged(network: Network, body: dict[str, Any]) -> dict[str, Any]:
    """A second list of keys for the same epoch, which the registrar itself has signed: it lies to a purse."""
    key = Ed25519Key.open(network.folder / f"validator-{body['member']}" / "lane-key.json", PASSPHRASE)
    told = registration(body)
    own = ed25519.public(bytes([7] * 32))
    made = Registration(told.epoch, told.member, (own,), (), bytes(64))
    head = payment.head(payment.REGISTRATION, bytes.fromhex(network.get("/v1/lane")["network"][2:]), told.epoch)
    signature = bytes.fromhex(key.sign_bytes(head + made.signed())[2:])
    return registration_body(Registration(told.epoch, told.member, (own,), (), signature))


def test_a_list_of_keys_that_a_registrar_signed_and_the_ledger_has_not_is_not_believed(
    network: Network, client: Client, tmp_path: Path
) -> None:
    body = network.get("/v1/lane")
    if not any(one["epoch"] == body["epoch"] for one in body["registrations"]):
        pytest.skip("the lane is in its first epoch: its keys are in the genesis")

    def lie(path: str, content: bytes) -> bytes:
        if not path.startswith("/v1/lane"):
            return content
        told = json.loads(content)
        listed = told.get("registrations", [])
        told["registrations"] = [forged(network, one) if one["member"] == 0 else one for one in listed]
        return json.dumps(told).encode()

    with lying(network.url, lie) as url, Client(url) as liar:
        with Purse.new(tmp_path / "p", PASSPHRASE, client) as purse:
            assert purse.balance() == []
        (tmp_path / "p" / "proved-epochs.json").unlink()
        with (
            Purse.open(tmp_path / "p", PASSPHRASE, liar) as purse,
            pytest.raises(UnprovedError, match="not proved.*other keys of member 0"),
        ):
            purse.balance()
        assert not (tmp_path / "p" / "proved-epochs.json").exists(), "nothing is learned from it"
        # Keys that were proved before are not given up for it either.
        with Purse.open(tmp_path / "p", PASSPHRASE, client) as purse:
            purse.balance()
        with (
            Purse.open(tmp_path / "p", PASSPHRASE, liar) as purse,
            pytest.raises(UnprovedError, match="not those that the ledger has"),
        ):
            purse.balance()


def test_a_node_of_another_lane_is_told_apart_and_nothing_is_sent(
    network: Network, client: Client, tmp_path: Path
) -> None:
    def lie(path: str, content: bytes) -> bytes:
        return content.replace(network.get("/v1/lane")["network"].encode(), b"0x" + b"ab" * 32)

    with pytest.raises(OtherLaneError, match="give another node"):
        Purse.new(tmp_path / "p", PASSPHRASE, client, network="0x" + "ab" * 32)
    with pytest.raises(OtherLaneError, match="other validators than those given"):
        Purse.new(tmp_path / "p", PASSPHRASE, client, validators=["0x" + "ab" * 32])
    assert not (tmp_path / "p").exists()
    Purse.new(tmp_path / "p", PASSPHRASE, client).close()
    with (
        lying(network.url, lie) as url,
        Client(url) as liar,
        Purse.open(tmp_path / "p", PASSPHRASE, liar) as purse,
        pytest.raises(OtherLaneError, match="another lane than this purse"),
    ):
        purse.settle()


def test_receipts_of_others_are_refused_in_words(network: Network, client: Client, tmp_path: Path) -> None:
    with (
        Purse.new(tmp_path / "a", PASSPHRASE, client, patience=300) as purse,
        Purse.new(tmp_path / "b", PASSPHRASE, client, patience=300) as other,
    ):
        purse.deposit("EUR", "2")
        text = purse.send(other.address(), "EUR", "1").receipt
        with pytest.raises(ReceiptError, match="does not belong to this purse") as refused:
            purse.receive(text)
        assert refused.value.reason == "OtherOwner"
        slip = receipt.parse_slip(text, purse._session.network.id)
        with pytest.raises(ReceiptError, match="of another network") as refused:
            other.receive(receipt.slip_text(slip, bytes(32)))
        assert refused.value.reason == "OtherNetwork"
        with pytest.raises(ReceiptError, match="proves nothing"):
            other.receive(text[:-2] + ("00" if text[-2:] != "00" else "01"))
        with pytest.raises(ReceiptError, match="begins with WALRAS"):
            other.receive("EUR 1")
        assert settled(other) == 0, "all of them, or none"
        account = purse.send(client.address, "EUR", "0.5").receipt
        with pytest.raises(ReceiptError, match="redeem_receipts"):
            other.receive(account)
        assert other.redeem_receipts(account).waiting_claims == 0
        with pytest.raises(ReceiptError, match="mistyped"):
            purse.send(other.address()[:-1] + "x", "EUR", "0.1")


def test_a_purse_follows_the_validators_and_renews_its_money_in_time(tmp_path: Path) -> None:
    if not BINARY.exists():
        pytest.skip(f"{BINARY} is not built")
    (tmp_path / "network").mkdir()
    epochs = ["--epoch-heights", "20", "--lane-epoch-heights", "40", "--unbonding-epochs", "400"]
    with ExitStack() as nodes:
        network = Network(tmp_path / "network", nodes, *epochs)
        key = network.folder / "issuer-key.json"
        client = nodes.enter_context(Client(network.url, key=Ed25519Key.open(key, PASSPHRASE), store=key))
        purse = nodes.enter_context(Purse.new(tmp_path / "p", PASSPHRASE, client, patience=300))
        purse.deposit("EUR", "3")
        while network.get("/v1/lane")["epoch"] < 1 or network.get("/v1/lane")["heights_left"] < 20:
            client.pay("0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "USD", "0.01")
        assert purse.settle().renewed == 1 and settled(purse) == 3
        # The committee that proves the lane's keys is one that handovers have shown.
        assert json.loads((tmp_path / "p" / "validators.json").read_text())["epoch"] >= 1
        purse.close()
        assert network.pay("trust", purse=str(tmp_path / "p"))["epoch"] >= 1
        assert network.pay("balance", purse=str(tmp_path / "p"))["balances"][0]["settled"] == "300"


def test_what_is_proved_holds_only_for_the_network_of_the_purse(network: Network, client: Client) -> None:
    lane = LaneNetwork.of_node(client, None, None)
    assert lane.committee(1_000) is None, "an epoch whose keys nobody proved has no committee"
    assert Holding(bytes(32), payment.Output(0, bytes(32), 0, 1), 0).proof is None
