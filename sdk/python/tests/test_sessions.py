"""Session keys, against a running exchange: a program trades for an account within its caps, in numbers of its own."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import KEYS, PASSPHRASE, Demo, running, said
from walras.client import (
    AmountError,
    AsyncClient,
    Client,
    ClientError,
    Ed25519Key,
    EthereumKey,
    MemoryStore,
    SessionKeyError,
    StreamError,
    TransactionRefusedError,
    VoidError,
)
from walras.client.encoding import slot_of
from walras.client.operations import SessionAlive

Made = Callable[..., Any]
CAPS = {"USD": "50", "EUR": "100"}
LONG = 50_000


@pytest.fixture
def made(demo: Demo) -> Iterator[Made]:
    """Makes clients, which are closed in the end."""
    with contextlib.ExitStack() as opened:
        yield lambda **settings: opened.enter_context(settings.pop("kind", Client)(demo.url, **settings))


@pytest.fixture
def owner(made: Made) -> Client:
    """An account of its own for each test: no other one's offers are in its way."""
    key = Ed25519Key.generate()
    with contextlib.closing(made(key=EthereumKey(KEYS[4]))) as rich:
        rich.pay(key.address, "USD", "200")
        rich.pay(key.address, "EUR", "200")
    own: Client = made(key=key)
    return own


def ended(client: Client, offers: int = 0) -> None:
    """Waits until an account has so many offers."""
    while len(client.offers()) != offers:
        time.sleep(0.02)


def test_a_bot_trades_within_its_caps_and_its_owner_ends_it(owner: Client, made: Made) -> None:
    key = Ed25519Key.generate()
    added = owner.add_session(key, CAPS, lasts=LONG)
    assert (added.slot, added.status, added.scope, added.key) == (1, "live", "trade", key.public)
    assert added.cap("EUR").left == 100 and added.cap("JPY").cap == 0
    assert owner.add_session(key, CAPS, lasts=LONG).slot == 1, "it is added once"
    bot = made(key=key, account=owner.address, slot=1)
    by_owner = owner.sell("EUR/USD", "10", "400")
    placed = bot.sell("EUR/USD", "60", "500")
    assert placed.sequence is not None and slot_of(placed.sequence) == 1
    (own, of_bot) = owner.offers()
    assert (own.id, own.slot, of_bot.id, of_bot.slot) == (by_owner.sequence, 0, placed.sequence, 1)
    # The door tells what it needs, and what its caps leave.
    with pytest.raises(TransactionRefusedError, match="needs 41 EUR and its cap leaves 40 EUR") as refused:
        bot.sell("EUR/USD", "41", "500")
    assert refused.value.code == "session_cap"
    with pytest.raises(TransactionRefusedError, match="a session key may not do this") as refused:
        bot.pay(EthereumKey(KEYS[0]).address, "EUR", "1")
    assert refused.value.code == "session_scope"
    with pytest.raises(TransactionRefusedError) as refused:
        bot.replace(own, "5", "400")
    assert refused.value.code == "session_replaces"
    replaced = bot.replace(of_bot, "70", "510")
    assert bot.session().cap("EUR").used == 70 and replaced.sequence is not None
    assert [offer.amount for offer in bot.offers() if offer.slot == 1] == [70]
    assert bot.exact("buy", "EUR/USD", "1", "0.5").state == "executed"
    # It cancels its own, with `every` what the account has.
    assert len(bot.cancel_all()) == 1 and [offer.slot for offer in bot.offers()] == [0]
    assert len(bot.cancel_all(every=True)) == 1 and bot.offers() == [] and bot.session().cap("EUR").used == 0
    bot.sell("EUR/USD", "5", "500")
    assert owner.revoke_session(1).state == "executed" and owner.offers() == [] and owner.sessions() == ()
    with pytest.raises(ClientError, match="slot 1"):
        bot.sell("EUR/USD", "5", "500")
    with pytest.raises(SessionKeyError, match="no session key in slot 1"):
        made(key=key, account=owner.address, slot=1).sell("EUR/USD", "5", "500")
    assert owner.add_session(Ed25519Key.generate(), CAPS, lasts=LONG).slot == 2, "slots never return"


def test_a_bot_follows_the_orders_of_its_account(owner: Client, made: Made) -> None:
    key = Ed25519Key.generate()
    owner.add_session(key, CAPS, lasts=LONG)
    bot = made(key=key, account=owner.address, slot=1)
    placed = bot.sell("EUR/USD", "6", "500")
    with contextlib.closing(bot.follow_orders()) as followed:
        while {order.sequence: order.status for order in next(followed).orders} != {placed.sequence: "resting"}:
            pass
        bot.stop()
        while {order.sequence: order.why for order in next(followed).orders} != {placed.sequence: "lapsed"}:
            pass


def test_what_cannot_work_is_said_before_anything_is_signed(owner: Client, made: Made) -> None:
    with pytest.raises(AmountError, match="cannot pay fees"):
        owner.add_session(Ed25519Key.generate(), {"EUR": "100"})
    with pytest.raises(ValueError, match="give its `account`"):
        made(key=Ed25519Key.generate(), slot=1)
    with pytest.raises(ValueError, match="name the slot"):
        owner.stop()
    one, two = Ed25519Key.generate(), Ed25519Key.generate()
    owner.add_session(one, CAPS, lasts=LONG)
    with pytest.raises(SessionKeyError, match=f"is {one.public}, and not {two.public}"):
        made(key=two, account=owner.address, slot=1).sell("EUR/USD", "5", "500")
    # A key that only cancels places nothing, and the refusal says so.
    owner.add_session(two, CAPS, scope="cancel", lasts=LONG)
    desk = made(key=two, account=owner.address, slot=2)
    with pytest.raises(TransactionRefusedError, match="with scope `trade`"):
        desk.sell("EUR/USD", "5", "500")
    owner.sell("EUR/USD", "5", "500")
    assert len(desk.cancel_all(every=True)) == 1 and owner.offers() == []


def test_parallel_senders_of_a_slot_take_each_number_once_and_resume(owner: Client, made: Made, tmp_path: Path) -> None:
    key = Ed25519Key.generate()
    owner.add_session(key, CAPS, lasts=LONG)
    own: dict[str, Any] = {"key": key, "account": owner.address, "slot": 1}
    shared = [made(**own, store=tmp_path / "bot.json") for _ in range(2)]
    with ThreadPoolExecutor(8) as threads:
        fates = list(threads.map(lambda n: shared[n % 2].sell("EUR/USD", "1", str(500 + n)), range(24)))
    numbers = sorted(fate.sequence - (1 << 43) for fate in fates)
    assert numbers == list(range(1, 25)) and len(owner.offers()) == 24
    # After a restart the chain says where it stands; the owner's numbers are others.
    assert made(**own).sell("EUR/USD", "1", "600").sequence == (1 << 43) + 25
    assert owner.sell("EUR/USD", "1", "600").sequence < 1 << 43
    # Two processes that share nothing: the slower one takes another number.
    alone, other = made(**own), made(**own)
    alone.session()
    for client in (alone, other):
        client.run(client._core.sender._learn())
    assert other.sell("EUR/USD", "1", "601").sequence == (1 << 43) + 26
    assert alone.sell("EUR/USD", "1", "602").sequence == (1 << 43) + 27
    assert len(owner.offers()) == 28
    # An owner and its bot may share a store: each finds its own transactions in it.
    store = MemoryStore()
    both = [made(**one, store=store) for one in (own, {"key": owner._core.sender.key})]
    assert both[0].sell("EUR/USD", "1", "605", wait=False).sequence == (1 << 43) + 28
    assert both[1].sell("EUR/USD", "1", "605").sequence < 1 << 43
    ended(owner, offers=30)
    # The same reference is one order, also when its answer was lost and the number is the slot's.
    placed = [made(**own, store=tmp_path / "bot.json").sell("EUR/USD", "1", "603", reference="r") for _ in range(2)]
    assert placed[0].id == placed[1].id and len(owner.offers()) == 31


def test_a_stop_ends_the_offers_and_nothing_sent_before_it_comes_after_it(owner: Client, made: Made) -> None:
    key = Ed25519Key.generate()
    owner.add_session(key, CAPS, lasts=LONG, alive=LONG)
    bot = made(key=key, account=owner.address, slot=1)
    bot.sell("EUR/USD", "5", "500")
    # An order that was signed and not sent before the stop; its number is void after it.
    held = bot.run(bot._core.sender.sign(_order(bot, "6"), None))[0]
    assert bot.stop().state == "executed"
    assert owner.offers() == [] and bot.session().status == "lapsed"
    with pytest.raises(VoidError, match="slot 1 was stopped|has its number"):
        bot.retry(held.id)
    with pytest.raises(TransactionRefusedError) as refused:
        bot.sell("EUR/USD", "5", "500")
    assert refused.value.code == "session_lapsed" and "the key of slot 1 is" in refused.value.message
    assert bot.alive(5_000).state == "executed" and bot.session().status == "live"
    assert bot.sell("EUR/USD", "7", "500").state == "executed" and len(owner.offers()) == 1
    assert owner.stop(slot=1).state == "executed" and owner.offers() == []


def _order(client: Client, amount: str) -> Any:
    from walras.client.operations import CreateOffer

    assets = client.assets()
    return CreateOffer(assets["EUR"].number, assets["USD"].number, assets["EUR"].units(amount), Decimal(600))


def test_calls_under_way_are_void_when_their_client_stops_the_slot(owner: Client, made: Made) -> None:
    key = Ed25519Key.generate()
    owner.add_session(key, CAPS, lasts=LONG)
    bot = made(key=key, account=owner.address, slot=1)
    sender = bot._core.sender
    flow = sender.send(_order(bot, "6"), True, None)
    step = next(flow)
    while getattr(step, "method", "") != "POST":
        step = flow.send(bot._answer(step))
    # The order is signed and about to be sent; the stop, whose number is higher, comes first.
    assert bot.stop().state == "executed" and bot.alive(5_000).state == "executed"
    with pytest.raises(VoidError, match="slot 1 was stopped after it was sent"):
        while True:
            step = flow.send(bot._answer(step))
    assert owner.offers() == []


def test_a_timer_keeps_a_slot_alive_and_does_not_bring_it_back(owner: Client, made: Made) -> None:
    key = Ed25519Key.generate()
    added = owner.add_session(key, CAPS, lasts=LONG, alive=40)
    bot = made(key=key, account=owner.address, slot=1)
    with bot.keep_alive(30) as timer:
        bot.sell("EUR/USD", "5", "500")
        while bot.session().alive <= added.alive + 20:
            assert timer.is_running and len(owner.offers()) == 1
            time.sleep(0.05)
        assert owner.stop(slot=1).state == "executed"
        while timer.is_running:
            time.sleep(0.02)
        assert isinstance(timer.error, SessionKeyError) and "does not bring a stopped slot back" in str(timer.error)
    assert bot.session().status == "lapsed" and owner.offers() == []


def test_without_heartbeats_the_offers_end_by_height(owner: Client, made: Made) -> None:
    key = Ed25519Key.generate()
    owner.add_session(key, CAPS, lasts=LONG, alive=20)
    bot = made(key=key, account=owner.address, slot=1)
    bot.sell("EUR/USD", "5", "500")
    ended(owner)
    assert bot.session().status == "lapsed"


class Relay:
    """Passes connections on to the node, until it is cut."""

    def __init__(self, demo: Demo) -> None:
        host, port = demo.url.removeprefix("http://").split(":")
        self._to = (host, int(port))
        self._open: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                inner = self._server.accept()[0]
            except OSError:
                return
            outer = socket.create_connection(self._to)
            self._open += [inner, outer]
            for one, other in ((inner, outer), (outer, inner)):
                threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    @staticmethod
    def _pass(one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)

    def cut(self) -> None:
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for one in self._open:
            one.close()

    def close(self) -> None:
        self.cut()
        self._server.close()


@pytest.fixture
def relay(demo: Demo) -> Iterator[Relay]:
    with contextlib.closing(Relay(demo)) as relay:
        yield relay


def test_offers_end_when_the_connection_is_cut(owner: Client, made: Made, relay: Relay) -> None:
    key = Ed25519Key.generate()
    owner.add_session(key, CAPS, lasts=LONG)
    own: dict[str, Any] = {"key": key, "account": owner.address, "slot": 1}
    kept = owner.sell("EUR/USD", "1", "700")
    with Client(relay.url, **own) as bot:
        guard = bot.cancel_on_disconnect().__enter__()
        assert guard.is_held
        placed = bot.sell("EUR/USD", "5", "500")
        relay.cut()
        ended(owner, offers=1)
        guard.close()
        assert guard.error is not None and not guard.is_held
        # Nothing of this client takes the number of a stop that may be on its way, until another stop is held.
        sender = bot._core.sender
        assert len(sender.lost_stops) == 1 and sender.numbers._free == {}
        bot.alive(5_000)
        with bot.cancel_on_disconnect():
            assert sender.lost_stops == [] and len(sender.numbers._free) == 1
            bot.sell("EUR/USD", "5", "500")
        assert bot.cancel_all()[0].state == "executed"
        bot.stop()
    assert owner.offers()[0].id == kept.sequence, "other slots' offers stay"
    fate = owner.order_fate(placed.sequence)
    assert (fate.status, fate.why) == ("ended", "lapsed")
    # The numbers go on, and the slot trades again when its program says so.
    again = made(**own)
    assert again.session().status == "lapsed"
    again.alive(5_000)
    assert again.sell("EUR/USD", "5", "500").state == "executed"


def test_offers_stay_when_the_stop_is_withdrawn_and_end_with_an_error(owner: Client, made: Made) -> None:
    key = Ed25519Key.generate()
    owner.add_session(key, CAPS, lasts=LONG)
    bot = made(key=key, account=owner.address, slot=1)
    with bot.cancel_on_disconnect():
        bot.sell("EUR/USD", "5", "500")
    # The number of the stop is used by the next transaction: what was left counts no more, whoever has it.
    numbers = bot._core.sender.numbers
    assert len(numbers._free) == 1
    bot.sell("EUR/USD", "5", "501")
    assert numbers._free == {} and len(owner.offers()) == 2 and bot.session().status == "live"
    with pytest.raises(ZeroDivisionError), bot.cancel_on_disconnect():
        bot.sell("EUR/USD", "5", str(1 // 0))
    ended(owner)
    assert bot.session().status == "lapsed"


def test_a_stop_is_renewed_as_numbers_and_blocks_pass(
    owner: Client, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("walras.client.slots.LASTS_MAX", 80)
    monkeypatch.setattr("walras.client.slots._RENEWED", 40)
    key = Ed25519Key.generate()
    owner.add_session(key, CAPS, lasts=LONG)
    bot = made(key=key, account=owner.address, slot=1)
    with bot.cancel_on_disconnect() as guard:
        first, seen = guard._leaving.left, set()
        # More numbers than a window has.
        for _ in range(100):
            bot.sell("EUR/USD", "1", "500", life="one batch")
            seen.add(guard._leaving.left)
            assert guard.error is None
        assert len(seen - {first, None}) >= 2
        # And more blocks than a transaction lasts.
        signed = guard._leaving._signed
        assert signed is not None
        while bot.status().height <= signed.until + 20:
            assert guard.error is None
            time.sleep(0.1)
        assert guard.is_held
        bot.sell("EUR/USD", "5", "500")
        guard.close()
        ended(owner)
        guard._leaving.is_withdrawn = True


def test_of_two_guards_with_one_key_the_last_one_holds(owner: Client, made: Made) -> None:
    key = Ed25519Key.generate()
    owner.add_session(key, CAPS, lasts=LONG)
    one, two = (made(key=key, account=owner.address, slot=1) for _ in range(2))
    first = one.cancel_on_disconnect().__enter__()
    second = two.cancel_on_disconnect().__enter__()
    while first.error is None:
        time.sleep(0.02)
    assert isinstance(first.error, StreamError) and first.error.code == "taken_over"
    two.sell("EUR/USD", "5", "500")
    first.close()
    second.withdraw()
    assert len(owner.offers()) == 1
    # An owner guards a slot with his own key, too.
    with pytest.raises(ZeroDivisionError), owner.cancel_on_disconnect(slot=1):
        print(1 // 0)
    ended(owner)


def test_an_owner_without_a_session_key_leaves_a_cancel_that_follows_his_offers(
    owner: Client, made: Made, relay: Relay
) -> None:
    with Client(relay.url, key=owner._core.sender.key) as own:
        guard = own.cancel_on_disconnect().__enter__()
        leaving = guard._leaving
        assert guard.is_held and leaving.left is None, "nothing rests, so nothing is left"
        placed = [own.sell("EUR/USD", "1", str(500 + n)).sequence for n in range(3)]

        def named(sequences: list[int | None]) -> None:
            while set(leaving._listed or ()) != set(sequences) or leaving.left is None or leaving._is_awaited:
                assert guard.error is None
                time.sleep(0.02)

        named(placed)
        assert placed[0] is not None
        own.cancel(placed[0])
        named(placed[1:])
        guard.withdraw()
        assert len(own.offers()) == 2, "a regular end leaves the offers"
        # What was withdrawn gives its numbers to the next transactions, and counts no more.
        numbers = own._core.sender.numbers
        while numbers._free:
            own.pay(EthereumKey(KEYS[4]).address, "USD", "0.01")
        assert len(own.offers()) == 2
        key = Ed25519Key.generate()
        own.add_session(key, CAPS, lasts=LONG)
        bot = made(key=key, account=owner.address, slot=1)
        bot.sell("EUR/USD", "5", "700")
        # One cancel names 32 offers: the newest.
        for n in range(31):
            own.sell("EUR/USD", "1", str(600 + n), wait=False)
        ended(own, offers=34)
        again = own.cancel_on_disconnect().__enter__()
        assert again.is_held and again.beyond == 1 and placed[1] not in (again._leaving._listed or ())
        relay.cut()
        ended(owner, offers=2)
        again.close()
        assert again.error is not None
    assert {one.slot for one in owner.offers()} == {0, 1}, "those of session keys are not his key's"


def test_a_node_that_dies_submits_nothing_and_the_timer_ends_the_offers(tmp_path: Path) -> None:
    home = tmp_path / "home"
    said("init", "--home", home, "--asset", "USD:2", "--asset", "EUR:2", "--fee", "0.01", "--supply", "1000000")
    issuer, key = Ed25519Key.open(home / "issuer-key.json", PASSPHRASE), Ed25519Key.generate()
    with running(home) as (url, node), Client(url, key=issuer) as owner:
        added = owner.add_session(key, {"USD": "500", "EUR": "500"}, lasts=LONG, alive=60)
        with Client(url, key=key, account=owner.address, slot=1) as bot:
            guard = bot.cancel_on_disconnect().__enter__()
            bot.sell("EUR/USD", "100", "500")
            node.kill()
            node.wait()
            guard.close()
            assert guard.error is not None
    with running(home) as (url, _), Client(url, key=issuer) as owner:
        assert len(owner.offers()) == 1 and owner.sessions()[0].status == "live", "what it held is gone with it"
        while owner.offers():
            # A node alone makes blocks of transactions.
            owner.pay(key.address, "USD", "1")
        assert owner.account().height >= added.alive and owner.sessions()[0].status == "lapsed"


def test_an_event_loop_has_the_same(demo: Demo, owner: Client) -> None:
    key = Ed25519Key.generate()

    async def trade() -> None:
        async with AsyncClient(demo.url, key=key, account=owner.address, slot=1) as bot:
            await asyncio.gather(*(bot.sell("EUR/USD", "1", str(500 + n)) for n in range(8)))
            assert (await bot.session()).cap("EUR").used == 8
            async with bot.keep_alive(400) as timer, bot.cancel_on_disconnect() as guard:
                assert timer.is_running and guard.is_held
                await bot.sell("EUR/USD", "1", "600")
            assert len(await bot.offers()) == 9
            try:
                async with bot.cancel_on_disconnect():
                    raise KeyError
            except KeyError:
                while await bot.offers():
                    await asyncio.sleep(0.02)
            assert (await bot.alive(500)).state == "executed"
            await bot.sell("EUR/USD", "1", "600")
            assert (await bot.stop()).state == "executed" and await bot.offers() == []

    async def owned() -> None:
        async with AsyncClient(demo.url, key=owner._core.sender.key) as own:
            added = await own.add_session(key, CAPS, lasts=LONG)
            assert [one.slot for one in await own.sessions()] == [added.slot] == [1]
            await own.sell("EUR/USD", "1", "600")
            guard = own.cancel_on_disconnect()
            async with guard:
                assert guard.is_held and guard.beyond == 0
            assert len(await own.offers()) == 1
            async with own.cancel_on_disconnect() as left:
                assert left.is_held
                await left.close()
                while await own.offers():
                    await asyncio.sleep(0.02)
                left._leaving.is_withdrawn = True
            await trade()
            assert (await own.revoke_session(1)).state == "executed"

    asyncio.run(owned())


def test_a_key_is_added_once_although_its_answer_is_lost(owner: Client) -> None:
    key = Ed25519Key.generate()
    flow = owner._core.slots.add(key, CAPS, "trade", LONG, None)
    step = next(flow)
    while getattr(step, "method", "") != "POST":
        step = flow.send(owner._answer(step))
    owner._answer(step)
    flow.close()
    assert owner.add_session(key, CAPS, lasts=LONG).slot == 1
    assert owner.account().session_slots == 1 and owner.stored() == []


def test_a_heartbeat_that_comes_too_late_is_refused_with_its_reason(owner: Client, made: Made) -> None:
    key = Ed25519Key.generate()
    owner.add_session(key, CAPS, lasts=LONG)
    bot = made(key=key, account=owner.address, slot=1)
    with pytest.raises(TransactionRefusedError) as refused:
        bot.send(SessionAlive(1, 1))
    assert refused.value.code == "session_through"
