"""The core asks and waits without doing either: a *flow* yields what it needs, and a shell brings it.

A flow is a generator. It yields an `Ask` and is sent the node's `Answer`, or is thrown a `NoAnswerError`; it yields a
`Pause` and is sent None when the pause is over. `sync` and `aio` run the same flows, one with a thread, one on an event
loop; tests run them against answers of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from walras.client.errors import BusyError, ForeignAnswerError, NotFoundError, RefusedError, UnknownAssetError

__all__ = ["Answer", "Ask", "Flow", "Pause", "get", "post", "read"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """A request to the node."""

    method: str
    path: str
    params: Mapping[str, str | int] = field(default_factory=dict)
    body: bytes | None = None
    wait_s: float = 60.0
    """Time that the answer may take."""
    kind: str = "application/octet-stream"
    """The type of the body."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the node answered."""

    status: int
    body: bytes
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause."""

    seconds: float


Step: TypeAlias = "Ask | Pause"
Flow: TypeAlias = Generator["Ask | Pause", Any, T]


def read(server: str, answer: Answer) -> Any:
    """The JSON of an answer, or the error that it is."""
    try:
        body = json.loads(answer.body)
    except ValueError:
        raise ForeignAnswerError(server, f"its answer with status {answer.status} is not JSON") from None
    if 200 <= answer.status < 300:
        return body
    try:
        code, message = str(body["error"]["code"]), str(body["error"]["message"])
    except (KeyError, TypeError):
        raise ForeignAnswerError(server, f"it answers {answer.status} without a reason") from None
    if answer.status == 404:
        raise NotFoundError(server, answer.status, code, message)
    if answer.status == 429:
        raise BusyError(server, answer.status, code, message, answer.retry_after or 1.0)
    raise RefusedError(server, answer.status, code, message)


def decoded(server: str, body: Any, decode: Callable[[Any], T]) -> T:
    """What an answer means; an answer that lacks a field is foreign. An asset may have been listed since."""
    try:
        return decode(body)
    except UnknownAssetError:
        raise
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise ForeignAnswerError(server, f"its answer cannot be decoded: {type(error).__name__} {error}") from error


PATIENT_TRIES = 4


def get(server: str, path: str, decode: Callable[[Any], T], **params: str | int | None) -> Flow[T]:
    """Asks for something that changes nothing; waits a little where the node is busy."""
    given = {name: value for name, value in params.items() if value is not None}
    for tries in range(PATIENT_TRIES):
        try:
            answer = yield Ask("GET", path, given)
            return decoded(server, read(server, answer), decode)
        except BusyError as error:
            if tries + 1 == PATIENT_TRIES:
                raise
            yield Pause(min(error.retry_after, 5.0))
    raise AssertionError("the last try returns or raises")


def post(server: str, path: str, body: bytes, wait_s: float, **params: str) -> Flow[Any]:
    """Sends bytes once."""
    answer = yield Ask("POST", path, params, body, wait_s)
    return read(server, answer)
