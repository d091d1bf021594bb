"""Merkle trees: leaves and nodes have keys of their own, and the last one of an odd level is promoted."""

from __future__ import annotations

from walras.purse.lane.layout import Reader, derived, keyed, require

SIGNED = "walras 2026 lane signed tree v1"
OUTPUTS = "walras 2026 lane outputs tree v1"
LEAVES_MAX = 4_096


def leaf(family: str, data: bytes) -> bytes:
    return keyed(derived(family, b"\0"), data)


def node(family: str, left: bytes, right: bytes) -> bytes:
    return keyed(derived(family, b"\1"), left + right)


def levels(family: str, leaves: list[bytes]) -> list[list[bytes]]:
    found = [leaves]
    while len(found[-1]) > 1:
        level = found[-1]
        pairs = [level[at : at + 2] for at in range(0, len(level), 2)]
        found.append([node(family, *pair) if len(pair) == 2 else pair[0] for pair in pairs])
    return found


def root(family: str, leaves: list[bytes]) -> bytes:
    return levels(family, leaves)[-1][0]


def path(family: str, leaves: list[bytes], index: int) -> list[bytes]:
    found = []
    for level in levels(family, leaves)[:-1]:
        if index ^ 1 < len(level):
            found.append(level[index ^ 1])
        index //= 2
    return found


def sides(size: int, index: int) -> list[bool]:
    """For each digest of a path, whether it is on the left."""
    require(index < size <= LEAVES_MAX, "WrongPath", "no such leaf")
    found = []
    while size > 1:
        if index ^ 1 < size:
            found.append(index % 2 == 1)
        index, size = index // 2, (size + 1) // 2
    return found


def read_path(reader: Reader, size: int, index: int) -> list[bytes]:
    return [reader.digest() for _ in sides(size, index)]


def root_of(family: str, hashed: bytes, size: int, index: int, siblings: list[bytes]) -> bytes:
    places = sides(size, index)
    require(len(places) == len(siblings), "WrongPath", "another length")
    for is_left, sibling in zip(places, siblings, strict=True):
        hashed = node(family, sibling, hashed) if is_left else node(family, hashed, sibling)
    return hashed
