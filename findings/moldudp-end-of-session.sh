#!/bin/sh
# moldudp 0.0.21 (PyPI) says nothing at the end of a session.
#
# A MoldUDP64 packet whose message count is 0xFFFF ends the session (Nasdaq, MoldUDP64 protocol 1.00, "End of Session").
# The decoder calls `on_hb` for a heartbeat (count 0), but for the end of a session it calls neither `on_eos` nor anything
# else: it reads the count as a signed number and finds -1 messages. A receiver that waits for `on_eos` waits for ever.
# Seen on 28 November 2026:
#   moldudp 0.0.21: a heartbeat calls ['heartbeat'], the end of a session calls []
# Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check moldudp==0.0.21
"$folder/venv/bin/python" - <<'PYTHON'
import struct
import sys

from moldudp.codec.decoder import MoldUDPDecoder


class Heard:
    """What the decoder calls."""

    def __init__(self):
        self.calls = []

    def on_msgblk(self, message):
        self.calls.append("message")

    def on_hb(self):
        self.calls.append("heartbeat")

    def on_eos(self):
        self.calls.append("end of session")


def calls(count):
    heard = Heard()
    decoder = MoldUDPDecoder(heard)
    decoder.buffer(b"SESSION001" + struct.pack(">QH", 7, count))
    decoder.decode()
    return heard.calls


heartbeat, end = calls(0), calls(0xFFFF)
print(f"moldudp 0.0.21: a heartbeat calls {heartbeat}, the end of a session calls {end}")
sys.exit(0 if heartbeat == ["heartbeat"] and end == [] else 1)
PYTHON
