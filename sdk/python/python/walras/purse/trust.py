"""Whom a purse believes about the ledger, and how the ledger proves the lane's keys to it.

The keys of a lane epoch are those that the *ledger* has registered: proved by a path to a state root that a quorum of
the chain's validators has signed. The registrars' signatures alone are not enough, since a registrar can sign two
lists. The validators are those that the purse was made with, and their successors that handovers prove.

A chain of one node has no validators and signs no states: there the registrars' signatures count. Whether a chain has
validators is pinned, so that no node can claim later that it has none.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from walras.client.encoding import raw
from walras.client.errors import NotFoundError, RefusedError
from walras.client.flow import get
from walras.client.proof import ProofError, Reader, prove
from walras.client.sync import Client
from walras.purse.disk import FETCHED_AGAIN, read_json, write_json
from walras.purse.errors import OtherLaneError, PurseError, PurseFileError, UnprovedError
from walras.purse.lane.committee import Registration, read_registration
from walras.purse.lane.layout import Refused, derived, parsed, u8, u64
from walras.purse.lineage import (
    ESCROW,
    MEMBERS_MAX,
    Chain,
    Registry,
    Schedule,
    outcome_of,
    read_certificate,
    read_handover,
    read_parts,
    read_validators,
)

__all__ = ["SOLO", "Anchor", "Light", "Trust", "ask", "find", "registration", "registration_body"]

SOLO = "solo"
PATIENCE_S, PAUSE_S = 20.0, 0.1
TRUST_PERIOD_S, REFRESHED_S = 7 * 86_400, 86_400
NEWEST = 64
"""Number of blocks below the newest one among which the newest certificate is looked for."""


def ask(client: Client, path: str, **params: str | int) -> Any:
    """What a node answers."""
    return client.run(get(client.server, path, lambda body: body, **params))


def find(client: Client, path: str) -> Any:
    """The same; None if there is no such thing."""
    try:
        return ask(client, path)
    except NotFoundError:
        return None


@dataclass(frozen=True)
class Anchor:
    """A committee of the chain, and what is needed to follow its successors."""

    schedule: Schedule
    lag: int
    unbonding_epochs: int
    epoch: int
    keys: tuple[bytes, ...]

    def chain(self, network: bytes) -> Chain:
        return Chain(network, self.schedule, self.epoch, self.keys)

    def encode(self) -> dict[str, Any]:
        return {
            "epoch_heights": self.schedule.epoch_heights,
            "delay": self.schedule.delay,
            "lag": self.lag,
            "unbonding_epochs": self.unbonding_epochs,
            "epoch": self.epoch,
            "keys": ["0x" + key.hex() for key in self.keys],
        }

    @classmethod
    def parse(cls, pinned: dict[str, Any]) -> Anchor:
        schedule = Schedule(int(pinned["epoch_heights"]), int(pinned["delay"]))
        lag, unbonding_epochs, epoch = (int(pinned[name]) for name in ("lag", "unbonding_epochs", "epoch"))
        return cls(schedule, lag, unbonding_epochs, epoch, keys_of(pinned["keys"]))

    @classmethod
    def shown(cls, client: Client, registry: Registry) -> Anchor | None:
        """What a node shows, without a proof; None if no quorum has signed a state yet."""
        newest = client.status().height
        for height in range(newest, max(0, newest - NEWEST), -1):
            body = find(client, f"/v1/blocks/{height}/certificate")
            if body is None:
                continue
            certificate = read_certificate(Reader(raw(body["certificate"])))
            keys = registry.committee(certificate.epoch)
            if keys is None:
                raise ProofError("it does not show the validators that sign its blocks")
            lag = certificate.height - height
            anchor = cls(registry.schedule, lag, registry.unbonding_epochs, certificate.epoch, keys)
            certificate.verify(anchor.chain(registry.network))
            return anchor
        return None


Trust = Anchor | str | None
"""A committee, `SOLO`, or None in purses of versions that knew nothing about validators."""


def keys_of(texts: list[str]) -> tuple[bytes, ...]:
    keys = tuple(raw(text) for text in texts)
    if not 1 <= len(keys) <= MEMBERS_MAX or any(len(key) != 32 for key in keys):
        raise ValueError("a committee has 1 to 256 keys of 32 bytes")
    return keys


def trust_of_node(client: Client, network: bytes) -> Anchor | str:
    """What a node shows of the chain's validators: it is trusted with them."""
    try:
        _, registry = read_validators(Reader(raw(ask(client, "/v1/validators/proof")["proof"])))
        if not (registry.committees and registry.committees[-1]):
            return SOLO
        if registry.network != network:
            raise OtherLaneError(f"the validators, at {client.server}, are of another network: give another node")
        until = time.monotonic() + PATIENCE_S
        while (anchor := Anchor.shown(client, registry)) is None:
            if time.monotonic() >= until:
                raise UnprovedError(
                    f"no quorum of validators has signed a block yet, says the node at {client.server}: try again later"
                )
            time.sleep(PAUSE_S)
        return anchor
    except (ProofError, KeyError, TypeError, ValueError) as error:
        raise UnprovedError(f"the node at {client.server} proves nothing: {error}; give another node") from error


def registration(body: dict[str, Any]) -> Registration:
    """A registration as the interface and files have it."""
    bls = tuple((raw(one["key"]), raw(one["proof"])) for one in body["bls"])
    keys = tuple(raw(key) for key in body["keys"])
    made = Registration(int(body["epoch"]), int(body["member"]), keys, bls, raw(body["signature"]))
    if parsed(read_registration, made.encode()) != made:
        raise ValueError("it is not as long as its fields say")
    return made


def registration_body(of: Registration) -> dict[str, Any]:
    """The same for a file."""
    return {
        "epoch": of.epoch,
        "member": of.member,
        "keys": ["0x" + key.hex() for key in of.keys],
        "bls": [{"key": key.hex(), "proof": proof.hex()} for key, proof in of.bls],
        "signature": of.signature.hex(),
    }


class Light:
    """Asks an untrusted node, and believes what a quorum of validators has signed. It begins with the committee of an
    anchor, or with the one that was proved from it before, and follows handovers no further than the stakes of that
    committee can still be punished."""

    def __init__(self, client: Client, network: bytes, anchor: Anchor, folder: Path | None) -> None:
        self._client, self._anchor = client, anchor
        self._memory = folder / "validators.json" if folder and not anchor.schedule.is_fixed else None
        first = anchor.chain(network)
        if self._memory is not None and self._memory.exists():
            first = self._recalled(self._memory, first)
        self._chains, self._shown = [first], first.epoch

    def _recalled(self, path: Path, first: Chain) -> Chain:
        body = read_json(path, FETCHED_AGAIN)
        try:
            is_other = raw(body["network"]) != first.network
            kept = Chain(first.network, first.schedule, int(body["epoch"]), keys_of(body["keys"]))
            age = abs(time.time() - int(body["proved_ms"]) / 1000)
        except (KeyError, TypeError, ValueError) as error:
            raise PurseFileError(path, f"it is damaged ({error}): {FETCHED_AGAIN}") from error
        if is_other:
            raise PurseFileError(path, f"it is of another network: {FETCHED_AGAIN}")
        if age > TRUST_PERIOD_S:
            raise UnprovedError(
                f"the purse followed the chain's validators last {age / 86_400:.0f} days ago, and keys of that time "
                "may have been sold since: `walras pay trust --pin` takes a newer start"
            )
        return kept

    def _committee(self, epoch: int) -> Chain:
        first = self._chains[0].epoch
        if epoch > first + self._anchor.unbonding_epochs and not self._anchor.schedule.is_fixed:
            raise ProofError(
                f"epoch {epoch} is further from epoch {first}, which is trusted, than stakes can be punished: "
                "`walras pay trust --pin` takes a newer start"
            )
        while self._chains[-1].epoch < epoch:
            listed = ask(self._client, "/v1/handovers", **{"from": self._chains[-1].epoch + 1})["handovers"]
            if not listed:
                raise ProofError(f"no handover to epoch {self._chains[-1].epoch + 1} is shown")
            for one in listed:
                self._chains.append(read_handover(raw(one["handover"])).follow(self._chains[-1]))
        if epoch < first:
            raise ProofError(f"epoch {epoch} is before epoch {first}, from which on validators are trusted")
        self._shown = max(self._shown, epoch)
        return self._chains[epoch - first]

    def _state(self, height: int, body: Any) -> bytes:
        """The state root of a block, which its certificate proves."""
        certificate = read_certificate(Reader(raw(body["certificate"])))
        lag, schedule = self._anchor.lag, self._anchor.schedule
        if int(body["height"]) != height or certificate.height != height + lag:
            raise ProofError("the certificate is of another block")
        certificate.verify(self._committee(schedule.epoch_of(height + lag)))
        state = raw(body["state_root"])
        if certificate.outcome != outcome_of(state, raw(body["receipts_root"])):
            raise ProofError("the roots differ from the signed ones")
        return state

    def _proved(self, tell: Callable[[], Any]) -> Any:
        """What `tell` proves; waits while its block is not certified."""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                return tell()
            except RefusedError as error:
                if error.code != "not_certified" or time.monotonic() >= until:
                    raise UnprovedError(f"the lane's keys are not proved, so nothing was sent: {error}") from error
            except (ProofError, Refused, KeyError, TypeError, ValueError) as error:
                raise UnprovedError(
                    f"the lane's keys are not proved, so nothing was sent: the node at {self._client.server} does not "
                    f"show what the validators signed ({error}); give another node"
                ) from error
            time.sleep(PAUSE_S)

    def registrations(self, start: int) -> list[Registration]:
        """The keys that the ledger has registered for lane epochs from `start` on."""

        def tell() -> list[Registration]:
            asked: dict[str, str | int] = {"from": start, "certified": "true"}
            body = ask(self._client, "/v1/lane/registrations/proof", **asked)
            state = self._state(int(body["height"]), body["certificate"])
            told = [registration(one) for one in body["registrations"]]
            check_entries(state, raw(body["proof"]), told)
            return told

        found: list[Registration] = self._proved(tell)
        self._remember()
        return found

    def follow_newest(self) -> None:
        """Moves to the committee of the newest certificate."""

        def tell() -> None:
            status = find(self._client, "/v1/validator")
            if status is None:
                raise ProofError("it is no validator's node, and shows no certificate")
            height = int(status["certified"]) - self._anchor.lag
            body = find(self._client, f"/v1/blocks/{height}/certificate") if height > 0 else None
            if body is None:
                raise RefusedError(self._client.server, 404, "not_certified", "no block is certified yet")
            self._state(height, body)

        self._proved(tell)
        self._remember()

    def _remember(self) -> None:
        if self._memory is None:
            return
        newest = self._chains[self._shown - self._chains[0].epoch]
        keys, network = ["0x" + key.hex() for key in newest.keys], "0x" + newest.network.hex()
        now = int(time.time() * 1000)
        write_json(self._memory, {"epoch": newest.epoch, "keys": keys, "network": network, "proved_ms": now})


def check_entries(state: bytes, proof: bytes, told: list[Registration]) -> None:
    """Whether the state has exactly these registrations, each under its epoch and member."""
    reader = Reader(proof)
    root, parts = read_parts(reader)
    entries, rest = reader.take(32), reader.take(32)
    paths = [reader.take(reader.number(4)) for _ in range(reader.number(4))]
    reader.end()
    if root != state or parts.get(ESCROW) != derived("walras 2026 bridge root v1", entries + rest):
        raise ProofError("the proof is for another state root")
    if len(paths) != len(told):
        raise ProofError("it proves another number of registrations than it tells")
    for one, path in zip(told, paths, strict=True):
        key = u64(one.epoch)[::-1] + u8(7) + u8(one.member) + bytes(31)
        if prove(key, entries, path) != derived("walras 2026 lane bridge entry v1", one.encode()):
            raise ProofError(f"the ledger has other keys of member {one.member} in lane epoch {one.epoch}")


def keep_fresh(client: Client, network: bytes, anchor: Anchor, folder: Path) -> None:
    """Follows the validators where they change, at most once a day: a purse that is used loses no trust with time."""
    path = folder / "validators.json"
    if anchor.schedule.is_fixed:
        return
    proved_ms = int(read_json(path, FETCHED_AGAIN).get("proved_ms", 0)) if path.exists() else 0
    if abs(time.time() - proved_ms / 1000) < REFRESHED_S:
        return
    Light(client, network, anchor, folder).follow_newest()


def known_anchor(trust: Trust) -> Anchor:
    if isinstance(trust, Anchor):
        return trust
    raise PurseError(
        "the purse does not know the chain's validators, who prove the lane's keys: name them once with "
        "`walras pay trust --genesis FILE`"
    )
