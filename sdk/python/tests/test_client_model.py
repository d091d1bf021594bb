"""Nobody pays twice: the client against a model of a node whose answers are lost, while calls are given up, processes
crash, and an adversary sends again all bytes that it has seen."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from walras.client import (
    ClientError,
    EthereumKey,
    MemoryStore,
    NoAnswerError,
    SentBeforeError,
    TransactionRefusedError,
    UndecidedError,
    VoidError,
    calls,
    sending,
)
from walras.client.calls import Session
from walras.client.encoding import Body, Signed, address_bytes
from walras.client.operations import Burn
from walras.client.flow import Answer, Ask, Flow, Pause
from walras.client.sending import Sender

KEY = EthereumKey("0x" + "07" * 32)
NETWORK = "0x" + "4e" * 32


class Refused(Exception):
    """An answer with a code."""


def outcome(result: str) -> dict[str, str]:
    """An outcome as nodes state it: applied, or refused with a code."""
    return {"result": "applied"} if result == "applied" else {"result": "refused", "code": result, "message": result}


@dataclass
class ModelNode:
    """A ledger of one account, its pool, an index that forgets, and blocks that are kept."""

    chance: random.Random
    height: int = 300
    highest: int = 0
    used: set[int] = field(default_factory=set)
    pool: dict[int, Signed] = field(default_factory=dict)
    seen: list[Signed] = field(default_factory=list)
    index: dict[str, tuple[int, str]] = field(default_factory=dict)
    blocks: dict[int, list[tuple[Signed, str]]] = field(default_factory=dict)
    executed: list[Signed] = field(default_factory=list)
    poor: float = 0.0
    """How often a transaction overdraws the account."""

    def block(self) -> None:
        """Decides a block."""
        self.height += 1
        content = []
        for signed in self.pool.values():
            result = "overdraft" if self.chance.random() < self.poor else "applied"
            if signed.until < self.height or signed.sequence in self.used:
                continue
            if result == "applied":
                self.used.add(signed.sequence)
                self.highest = max(self.highest, signed.sequence)
                self.executed.append(signed)
            content.append((signed, result))
            self.index[signed.id] = (self.height, result)
        if self.seen and self.chance.random() < 0.3:
            # Another validator proposes a copy of one that was executed.
            copy = self.chance.choice(self.seen)
            if copy.sequence in self.used and copy.until >= self.height:
                content.append((copy, "sequence_used"))
                self.index.setdefault(copy.id, (self.height, "sequence_used"))
        self.pool, self.blocks[self.height] = {}, content
        if self.chance.random() < 0.5:
            # Others fill the index.
            self.index.clear()

    def submit(self, signed: Signed) -> dict[str, Any]:
        self.seen.append(signed)
        if (found := self.index.get(signed.id)) is not None and found[1] == "applied":
            return self.committed(signed.id)
        if signed.until <= self.height:
            raise Refused("ended")
        if signed.sequence in self.used:
            raise Refused("sequence_used")
        if signed.sequence <= self.highest - 64:
            raise Refused("sequence_too_old")
        if signed.sequence > self.highest + 64:
            raise Refused("sequence_too_far")
        if self.chance.random() < self.poor:
            raise Refused("overdraft")
        other = self.pool.get(signed.sequence)
        if other is not None and (other.until, other.id) > (signed.until, signed.id):
            raise Refused("sequence_conflict")
        self.pool[signed.sequence] = signed
        return {"id": signed.id, "status": "pending"}

    def committed(self, id: str) -> dict[str, Any]:
        height, result = self.index[id]
        return {"id": id, "status": "committed", "height": height, "outcome": outcome(result)}

    def window(self) -> bytes:
        bits = sum(1 << behind for behind in range(64) if self.highest - behind in self.used)
        head = bytes(4) + b"\1" + address_bytes(KEY.address) + b"\0"
        return head + self.highest.to_bytes(8, "little") + bits.to_bytes(8, "little") + bytes(6)

    def answer(self, ask: Ask) -> dict[str, Any]:
        match ask.path.split("/")[2:]:
            case ["transactions"]:
                return self.submit(Signed(ask.body or b""))
            case ["transactions", id]:
                if any(signed.id == id for signed in self.pool.values()):
                    return {"id": id, "status": "pending"}
                if id not in self.index:
                    raise Refused("not_found")
                return self.committed(id)
            case ["limits"]:
                numbers = dict.fromkeys(["until_max", "block_interval_ms", "stream_channels", "chain", "fee"], 1)
                return {"network": NETWORK, "fee_asset": "USD", "sequence_window": 64, **numbers}
            case ["assets"]:
                amounts = {"decimals": 2, "issuer": "0x", "least_units": "1", "issued": "0"}
                return {"assets": [{"asset": 0, "symbol": "USD", **amounts}]}
            case ["status"]:
                texts = dict.fromkeys(["version", "engine", "stalled"], "")
                numbers = dict.fromkeys(["chain", "time_ms", "accounts", "offers", "transactions_per_second"], 1)
                return {"height": self.height, "mempool": {"transactions": 0}, **texts, **numbers}
            case ["accounts", address]:
                sequence = {"highest": str(self.highest), "next": str(max([self.highest, *self.pool]) + 1)}
                return {"address": address, "height": self.height, "sequence": sequence, "balances": []}
            case ["accounts", _, "proof"]:
                return {"height": self.height, "proof": "0x" + self.window().hex()}
            case ["blocks", height, "accounts", _]:
                return {"changed": any(result == "applied" for _, result in self.blocks.get(int(height), []))}
            case ["blocks", height]:
                found = [
                    {
                        "id": signed.id,
                        "account": signed.account,
                        "sequence": str(signed.sequence),
                        "operation": {"type": "burn"},
                        "outcome": outcome(result),
                    }
                    for signed, result in self.blocks.get(int(height), [])
                ]
                return {"outcomes": found, "next": None}
        return {}


class Clock:
    """Time that passes only in pauses."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


class GivenUp(Exception):
    """The caller, or its process, ends in the middle of a call."""


@dataclass
class World:
    chance: random.Random
    node: ModelNode
    clock: Clock
    loss: float
    crash: float

    def run(self, flow: Flow[Any]) -> Any:
        try:
            step = next(flow)
            while True:
                if self.chance.random() < self.crash:
                    raise GivenUp
                self.pass_time()
                if isinstance(step, Pause):
                    self.clock.now += step.seconds
                    step = flow.send(None)
                    continue
                lost_before, lost_after = (self.chance.random() < self.loss / 2 for _ in range(2))
                answer = None if lost_before else self.answer(step)
                if answer is None or lost_after:
                    step = flow.throw(NoAnswerError("http://here", "lost"))
                else:
                    step = flow.send(answer)
        except StopIteration as end:
            return end.value
        finally:
            flow.close()

    def answer(self, ask: Ask) -> Answer:
        try:
            return Answer(200, json.dumps(self.node.answer(ask)).encode())
        except Refused as error:
            code = str(error)
            body = {"error": {"code": code, "message": code}}
            return Answer(404 if code == "not_found" else 422, json.dumps(body).encode())

    def pass_time(self) -> None:
        """Blocks are decided, and the adversary sends what it has seen."""
        if self.chance.random() < 0.3:
            self.node.block()
        if self.node.seen and self.chance.random() < 0.3:
            try:
                self.node.submit(self.chance.choice(self.node.seen))
            except Refused:
                pass


@pytest.mark.parametrize("seed", range(50))
def test_nobody_pays_twice_whatever_is_lost_or_sent_again(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    clock = Clock()
    monkeypatch.setattr(sending, "time", clock)
    monkeypatch.setattr(calls, "time", clock)
    monkeypatch.setattr(sending, "secrets", SimpleNamespace(randbelow=chance.randrange))
    node = ModelNode(chance, poor=chance.choice([0.0, 0.2]))
    world = World(chance, node, clock, loss=chance.choice([0.0, 0.3]), crash=chance.choice([0.0, 0.03]))
    store = MemoryStore()

    def begun() -> Sender:
        return Sender(Session("http://here", None), KEY.address, KEY, store, 2.0, chance.choice([4, 64]))

    sender, told = begun(), set()
    for payment in range(1, 7):
        reference = f"invoice {payment}" if chance.random() < 0.5 else None
        # The caller insists, until it is told that the payment was executed.
        for _ in range(40):
            try:
                fate = world.run(sender.send(Burn(0, payment), True, reference))
                assert fate.state == "executed"
                told.add(payment)
                break
            except GivenUp:
                # A call that is given up, or a process that begins again with its store.
                sender = sender if chance.random() < 0.5 else begun()
            except SentBeforeError as error:
                if error.height is not None:
                    told.add(payment)
                    break
                node.block()
            except (UndecidedError, VoidError, TransactionRefusedError, NoAnswerError):
                node.block()
            except ClientError as error:
                raise AssertionError(f"seed {seed}") from error
    for _ in range(300):
        world.pass_time()
    counts = {payment: 0 for payment in range(1, 7)}
    for signed in node.executed:
        counts[int.from_bytes(signed.body[-8:], "little")] += 1
    assert all(count <= 1 for count in counts.values()), f"seed {seed}: {counts}"
    assert all(counts[payment] == 1 for payment in told), f"seed {seed}: {counts}"


def test_the_model_of_a_node_has_the_rules_of_the_ledger() -> None:
    node = ModelNode(random.Random(0))

    def made(sequence: int, until: int, units: int) -> Signed:
        return KEY.sign(Body(1, KEY.address, sequence, until, Burn(0, units)), NETWORK)

    first, later = made(1, 400, 1), made(1, 401, 2)
    node.submit(first)
    node.submit(later)
    with pytest.raises(Refused, match="sequence_conflict"):
        node.submit(first)
    node.block()
    assert [signed.id for signed in node.executed] == [later.id]
    with pytest.raises(Refused, match="sequence_used"):
        node.submit(first)
