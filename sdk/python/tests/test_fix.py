"""Two FIX engines that others wrote speak with ours: `simplefix` writes and reads bytes, `quickfix` drives a session."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

simplefix = pytest.importorskip("simplefix")

ACCEPTOR = Path(__file__).parents[3] / "target" / os.environ.get("WALRAS_PROFILE", "debug") / "examples/fix_acceptor"


@pytest.fixture
def port() -> Iterator[int]:
    if not ACCEPTOR.exists():
        pytest.skip(f"{ACCEPTOR} is not built")
    with subprocess.Popen([ACCEPTOR], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield int(process.stdout.readline())
        process.kill()


class Participant:
    """One connection of a participant that numbers its messages itself."""

    def __init__(self, port: int, number: int = 1) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=600)
        self.parser = simplefix.FixParser()
        self.number = number

    def __enter__(self) -> "Participant":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def bytes_of(self, kind: str, *fields: tuple[int, object], number: int | None = None) -> bytes:
        message = simplefix.FixMessage()
        message.append_pair(8, "FIX.4.4", header=True)
        message.append_pair(35, kind, header=True)
        message.append_pair(49, "ADA", header=True)
        message.append_pair(56, "VENUE", header=True)
        message.append_pair(34, self.number if number is None else number, header=True)
        message.append_utc_timestamp(52, datetime.now(timezone.utc), precision=3, header=True)
        for tag, value in fields:
            message.append_pair(tag, value)
        self.number += number is None
        return bytes(message.encode())

    def send(self, kind: str, *fields: tuple[int, object], number: int | None = None) -> None:
        self.socket.sendall(self.bytes_of(kind, *fields, number=number))

    def hear(self) -> Any:
        while (message := self.parser.get_message()) is None:
            data = self.socket.recv(65_536)
            assert data, "the venue closed the connection"
            self.parser.append_buffer(data)
        assert message.encode() and (message.get(49), message.get(56)) == (b"VENUE", b"ADA")
        return message

    def log_on(self) -> Any:
        self.send("A", (98, 0), (108, 30))
        answer = self.hear()
        assert (answer.get(35), answer.get(108)) == (b"A", b"30")
        return answer

    def order(self, name: str, **values: object) -> None:
        fields = {"quantity": 100, "price": "150.34"} | values
        now = datetime.now(timezone.utc).strftime("%Y%m%d-%H:%M:%S")
        limit = (38, fields["quantity"]), (40, 2), (44, fields["price"])
        self.send("D", (11, name), (55, "WALRAS"), (54, 1), (60, now), *limit)


def test_simplefix_reads_what_we_write_and_is_read(port: int) -> None:
    with Participant(port) as ada:
        ada.log_on()
        ada.order("a-1")
        report = ada.hear()
        assert [report.get(tag) for tag in (35, 11, 150, 39, 38, 44, 151, 14)] == [
            b"8", b"a-1", b"0", b"0", b"100", b"150.34", b"100", b"0",
        ]  # fmt: skip
        ada.order("a-2", price="150.34001")
        report = ada.hear()
        assert (report.get(150), report.get(39)) == (b"8", b"8") and b"tag 44" in report.get(58)
        ada.send("F", (41, "gone"), (11, "c-1"), (55, "WALRAS"), (54, 1), (60, "20261126-20:15:07"))
        assert [ada.hear().get(35)] == [b"9"]
        ada.send("q", (11, "c-2"), (530, 7), (60, "20261126-20:15:07"))
        report = ada.hear()
        assert [report.get(tag) for tag in (35, 533, 534, 41)] == [b"r", b"1", b"1", b"a-1"]
        ada.send("1", (112, "are you there"))
        assert ada.hear().get(112) == b"are you there"
        ada.send("D", (11, "a-3"), (55, "WALRAS"))
        reject = ada.hear()
        assert [reject.get(tag) for tag in (35, 371, 372, 373)] == [b"3", b"54", b"D", b"1"]
        ada.send("5")
        assert ada.hear().get(35) == b"5"


def test_reports_are_sent_again_as_they_were_after_a_lost_connection(port: int) -> None:
    with Participant(port) as ada:
        ada.log_on()
        ada.order("a-1")
        first = ada.hear()
    # The next connection expects the logon's number again: it has forgotten the report.
    with Participant(port, ada.number) as ada:
        assert ada.log_on().get(34) == b"3", "numbers go on"
        ada.send("2", (7, 1), (16, 0))
        fill, again, last = ada.hear(), ada.hear(), ada.hear()
        assert [fill.get(tag) for tag in (35, 34, 123, 36, 43)] == [b"4", b"1", b"Y", b"2", b"Y"]
        assert [last.get(tag) for tag in (35, 34, 36)] == [b"4", b"3", b"4"]
        assert (again.get(43), again.get(122)) == (b"Y", first.get(52))
        of_session = {8, 9, 10, 43, 52, 122}
        body = [[pair for pair in message.pairs if int(pair[0]) not in of_session] for message in (first, again)]
        assert body[0] == body[1]


def test_a_session_of_single_bytes_and_a_number_that_was_used(port: int) -> None:
    with Participant(port) as ada:
        for byte in ada.bytes_of("A", (98, 0), (108, 30)):
            ada.socket.sendall(bytes([byte]))
        assert ada.hear().get(35) == b"A"
        ada.send("0", number=1)
        logout = ada.hear()
        assert logout.get(35) == b"5" and b"expected 2, received 1" in logout.get(58)


SETTINGS = """[DEFAULT]
ConnectionType=initiator
ReconnectInterval=1
HeartBtInt=30
StartTime=00:00:00
EndTime=00:00:00
UseDataDictionary=N
FileStorePath={folder}/store
FileLogPath={folder}/log
SocketConnectHost=127.0.0.1
SocketConnectPort={port}
[SESSION]
BeginString=FIX.4.4
SenderCompID=ADA
TargetCompID=VENUE
"""


# In a process of its own: the library keeps sessions for the life of a process.
TRADE = """
import os, sys
from datetime import datetime, timezone
from queue import Queue
import quickfix

heard = Queue()

class Application(quickfix.Application):
    def onCreate(self, session): pass
    def onLogon(self, session): heard.put(None)
    def onLogout(self, session): pass
    def toAdmin(self, message, session): pass
    def fromAdmin(self, message, session): pass
    def toApp(self, message, session): pass
    def fromApp(self, message, session): heard.put(message.toString())

settings, application = quickfix.SessionSettings(sys.argv[1]), Application()
store, log = quickfix.FileStoreFactory(settings), quickfix.FileLogFactory(settings)
initiator = quickfix.SocketInitiator(application, store, settings, log)
initiator.start()
heard.get(timeout=600)
order = quickfix.Message()
now = datetime.now(timezone.utc).strftime("%Y%m%d-%H:%M:%S")
for tag, value in ((8, "FIX.4.4"), (35, "D")):
    order.getHeader().setField(quickfix.StringField(tag, value))
for tag, value in ((11, sys.argv[2]), (55, "WALRAS"), (54, "2"), (60, now), (38, "7"), (40, "2"), (44, "1.5")):
    order.setField(quickfix.StringField(tag, value))
assert quickfix.Session.sendToTarget(order, "ADA", "VENUE")
print(heard.get(timeout=600), flush=True)
initiator.stop()
os._exit(0)
"""


def test_quickfix_trades_and_goes_on_where_it_left(port: int, tmp_path: Path) -> None:
    pytest.importorskip("quickfix")
    path = tmp_path / "settings.cfg"
    path.write_text(SETTINGS.format(folder=tmp_path, port=port))
    numbers = []
    for name in ("q-1", "q-2"):
        command = [sys.executable, "-c", TRADE, path, name]
        report = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        fields = dict(field.split("=", 1) for field in report.split("\x01") if field)
        assert (fields["35"], fields["11"], fields["150"]) == ("8", name, "0")
        numbers.append(int(fields["34"]))
    # The logout and the second logon have numbers of their own.
    assert numbers == [2, 5]
