"""A lane of four processes, and a purse by docs/lane-specification.md alone.

It is paid by the command line's purse, pays with four validators, and the command line's purse takes its receipts.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from conftest import BINARY, PASSPHRASE
from lane_reference import committee, ed25519, payment, purse, receipt, shell
from lane_reference.layout import Refused, parsed

HOME_PORTS = 8
SEED = bytes(range(32))
KEY = ed25519.public(SEED)


def rows_of_ports(count: int, length: int) -> list[int]:
    """The first ports of rows that are free, below those that systems give out."""
    found: list[int] = []
    first = 10_000 + os.getpid() * 7_919 % 20_000
    while len(found) < count:
        with ExitStack() as held:
            try:
                for port in range(first, first + length):
                    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                        held.enter_context(socket.socket(socket.AF_INET, kind)).bind(("127.0.0.1", port))
                found.append(first)
            except OSError:
                pass
        first = 10_000 + (first - 10_000 + length) % 20_000
    return found


class Network:
    """Four validators of a lane, each a process, founded by `walras init` as anybody founds one."""

    def __init__(self, folder: Path, nodes: ExitStack, *arguments: str) -> None:
        self.folder, self.url = folder, ""
        validators, *shards = rows_of_ports(5, HOME_PORTS)
        addresses = [f"--address=127.0.0.1:{validators + index}" for index in range(4)]
        assets = ["--asset", "USD:2", "--asset", "EUR:2", "--supply", "1000"]
        self.said("init", "--validators", "4", "--lane", *assets, *addresses, *arguments, "--home", str(folder))
        settings = {
            "WALRAS_BLOCKS__INTERVAL_MS": "20",
            "WALRAS_LANE__ADDRESSES": ",".join(f"127.0.0.1:{port}" for port in shards),
            "WALRAS_ETHEREUM__LISTEN": "127.0.0.1:0",
        }
        started = [self.start(nodes, index, settings) for index in range(4)]
        self.url = [self.listening(*one) for one in started][0]

    def environment(self) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("WALRAS_")}
        return {**clean, "WALRAS_PASSPHRASE": PASSPHRASE, "WALRAS_SERVER": self.url}

    def start(self, nodes: ExitStack, index: int, settings: dict[str, str]) -> tuple[subprocess.Popen[bytes], Path]:
        home, log = self.folder / f"validator-{index}", self.folder / f"log-{index}"
        command = [BINARY, "node", "--listen", "127.0.0.1:0", "--home", home]
        out = nodes.enter_context(log.open("w"))
        node = subprocess.Popen(command, stdout=out, stderr=out, env={**self.environment(), **settings})
        nodes.callback(node.wait)
        nodes.callback(node.terminate)
        return node, log

    def listening(self, node: subprocess.Popen[bytes], log: Path) -> str:
        while not (found := re.search(r"^listening on (http://[^ \n]+)", log.read_text(), re.MULTILINE)):
            assert node.poll() is None, log.read_text()
            time.sleep(0.05)
        return found[1]

    def said(self, *arguments: str) -> str:
        told = subprocess.run(
            [BINARY, *arguments], env=self.environment(), capture_output=True, text=True, cwd=self.folder, timeout=600
        )
        assert told.returncode == 0, told.stderr
        return told.stdout

    def pay(self, *arguments: str) -> Any:
        """What a command of the purse `alice` prints."""
        return json.loads(self.said("pay", *arguments, "--purse", "alice", "--json"))

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return json.load(answer)


@pytest.fixture(scope="module", params=["trees", "group key"])
def network(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    if not BINARY.exists():
        pytest.skip(f"{BINARY} is not built")
    more = ["--lane-bls", "threshold", "--lane-epoch-heights", "150"] if request.param == "group key" else []
    with ExitStack() as nodes:
        yield Network(tmp_path_factory.mktemp("lane"), nodes, *more)


def raw(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


class Lane:
    """What a purse learns of a lane. The test believes its own node; a purse asks for the proof of the ledger."""

    def __init__(self, network: Network) -> None:
        self.network, self.body = network, network.get("/v1/lane")
        self.id, self.now = raw(self.body["network"]), self.body["epoch"]
        self.registrars = [raw(key) for key in self.body["registrars"]]
        assets = {one["asset"]: one for one in self.body["assets"]}
        numbers = {one["symbol"]: one["asset"] for one in network.get("/v1/assets")["assets"]}
        self.euro = numbers["EUR"]
        self.rules = payment.Rules(
            self.id,
            {numbers[name]: (int(one["least_units"]), int(one["fee"])) for name, one in assets.items()},
        )

    def committee(self, epoch: int) -> committee.Committee | None:
        if epoch == 0 or not self.registrars:
            keys = tuple(tuple(raw(key) for key in keys) for keys in self.body["members"])
            return committee.Committee(self.id, epoch, keys)
        found = [self.registration(one) for one in self.body["registrations"] if one["epoch"] == epoch]
        seated = committee.seated(self.id, epoch, self.registrars, found)
        if epoch not in self.body["group_keys"]:
            return seated
        return committee.with_board(seated, raw(self.network.get(f"/v1/lane/boards/{epoch}")["board"]))

    def registration(self, body: dict) -> committee.Registration:
        bls = tuple((raw(one["key"]), raw(one["proof"])) for one in body["bls"])
        keys = tuple(raw(key) for key in body["keys"])
        made = committee.Registration(body["epoch"], body["member"], keys, bls, raw(body["signature"]))
        assert parsed(committee.read_registration, made.encode()) == made
        return made

    def client(self, home: int) -> shell.Client:
        return shell.Client(shell.directory(self.body, receipt.known(self.committee, home)))


def test_a_purse_by_the_page_is_paid_pays_and_settles_with_four_validators(network: Network) -> None:
    scheme = purse.SHARES if "threshold" in json.dumps(network.get("/v1/lane")["bls"]) else purse.TREES
    issuer = str(network.folder / "issuer-key.json")
    network.pay("new")
    if scheme:
        wait_for_group_key(network, issuer)
    network.pay("deposit", "--key", issuer, "--asset", "EUR", "--amount", "100")

    # It is paid: the receipt alone proves it, with keys of the lane.
    lane = Lane(network)
    address = receipt.lane_address(lane.id, KEY)
    assert receipt.parse_lane_address(address, lane.id) == KEY
    network.pay("send", "--to", address, "--asset", "EUR", "--amount", "30.25", "--receipt", "r.txt")
    lane = Lane(network)
    slip = receipt.parse_slip((network.folder / "r.txt").read_text(), lane.id)
    assert isinstance(slip, receipt.Receipt)
    held = purse.received(slip, lane.id, lane.committee, {KEY}, lane.now)
    assert (held.output.amount, held.output.asset) == (3_025, lane.euro)
    with pytest.raises(Refused, match="OtherOwner"):
        purse.received(slip, lane.id, lane.committee, set(), lane.now)

    # It pays: what is stored is enough to send the same bytes, and it is fast and then settled.
    payee = receipt.parse_lane_address(network.pay("address")["address"], lane.id)
    chosen = purse.choose([held], set(), lane.euro, 1_200, lane.now)
    outputs = [payment.Output(0, payee, lane.euro, 1_200), payment.Output(0, KEY, lane.euro, 1_825)]
    stored = purse.build(lane.rules, SEED, chosen, lane.now, outputs).stored()
    paid = purse.restored(stored)
    client = lane.client(held.home)
    certificate = client.confirm(paid, scheme)
    acknowledged = client.settle(paid, certificate, scheme)
    made = receipt.receipt_of(paid.payment, 0, certificate)
    made.verify_settled(lane.id, lane.committee, acknowledged)
    assert client.confirm(paid, scheme).encode()[0] == certificate.encode()[0], "sent again, it is answered again"

    # A shard that does not hold the registered key is no shard.
    where = shell.directory(lane.body, receipt.known(lane.committee, held.home))
    with pytest.raises(Refused, match="another key"):
        shell.Link(where.addresses[0][0], KEY)

    # A second payment of the same money is refused by all.
    second = purse.build(lane.rules, SEED, chosen, lane.now, [payment.Output(0, KEY, lane.euro, 3_025)])
    with pytest.raises(RuntimeError, match="is spent by payment"):
        client.confirm(second, scheme)
    client.close()

    # The command line's purse takes the receipt, and spends it on the ledger.
    (network.folder / "back.txt").write_text(receipt.slip_text(made, lane.id) + "\n")
    taken = network.pay("receive", "back.txt")["received"][0]
    assert (taken["amount"], taken["settled"]) == ("1200", True)
    redeemed = network.pay("redeem", "--key", issuer, "--asset", "EUR", "--amount", "81.75")
    assert redeemed["waiting_claims"] == 0


def wait_for_group_key(network: Network, issuer: str) -> None:
    """Blocks are made, each with a payment, until the present lane epoch has a group key and has just begun."""
    while True:
        body = network.get("/v1/lane")
        if body["epoch"] in body["group_keys"] and body["heights_left"] > 100:
            return
        assert body["epoch"] < 8, "no group key in eight lane epochs"
        if sum(one["epoch"] == body["epoch"] + 1 for one in body["registrations"]) < 4:
            # Members register and deal by themselves: other blocks would let the time for that pass.
            time.sleep(0.05)
            continue
        network.pay("deposit", "--key", issuer, "--asset", "USD", "--amount", "0.01")
