#!/bin/sh
# asyncfix 1.0.1 (PyPI) reads no entry of a FIX 4.4 market data snapshot.
#
# Its own protocol of FIX 4.4 does not name the group of entries (268). The message is decoded without an error, but each
# field of the group is replaced by the class of an error, which is raised when the field is read. A group that the protocol names
# is read, so a program finds out at the first message of market data.
# Seen on 29 November 2026:
#   asyncfix 1.0.1: 268 is 2, reading 270 raises RepeatingTagError
# Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check asyncfix==1.0.1
"$folder/venv/bin/python" - <<'PYTHON'
import sys

from asyncfix.codec import Codec
from asyncfix.protocol import FIXProtocol44

FIELDS = ["35=W", "49=A", "56=B", "34=2", "52=20261129-00:00:00.000", "55=X", "268=2"]
FIELDS += ["269=0", "270=10.5", "271=3", "269=1", "270=10.6", "271=4"]
body = "".join(f"{field}\x01" for field in FIELDS)
head = f"8=FIX.4.4\x019={len(body)}\x01{body}"
message, _, _ = Codec(FIXProtocol44()).decode(f"{head}10={sum(head.encode()) % 256:03d}\x01".encode())
try:
    price = message[270]
except Exception as error:
    price = type(error).__name__
print(f"asyncfix 1.0.1: 268 is {message[268]}, reading 270 raises {price}")
sys.exit(0 if (message[268], price) == ("2", "RepeatingTagError") else 1)
PYTHON
