"""What a payment is for, as its sender says it: signed, public for ever, in no state, and checked by nobody."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

__all__ = ["PaymentReference", "Said"]

_KINDS = ("text", "uuid", "message", "number")


@dataclass(frozen=True, slots=True)
class PaymentReference:
    """A text of 1 to 35 printable ASCII characters, a UUID such as a UETR, the SHA-256 of a message, or a number."""

    kind: Literal["text", "uuid", "message", "number"]
    value: str
    """As people write it: a UUID in lower case with its hyphens, a hash in hexadecimal, a number in decimal."""

    @staticmethod
    def of(said: Said) -> PaymentReference:
        """What a caller says: a `str` is a text."""
        if isinstance(said, PaymentReference):
            return said
        if isinstance(said, UUID):
            return PaymentReference("uuid", str(said))
        if isinstance(said, int):
            return PaymentReference("number", str(said))
        return PaymentReference("text", said)

    def encoded(self) -> str:
        """The bytes that are signed, in hexadecimal; ValueError where the value is none of its kind."""
        if self.kind == "text" and re.fullmatch(r"[ -~]{1,35}", self.value):
            return "0x" + self.value.encode("ascii").hex()
        if self.kind == "uuid" and re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", self.value):
            return "0x" + UUID(self.value).hex
        if self.kind == "message" and (found := re.fullmatch(r"(0x)?([0-9a-fA-F]{64})", self.value)):
            return "0x" + found[2].lower()
        if self.kind == "number" and re.fullmatch(r"0|[1-9][0-9]{0,19}", self.value) and int(self.value) < 1 << 64:
            return "0x" + int(self.value).to_bytes(8, "big").hex()
        if self.kind not in _KINDS:
            raise ValueError(f"{self.kind!r} is no kind of reference: {', '.join(_KINDS)}")
        raise ValueError(f"{self.value!r} is no reference of the kind {self.kind}: see PaymentReference")


Said = PaymentReference | UUID | int | str
"""What a caller may say; a `str` is a text."""
