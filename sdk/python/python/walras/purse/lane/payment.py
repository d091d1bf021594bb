"""Payments: layout, digest, ids, and the rules of a network."""

from __future__ import annotations

from dataclasses import dataclass

from walras.purse.lane import ed25519, trees
from walras.purse.lane.layout import Reader, ascends, derived, parsed, require, u8, u16, u32, u64

CONFIRMATION, ACKNOWLEDGEMENT, VIEW, HALT, SHARED, QUESTION, REGISTRATION, POSSESSION, DEALING = range(2, 11)
PAYMENT = 1
PREFIX = b"walras-lane\x01"
INPUTS_MAX = OUTPUTS_MAX = 16
ASSETS_MAX = 4


def head(kind: int, network: bytes, epoch: int) -> bytes:
    """What everything begins with that is signed in the lane."""
    return PREFIX + network + u64(epoch) + u8(kind)


@dataclass(frozen=True)
class Output:
    kind: int
    to: bytes
    asset: int
    amount: int

    def encode(self) -> bytes:
        return u8(self.kind) + self.to.ljust(32, b"\0") + u32(self.asset) + u64(self.amount)

    def leaf(self) -> bytes:
        return trees.leaf(trees.OUTPUTS, self.encode())


def read_output(reader: Reader) -> Output:
    kind, to = reader.u8(), reader.take(32)
    require(kind <= 1, "Malformed", "an output is for a key or an account")
    require(kind == 0 or to[20:] == bytes(12), "Malformed", "an account has 20 bytes")
    return Output(kind, to[:20] if kind else to, reader.u32(), reader.amount())


@dataclass(frozen=True)
class Spent:
    id: bytes
    asset: int
    amount: int

    def encode(self) -> bytes:
        return self.id + u32(self.asset) + u64(self.amount)


def read_spent(reader: Reader) -> Spent:
    return Spent(reader.digest(), reader.u32(), reader.amount())


@dataclass(frozen=True)
class Summary:
    home: int
    into: int
    owner: bytes
    inputs: bytes
    outputs: int
    root: bytes

    def encode(self) -> bytes:
        return u64(self.home) + u64(self.into) + self.owner + self.inputs + u8(self.outputs) + self.root

    def digest(self, network: bytes) -> bytes:
        return derived("walras 2026 lane payment v1", u8(1) + network + self.encode())


def read_summary(reader: Reader) -> Summary:
    home, into, owner = reader.u64(), reader.u64(), reader.digest()
    return Summary(home, into, owner, reader.digest(), reader.u8(), reader.digest())


@dataclass(frozen=True)
class Rules:
    """A network, and for each asset its least units and its fee."""

    network: bytes
    assets: dict[int, tuple[int, int]]

    def of(self, asset: int) -> tuple[int, int]:
        return self.assets.get(asset, (1, 0))


@dataclass(frozen=True)
class Payment:
    network: bytes
    home: int
    into: int
    owner: bytes
    inputs: tuple[Spent, ...]
    outputs: tuple[Output, ...]

    def encode(self) -> bytes:
        counts = u8(1) + u8(len(self.inputs)) + u8(len(self.outputs))
        about = u64(self.home) + u64(self.into) + self.network + self.owner
        inputs = b"".join(one.encode() for one in self.inputs)
        return counts + about + inputs + b"".join(one.encode() for one in self.outputs)

    def leaves(self) -> list[bytes]:
        return [output.leaf() for output in self.outputs]

    def summary(self) -> Summary:
        inputs = derived("walras 2026 lane inputs v1", b"".join(one.encode() for one in self.inputs))
        root = trees.root(trees.OUTPUTS, self.leaves())
        return Summary(self.home, self.into, self.owner, inputs, len(self.outputs), root)

    def digest(self) -> bytes:
        return self.summary().digest(self.network)

    def id(self, index: int) -> bytes:
        return output_id(self.into, self.digest(), index)

    def signing_bytes(self) -> bytes:
        return head(PAYMENT, self.network, self.home) + self.digest()

    def is_exit(self) -> bool:
        if (len(self.inputs), len(self.outputs)) != (1, 1):
            return False
        return self == exit_of(self.network, self.home, self.owner, self.inputs[0])

    def check(self, rules: Rules) -> None:
        require(self.network == rules.network, "ForeignNetwork")
        if self.is_exit():
            return
        for output in self.outputs:
            require(output.amount >= rules.of(output.asset)[0], "TooSmall")
        assets = {one.asset for one in self.inputs} | {one.asset for one in self.outputs}
        require(len(assets) <= ASSETS_MAX, "TooManyAssets")
        for asset in assets:
            taken = sum(one.amount for one in self.inputs if one.asset == asset)
            given = sum(one.amount for one in self.outputs if one.asset == asset)
            require(taken == given + rules.of(asset)[1], "WrongSum")


def read_payment(reader: Reader) -> Payment:
    require(reader.u8() == 1, "Malformed", "another version")
    inputs, outputs = reader.u8(), reader.u8()
    require(1 <= inputs <= INPUTS_MAX and 1 <= outputs <= OUTPUTS_MAX, "Malformed", "1 to 16 inputs and outputs")
    home, into = reader.u64(), reader.u64()
    require(into in (home, home + 1), "Malformed", "outputs live in the home or after it")
    network, owner = reader.digest(), reader.digest()
    spent = reader.times(inputs, read_spent)
    require(ascends([one.id for one in spent]), "Malformed", "inputs ascend strictly")
    return Payment(network, home, into, owner, tuple(spent), tuple(reader.times(outputs, read_output)))


def parse_payment(data: bytes) -> Payment:
    return parsed(read_payment, data)


def long_payment(payment: Payment) -> bytes:
    data = payment.encode()
    return u16(len(data)) + data


def read_long_payment(reader: Reader) -> Payment:
    return parse_payment(reader.take(reader.u16()))


def exit_of(network: bytes, home: int, owner: bytes, spent: Spent) -> Payment:
    output = Output(1, ed25519.account(owner), spent.asset, spent.amount)
    return Payment(network, home, home, owner, (spent,), (output,))


def output_id(into: int, digest: bytes, index: int) -> bytes:
    return derived("walras 2026 lane output id v1", u64(into) + digest + u8(index))


def deposit_id(network: bytes, home: int, account: bytes, sequence: int) -> bytes:
    return derived("walras 2026 lane deposit id v1", network + u64(home) + account + u64(sequence))


def genesis_id(network: bytes, index: int) -> bytes:
    return derived("walras 2026 lane genesis id v1", network + u64(0) + u32(index))


def carried_id(network: bytes, before: bytes) -> bytes:
    return derived("walras 2026 lane output carried over v1", network + before)
