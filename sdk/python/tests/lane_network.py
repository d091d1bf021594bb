"""A lane of four processes, founded by `walras init` as anybody founds one."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from conftest import BINARY, PASSPHRASE

HOME_PORTS = 8


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
    """Four validators of a lane, each a process with this many shards."""

    def __init__(self, folder: Path, nodes: ExitStack, *arguments: str, shards: int = 1) -> None:
        self.folder, self.url = folder, ""
        validators, *ports = rows_of_ports(1 + 4 * shards, HOME_PORTS)
        addresses = [f"--address=127.0.0.1:{validators + index}" for index in range(4)]
        assets = ["--asset", "USD:2", "--asset", "EUR:2", "--supply", "1000"]
        arguments = ("--shards", str(shards), *arguments) if shards > 1 else arguments
        members = [" ".join(f"127.0.0.1:{port}" for port in ports[index::4]) for index in range(4)]
        self.said("init", "--validators", "4", "--lane", *assets, *addresses, *arguments, "--home", str(folder))
        settings = {
            "WALRAS_BLOCKS__INTERVAL_MS": "20",
            "WALRAS_LANE__ADDRESSES": ",".join(members),
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

    def pay(self, *arguments: str, purse: str = "alice") -> Any:
        """What a command of a purse prints."""
        return json.loads(self.said("pay", *arguments, "--purse", purse, "--json"))

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return json.load(answer)
