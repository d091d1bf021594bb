"""What can go wrong, told apart: which server, what it said, and what to do.

`leaves_doubt` is the question that matters after a transaction was sent: whether it is unknown if the node has it.
"""

from __future__ import annotations

__all__ = [
    "AddressError",
    "AmountError",
    "BusyError",
    "ClientError",
    "ForeignAnswerError",
    "KeyFileError",
    "NoAnswerError",
    "NotFoundError",
    "NumbersError",
    "OtherNetworkError",
    "RefusedError",
    "SentBeforeError",
    "SessionKeyError",
    "StoreError",
    "StreamError",
    "TransactionRefusedError",
    "UndecidedError",
    "UnknownAssetError",
    "VoidError",
]


class ClientError(Exception):
    """Every error of this package."""

    @property
    def leaves_doubt(self) -> bool:
        """Whether it is unknown if the node did what it was asked for."""
        return False


class NoAnswerError(ClientError):
    """Nobody answered, or the connection broke. What was asked for may have been done."""

    def __init__(self, server: str, cause: str) -> None:
        super().__init__(f"no node answers at {server} ({cause}); give another address")
        self.server = server
        self.cause = cause

    @property
    def leaves_doubt(self) -> bool:
        return True


class ForeignAnswerError(ClientError):
    """The answer is none of a node of this version."""

    def __init__(self, server: str, what: str) -> None:
        super().__init__(f"what answers at {server} is no walras node of this version ({what}); give another address")
        self.server = server
        self.what = what

    @property
    def leaves_doubt(self) -> bool:
        return True


class RefusedError(ClientError):
    """The node refused. `code` is stable; `message` is a sentence with the remedy."""

    def __init__(self, server: str, status: int, code: str, message: str) -> None:
        super().__init__(f"the node at {server} refuses ({code}): {message}")
        self.server = server
        self.status = status
        self.code = code
        self.message = message

    @property
    def leaves_doubt(self) -> bool:
        # A follower says for certain that it passed nothing on.
        return self.status >= 500 and self.code != "follows"


class NotFoundError(RefusedError):
    """The node has no such thing. A node that does not answer is another error."""


class BusyError(RefusedError):
    """The node has too much to do, or too much from this address."""

    def __init__(self, server: str, status: int, code: str, message: str, retry_after: float) -> None:
        super().__init__(server, status, code, message)
        self.retry_after = retry_after


class TransactionRefusedError(RefusedError):
    """A transaction was refused. Until block `until` anybody who has its bytes may send it again; the next transaction
    of this client takes its number, and ends that. The same operation, asked for again, is sent as the same bytes."""

    def __init__(self, server: str, status: int, code: str, message: str, id: str, sequence: int, until: int) -> None:
        super().__init__(server, status, code, message)
        self.id = id
        self.sequence = sequence
        self.until = until


class VoidError(ClientError):
    """A transaction can never take effect any more."""

    def __init__(self, server: str, id: str, why: str) -> None:
        super().__init__(f"transaction {id} is void, says the node at {server}: {why}; sign the operation again")
        self.server = server
        self.id = id
        self.why = why


class UndecidedError(ClientError):
    """Nobody knows yet what becomes of a transaction. It is stored: ask for its fate, or send it again unchanged."""

    def __init__(self, server: str, id: str, until: int, why: str) -> None:
        super().__init__(
            f"transaction {id} is undecided at {server} ({why}); it may count up to block {until}: ask `fate({id!r})`, "
            f"or `retry({id!r})`, which sends the same bytes and counts once"
        )
        self.server = server
        self.id = id
        self.until = until

    @property
    def leaves_doubt(self) -> bool:
        return True


class SentBeforeError(ClientError):
    """The same operation was sent before, by a call that has not told its result: a second one might pay twice.
    `height` is that of its block, if it was executed meanwhile."""

    def __init__(self, server: str, id: str, until: int, height: int | None) -> None:
        if height is None:
            result = f"its result is unknown; it may count up to block {until}. Ask `fate({id!r})` or `retry({id!r})`"
        else:
            result = f"it was executed in block {height}"
        again = "to do it a second time, give it a `reference`" + ("" if height is None else ", or call again")
        super().__init__(f"the same operation was sent before as {id} through {server}, and {result}; {again}")
        self.server = server
        self.id = id
        self.until = until
        self.height = height


class SessionKeyError(ClientError):
    """An account's slot has another key than the client, or none; or it cannot do what was asked."""


class SealError(ClientError):
    """An order cannot be sealed. Nothing was sent: it never goes plain instead."""


class NumbersError(ClientError):
    """No sequence number is free for the account."""


class OtherNetworkError(ClientError):
    """The node is of another network than the client signs for."""

    def __init__(self, server: str, found: str, expected: str) -> None:
        super().__init__(f"the node at {server} is of network {found}, not of {expected}: nothing was sent")
        self.server = server
        self.found = found
        self.expected = expected


class UnknownAssetError(ClientError, ValueError):
    """There is no such asset."""

    def __init__(self, symbol: str, known: list[str]) -> None:
        super().__init__(f"no asset {symbol!r}; there are {', '.join(known)}")
        self.symbol = symbol


class AmountError(ClientError, ValueError):
    """An amount or price is no exact number of units, or out of bounds."""


class AddressError(ClientError, ValueError):
    """A text is no address, or its capitals are a wrong checksum (EIP-55)."""


class KeyFileError(ClientError):
    """A key file cannot be read, opened or written."""


class StoreError(ClientError):
    """A stored transaction cannot be read or written; then nothing is sent."""


class StreamError(ClientError):
    """The stream refuses a channel."""

    def __init__(self, server: str, code: str, message: str) -> None:
        super().__init__(f"the stream at {server} refuses ({code}): {message}")
        self.server = server
        self.code = code
