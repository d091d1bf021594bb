"""What kinds of users are told to type, typed from the documents. python3 docs/test_users.py target/debug

| who | where their commands run |
|---|---|
| newcomer, payer | `crates/walras/tests/readme.rs`: README.md, and the first part of guide.md |
| trader by hand | `web/tests/trading.test.ts`, in a browser |
| trader by program | the tests of both libraries run the code of their READMEs and examples |
| contract developer | `sdk/ethereum/tutorial.test.mjs`: tutorial-contracts.md |
| operator, researcher | here: guide.md |

Commands with ports of their own run in a network of their own, so that nothing else on the machine has them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

DOCS = Path(__file__).resolve().parent
BINARIES = Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else "target/debug").resolve()
PASSPHRASE = "a passphrase of yours"
# What the reader of the guide has of an own: offers, pools and orders for exact amounts.
FILES = {
    "offers.csv": "sell,buy,amount,min_price\nEUR,USD,1000000,1.08\nUSD,EUR,1200000,0.90\n"
    "USD,JPY,500000,148.5\nJPY,EUR,50000000,0.0060\n",
    "pools.csv": "a,b,reserve_a,reserve_b,fee\nEUR,USD,1000000000,1100000000,0.003\n",
    "buys.csv": "buy,sell,bought,most\nEUR,USD,1000,2000\n",
}
FOREIGN = (".parquet", ".NASDAQ_ITCH50")
"""Files that a reader gets elsewhere."""


def commands(title: str, page: str = "guide.md") -> list[str]:
    """The indented lines below a heading."""
    text = (DOCS / page).read_text()
    part = text.split(f" {title}\n", 1)[1].split("\n#", 1)[0]
    found = [line.removeprefix("    ") for line in part.splitlines() if line.startswith("    ")]
    assert found, f"{title} has no commands"
    return found


def has_own_network() -> bool:
    tools = all(shutil.which(tool) for tool in ("unshare", "ip"))
    return tools and subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False).returncode == 0


class Users(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="walras-users-"))
        self.addCleanup(shutil.rmtree, self.folder)
        for name, text in FILES.items():
            (self.folder / name).write_text(text)

    def typed(self, lines: list[str], *, own_network: bool = False) -> str:
        """What a shell prints that is given the lines, one after the other, until one fails."""
        script = "set -euo pipefail; trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n" + "\n".join(lines)
        path = f"{BINARIES}{os.pathsep}{os.environ['PATH']}"
        shell = ["bash", "-c", script]
        if own_network:
            shell = ["unshare", "-rn", "bash", "-c", f"ip link set lo up\n{script}"]
        environment = {**os.environ, "PATH": path, "WALRAS_PASSPHRASE": PASSPHRASE}
        told = subprocess.run(shell, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=600)
        self.assertEqual(told.returncode, 0, f"{script}\n{told.stdout}\n{told.stderr}")
        return told.stdout

    def test_a_researcher_clears_verifies_and_explains_a_batch(self) -> None:
        lines = commands("The solver alone")
        own = [line for line in lines if line.startswith("walras ") and not any(name in line for name in FOREIGN)]
        self.assertGreaterEqual(len(own), 4)
        said = self.typed(own)
        for promised in ("valid: 4 offers trade, full: true", "row 3: 500000 USD", "pool 1 gives", "is filled and pays"):
            self.assertIn(promised, said)

    def test_a_researcher_finds_the_measurements(self) -> None:
        lines = commands("The laboratory")
        listed = self.typed([line for line in lines if "--list" in line])
        for paper in ("speedex", "accept", "onyx"):
            self.assertIn(paper, listed.lower())

    @unittest.skipUnless(has_own_network(), "ports of their own need unshare and ip")
    def test_an_operator_runs_four_validators_and_goes_back_to_a_snapshot(self) -> None:
        lines = commands("Four validators")
        # The node of the section before, which does not run here.
        self.assertEqual(lines[0], "kill %1; wait")
        network = [line for line in lines[1:] if "alice.json" not in line]
        said = self.typed(network, own_network=True)
        self.assertIn("network.snapshot: written", said)
        self.assertTrue((self.folder / "again").is_dir(), said)


    @unittest.skipUnless(has_own_network(), "ports of their own need unshare and ip")
    def test_a_trader_of_continuous_markets_sees_venues_and_what_they_owe(self) -> None:
        demo = "walras demo --validators 1 --traders 2 > demo.log 2>&1 &"
        # The demo opens its venue some blocks after its start.
        runs = "until walras venue show 2>/dev/null | grep -q '^venue 0'; do kill -0 $!; sleep 0.2; done"
        looks = [line for line in commands("Continuous markets") if line.split("#")[0].strip() in LOOKS]
        self.assertEqual(len(looks), len(LOOKS))
        said = self.typed([demo, runs, *looks], own_network=True)
        self.assertIn("venue 0", said)


LOOKS = ("walras venue show", "walras venue audit")
"""Those of the guide that need neither money nor a home."""


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=2)
