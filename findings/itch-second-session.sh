#!/bin/sh
# itchfeed 1.6.4 and itchcpp 1.6.4 (PyPI) read a file of two sessions as one of them.
#
# Both stop at the first system event C, "end of messages", and give no error: what follows in the file (the messages of
# a second day, as archives of several days have them) is not read. itch-book 0.2.1 reads both.
# Seen on 28 November 2026:
#   of 12 messages in two sessions: {'itch': 6, 'itchcpp': 6, 'itch_book': 12}
# Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check itchfeed==1.6.4 itchcpp==1.6.4 'itch-book[cli]==0.2.1'
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import datetime
import io
import struct
import sys

import itch.parser
import itch_book
import itchcpp.parser


def event(at, code):
    """A system event (ITCH 5.0, message S): locate, tracking number, six bytes of time, the code."""
    return b"S" + struct.pack(">HH", 0, 0) + at.to_bytes(6, "big") + code


SESSION = [event(at, code) for at, code in enumerate((b"O", b"S", b"Q", b"M", b"E", b"C"), 1)]
CONTENT = b"".join(struct.pack(">H", len(one)) + one for one in SESSION) * 2

counts = {
    module.__name__.split(".")[0]: len(list(module.MessageParser().parse_file(io.BytesIO(CONTENT))))
    for module in (itch.parser, itchcpp.parser)
}
path = sys.argv[1] + "/two.itch"
with open(path, "wb") as file:
    file.write(CONTENT)
feed = itch_book.Feed(path, date=datetime.date(2026, 11, 27))
for _ in feed.batches(tables=("trades",)):
    pass
counts["itch_book"] = (feed.stats or {}).get("messages", (feed.stats or {}).get("total"))
print(f"of 12 messages in two sessions: {counts}")
sys.exit(0 if counts == {"itch": 6, "itchcpp": 6, "itch_book": 12} else 1)
PYTHON
