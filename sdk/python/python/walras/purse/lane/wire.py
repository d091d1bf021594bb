"""Frames, and the replies of a shard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from walras.purse.lane.certificate import Answer, encode_excluded, read_answer, read_excluded
from walras.purse.lane.layout import Reader, Refused, parsed, require, u8, u32, u64
from walras.purse.lane.payment import ACKNOWLEDGEMENT, CONFIRMATION

REPLY_BYTES_MAX = 16_384
TOO_SHORT = "a frame is shorter than its number"
TOO_LARGE = "a frame is larger than any message"


def frame(number: int, body: bytes) -> bytes:
    return u32(4 + len(body)) + u32(number) + body


def split(data: bytes, body_max: int) -> tuple[list[tuple[int, bytes]], bytes]:
    """The whole frames at the beginning, each with its number, and the rest."""
    found = []
    while len(data) >= 8:
        length, number = (int.from_bytes(data[at : at + 4], "little") for at in (0, 4))
        require(length >= 4, TOO_SHORT)
        require(length - 4 <= body_max, TOO_LARGE)
        if len(data) < 4 + length:
            break
        found.append((number, data[8 : 4 + length]))
        data = data[4 + length :]
    return found, data


def position_request(home: int, validator: int, shard: int) -> bytes:
    return u8(16) + u64(home) + u8(validator) + shard.to_bytes(2, "little")


@dataclass(frozen=True)
class Answered:
    kind: int
    digest: bytes
    answer: Answer

    def encode(self) -> bytes:
        return u8(1) + u8(self.kind) + self.digest + self.answer.encode()


@dataclass(frozen=True)
class Refusal:
    again: bool
    text: str

    def encode(self) -> bytes:
        return u8(2) + u8(self.again) + self.text.encode()


@dataclass(frozen=True)
class Position:
    """Kind, size, position, root and signature; `None` if nothing is known."""

    signed: tuple[int, int, int, bytes, bytes] | None

    def encode(self) -> bytes:
        if self.signed is None:
            return u8(3) + u8(0)
        kind, size, position, root, signature = self.signed
        return u8(3) + u8(1) + u8(kind) + u32(size) + u64(position) + root + signature


@dataclass(frozen=True)
class BlsAnswered:
    kind: int
    digest: bytes
    validator: int
    signature: bytes

    def encode(self) -> bytes:
        return u8(4) + u8(self.kind) + self.digest + u8(self.validator) + self.signature


@dataclass(frozen=True)
class BatchAnswered:
    scheme: int
    validator: int
    position: int
    excluded: tuple[int, ...]
    signature: bytes

    def encode(self) -> bytes:
        numbers = u8(self.scheme) + u8(self.validator) + u64(self.position)
        return u8(5) + numbers + encode_excluded(self.excluded) + self.signature


@dataclass(frozen=True)
class Spender:
    """What spends an output: the owner's signature and the payment; `None` if nothing is known."""

    output: bytes
    spender: tuple[bytes, bytes] | None

    def encode(self) -> bytes:
        spender = u8(0) if self.spender is None else u8(1) + b"".join(self.spender)
        return u8(6) + self.output + spender


Reply = Answered | Refusal | Position | BlsAnswered | BatchAnswered | Spender


def _answer_kind(body: bytes) -> int:
    require(len(body) >= 1 and body[0] in (CONFIRMATION, ACKNOWLEDGEMENT), "an answer is of no known kind")
    return body[0]


def _answered(body: bytes) -> Answered:
    kind = _answer_kind(body)

    def read(reader: Reader) -> Answered:
        return Answered(kind, reader.digest(), read_answer(reader))

    return parsed(read, body[1:])


def _refusal(body: bytes) -> Refusal:
    require(len(body) >= 1 and body[0] <= 1, "a refusal is final (0) or not (1)")
    try:
        return Refusal(body[0] == 1, body[1:].decode())
    except UnicodeDecodeError:
        raise Refused("a refusal is no text") from None


def _position(body: bytes) -> Position:
    def read(reader: Reader) -> Position:
        def signed(of: Reader) -> tuple[int, int, int, bytes, bytes]:
            kind = of.u8()
            require(2 <= kind <= 6, "Malformed")
            return kind, of.u32(), of.u64(), of.digest(), of.signature()

        return Position(reader.option(signed))

    return parsed(read, body)


def _bls_answered(body: bytes) -> BlsAnswered:
    require(len(body) == 82, "an answer is malformed")
    kind = _answer_kind(body)
    return BlsAnswered(kind, body[1:33], body[33], body[34:])


def _batch_answered(body: bytes) -> BatchAnswered:
    def read(reader: Reader) -> BatchAnswered:
        scheme, validator, position = reader.u8(), reader.u8(), reader.u64()
        excluded = read_excluded(reader)
        require(scheme in (2, 3), "Malformed")
        return BatchAnswered(scheme, validator, position, excluded, reader.take(64 if scheme == 2 else 48))

    return parsed(read, body)


def _spender(body: bytes) -> Spender:
    def read(reader: Reader) -> Spender:
        return Spender(reader.digest(), reader.option(lambda of: (of.signature(), of.rest())))

    return parsed(read, body)


KINDS: dict[int, tuple[Callable[[bytes], Reply], str]] = {
    1: (_answered, "an answer is malformed"),
    2: (_refusal, "a refusal is empty"),
    3: (_position, "a position is malformed"),
    4: (_bls_answered, "an answer is malformed"),
    5: (_batch_answered, "the answer to a batch is malformed"),
    6: (_spender, "what spends an output is malformed"),
}


def parse_reply(body: bytes) -> Reply:
    require(len(body) > 0, "a reply is empty")
    require(body[0] in KINDS, "a reply is of no known kind")
    read, malformed = KINDS[body[0]]
    try:
        return read(body[1:])
    except Refused as refused:
        # What is wrong inside has one name here: the connection is closed.
        raise Refused(malformed if refused.reason in ("Malformed", "WrongPath") else refused.reason) from None
