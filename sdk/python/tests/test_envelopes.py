"""Sealed orders without a node: what is asked, what is sent, and what is told of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from walras.client import ClientError, Ed25519Key, EthereumKey, TransactionRefusedError
from walras.client.core import Core
from walras.client.encoding import Operation, Signed
from walras.client.envelopes import why_no_key
from walras.client.errors import SealError, SentBeforeError
from walras.client.flow import Answer, Ask, Flow, Pause
from walras.client.operations import Burn, CreateOffer, Sealed

DOCS = Path(__file__).resolve().parents[3] / "docs"
COMMITTEE = json.loads((DOCS / "sealed-vectors.json").read_text())["made"][0]["committee"]
NETWORK = "0x" + 32 * "07"
NO_KEY: dict[str, Any] = {"height": 9, "threshold": "fewest", "in_force": None, "keys": [], "making": None, "failed": None}
KEY = {**NO_KEY, "in_force": 3, "keys": [{"number": 3, "key": COMMITTEE, "from": 1, "last": None}]}
LIMITS = {
    "chain": "1", "network": NETWORK, "fee": "5", "fee_asset": "USD", "epsilon": "2^-15", "mu": "2^-10", "sequence_window": 64,
    "until_max": 256, "life_max": 1000, "ends_max": 1000, "block_interval_ms": 10, "stream_channels": 1,
}


@dataclass
class Node:
    """A node that opens whatever it gets, as it is told to."""

    seal: dict[str, Any] = field(default_factory=lambda: KEY)
    became: dict[str, Any] = field(default_factory=lambda: {"became": "opened", "operations": 1})
    refuses: list[str] = field(default_factory=list)
    opens: bool = True
    asked: list[str] = field(default_factory=list)
    sent: list[Signed] = field(default_factory=list)
    inside: dict[str, Any] = field(default_factory=dict)

    def answer(self, ask: Ask) -> tuple[int, Any]:
        self.asked.append(ask.path)
        if ask.method == "POST":
            assert ask.path == "/v1/transactions" and ask.body is not None
            if self.refuses:
                return 422, {"error": {"code": self.refuses.pop(0), "message": "another one has it"}}
            self.sent.append(Signed(ask.body))
            return 202, {"id": self.sent[-1].id, "status": "pending"}
        match ask.path.removeprefix("/v1/").split("/"):
            case ["seal"]:
                return 200, self.seal
            case ["limits"]:
                return 200, LIMITS
            case ["assets"]:
                one = {"decimals": 2, "issuer": "0x" + 40 * "1", "least_units": "1", "issued": "0", "valuation": None}
                return 200, {"assets": [{"asset": at, "symbol": name, **one} for at, name in enumerate(("USD", "EUR"))]}
            case ["status"]:
                figures = dict.fromkeys(("accounts", "offers", "transactions_per_second"), 0)
                status = {"version": "1", "chain": "1", "engine": "dbft", "height": 9, "time_ms": 0, "stalled": None}
                return 200, {**status, **figures, "mempool": {"transactions": 0}}
            case ["accounts", address]:
                return 200, {"height": 9, "address": address, "sequence": {"highest": "0", "next": "1"}, "balances": []}
            case ["transactions", id] if self.opens and any(one.id == id for one in self.sent):
                outcome = {"result": "sealed", **self.became}
                body = {"id": id, "status": "committed", "height": 10, "until": "25", "outcome": outcome}
                return 200, {**body, "inside": [self.inside] if self.inside else []}
        return 404, {"error": {"code": "not_found", "message": "it is not kept"}}

    def run(self, flow: Flow[Any]) -> Any:
        try:
            step = next(flow)
            while True:
                if isinstance(step, Pause):
                    step = flow.send(None)
                    continue
                if step.path == "/readyz":
                    step = flow.send(Answer(200, b"{}"))
                    continue
                status, body = self.answer(step)
                step = flow.send(Answer(status, json.dumps(body).encode()))
        except StopIteration as end:
            return end.value


def core(key: Any = None, payer: Core | None = None) -> Core:
    return Core("http://node", key or Ed25519Key(bytes(32)), None, None, None, 5.0, 256, payer=payer)


def offer() -> CreateOffer:
    return CreateOffer(0, 1, 5_000, Decimal(2))


def inside(**outcome: Any) -> dict[str, Any]:
    operation = {"type": "create_offer", "sell": "USD", "buy": "EUR", "amount": "5000", "limit": "2"}
    return {"id": "0x" + 64 * "1", "account": "0x", "sequence": "1", "operation": operation, "outcome": outcome}


def test_without_a_key_nothing_is_sent_and_the_reason_is_told() -> None:
    node = Node(seal=NO_KEY)
    with pytest.raises(SealError, match="has not begun to make one. Nothing was sent"):
        node.run(core().envelopes.send_one(offer(), True, None))
    assert not node.sent
    making = {"number": 4, "step": "deal", "ends": 40, "awaited": ["0x01"]}
    assert "`deal` awaits 0x01, until block 40" in why_no_key({**NO_KEY, "making": making})
    assert "does not name `seals`" in why_no_key({**NO_KEY, "threshold": None})


def test_a_sealed_order_is_told_as_its_envelope_opened_it_and_nothing_is_asked_about_it() -> None:
    told = {"result": "offered", "sold": "0", "bought": "0", "left": "5000", "returned": "0", "why": "above_the_rate"}
    node = Node(inside=inside(**told))
    placed = node.run(core().offer("USD", "EUR", "50", "2", ("rests", "0x" + 32 * "0"), None, True, True))
    assert (placed.state, placed.sequence, placed.outcome.left) == ("executed", 1, 50)
    (envelope,) = node.sent
    # The order has the number below that of the envelope, which shows none of its bytes.
    assert (envelope.sequence, envelope.body[44:45]) == (2, Sealed.CODE)
    assert offer().encode() not in envelope.encoded
    asked = {path.split("/")[2] for path in node.asked}
    assert asked == {"assets", "seal", "limits", "accounts", "transactions"}


def test_an_unpaid_envelope_is_an_error_and_leaves_the_number_of_its_order_free() -> None:
    sender = core()
    node = Node(became={"became": "unpaid", "operations": 0, "code": "overdraft", "message": "it cannot pay"})
    with pytest.raises(TransactionRefusedError, match="nothing in the envelope counts: it cannot pay"):
        node.run(sender.envelopes.send_one(offer(), True, None))
    again = Node(opens=False)
    pending = again.run(sender.envelopes.send_one(offer(), False, None))
    assert (pending.state, pending.sequence) == ("pending", 1)


def test_what_was_refused_inside_is_an_error_with_its_code() -> None:
    node = Node(inside=inside(result="refused", code="bad_signature", message="it is signed as a plain transaction"))
    with pytest.raises(TransactionRefusedError, match="signed as a plain transaction") as refused:
        node.run(core().envelopes.send_one(offer(), True, None))
    assert refused.value.code == "bad_signature"


def test_an_envelope_whose_number_is_taken_is_sealed_anew_around_the_same_order() -> None:
    node = Node(opens=False, refuses=["sequence_used"])
    pending = node.run(core().envelopes.send_one(offer(), False, None))
    assert (pending.sequence, [one.sequence for one in node.sent]) == (1, [3])


def test_a_wallets_key_seals_by_a_payer_alone() -> None:
    wallet = core(EthereumKey(bytes(31) + b"\1"))
    with pytest.raises(SealError, match="give it a `payer`"):
        Node().run(wallet.envelopes.send_one(offer(), True, None))
    payer = core()
    node = Node(opens=False)
    wallet = core(EthereumKey(bytes(31) + b"\1"), payer)
    pending = node.run(wallet.envelopes.send_one(offer(), False, None))
    assert (node.sent[0].account, node.sent[0].sequence, pending.sequence) == (payer.sender.account, 1, 1)


def test_what_no_envelope_holds_is_refused_and_an_untold_envelope_is_told() -> None:
    sender = core()
    with pytest.raises(SealError, match="send Burn plain"):
        Node().run(sender.envelopes.send_one(Burn(0, 5), True, None))
    with pytest.raises(SealError, match="at most 32"):
        Node().run(sender.envelopes.send([offer()] * 33, True, None))
    node = Node(opens=False)
    node.run(sender.envelopes.send_one(offer(), False, None))
    # Another client with the same store, as after a crash.
    other = Core("http://node", Ed25519Key(bytes(32)), None, None, sender.sender.store, 5.0, 256)
    with pytest.raises(SentBeforeError, match="sent before"):
        Node(sent=node.sent).run(other.envelopes.send_one(offer(), True, None))
    assert issubclass(SealError, ClientError) and issubclass(CreateOffer, Operation)
