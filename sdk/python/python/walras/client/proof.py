"""Proofs of accounts, of their policies and of parameters: what they state, and whether it belongs to a state root.

The layouts are those of the `ledger` and `trie` crates' documentation. `certificate` checks who signed a root.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from blake3 import blake3

from walras.client.encoding import SLOT_BITS, derived, slot_of
from walras.client.operations import ProposeParameter

__all__ = [
    "ProofError",
    "ProvedAccount",
    "ProvedHolder",
    "Reader",
    "Window",
    "prove",
    "prove_account",
    "prove_holder",
    "prove_keys",
    "prove_parameters",
    "read_outcome",
    "window_of",
]

_NODE, _FORK, _LEAF, _OTHER = 1, 2, 3, 4
_PARAMETERS: tuple[str, ...] = ProposeParameter.FIELDS[0].more


class ProofError(ValueError):
    """A proof that cannot be decoded, or that leads elsewhere."""


@dataclass(frozen=True, slots=True)
class Window:
    """Which sequence numbers an account has used: the highest, and a bitmap of the 64 up to it."""

    highest: int
    used: int

    def is_free(self, number: int) -> bool:
        """Whether the number is not used. One that is 64 or more below the highest counts as used."""
        behind = self.highest - number
        return behind < 0 or (behind < 64 and not self.used >> behind & 1)


@dataclass(frozen=True, slots=True)
class ProvedAccount:
    """An account as a proof states it; balances are units by the asset's number."""

    address: bytes
    window: Window
    """Of its own numbers."""
    balances: dict[int, int]
    slots: int = 0
    """The slots that it has given to session keys."""
    windows: dict[int, Window] = field(default_factory=dict)
    """The numbers of its session keys, by slot, with the slot in their upper bits."""
    needs_reference: bool = False
    """Whether payments to it need a reference."""

    def window_of(self, slot: int) -> Window:
        """The numbers of a slot. Of one whose record is gone none is free: no transaction of it counts any more."""
        if slot == 0 or slot in self.windows:
            return self.window if slot == 0 else self.windows[slot]
        return Window(((slot + 1) << SLOT_BITS) - 1, (1 << 64) - 1) if slot <= self.slots else Window(slot << SLOT_BITS, 0)


class Reader:
    """Reads an encoding from its beginning."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        taken = self.data[self.at : self.at + count]
        if len(taken) != count:
            raise ProofError(f"the proof is cut off: it has only {len(self.data)} bytes")
        self.at += count
        return taken

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "little")

    def end(self) -> None:
        """Refuses bytes after the end."""
        if self.at != len(self.data):
            raise ProofError("there are bytes after the end of the proof")


def _session_keys(reader: Reader) -> tuple[int, dict[int, Window]]:
    """The slots given, and the windows of an account's session keys. Of each key there are slot, key, scope, whether it
    is closed, two heights, window, and its caps with what is used of them."""
    slots, windows = reader.number(4), {}
    for _ in range(reader.number(4)):
        slot = reader.number(4)
        reader.take(32 + 1 + 1 + 8 + 8)
        windows[slot] = Window(slot << SLOT_BITS | reader.number(8), reader.number(8))
        reader.take((4 + 8 + 8) * reader.number(4))
    return slots, windows


def _parts(reader: Reader) -> tuple[bytes, dict[int, bytes]]:
    """The parts of a state root, as they are hashed and by tag."""
    begun = reader.at
    roots: dict[int, bytes] = {}
    for _ in range(reader.number(4)):
        tag = reader.number(1)
        if roots and tag <= max(roots):
            raise ProofError("the parts of the root are not in the order of their tags")
        roots[tag] = reader.take(32)
    return reader.data[begun : reader.at], roots


def _check_root(parts: bytes, root: bytes) -> None:
    if derived("walras 2026 state root v4", parts) != root:
        raise ProofError("the proof is for another state root: request the proof of this block")


def _head(reader: Reader) -> tuple[bytes, dict[int, bytes], bytes, ProvedAccount | None]:
    """The parts as they are hashed, the parts by tag, the account as it is hashed, and what it says."""
    parts, roots = _parts(reader)
    if not reader.number(1):
        return parts, roots, b"", None
    begun = reader.at
    address = reader.take(20)
    if reader.number(1):
        reader.take(32)
    window = Window(reader.number(8), reader.number(8))
    balances = {reader.number(4): reader.number(8) for _ in range(reader.number(4))}
    if reader.number(1):
        reader.take(8 + 8 + 32 + 1)
    # One bit says that session keys follow, one that payments need a reference.
    bits = reader.number(1)
    if bits > 3:
        raise ProofError("the proof is of an account that this program does not know")
    slots, windows = _session_keys(reader) if bits & 1 else (0, {})
    stated = ProvedAccount(address, window, balances, slots, windows, bool(bits & 2))
    return parts, roots, reader.data[begun : reader.at], stated


def window_of(proof: bytes, sequence: int) -> Window:
    """The used numbers of a number's slot that a proof states, unverified; none for an account that does not exist."""
    account = _head(Reader(proof))[3]
    return account.window_of(slot_of(sequence)) if account else Window(0, 0)


def prove_account(address: bytes, root: bytes, proof: bytes) -> ProvedAccount | None:
    """What the state with this root has at an address; None if the proof shows that there is no account.

    Raises a `ProofError` if the proof proves neither.
    """
    reader = Reader(proof)
    parts, roots, stated, account = _head(reader)
    _check_root(parts, root)
    if 1 not in roots:
        raise ProofError("the state has no accounts")
    path = reader.take(reader.number(4))
    reader.end()
    found = prove(address, roots[1], path)
    value = derived("walras 2026 account state v3", stated) if account else None
    if found != value or (account is not None and account.address != address):
        raise ProofError("the proof states another account than its path proves")
    return account


def _policy(reader: Reader) -> dict[str, Any]:
    """A policy, as ``/v1/accounts/…`` shows it."""

    def some(name: str, count: int, weighs: bool) -> list[dict[str, Any]]:
        def one() -> dict[str, Any]:
            return {name: "0x" + reader.take(count).hex()} | ({"weight": reader.number(1)} if weighs else {})

        return [one() for _ in range(reader.number(4))]

    signers = {"keys": some("key", 32, True), "wallets": some("wallet", 20, True)}
    weights = {"move": reader.number(2), "govern": reader.number(2)}
    guardians = {"guardian_keys": some("key", 32, False), "guardian_wallets": some("wallet", 20, False)}
    return signers | weights | guardians | {"guardians": reader.number(1), "delay": reader.number(4)}


def _account_keys(reader: Reader) -> dict[str, Any]:
    """The keys of an account with a policy, and the change of them that waits."""
    first, policy, last = reader.take(32), _policy(reader), reader.take(32)
    waiting: dict[str, Any] | None = None
    if reader.number(1):
        waiting = {"policy": _policy(reader)}
        waiting["sessions"] = "keep" if reader.number(1) else "close"
        waiting["by"] = "guardians" if reader.number(1) else "signers"
        waiting["due"] = str(reader.number(8))
    return {"first": "0x" + first.hex(), "last": "0x" + last.hex(), "policy": policy, "waiting": waiting}


def prove_keys(address: bytes, root: bytes, proof: bytes) -> dict[str, Any] | None:
    """The policy of an account in the state with this root, as ``/v1/accounts/…`` shows it under `keys`; None if the
    proof shows that it has none: then its own key signs alone.

    Raises a `ProofError` if the proof proves neither.
    """
    reader = Reader(proof)
    parts, roots = _parts(reader)
    _check_root(parts, root)
    has_keys = reader.number(1)
    begun = reader.at
    keys = _account_keys(reader) if has_keys else None
    value = derived("walras 2026 account keys v1", reader.data[begun : reader.at]) if has_keys else None
    path = reader.take(reader.number(4))
    reader.end()
    # While no account of the chain has a policy, its state has no part for them.
    if (prove(address, roots[10], path) if 10 in roots else None) != value:
        raise ProofError("the proof states another policy than its path proves")
    return keys


def _values(reader: Reader) -> dict[str, str]:
    """The values of all parameters, by name."""
    return {name: str(reader.number(8)) for name in _PARAMETERS}


def prove_parameters(root: bytes, proof: bytes) -> dict[str, Any] | None:
    """The parameters of the chain in the state with this root: those of the genesis (`first`), those in force (`now`), and
    those that wait, each with the height that it acts from (`coming`). None if the proof shows that nothing was ever
    proposed: then they are those of the genesis.

    Raises a `ProofError` if the proof proves neither.
    """
    reader = Reader(proof)
    parts, roots = _parts(reader)
    _check_root(parts, root)
    # Two numbers of rules with their manifests and the height between them, and the rules that are agreed on.
    begun = reader.at
    reader.take(4 + 32 + 8 + 4 + 32)
    if reader.number(1):
        reader.take(4 + 32 + 8 + 8 + 1 + 1)
    rules, rest, parameters = reader.data[begun : reader.at], reader.take(32), None
    if reader.number(1):
        begun = reader.at
        first, now = _values(reader), _values(reader)
        coming = [{"acts": reader.number(8), "values": _values(reader)} for _ in range(reader.number(4))]
        parameters = {"first": first, "now": now, "coming": coming}
        stated = reader.data[begun : reader.at] + reader.take(32)
        rest = derived("walras 2026 charter parameters v1", rest + stated)
    reader.end()
    if roots.get(8) != derived("walras 2026 charter v1", rules + rest):
        raise ProofError("the proof states other parameters than the state has")
    return parameters


@dataclass(frozen=True, slots=True)
class ProvedHolder:
    """What a state says of a holder of an asset."""

    control: str
    """What the issuer controls: ``open``, nothing; ``freezable``, ``admitted``, ``recoverable`` or
    ``admitted_recoverable``."""
    is_open: bool
    """Whether the account holds the asset freely. An issuer always does."""
    since: int | None
    """The height at which the issuer changed this last; None if it never said anything of the account."""


_CONTROLS = ("open", "freezable", "admitted", "recoverable", "admitted_recoverable")


def prove_holder(asset: int, account: bytes, root: bytes, proof: bytes) -> ProvedHolder:
    """What the state with this root says of a holder of an asset that is not its issuer.

    Raises a `ProofError` if the proof proves nothing.
    """
    reader = Reader(proof)
    parts, roots = _parts(reader)
    _check_root(parts, root)
    trie, begun, controls = reader.take(32), reader.at, dict[int, str]()
    for _ in range(reader.number(4)):
        of, control = reader.number(4), reader.number(1)
        if control >= len(_CONTROLS):
            raise ProofError("the proof is of a control that this program does not know")
        controls[of] = _CONTROLS[control]
    listed = derived("walras 2026 asset controls v1", reader.data[begun : reader.at])
    record = reader.take(1 + 8 + 1) if reader.number(1) else None
    path = reader.take(reader.number(4))
    reader.end()
    if 12 not in roots:
        # A chain on which nobody controls an asset has no part for it.
        if controls or record:
            raise ProofError("the proof states controls that its state does not have")
        return ProvedHolder("open", True, None)
    if derived("walras 2026 controls root v1", trie + listed) != roots[12]:
        raise ProofError("the proof states other controls than its state has")
    value = derived("walras 2026 holder record v1", record) if record else None
    if prove(asset.to_bytes(4, "big") + account, trie, path) != value:
        raise ProofError("the proof states another record than its path proves")
    found = controls.get(asset, "open")
    is_open = record[0] == 1 if record else not found.startswith("admitted")
    return ProvedHolder(found, is_open, int.from_bytes(record[1:9], "little") if record else None)


def read_outcome(reader: Reader) -> bytes | None:
    """The bytes of the outcome that a receipt's proof states; None if it states none."""
    if not reader.number(1):
        return None
    begun, kind = reader.at, reader.number(1)
    # Applied, offered (four amounts and a reason), refused (place and number), void, cancelled (found and missing),
    # replaced (what remained, and as offered), pooled (two amounts and shares), exact (three
    # amounts and a reason), listed (the number of the asset).
    lengths = {0: 0, 1: 4 * 8 + 1, 2: 2, 3: 0, 4: 2, 5: 5 * 8 + 1, 6: 3 * 8, 7: 3 * 8 + 1, 8: 4}
    if kind not in lengths:
        raise ProofError(f"{kind} is no kind of outcome")
    reader.take(lengths[kind])
    return reader.data[begun : reader.at]


_VALUE = 32


def prove(key: bytes, root: bytes, path: bytes) -> bytes | None:
    """The value of a key in the trie with this root, from the way down to its place."""
    reader, done = Reader(path), False
    nodes: list[_Node] = []
    below: bytes | tuple[bytes, bytes] | None = None
    found = None
    while not done:
        kind, start = reader.number(1), nodes[-1].start if nodes else 0
        if kind == _NODE:
            node = _Node.read(reader, key, nodes[-1].depth + 1 if nodes else 0, key)
            nodes.append(node)
            done = not node.holds(key)
            continue
        done = True
        if kind == _LEAF:
            found = reader.take(_VALUE)
            below = (key[start:], found)
        elif kind == _OTHER:
            suffix = reader.take(len(key) - start)
            if suffix == key[start:]:
                raise ProofError("the proof hides the key's own leaf")
            below = (suffix, reader.take(_VALUE))
        elif kind == _FORK:
            fork = _Node.read(reader, key, nodes[-1].depth + 1 if nodes else 0, None)
            below = fork.digest(key, None)
        elif kind != 0 or nodes:
            raise ProofError("the proof has an item that is not allowed there")
    reader.end()
    for node in reversed(nodes):
        below = node.digest(key, below)
    if below is None:
        digest = _hash(key, b"\0")
    elif isinstance(below, tuple):
        digest = _hash(key, b"\1" + below[0] + below[1])
    else:
        digest = below
    if digest != root:
        raise ProofError("the path leads to another root")
    return found


def _hash(key: bytes, message: bytes) -> bytes:
    own = derived("walras 2026 trie v2", bytes([len(key), _VALUE]))
    return blake3(message, key=own).digest()


def _nibble(key: bytes, depth: int) -> int:
    return key[depth // 2] >> 4 if depth % 2 == 0 else key[depth // 2] & 15


@dataclass(frozen=True, slots=True)
class _Node:
    depth: int
    path: bytes
    nodes: int
    leaves: int
    own: int | None
    """The slot of the key, whose content the proof leaves out."""
    siblings: dict[int, bytes]

    @property
    def start(self) -> int:
        """Where the rest of a key begins in the leaves below."""
        return (self.depth + 1) // 2

    def holds(self, key: bytes) -> bool:
        return bool((self.nodes | self.leaves) >> _nibble(key, self.depth) & 1)

    @classmethod
    def read(cls, reader: Reader, key: bytes, least: int, way: bytes | None) -> _Node:
        """A node on the key's way; or, without a `way`, one that the key does not begin with."""
        depth, nodes, leaves = reader.number(1), reader.number(2), reader.number(2)
        if not least <= depth < 2 * len(key) or nodes & leaves:
            raise ProofError("the proof has a node that is not allowed there")
        start = (depth + 1) // 2
        own = None
        if way is None:
            way = reader.take(start)
            if all(_nibble(way, at) == _nibble(key, at) for at in range(depth)):
                raise ProofError("the proof hides the key's own way")
        else:
            own = _nibble(key, depth)
        path = bytearray(way[:start])
        if depth % 2:
            path[-1] &= 0xF0
        siblings = {}
        for slot in range(16):
            if slot == own:
                continue
            if nodes >> slot & 1:
                siblings[slot] = reader.take(32)
            elif leaves >> slot & 1:
                siblings[slot] = reader.take(len(key) - start + _VALUE)
        return cls(depth, bytes(path), nodes, leaves, own, siblings)

    def digest(self, key: bytes, below: bytes | tuple[bytes, bytes] | None) -> bytes:
        """The node's digest with what lies in the key's own slot."""
        contents, nodes, leaves = dict(self.siblings), self.nodes, self.leaves
        if self.own is not None:
            mark = 1 << self.own
            nodes, leaves = nodes & ~mark, leaves & ~mark
            if isinstance(below, tuple):
                contents[self.own], leaves = below[0] + below[1], leaves | mark
            elif below is not None:
                contents[self.own], nodes = below, nodes | mark
        head = bytes([2, self.depth]) + nodes.to_bytes(2, "little") + leaves.to_bytes(2, "little") + self.path
        message = head + b"".join(contents[slot] for slot in sorted(contents))
        return _hash(key, message.ljust(-(-len(message) // 64) * 64, b"\0"))
