"""The lane of a purse: pinned when the purse is made, so that no node can substitute other validators later; and what
was learned about its epochs, each with the ledger's proof."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from walras.client.amounts import plain
from walras.client.encoding import raw
from walras.client.errors import RefusedError, UnknownAssetError
from walras.client.sync import Client
from walras.purse.disk import FETCHED_AGAIN, read_json, write_json
from walras.purse.errors import OtherLaneError, PurseError, PurseFileError, UnprovedError
from walras.purse.lane.committee import Committee, Quorums, Registration, seated, with_board
from walras.purse.lane.layout import Refused
from walras.purse.lane.payment import Rules
from walras.purse.terms import Money, ToldTerms
from walras.purse.trust import (
    SOLO,
    Anchor,
    Light,
    Trust,
    ask,
    keep_fresh,
    keys_of,
    known_anchor,
    registration,
    registration_body,
    trust_of_node,
)

__all__ = ["LaneNetwork", "LaneNow"]

LANE, EPOCHS, BOARDS, PROVED = "lane.json", "proved-epochs.json", "boards.json", "validators.json"
TERMS = "terms.json"
"""The terms of assets that a node told last."""
EPOCHS_KEPT = 16
"""Number of epochs whose keys are kept: those whose receipts may still have value, and some more."""


@dataclass(frozen=True)
class LaneNow:
    """The state of the lane, as a node tells it."""

    epoch: int
    heights_left: int
    halted: bool
    addresses: list[list[tuple[str, int]]]
    tls: bool
    home_ports: int

    @classmethod
    def of(cls, body: Any) -> LaneNow:
        def place(text: str) -> tuple[str, int]:
            host, _, port = text.rpartition(":")
            return host.strip("[]"), int(port)

        addresses = [[place(shard) for shard in shards] for shards in body["addresses"]]
        numbers = int(body["epoch"]), int(body["heights_left"]), bool(body["halted"])
        return cls(*numbers, addresses, bool(body["tls"]), max(1, int(body["home_ports"])))

    def places(self, home: int) -> list[list[tuple[str, int]]]:
        """Where the shards of a home listen: on the port that is its home modulo `home_ports` above the address."""
        above = home % self.home_ports
        return [[(host, port + above) for host, port in shards] for shards in self.addresses]


class LaneNetwork:
    """The constants of a lane, and the proved keys of its epochs."""

    def __init__(self, pinned: dict[str, Any], folder: Path | None = None) -> None:
        self._pinned = pinned
        self.id = raw(pinned["network"])
        self.members = [list(keys_of(shards)) for shards in pinned["members"]]
        self.registrars = [raw(key) for key in pinned.get("registrars") or []]
        self.assets = [
            Money(int(of["asset"]), str(of["symbol"]), int(of["decimals"]), int(of["least_units"]), int(of["fee"]))
            for of in pinned["assets"]
        ]
        self.trust = _read_trust(pinned.get("validators"))
        sizes = {len(self.registrars), len(self.members)} if self.registrars else {len(self.members)}
        if len(self.id) != 32 or len(sizes) != 1 or not 1 <= len(self.members) <= 256:
            raise ValueError("a lane has an identity of 32 bytes and 1 to 256 members, all or none with registrars")
        self._keys: dict[tuple[int, int], Registration] = {}
        self._boards: dict[int, str] = {}
        self._committees: dict[int, Committee] = {}
        self._told = ToldTerms([])
        self._folder = folder
        if folder is not None:
            self._recall(folder)

    @classmethod
    def of_node(cls, client: Client, network: str | None, validators: list[str] | None) -> LaneNetwork:
        """The lane of a node, which is trusted with what is not given."""
        body = ask(client, "/v1/lane")
        if network is not None and raw(body["network"]) != raw(network):
            raise OtherLaneError(
                f"the node at {client.server} has the lane {body['network']}, not {network}: give another node"
            )
        trust = trust_of_node(client, raw(body["network"]))
        told = [] if trust == SOLO else [key.hex() for key in known_anchor(trust).keys]
        if validators is not None and told != [raw(key).hex() for key in validators]:
            raise OtherLaneError(
                f"the node at {client.server} shows other validators than those given: give another node"
            )
        listed = client.assets()
        assets = [
            {
                "asset": listed[one["asset"]].number,
                "symbol": one["asset"],
                "decimals": listed[one["asset"]].decimals,
                "least_units": int(one["least_units"]),
                "fee": int(one["fee"]),
            }
            for one in body["assets"]
        ]
        constants = {name: body[name] for name in ("network", "members", "registrars")}
        pinned_trust = trust.encode() if isinstance(trust, Anchor) else trust
        return cls({**constants, "assets": assets, "validators": pinned_trust})

    @classmethod
    def read(cls, folder: Path) -> LaneNetwork:
        path = folder / LANE
        body = read_json(path)
        try:
            return cls(body, folder)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise PurseFileError(path, f"it is damaged ({error}): restore it from a copy") from error

    def write(self, folder: Path) -> None:
        write_json(folder / LANE, self._pinned)

    def _recall(self, folder: Path) -> None:
        path = folder / EPOCHS
        try:
            for body in read_json(path, FETCHED_AGAIN) if path.exists() else []:
                self._admit(registration(body))
            path = folder / BOARDS
            boards = read_json(path, FETCHED_AGAIN) if path.exists() else {}
            self._boards = {int(epoch): str(board) for epoch, board in boards.items()}
            path = folder / TERMS
            self._told = ToldTerms(read_json(path, FETCHED_AGAIN) if path.exists() else [])
        except (Refused, KeyError, TypeError, ValueError, AttributeError) as error:
            raise PurseFileError(path, f"it is damaged ({error}): {FETCHED_AGAIN}") from error

    def _admit(self, one: Registration) -> None:
        one.verify(self.id, self.registrars)
        self._keys.setdefault((one.epoch, one.member), one)
        self._committees.pop(one.epoch, None)

    @property
    def carried(self) -> list[Money]:
        """The assets that are known, on their newest terms: those that were pinned, and what a node told since."""
        told = self._told.assets()
        numbers = {money.asset for money in told}
        return [*told, *(money for money in self.assets if money.asset not in numbers)]

    def rule(self, asset: int, home: int) -> tuple[int, int]:
        """Least output and fee of an asset for payments of a home."""
        return self._told.rule(asset, home) or self.numbered(asset).rule

    def rules(self, home: int) -> Rules:
        """What the members of a home check."""
        return Rules(self.id, {money.asset: self.rule(money.asset, home) for money in self.carried})

    def check_deposit(self, money: Money, units: int, epoch: int) -> None:
        if not self._told.takes_deposits(money.asset, epoch):
            raise PurseError(
                f"the lane takes no deposits of {money.symbol} in this lane epoch: nothing was sent; what is in it can "
                "be paid and redeemed"
            )
        least = self.rule(money.asset, epoch)[0]
        if units < least:
            shown = self.shown(money.asset, least)
            raise PurseError(f"a deposit of this asset has at least {shown}: nothing was sent")

    def money(self, symbol: str) -> Money:
        """The asset with a symbol."""
        for money in self.carried:
            if money.symbol == symbol:
                return money
        raise UnknownAssetError(symbol, [money.symbol for money in self.carried])

    def numbered(self, asset: int) -> Money:
        found = [money for money in self.carried if money.asset == asset]
        return found[0] if found else Money(asset, f"asset {asset}", 0, 1, 0)

    def shown(self, asset: int, units: int) -> str:
        money = self.numbered(asset)
        return f"{plain(money.amount(units))} {money.symbol}"

    def knows(self, epoch: int) -> bool:
        """Whether the keys of a quorum are proved for an epoch."""
        if epoch == 0 or not self.registrars:
            return True
        registered = sum(1 for of, _ in self._keys if of == epoch)
        return registered >= Quorums(len(self.registrars)).certificate

    def committee(self, epoch: int) -> Committee | None:
        """The committee of an epoch; None if its keys are not proved."""
        if not self.knows(epoch):
            return None
        if epoch not in self._committees:
            self._committees[epoch] = self._seated(epoch)
        return self._committees[epoch]

    def _plain(self, epoch: int) -> Committee:
        if epoch == 0 or not self.registrars:
            return Committee(self.id, epoch, tuple(map(tuple, self.members)))
        found = [one for (of, _), one in self._keys.items() if of == epoch]
        return seated(self.id, epoch, self.registrars, found)

    def _seated(self, epoch: int) -> Committee:
        plain_one = self._plain(epoch)
        try:
            return with_board(plain_one, raw(self._boards[epoch])) if epoch in self._boards else plain_one
        except (Refused, ValueError):
            # A file may be damaged: without a group key aggregates are used.
            return plain_one

    def learn(self, client: Client) -> LaneNow:
        """Asks a node of this lane how it is, and learns terms of assets, and the keys of epochs with their proofs."""
        body = ask(client, "/v1/lane")
        told = raw(body["network"]), [[raw(key) for key in of] for of in body["members"]]
        if (*told, [raw(key) for key in body["registrars"]]) != (self.id, self.members, self.registrars):
            raise OtherLaneError(
                f"the node at {client.server} has another lane than this purse, or other keys: nothing was sent; give "
                "another node"
            )
        self._learn_terms(client, body.get("terms") or [])
        self._learn_keys(client, body)
        self._learn_boards(client, body)
        return LaneNow.of(body)

    def _learn_terms(self, client: Client, bodies: list[Any]) -> None:
        """Takes the terms that a node tells, if it calls assets as before. Nodes of older versions tell none."""
        if bodies in ([], self._told.bodies):
            return
        told = ToldTerms(bodies)
        other = told.renamed(self.carried)
        if other is not None:
            raise OtherLaneError(
                f"the node at {client.server} calls asset {other.asset} {other.symbol!r} with {other.decimals} "
                "decimals, and this purse knows another name for it, or another asset of this name: nothing was sent; "
                "give another node"
            )
        if self._folder is not None:
            write_json(self._folder / TERMS, bodies)
        self._told = told

    def _learn_keys(self, client: Client, body: Any) -> None:
        if isinstance(self.trust, Anchor) and self._folder is not None:
            keep_fresh(client, self.id, self.trust, self._folder)
        told = [one for one in map(registration, body["registrations"]) if one.epoch <= int(body["epoch"])]
        other = f"the keys of the lane, at {client.server}, are not those that the ledger has: give another node"
        unknown = [one.epoch for one in told if (one.epoch, one.member) not in self._keys]
        if unknown:
            proved = told if self.trust == SOLO else self._light(client).registrations(min(unknown))
            try:
                for one in proved:
                    if one.epoch <= int(body["epoch"]):
                        self._admit(one)
            except Refused as refused:
                raise UnprovedError(f"{other} ({refused})") from refused
            self._keep_keys()
        epochs = {epoch for epoch, _ in self._keys}
        if any(self._keys.get((one.epoch, one.member)) != one for one in told if one.epoch in epochs):
            raise UnprovedError(other)

    def _light(self, client: Client) -> Light:
        return Light(client, self.id, known_anchor(self.trust), self._folder)

    def _keep_keys(self) -> None:
        last = max((epoch for epoch, _ in self._keys), default=0)
        self._keys = {place: one for place, one in sorted(self._keys.items()) if place[0] >= last - EPOCHS_KEPT}
        if self._folder is not None:
            write_json(self._folder / EPOCHS, [registration_body(one) for one in self._keys.values()])

    def _learn_boards(self, client: Client, body: Any) -> None:
        """Learns group keys of epochs that have begun. The node cannot invent one: members have signed."""
        new = [int(of) for of in body["group_keys"] if of <= body["epoch"] and of not in self._boards]
        for epoch in new:
            try:
                board = str(ask(client, f"/v1/lane/boards/{epoch}")["board"]).removeprefix("0x")
                self._committees[epoch] = with_board(self._plain(epoch), raw(board))
            except RefusedError:
                # The board may be discarded by now; without it aggregates are used.
                continue
            except (Refused, ValueError) as error:
                raise UnprovedError(
                    f"the group key of lane epoch {epoch}, at {client.server}, is not that of its members ({error}): "
                    "give another node"
                ) from error
            self._boards[epoch] = board
        if new and self._folder is not None:
            last = max(self._boards, default=0)
            self._boards = {epoch: board for epoch, board in self._boards.items() if epoch >= last - EPOCHS_KEPT}
            write_json(self._folder / BOARDS, {str(epoch): board for epoch, board in sorted(self._boards.items())})


def _read_trust(pinned: Any) -> Trust:
    if isinstance(pinned, dict):
        return Anchor.parse(pinned)
    if pinned not in (None, SOLO):
        raise ValueError(f"{pinned!r} is no word for the validators")
    return SOLO if pinned == SOLO else None
