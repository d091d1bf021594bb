"""What became of a transaction, as definitely as the node can say it.

The node is asked for the transaction by its id. Its index is bounded, so that it may have forgotten one that was
executed. If it knows none, the account's window of used numbers decides: a number that is still free after block
`until` was never used, so the transaction is void. Of a used number the blocks since the signing say which transaction
used it. Where the node does not keep them all, the answer is *unknown*, never *void*.
"""

from __future__ import annotations

from typing import Any

from walras.client.calls import PAGE, Session
from walras.client.encoding import Signed, raw
from walras.client.errors import NotFoundError
from walras.client.flow import Flow, decoded
from walras.client.models import Fate, Outcome
from walras.client.proof import Window, window_of

__all__ = ["LASTS_MAX", "fate_of", "fate_of_number", "told"]

LASTS_MAX = 256
"""Blocks for which a transaction may count after it is signed. A node that keeps so many blocks knows its fate."""


def told(session: Session, body: Any, signed: Signed | None) -> Fate:
    """What the node's answer about a transaction means."""
    return decoded(session.server, body, lambda body: _told(session, body, signed))


def _told(session: Session, body: Any, signed: Signed | None) -> Fate:
    """What the node's answer about a transaction means."""
    id = str(body["id"])
    if signed is not None and id != signed.id:
        raise ValueError(f"it names the transaction {signed.id} as {id}")
    numbers: tuple[int | None, int | None] = (signed.sequence, signed.until) if signed else (None, None)
    if body["status"] == "pending":
        return Fate(id, "pending", *numbers)
    if body["status"] != "committed":
        # A status that a later node may tell is not taken for one of these: money may hang on it.
        raise ValueError(f"it tells the status {body['status']!r} of a transaction; this client knows pending and committed")
    pair = None
    assets = session.known_assets
    if assets is not None and (operation := body.get("operation")) is not None:
        if operation["type"] in ("create_offer", "exact"):
            pair = (assets[operation["sell"]], assets[operation["buy"]])
    elif assets is not None and signed is not None and signed.body[44] in (1, 14):
        sell, buy = (int.from_bytes(signed.body[at : at + 4], "little") for at in (45, 49))
        pair = (assets.numbered(sell), assets.numbered(buy))
    outcome = Outcome.of(body["outcome"], pair)
    height = int(body["height"])
    session.saw(height)
    if body.get("sequence") is not None:
        numbers = (int(body["sequence"]), int(body["until"]))
    if outcome.result == "refused":
        return Fate(id, "refused", *numbers, height=height, code=outcome.code, message=outcome.message)
    # What is void at a venue has its number and its fee: it is executed, to no effect.
    return Fate(id, "executed", *numbers, height=height, outcome=outcome)


def fate_of(session: Session, id: str, signed: Signed | None) -> Flow[Fate]:
    """What became of a transaction; definite where the node can say it, see the module's text."""
    yield from session.assets()
    known = yield from _asked(session, id, signed)
    if signed is None or (known is not None and known.state != "refused") or (known is not None and known.height):
        return known or Fate(id, "unknown", message="it is not stored here, and the node does not know it")
    # The window is read first: a transaction whose number it shows as used was indexed before.
    height, window = yield from _window(session, signed)
    known = yield from _asked(session, id, signed)
    if known is not None and (known.state != "refused" or known.height):
        return known
    verdict = yield from _verdict(session, signed, height, window)
    return verdict if verdict.state == "void" else known or verdict


def _asked(session: Session, id: str, signed: Signed | None) -> Flow[Fate | None]:
    """What the node knows of a transaction by its id; None if nothing."""
    try:
        body = yield from session.get(f"/v1/transactions/{id}", lambda body: body)
    except NotFoundError as error:
        if error.code != "refused":
            return None
        sequence, until = (signed.sequence, signed.until) if signed else (None, None)
        return Fate(id, "refused", sequence, until, code=error.code, message=error.message)
    return told(session, body, signed)


def fate_of_number(session: Session, signed: Signed) -> Flow[Fate | None]:
    """The fate of a transaction that a block refused for its number; None if the number is free."""
    height, window = yield from _window(session, signed)
    return None if window.is_free(signed.sequence) else (yield from number_user(session, signed, height))


def _window(session: Session, signed: Signed) -> Flow[tuple[int, Window]]:
    """The used numbers after a block, of the account or of its session key that signed."""

    def decode(body: Any) -> tuple[int, Window]:
        return int(body["height"]), window_of(raw(body["proof"]), signed.sequence)

    return (yield from session.get(f"/v1/accounts/{signed.account}/proof", decode))


def _verdict(session: Session, signed: Signed, height: int, window: Window) -> Flow[Fate]:
    """The fate of a transaction that the node does not know, after a block of `height`."""
    numbers = (signed.sequence, signed.until)
    free = window.is_free(signed.sequence)
    if free and height >= signed.until:
        why = f"it could count up to block {signed.until}, and its number is unused after block {height}"
        return Fate(signed.id, "void", *numbers, code="ended", message=why)
    if not free:
        return (yield from number_user(session, signed, height))
    return Fate(signed.id, "unknown", *numbers, message=f"the node does not know it; it may count up to {signed.until}")


def number_user(session: Session, signed: Signed, height: int) -> Flow[Fate]:
    """The fate of a transaction whose number is used after a block of `height`: the blocks say by which transaction."""
    numbers = (signed.sequence, signed.until)
    for at in range(min(height, signed.until), max(1, signed.until - LASTS_MAX) - 1, -1):
        try:
            found = yield from _user_in_block(session, signed, at)
        except NotFoundError:
            why = "its number is used, and the node does not keep the blocks since it was signed: ask another node"
            return Fate(signed.id, "unknown", *numbers, message=why)
        if found is not None:
            return found
    why = f"number {signed.sequence} was used before it was signed"
    if signed.slot:
        why = f"number {signed.sequence} was used before it was signed, or slot {signed.slot} was stopped or ended"
    return Fate(signed.id, "void", *numbers, code="number_taken", message=why)


def _user_in_block(session: Session, signed: Signed, height: int) -> Flow[Fate | None]:
    """What a block says about the transaction, or about the one that used its number; None if neither is in it."""
    account = signed.account
    changed = yield from session.get(f"/v1/blocks/{height}/accounts/{account}", lambda body: bool(body["changed"]))
    cursor: str | None = None
    while changed:
        page = yield from session.get(f"/v1/blocks/{height}", lambda body: body, limit=PAGE, cursor=cursor)
        for one in page["outcomes"]:
            used = one["account"] == account and int(one["sequence"]) == signed.sequence
            if used and one["outcome"]["result"] != "refused":
                if one["id"] == signed.id:
                    committed = {"status": "committed", "height": height, "until": signed.until, **one}
                    return told(session, committed, signed)
                why = f"transaction {one['id']} used its number, {signed.sequence}, in block {height}"
                return Fate(signed.id, "void", signed.sequence, signed.until, code="number_taken", message=why)
        cursor = page.get("next")
        changed = cursor is not None
    return None
