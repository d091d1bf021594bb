#!/bin/sh
# sbedecoder 0.1.10 (PyPI) takes one byte of a message for a constant, which has none there.
#
# A member of a composite whose presence is `constant` is in the schema alone (Simple Binary Encoding 1.0, "constant"). Prices are
# usually such a composite: a mantissa, and a constant exponent. If the schema gives no offsets, sbedecoder reads every field
# behind a price one byte late, and gives no error.
# Seen on 29 November 2026:
#   sbedecoder 0.1.10: price 12.345600000000001, size 5 is read as 648518346341351424
# Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check sbedecoder==0.1.10
"$folder/venv/bin/python" - "$folder/schema.xml" <<'PYTHON'
import struct
import sys

from sbedecoder import SBESchema

HEADER = "".join(f'<type name="{name}" primitiveType="uint16"/>' for name in ("blockLength", "templateId", "schemaId", "version"))
SCHEMA = f"""<sbe:messageSchema xmlns:sbe="http://fixprotocol.io/2016/sbe" package="t" id="1" version="0" byteOrder="littleEndian">
<types><composite name="messageHeader">{HEADER}</composite><composite name="decimal"><type name="mantissa" primitiveType="int64"/>
<type name="exponent" primitiveType="int8" presence="constant">-4</type></composite><type name="units" primitiveType="int64"/></types>
<sbe:message name="Trade" id="7"><field name="price" id="1" type="decimal"/><field name="size" id="2" type="units"/>
<field name="fee" id="3" type="units"/></sbe:message></sbe:messageSchema>"""
with open(sys.argv[1], "w") as file:
    file.write(SCHEMA)
schema = SBESchema()
schema.parse(sys.argv[1])
decoded = schema.get_message_type(7)()
fields = struct.pack("<qqq", 123_456, 5, 9)
decoded.wrap(struct.pack("<HHHH", 24, 7, 0, 0) + fields, 0)
read = {field.name: field.value for field in decoded.fields if field.name in ("price", "size")}
print(f"sbedecoder 0.1.10: price {read['price']}, size 5 is read as {read['size']}")
sys.exit(0 if read["size"] == struct.unpack("<q", fields[9:17])[0] != 5 else 1)
PYTHON
