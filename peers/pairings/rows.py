"""Rows of a table from what libraries said: a name, the bytes of a pairing, and the wrong points that they read."""

import json
import sys

VECTORS, SAID = sys.argv[1:3]
BLOCK = 48
OURS = bytes.fromhex(json.load(open(VECTORS))["made"][1]["pairing"].removeprefix("0x"))
BLOCKS = [OURS[at : at + BLOCK] for at in range(0, len(OURS), BLOCK)]
NAMES = {tuple(range(12)): "ours", tuple(reversed(range(12))): "ours, blocks reversed"}


def order(element: bytes) -> str:
    """How the bytes of an element are ordered, by the places of our twelve coefficients in them."""
    if not element:
        return "none given"
    blocks = [element[at : at + BLOCK] for at in range(0, len(element), BLOCK)]
    for turned, words in ((False, ""), (True, ", each block little-endian")):
        places = [BLOCKS.index(one) for one in (b[::-1] if turned else b for b in blocks) if one in BLOCKS]
        if len(places) == len(BLOCKS):
            return NAMES.get(tuple(places), "ours, in the order " + ", ".join(map(str, places))) + words
    return "another element"


def left(read: list[str]) -> str:
    """What the reader of a library's points leaves to its caller."""
    if any("outside the subgroup" in one for one in read):
        return "the subgroup and the identity"
    return "the identity" if read else "nothing"


print("| tool | bytes of a pairing | what you must check of points that it reads |")
print("|---|---|---|")
for line in open(SAID):
    name, element, *read = line.strip().split("|")
    print(f"| {name} | {order(bytes.fromhex(element))} | {left(read)} |")
