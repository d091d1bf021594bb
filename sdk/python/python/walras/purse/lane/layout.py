"""Bytes: fields of fixed layout, and why they are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from blake3 import blake3

T = TypeVar("T")
AMOUNT_MAX = (1 << 63) - 1


class Refused(Exception):
    """Bytes that do not hold; `reason` is a name of the specification."""

    def __init__(self, reason: str, why: str = "") -> None:
        super().__init__(f"{reason}: {why}" if why else reason)
        self.reason = reason


def require(holds: bool, reason: str, why: str = "") -> None:
    if not holds:
        raise Refused(reason, why)


def u8(value: int) -> bytes:
    return value.to_bytes(1, "little")


def u16(value: int) -> bytes:
    return value.to_bytes(2, "little")


def u32(value: int) -> bytes:
    return value.to_bytes(4, "little")


def u64(value: int) -> bytes:
    return value.to_bytes(8, "little")


def derived(context: str, message: bytes) -> bytes:
    """H of the specification."""
    return blake3(message, derive_key_context=context).digest()


def keyed(key: bytes, message: bytes) -> bytes:
    """K of the specification."""
    return blake3(message, key=key).digest()


class Reader:
    """The rest of a byte string."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, length: int) -> bytes:
        end = self.at + length
        require(end <= len(self.data), "Malformed", "it ends too early")
        part, self.at = self.data[self.at : end], end
        return part

    def number(self, length: int) -> int:
        return int.from_bytes(self.take(length), "little")

    def u8(self) -> int:
        return self.number(1)

    def u16(self) -> int:
        return self.number(2)

    def u32(self) -> int:
        return self.number(4)

    def u64(self) -> int:
        return self.number(8)

    def amount(self) -> int:
        units = self.u64()
        require(1 <= units <= AMOUNT_MAX, "Malformed", "an amount out of bounds")
        return units

    def digest(self) -> bytes:
        return self.take(32)

    def signature(self) -> bytes:
        return self.take(64)

    def times(self, count: int, read: Callable[[Reader], T]) -> list[T]:
        return [read(self) for _ in range(count)]

    def option(self, read: Callable[[Reader], T]) -> T | None:
        flag = self.u8()
        require(flag <= 1, "Malformed", "neither there nor not")
        return read(self) if flag else None

    def rest(self) -> bytes:
        return self.take(len(self.data) - self.at)

    def end(self) -> None:
        require(self.at == len(self.data), "Malformed", "bytes after its end")


def parsed(read: Callable[[Reader], T], data: bytes) -> T:
    """What fills the bytes."""
    reader = Reader(data)
    value = read(reader)
    reader.end()
    return value


def ascends(values: list[Any]) -> bool:
    return all(left < right for left, right in zip(values, values[1:], strict=False))
