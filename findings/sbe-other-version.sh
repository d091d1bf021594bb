#!/bin/sh
# sbe 0.4.3 and sbedecoder 0.1.10 (PyPI) misread messages of another version of the schema.
#
# A message of Simple Binary Encoding says how long its block of fields is, so that senders and receivers may have different
# versions of a schema. sbe takes the fields that an older message lacks from the bytes behind its block, and then finds no group.
# sbedecoder does that too, and looks for the groups where its own schema's block ends: of a newer message it finds none.
# Seen on 29 November 2026:
#   sbe 0.4.3: older: fee 21474967560, 0 legs; same: fee 77, 2 legs; newer: fee 77, 2 legs
#   sbedecoder 0.1.10: older: fee 21474967560, 0 legs; same: fee 77, 2 legs; newer: fee 77, 0 legs
# Right is: older: no fee, 2 legs; newer: fee 77, 2 legs. Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check sbe==0.4.3 sbedecoder==0.1.10
"$folder/venv/bin/python" - "$folder/schema.xml" <<'PYTHON'
import io
import struct
import sys

import sbe
from sbedecoder import SBESchema


def members(*types):
    return "".join(f'<type name="{name}" primitiveType="{kind}"/>' for name, kind in types)


HEADER = members(*((name, "uint16") for name in ("blockLength", "templateId", "schemaId", "version")))
GROUP = members(("blockLength", "uint16"), ("numInGroup", "uint16"))
SCHEMA = f"""<sbe:messageSchema xmlns:sbe="http://fixprotocol.io/2016/sbe" package="t" id="1" version="1" byteOrder="littleEndian">
<types><composite name="messageHeader">{HEADER}</composite><composite name="groupSizeEncoding">{GROUP}</composite>
<type name="units" primitiveType="int64"/></types>
<sbe:message name="Trade" id="7" blockLength="24"><field name="price" id="1" type="units"/><field name="size" id="2" type="units"/>
<field name="fee" id="3" type="units" sinceVersion="1"/>
<group name="legs" id="4" dimensionType="groupSizeEncoding"><field name="lots" id="5" type="units"/></group>
</sbe:message></sbe:messageSchema>"""


def message(version, *fields):
    block = struct.pack(f"<{len(fields)}q", *fields)
    legs = struct.pack("<HHqq", 8, 2, 5, 6)
    return struct.pack("<HHHH", len(block), 7, 1, version) + block + legs


MESSAGES = {"older": message(0, 1, 2), "same": message(1, 1, 2, 77), "newer": message(2, 1, 2, 77, 88)}


def by_sbe(content):
    value = sbe.Schema.parse(io.StringIO(SCHEMA)).decode(content).value
    return value["fee"], len(value["legs"])


def by_sbedecoder(content):
    schema = SBESchema()
    schema.parse(sys.argv[1])
    decoded = schema.get_message_type(7)()
    decoded.wrap(content, 0)
    return {field.name: field.value for field in decoded.fields}["fee"], len(list(decoded.groups[0].repeating_groups))


with open(sys.argv[1], "w") as file:
    file.write(SCHEMA)
garbage = struct.unpack("<q", MESSAGES["older"][24:32])[0]
both = {"sbe 0.4.3": by_sbe, "sbedecoder 0.1.10": by_sbedecoder}
seen = {tool: {name: read(content) for name, content in MESSAGES.items()} for tool, read in both.items()}
for tool, by_name in seen.items():
    print(f"{tool}: " + "; ".join(f"{name}: fee {fee}, {legs} legs" for name, (fee, legs) in by_name.items()))
older_and_same = {"older": (garbage, 0), "same": (77, 2)}
is_so = seen == {
    "sbe 0.4.3": {**older_and_same, "newer": (77, 2)},
    "sbedecoder 0.1.10": {**older_and_same, "newer": (77, 0)},
}
sys.exit(0 if is_so else 1)
PYTHON
