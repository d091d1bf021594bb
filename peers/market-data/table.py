"""Runs readers of market data over files with known content, and prints what each did as a table."""

import datetime
import gzip
import io
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import files

DAY = files.day(100)
ADDED = sum(1 for one in DAY if one[:1] == b"A")
WALRAS, FOLDER = sys.argv[1], Path(sys.argv[2])

ITCH = {
    "one day, no end": files.framed(DAY, False),
    "one day, with the end of its session": files.framed(DAY, True),
    "two days, one after the other": files.framed(DAY, False) * 2,
    "two days, each with the end of its session": files.framed(DAY, True) * 2,
    "every length zero": b"".join(b"\0\0" + one for one in DAY),
    "cut within a message": files.framed(DAY, False)[:-3],
}


def said(run: Callable[[], str]) -> str:
    try:
        with warnings.catch_warnings(record=True):
            return run()
    except Exception as error:  # What a tool raises is what is to be known.
        return f"{type(error).__name__}: {str(error).splitlines()[0][:90] if str(error) else ''}"


def walras(path: Path, *more: str) -> str:
    done = subprocess.run([WALRAS, "match", "--json", "--file", str(path), *more], capture_output=True, text=True)
    if done.returncode:
        return "refused: " + done.stderr.strip().removeprefix(f"error: {path}: ").split(": each message")[0][:140]
    report = json.loads(done.stdout)
    trades = sum(market["trades_in_priority"] for day in [report["markets"], *report.get("days_before", [])] for market in day)
    return f"{report['messages']} messages, {trades} trades"


def parsed(parser: type, content: bytes) -> str:
    messages = list(parser().parse_file(io.BytesIO(content)))
    adds = [one for one in messages if one.message_type == b"A"]
    wrong = [one for at, one in enumerate(adds) if round(one.decode_price("price") * 10_000) != 1_000_000 - 100 * (at % 100 + 1)]
    broken = sum(one.message_type == b"B" for one in messages)
    return f"{len(messages)} messages, {len(adds)} adds" + (f", {len(wrong)} prices wrong" if wrong else "") + (
        "" if broken else ", no broken trade")


def book(path: Path) -> str:
    import itch_book

    feed = itch_book.Feed(str(path), date=datetime.date(2026, 11, 27))
    trades = 0
    for batch in feed.batches(tables=("bbo", "trades")):
        trades += len(batch.trades["ts_event"])
    stats = feed.stats or {}
    return f"{stats.get('messages', stats.get('total', '?'))} messages, {trades} trades"


def row(tool: str, what: str, did: str, right: bool) -> str:
    for path in FOLDER.glob("*.itch*"):
        did = did.replace(str(path), "FILE")
    return f"| {tool} | {what} | {did.strip().replace('|', chr(92) + '|')} | {'yes' if right else '**no**'} |"


def itch_rows() -> list[str]:
    import itch.parser
    import itchcpp.parser

    rows = []
    for what, content in ITCH.items():
        path = FOLDER / "file.itch"
        path.write_bytes(content)
        days = 2 if "two" in what else 1
        is_whole = not ("zero" in what or "cut" in what)
        expected = f"{days * len(DAY)} messages"
        tools = {
            "`walras match`": said(lambda: walras(path)),
            f"itchfeed {version('itchfeed')}": said(lambda: parsed(itch.parser.MessageParser, content)),
            f"itchcpp {version('itchcpp')}": said(lambda: parsed(itchcpp.parser.MessageParser, content)),
            f"itch-book {version('itch-book')}": said(lambda: book(path)),
        }
        for tool, did in tools.items():
            right = did.startswith(expected) and "no broken" not in did and "wrong" not in did if is_whole else (
                "Error" in did or "refused" in did)
            rows.append(row(tool, what, did, right))
    packed = FOLDER / "file.itch.gz"
    packed.write_bytes(gzip.compress(ITCH["one day, no end"]))
    did = walras(packed).replace(str(packed), "FILE")
    rows.append(row("`walras match`", "compressed by gzip", did, "gzip -dc" in did))
    rows.append(row(f"itch-book {version('itch-book')}", "compressed by gzip", *opened(packed)))
    return rows


def opened(path: Path) -> tuple[str, bool]:
    did = said(lambda: book(path))
    return did, did.startswith(f"{len(DAY)} messages")


def mold_rows() -> list[str]:
    from moldudp.codec.decoder import MoldUDPDecoder

    class Heard:
        def __init__(self) -> None:
            self.words: list[str] = []

        def on_msgblk(self, message: bytes) -> None:
            self.words.append(f"{len(message)} bytes")

        def on_hb(self) -> None:
            self.words.append("heartbeat")

        def on_eos(self) -> None:
            self.words.append("end of session")

    def decoded(content: bytes) -> str:
        heard = Heard()
        decoder = MoldUDPDecoder(heard)
        decoder.buffer(content)
        decoder.decode()
        return ", ".join(heard.words[:3]) + (f" and {len(heard.words) - 3} more" if len(heard.words) > 3 else "") or "nothing"

    small = [files.deleted(at, 40_000) for at in range(1, 3)]
    cases = {
        "two messages": (files.packet(1, small), "19 bytes, 19 bytes"),
        "a heartbeat": (files.packet(3, []), "heartbeat"),
        "the end of the session": (files.packet(3, [], 0xFFFF), "end of session"),
    }
    tool = f"moldudp {version('moldudp')}"
    rows = []
    for what, (content, wanted) in cases.items():
        did = said(lambda content=content: decoded(content))
        rows.append(row(tool, what, did, did == wanted))
    return rows


def lobster_rows() -> list[str]:
    rows = []
    for what, text in {
        "lines as LOBSTER writes them, one time with 12 decimals": files.LOBSTER,
        "the same with a header and a blank last line": files.HEADER + files.LOBSTER + "\n",
    }.items():
        path = FOLDER / "file.csv"
        path.write_text(text)
        did = walras(path)
        rows.append(row("`walras match`", what, did, did.startswith("7 messages")))
    made = FOLDER / "20261127.itch"
    made.write_bytes(ITCH["one day, with the end of its session"])
    out = FOLDER / "lobster"
    tool = [sys.executable, "-m", "itch_book", "lobster", str(made), str(out), "--symbols", "AAPL"]
    tool += ["--date", "2026-11-27"]
    done = subprocess.run(tool, capture_output=True, text=True)
    written = sorted(out.rglob("*message*.csv")) if out.exists() else []
    did = walras(written[0]) if written else f"no file: {done.stderr.strip().splitlines()[-1:] or done.returncode}"
    name = f"`walras match` over itch-book {version('itch-book')}'s LOBSTER files"
    rows.append(row(name, "one day, its orders and trades", did, ", 50 trades" in did))
    return rows


def sample_rows() -> list[str]:
    """Files that others publish, from the folder that SAMPLES names."""
    import itch.parser

    folder = Path(os.environ.get("SAMPLES", "/nonexistent"))
    orders, ritch = folder / "AAPL_2012-06-21_message_50.csv", folder / "ex20101224.TEST_ITCH_50"
    rows = []
    if orders.exists():
        did = walras(orders)
        rows.append(row("`walras match`", "LOBSTER's sample of 21 June 2012, 91,997 lines", did, did.startswith("91997 ")))
    if ritch.exists():
        what = "the example file of RITCH, with a length of zero before each message"
        did = walras(ritch)
        rows.append(row("`walras match`", what, did, "refused" in did))
        did = said(lambda: parsed(itch.parser.MessageParser, ritch.read_bytes()))
        rows.append(row(f"itchfeed {version('itchfeed')}", what, did, "Error" in did))
        named = FOLDER / "ritch.itch"
        named.write_bytes(ritch.read_bytes())
        did = said(lambda: book(named)).replace(str(named), "FILE")
        rows.append(row(f"itch-book {version('itch-book')}", what, did, "Error" in did))
    return rows


print("| tool | file | what it does | right |\n|---|---|---|---|")
print("\n".join([*itch_rows(), *mold_rows(), *lobster_rows(), *sample_rows()]))
