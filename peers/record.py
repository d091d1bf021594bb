"""Runs a peer's script, keeps what it prints with where it ran, and makes tables of docs/peers.md from what is kept.

    peers/record.py NAME [ARGUMENT...]   runs the script, writes docs/peers/NAME.json, and makes the tables
    peers/record.py                      makes the tables
    peers/record.py --check              fails if the page has other tables
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any, Callable

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
KEPT, PAGE = DOCS / "peers", DOCS / "peers.md"

Row = dict[str, Any]


def whole(number: float) -> str:
    return f"{round(number):,}"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def pipeline(rows: list[Row]) -> list[str]:
    peers = [row for row in rows if "peer" in row]
    cells = [[f"exchange-core, {row['waits'].lower()}", "", whole(row["figures"]["ns_per_command"]), ""] for row in peers]
    for row in rows:
        if own := row.get("walras"):
            ns = own["ns_per_command"]
            cells.append([f"Walras, {own['batch']} commands a sync", whole(own["syncs"]), whole(ns),
                          f"**{row['over_exchange_core']:.2f}**"])
            cells.append([f"a plain loop, {own['batch']} commands a sync", whole(own["syncs"]),
                          whole(own["plain_loop_ns_per_command"]), ""])
    return table(["", "syncs", "ns a command", "speed over exchange-core's"], cells)


def receipts(rows: list[Row]) -> list[str]:
    (row,) = rows
    cells = []
    for name, shown in (("anvil", "anvil"), ("walras", "`walras demo --developer`"), ("geth", "geth `--dev`")):
        of = row[name]
        loads = [whole(of[load][unit]) for load in ("transfers", "tokens")
                 for unit in ("transactions_per_second", "processor_us")]
        cells.append([shown, f"{of['wait_ms']:.2f}", *loads, whole(of["memory_mb"])])
    return table(["", "a transaction until its receipt, ms", "transfers a second", "µs each", "tokens a second", "µs each",
                  "resident, MB"], cells)


def fastpay(rows: list[Row]) -> list[str]:
    (row,) = rows
    theirs = row["fastpay"]
    cells = [["FastPay, both phases", "1", whole(theirs["settled_per_second"]), whole(theirs["validators_us"]),
              whole(theirs["client_us"]), ""]]
    for own in row["walras"]:
        ratio = own["validators_us"] / theirs["validators_us"]
        cells.append(["Walras", str(own["leaves"]), whole(own["settled_per_second"]), whole(own["validators_us"]),
                      whole(own["client_us"]), f"{ratio:.2f}"])
    return table(["", "payments a tree", "settled a second", "µs of four validators", "µs of the client",
                  "validators' time over FastPay's"], cells)


def acfts(rows: list[Row]) -> list[str]:
    (row,) = rows
    theirs = row["acfts"]
    cells = [["acfts", theirs["load"], whole(theirs["payments_per_second"]), whole(theirs["validators_us"]),
              whole(theirs["client_us"]), ""]]
    for own in row["walras"]:
        ratio = own["payments_per_second"] / theirs["payments_per_second"]
        cells.append(["Walras", own["load"], whole(own["payments_per_second"]), whole(own["validators_us"]),
                      whole(own["client_us"]), f"{ratio:.1f}"])
    return table(["", "signatures of clients", "payments a second", "µs of four validators", "µs of clients",
                  "times acfts"], cells)


PEERS: dict[str, tuple[str, Callable[[list[Row]], list[str]]]] = {
    "exchange-core-pipeline": ("exchange-core/pipeline.sh", pipeline),
    "ethereum": ("ethereum/run.sh", receipts),
    "fastpay": ("fastpay/run.sh", fastpay),
    "acfts": ("acfts/run.sh", acfts),
}


def commit() -> str:
    git = ["git", "-C", str(HERE), "describe", "--always", "--dirty"]
    return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()


def run(name: str, arguments: list[str]) -> None:
    script = PEERS[name][0]
    load = os.getloadavg()[0]
    told = subprocess.run(["bash", str(HERE / script), *arguments], stdout=subprocess.PIPE, text=True, check=True)
    # A tool may write colours before a line.
    rows = [json.loads(line[line.index("{"):]) for line in told.stdout.splitlines() if "{" in line]
    # Where the reader has built a peer is no part of the command.
    shown = [Path(argument).name if "/" in argument else argument for argument in arguments]
    kept = {"command": " ".join([f"peers/{script}", *shown]), "commit": commit(), "date": date.today().isoformat(),
            "cores": os.cpu_count(), "load_before": round(load, 1), "rows": rows}
    KEPT.mkdir(exist_ok=True)
    (KEPT / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n")


def made(text: str) -> str:
    """The page with tables of what is kept between its marks."""
    def of(mark: re.Match[str]) -> str:
        path = KEPT / f"{mark[1]}.json"
        if not path.exists():
            return f"<!-- {mark[1]} -->\n\nNot measured on this machine.\n\n<!-- end -->"
        kept = json.loads(path.read_text())
        where = (f"`{kept['command']}`, commit `{kept['commit']}`, {kept['date']}, {kept['cores']} cores, "
                 f"load {kept['load_before']} before it began:")
        return "\n".join([f"<!-- {mark[1]} -->", "", where, "", *PEERS[mark[1]][1](kept["rows"]), "", "<!-- end -->"])
    return re.sub(r"<!-- ([a-z-]+) -->.*?<!-- end -->", of, text, flags=re.DOTALL)


def main(arguments: list[str]) -> int:
    if arguments and arguments[0] != "--check":
        run(arguments[0], arguments[1:])
    text = PAGE.read_text()
    if arguments == ["--check"]:
        return text != made(text)
    PAGE.write_text(made(text))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
