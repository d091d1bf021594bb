"""A demo exchange of one validator, and nodes of homes, for the tests that need a node."""

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from walras.client import Client, ClientError

T = TypeVar("T")
BINARY = Path(__file__).parents[3] / "target" / os.environ.get("WALRAS_PROFILE", "debug") / "walras"

# The accounts that every tool for development knows; each test file has its own, so that none waits for another's.
KEYS = [
    "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
    "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
    "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
    "0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
    "0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
    "0x92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
    "0x4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
]


class Demo:
    """A running exchange: `url`, and everything that the tests say to its command line."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.binary = BINARY

    def walras(self, *arguments: str, **environment: str) -> Any:
        """What a command prints."""
        command = [self.binary, *arguments]
        told = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=600)
        assert told.returncode == 0, told.stderr
        return told.stdout


PASSPHRASE = "secret"


def said(*arguments: str | Path) -> str:
    """What a command prints."""
    if not BINARY.exists():
        pytest.skip(f"{BINARY} is not built")
    environment = {**os.environ, "WALRAS_PASSPHRASE": PASSPHRASE}
    told = subprocess.run([BINARY, *arguments], env=environment, capture_output=True, text=True, timeout=120)
    assert told.returncode == 0, told.stderr
    return told.stdout


@contextlib.contextmanager
def running(home: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The node of a home, and its address."""
    log = home.parent / "log"
    settings = {"WALRAS_HTTP__LISTEN": "127.0.0.1:0", "WALRAS_BLOCKS__INTERVAL_MS": "20"}
    command = [BINARY, "node", "--home", home]
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **settings}) as node:
        try:
            while not (found := re.search(r"^listening on (http://[^ \n]+)", log.read_text(), re.MULTILINE)):
                assert node.poll() is None, log.read_text()
                time.sleep(0.05)
            yield found[1], node
        finally:
            node.terminate()


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    if not BINARY.exists():
        pytest.skip(f"{BINARY} is not built")
    log = tmp_path_factory.mktemp("demo") / "log"
    small = ["--validators", "1", "--traders", "2", "--rate", "1", "--interval-ms", "50", "--assets", "2"]
    free = ["--listen", "127.0.0.1:0", "--ethereum-listen", "127.0.0.1:0"]
    with log.open("w") as out, subprocess.Popen([BINARY, "demo", *small, *free], stdout=out, stderr=out) as process:
        try:
            while not (found := re.search(r"^Walras is running: (http://[^ ,\n]*)", log.read_text(), re.MULTILINE)):
                assert process.poll() is None, log.read_text()
                time.sleep(0.05)
            yield Demo(found[1])
        finally:
            process.terminate()


def until(found: Callable[[], T | None], what: str) -> T:
    """What `found` finds; a net of minutes says what stood still."""
    for _ in range(1200):
        if (one := found()) is not None and one is not False:
            return one
        time.sleep(0.1)
    raise AssertionError(f"nothing came of: {what}")


def venue_of(demo: Demo) -> Demo:
    """The demo, once its venue trades."""
    with Client(demo.url) as client:

        def trades() -> bool:
            try:
                return any(market.last is not None for market in client.venue_markets())
            except ClientError:
                return False

        until(trades, "a trade at the demo's venue")
    return demo
