"""The client against a running exchange."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from conftest import KEYS, Demo
from walras.client import (
    Account,
    AccountSnapshot,
    AccountUpdate,
    AddressError,
    AmountError,
    AsyncClient,
    Batch,
    Block,
    Book,
    Client,
    ClientError,
    Committee,
    Disconnected,
    Ed25519Key,
    EthereumKey,
    FolderStore,
    ForeignAnswerError,
    Heartbeat,
    LocalBook,
    NoAnswerError,
    NotFoundError,
    OtherNetworkError,
    PaymentReference,
    RefusedError,
    SentBeforeError,
    StoreError,
    StreamError,
    TransactionRefusedError,
    UndecidedError,
    UnknownAssetError,
    VoidError,
    checked_address,
)
from walras.client.certificate import check_certificate, prove_outcome
from walras.client.encoding import Body, Signed, address_bytes, raw
from walras.client.operations import Issue, ListAsset, Pay
from walras.client.flow import Answer, Ask
from walras.client.pending import MemoryStore
from walras.client.proof import ProofError, prove_account

OTHER = EthereumKey(KEYS[-1]).address
FEE = Decimal("0.0001")


Made = Callable[..., Any]


@pytest.fixture
def made(demo: Demo) -> Iterator[Made]:
    """Makes clients, which are closed in the end."""
    with contextlib.ExitStack() as opened:
        yield lambda url=demo.url, kind=Client, **settings: opened.enter_context(kind(url, **settings))


@pytest.fixture
def client(made: Made) -> Client:
    own: Client = made(key=EthereumKey(KEYS[0]))
    return own


def funded(client: Client, key: Ed25519Key | EthereumKey) -> str:
    """Gives a new account something to spend."""
    client.pay(key.address, "USD", "20")
    client.pay(key.address, "EUR", "20")
    return key.address


def test_a_payment_and_an_offer_live_their_lives(client: Client) -> None:
    before = client.account().balance("EUR").available
    paid = client.pay(checked_address(OTHER), "EUR", "1.25")
    assert paid.state == "executed" and paid.height is not None and client.fate(paid.id).is_final
    assert client.account().balance("EUR").available == before - Decimal("1.25")
    placed = client.sell("EUR/USD", "10", "500")
    assert placed.outcome is not None and placed.outcome.left == 10 and placed.sequence is not None
    offer = client.offer_of(placed.sequence)
    assert offer is not None and (offer.amount, offer.price, offer.sell) == (10, 500, "EUR")
    assert offer in client.offers() and client.account().balance("EUR").locked == 10
    assert client.book("EUR/USD").sells[-1].price <= 500
    assert client.cancel(offer).state == "executed" and client.offer_of(offer.id) is None
    # For one batch: nobody pays that much, so it returns and nothing is locked; it bears the caller's own name.
    once = client.sell("EUR/USD", "10", "500", life="one batch", client="0x" + "ab" * 16)
    assert once.outcome is not None and (once.outcome.left, once.outcome.returned) == (0, 10)
    assert once.sequence is not None and client.offer_of(once.sequence) is None
    bought = client.buy("EUR/USD", "1", "0.0625")
    assert bought.outcome is not None and bought.outcome.left == Decimal("0.0625")
    assert len(client.cancel_all("EUR/USD")) == 1 and client.offers() == [] and client.stored() == []


def test_an_issuer_controls_what_others_hold(made: Made) -> None:
    issuer, key = made(key=EthereumKey(KEYS[3])), Ed25519Key.generate()
    holder = made(key=key)
    address = funded(issuer, key)
    terms = ("recoverable", 4_096, 10**9, "0x" + "11" * 32, 10_000_000)
    number = issuer.send(ListAsset("REG", 2, *terms)).outcome.number
    symbol = f"REG.{number}"
    issuer.send(Issue(address, number, 50_000))
    assert (issuer.holder(symbol, address).standing, issuer.proved_holder(symbol, address).is_open) == ("open", True)
    assert issuer.assets()[symbol].control == "recoverable"
    frozen = issuer.freeze(symbol, address, "case 7 of 2026")
    told, committee = holder.holder(symbol), holder.committee()
    # What is certified is a block or two behind.
    while (proved := holder.proved_holder(symbol, committee=committee)).is_open:
        pass
    assert (told.control, told.standing, told.since) == ("recoverable", "frozen", frozen.height)
    assert (proved.control, proved.is_open, proved.since) == ("recoverable", False, frozen.height)
    for use in (lambda: holder.pay(OTHER, symbol, "1"), lambda: holder.sell(f"{symbol}/USD", "100", "2")):
        with pytest.raises(TransactionRefusedError, match="frozen") as refused:
            use()
        assert refused.value.code == "frozen"
    with pytest.raises(TransactionRefusedError) as refused:
        issuer.pay(address, symbol, "1")
    assert refused.value.code == "receiver_frozen"
    # Nobody is frozen for a day of blocks here.
    for takes in (lambda: issuer.recover(symbol, address, "10", 7), lambda: issuer.recall(symbol, address, 0)):
        with pytest.raises(TransactionRefusedError) as refused:
            takes()
        assert refused.value.code == "not_frozen_long"
    with pytest.raises(TransactionRefusedError) as refused:
        holder.freeze(symbol, OTHER, "mine")
    assert refused.value.code == "not_issuer"
    issuer.admit(symbol, address, "case 7 is closed")
    assert holder.holder(symbol).standing == "open" and holder.proved_holder(symbol).is_open
    assert holder.pay(OTHER, symbol, "1.5").state == "executed"
    assert issuer.account(OTHER).balance(symbol).available == Decimal("1.5")


def test_what_the_market_did_is_read_in_whole_assets(client: Client) -> None:
    status, limits, assets = client.status(), client.limits(), client.assets()
    assert status.chain == limits.chain == 31337 and assets["EUR"].decimals == 6
    # Two offers that cross, whatever the demo's traders do.
    client.sell("EUR/USD", "20", "2.5")
    filled = client.buy("EUR/USD", "1", "3")
    assert filled.outcome is not None and filled.outcome.sold is not None and filled.outcome.bought is not None
    assert filled.outcome.sold <= 3 and Decimal("0.9") <= filled.outcome.bought < Decimal("1.1")
    assert any(market.market == "EUR/USD" and market.price for market in client.markets())
    client.cancel_all()
    point = client.history("EUR/USD")[-1]
    batch = client.batch(point.height)
    assert batch.trades and batch.time_ms == point.time_ms
    rate = batch.valuations["EUR"] / batch.valuations["USD"]
    assert abs(rate / point.price - 1) < Decimal("1e-9")
    candle = client.candles("EUR/USD", "1m")[-1]
    assert candle.low <= candle.close <= candle.high and candle.base_volume > 0
    assert client.block(point.height).pairs > 0 and client.blocks(limit=3, before=4)[-1].height == 1
    assert isinstance(client.market_offers("EUR/USD", limit=2), list)


def test_parallel_senders_never_take_the_same_number(demo: Demo, client: Client, tmp_path: Path, made: Made) -> None:
    key = EthereumKey.generate()
    address = funded(client, key)
    # As two processes would: each with numbers of its own, and one folder for both.
    clients = [made(key=key, store=tmp_path / "key") for _ in range(2)]
    fates = [one.pay(OTHER, "EUR", "0.01") for one in clients]
    with ThreadPoolExecutor(16) as threads:
        sent = [threads.submit(clients[at % 2].pay, OTHER, "EUR", "0.01") for at in range(98)]
        fates += [one.result() for one in sent]
    assert {fate.state for fate in fates} == {"executed"} and len({fate.sequence for fate in fates}) == 100
    assert client.account(address).balance("EUR").available == 19
    # Numbers that were taken and never used do not block the account.
    clients[0]._core.sender.store.took(address, 10_000)
    assert made(key=key, store=tmp_path / "key").pay(client.address, "EUR", "0.5").state == "executed"
    client.pay(address, "EUR", "0.5")

    async def tasks() -> set[int | None]:
        async with AsyncClient(demo.url, key=key) as one, AsyncClient(demo.url, key=key) as two:
            # Without a common store they take the same numbers: the slower one signs again, for its first is dead.
            paid = [(one, two)[at % 2].pay(OTHER, "EUR", f"0.0{1 + at % 2}") for at in range(20)]
            return {fate.sequence for fate in await asyncio.gather(*paid)}

    assert len(asyncio.run(tasks())) == 20
    assert client.account(address).balance("EUR").available == Decimal("18.7")


class Lossy(Client):
    """Its first answers to what it sends are lost on the way."""

    lost = 3
    sent: list[bytes]

    def _answer(self, ask: Ask) -> Answer:
        answer = super()._answer(ask)
        if ask.method == "POST" and ask.body is not None:
            self.sent.append(ask.body)
            if len(self.sent) <= self.lost:
                raise NoAnswerError(self.server, "lost")
        return answer


def test_a_lost_answer_never_pays_twice(client: Client, made: Made) -> None:
    key = EthereumKey.generate()
    address = funded(client, key)
    lossy = made(kind=Lossy, key=key)
    lossy.sent = []
    assert lossy.pay(OTHER, "EUR", "5").state == "executed"
    assert len(set(lossy.sent)) == 1, "the same bytes, however often"
    assert client.account(address).balance("EUR").available == 15
    hopeless = made(kind=Lossy, key=key, patience=0.05)
    hopeless.sent, hopeless.lost = [], 10**9
    # Either the node was asked in time, or the client says that nobody knows yet.
    try:
        fate = hopeless.pay(OTHER, "EUR", "5")
    except UndecidedError as error:
        assert error.leaves_doubt and hopeless.stored() == [error.id]
        with pytest.raises(SentBeforeError, match="give it a `reference`") as told:
            hopeless.run(hopeless._core.sender._sent_before(Pay(OTHER, 1, 5_000_000).encode().__eq__))
        hopeless.lost, hopeless._core.sender.patience = 0, 60
        # One that is in a block by now is told once, and is not stored any more.
        is_told = told.value.height is not None
        fate = hopeless.fate(error.id) if is_told else hopeless.retry(error.id)
    assert fate.state == "executed" and hopeless.stored() == []
    assert client.account(address).balance("EUR").available == 10


class Overtaken(Client):
    """Before it first sends what it has signed, something else is done; then its number is used, says the node, which
    knows that a moment before it tells the transaction."""

    first: Callable[[], Any] | None = None

    def _answer(self, ask: Ask) -> Answer:
        if ask.method == "POST" and (first := self.first) is not None:
            self.first = None
            first()
            return Answer(422, b'{"error":{"code":"sequence_used","message":"the number is used"}}')
        return super()._answer(ask)


def test_a_reference_is_paid_once_although_another_call_sends_its_bytes_first(client: Client, made: Made) -> None:
    key, store = EthereumKey.generate(), MemoryStore()
    address = funded(client, key)
    overtaken = made(kind=Overtaken, key=key, store=store)
    others: list[str] = []

    def other() -> None:
        others.append(made(key=key, store=store).pay(OTHER, "EUR", "5", reference="invoice 7").id)

    overtaken.first = other
    assert [overtaken.pay(OTHER, "EUR", "5", reference="invoice 7").id] == others
    assert client.account(address).balance("EUR").available == 15


class Slow(AsyncClient):
    """Its answers to what it sends come too late."""

    slow = True

    async def _answer(self, ask: Ask) -> Answer:
        answer = await super()._answer(ask)
        if ask.method == "POST" and self.slow:
            await asyncio.sleep(60)
        return answer


def test_a_call_that_is_given_up_does_not_pay_twice(demo: Demo, client: Client) -> None:
    key = EthereumKey.generate()
    address = funded(client, key)

    async def given_up() -> None:
        async with Slow(demo.url, key=key) as slow:
            await slow.assets()
            calling = asyncio.create_task(slow.pay(OTHER, "EUR", "5"))
            while not slow.stored() or (await slow.account()).highest == 0:
                await asyncio.sleep(0)
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
            slow.slow = False
            with pytest.raises(SentBeforeError, match="executed in block"):
                await slow.pay(OTHER, "EUR", "5")
            assert client.account(address).balance("EUR").available == 15
            # Whoever has been told can do it again.
            await slow.pay(OTHER, "EUR", "5")

    asyncio.run(given_up())
    assert client.account(address).balance("EUR").available == 10


def test_a_reference_is_paid_once_also_after_a_crash(client: Client, tmp_path: Path, made: Made) -> None:
    key = EthereumKey.generate()
    address = funded(client, key)

    def begun() -> Client:
        again: Client = made(key=key, store=tmp_path / "key")
        return again

    first = begun()
    signed, _ = first.run(first._core.sender.sign(Pay(OTHER, 1, 5_000_000), "invoice 7"))
    # The process ended before the bytes were sent: the next one sends the same.
    assert begun().pay(OTHER, "EUR", "5", reference="invoice 7").id == signed.id
    assert begun().pay(OTHER, "EUR", "5", reference="invoice 7").id == signed.id
    with ThreadPoolExecutor(8) as threads:
        many = [threads.submit(begun().pay, OTHER, "EUR", "1", reference="invoice 8") for _ in range(8)]
        assert len({one.result().id for one in many}) == 1
    assert client.account(address).balance("EUR").available == 14
    with pytest.raises(StoreError, match="another operation"):
        begun().pay(OTHER, "EUR", "6", reference="invoice 7")
    # What was refused is sent unchanged once it can be paid; and what has become void is signed anew.
    with pytest.raises(TransactionRefusedError, match="overdraft"):
        begun().pay(OTHER, "EUR", "30", reference="invoice 9")
    client.pay(address, "EUR", "20")
    assert begun().pay(OTHER, "EUR", "30", reference="invoice 9").state == "executed"
    assert client.account(address).balance("EUR").available == 4


def test_a_refused_transaction_is_dead_once_its_number_is_used(demo: Demo, client: Client, made: Made) -> None:
    key = EthereumKey.generate()
    address = funded(client, key)
    own = made(key=key)
    with pytest.raises(TransactionRefusedError) as refused:
        own.pay(OTHER, "EUR", "1000")
    assert refused.value.code == "overdraft" and "has 20 EUR" in refused.value.message
    assert own.fate(refused.value.id).state == "refused"
    substitute = own.pay(OTHER, "EUR", "1")
    assert substitute.sequence == refused.value.sequence and (substitute.until or 0) > refused.value.until
    assert client.account(address).next == refused.value.sequence + 1


def signed_raw(demo: Demo, key: Ed25519Key | EthereumKey, operation: Any, **changed: Any) -> Signed:
    """A transaction with some fields that this client would not sign."""
    with Client(demo.url) as reader:
        limits, height = reader.limits(), reader.status().height
    fields = {"chain": limits.chain, "sequence": 1, "until": height + 200, "network": limits.network, **changed}
    body = Body(fields["chain"], key.address, fields["sequence"], fields["until"], operation)
    return key.sign(body, fields["network"])


def sent_raw(demo: Demo, signed: Signed) -> tuple[int, Any]:
    headers = {"content-type": "application/octet-stream"}
    answer = httpx.post(
        f"{demo.url}/v1/transactions?wait=committed", content=signed.encoded, headers=headers, timeout=600
    )
    return answer.status_code, answer.json()


def test_bad_input_has_a_code_at_the_node(demo: Demo, client: Client) -> None:
    key = EthereumKey.generate()
    funded(client, key)
    pay = Pay(OTHER, 1, 5)
    refusals: list[tuple[dict[str, Any], Any, str]] = [
        # The identity of the network is part of typed data: a wallet's transaction names it.
        ({"network": "0x" + "11" * 32}, pay, "wrong_chain"),
        ({"chain": 1}, pay, "wrong_chain"),
        ({"until": 1}, pay, "ended"),
        ({"until": 2**40}, pay, "ends_too_late"),
        ({"sequence": 100}, pay, "sequence_too_far"),
        ({"sequence": 0}, pay, "sequence_too_old"),
        ({}, Pay(OTHER, 99, 5), "unknown_asset"),
        ({}, Pay(OTHER, 1, 0), "zero_amount"),
        ({}, Pay(key.address, 1, 5), "self_payment"),
    ]
    for changed, operation, code in refusals:
        status, told = sent_raw(demo, signed_raw(demo, key, operation, **changed))
        assert (status, told["error"]["code"]) == (422, code), told
    once = signed_raw(demo, key, pay)
    assert sent_raw(demo, once)[1]["id"] == once.id == sent_raw(demo, once)[1]["id"], "the same bytes are harmless"
    status, told = sent_raw(demo, signed_raw(demo, key, Pay(OTHER, 1, 6)))
    assert (status, told["error"]["code"]) == (422, "sequence_used")
    wrong = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92267"
    answers = [f"/v1/accounts/{wrong}", f"/v1/accounts/{OTHER}/offers?cursor=stale", "/v1/markets/EUR/USD/book?levls=1"]
    codes = [httpx.get(demo.url + path).json()["error"]["code"] for path in answers]
    assert codes == ["malformed", "malformed", "unknown_parameter"]


def test_bad_input_is_refused_before_anything_is_signed(client: Client, made: Made) -> None:
    checked = checked_address(OTHER)
    last = next(at for at in range(41, 1, -1) if checked[at].isalpha())
    wrong = checked[:last] + checked[last].swapcase() + checked[last + 1 :]
    mistakes: list[tuple[type[ClientError], Callable[[], object]]] = [
        (AmountError, lambda: client.pay(OTHER, "EUR", "1.2500001")),
        (AmountError, lambda: client.pay(OTHER, "EUR", 1.25)),  # type: ignore[arg-type]
        (AmountError, lambda: client.sell("EUR/USD", "1", "0")),
        (AmountError, lambda: client.buy("EUR/USD", "0.000001", "1")),
        (AddressError, lambda: client.pay(wrong, "EUR", "1")),
        (UnknownAssetError, lambda: client.pay(OTHER, "XYZ", "1")),
        (UnknownAssetError, lambda: client.book("EUR-USD")),
        (OtherNetworkError, lambda: made(network="0x" + "00" * 32).assets()),
        (NoAnswerError, lambda: made("http://127.0.0.1:1").status()),
        (NotFoundError, lambda: client.account("0x" + "77" * 20)),
        (NotFoundError, lambda: client.cancel(77)),
        (RefusedError, lambda: client.offers_page(client.address, "stale")),
        (ClientError, lambda: made().pay(OTHER, "EUR", "1")),
    ]
    before = client.account().highest
    for kind, mistake in mistakes:
        with pytest.raises(kind):
            mistake()
    assert client.account().highest == before and client.stored() == []


def test_an_unsent_transaction_that_has_ended_is_void(demo: Demo, client: Client, made: Made) -> None:
    key = EthereumKey.generate()
    address = funded(client, key)
    own = made(key=key, lasts=1)
    signed, _ = own.run(own._core.sender.sign(Pay(OTHER, 1, 5), None))
    for event in own.stream("blocks"):
        if isinstance(event, Block) and event.height > signed.until:
            break
    fate = own.fate(signed.id)
    assert (fate.state, fate.code) == ("void", "ended") and fate.is_final
    with pytest.raises(VoidError, match="sign the operation again"):
        own.retry(signed.id)
    assert own.stored() == [] and client.account(address).highest == 0
    # Its number is used by another one: void too, and for another reason.
    other = made(key=key)
    signed, _ = own.run(own._core.sender.sign(Pay(OTHER, 1, 5), None))
    sent = sent_raw(demo, signed_raw(demo, key, Pay(OTHER, 1, 6), sequence=signed.sequence))
    assert sent[0] == 200 and other.account(address).highest == signed.sequence
    fate = own.fate(signed.id)
    assert (fate.state, fate.code) == ("void", "number_taken")


def test_a_key_file_and_its_folder_are_those_of_the_wallet(
    demo: Demo, client: Client, tmp_path: Path, made: Made
) -> None:
    path, secret = tmp_path / "key.json", {"WALRAS_PASSPHRASE": "correct horse", "WALRAS_SERVER": demo.url}
    demo.walras("wallet", "new", "--key", str(path), **secret)
    key = Ed25519Key.open(path, "correct horse")
    assert funded(client, key) == demo.walras("wallet", "address", "--key", str(path)).strip().lower()
    own = made(key=key, store=path)
    signed, _ = own.run(own._core.sender.sign(Pay(OTHER, 1, 5_000_000), None))
    # The command line finishes what the client began, and numbers its own above it.
    demo.walras("wallet", "retry", signed.id, "--key", str(path), **secret)
    assert own.fate(signed.id).state == "executed" and own.stored() == []
    demo.walras("wallet", "pay", "--to", OTHER, "--asset", "EUR", "--amount", "1", "--key", str(path), **secret)
    assert own.account().highest == signed.sequence + 1 and own.account().balance("EUR").available == 14
    (tmp_path / "key.json.network").write_text("0x" + "22" * 32 + "\n")
    with pytest.raises(OtherNetworkError):
        own.pay(OTHER, "EUR", "1")
    mine = tmp_path / "mine.json"
    Ed25519Key(bytes(range(32))).save(mine, "correct horse")
    told = json.loads(
        demo.walras(
            "wallet",
            "pay",
            "--to",
            OTHER,
            "--asset",
            "EUR",
            "--amount",
            "1",
            "--json",
            "--key",
            str(path),
            "--network",
            own.limits().network,
            **secret,
        )
    )
    assert told["id"].startswith("0x")
    assert demo.walras("wallet", "address", "--key", str(mine)).strip().lower() == Ed25519Key(bytes(range(32))).address


def test_a_stream_resumes_at_a_height_without_gaps(demo: Demo, client: Client) -> None:
    first = max(1, client.status().height - 40)
    heights: dict[str, list[int]] = {"Block": [], "Batch": []}
    paid = threading.Timer(0.3, lambda: client.pay(OTHER, "EUR", "0.5"))
    paid.start()
    seen: set[type] = set()
    for event in client.stream("blocks", "batches", "trades", f"account:{client.address}", from_height=first):
        seen.add(type(event))
        if isinstance(event, Block | Batch):
            heights[type(event).__name__].append(event.height)
        if isinstance(event, AccountSnapshot):
            assert isinstance(event.account, Account) and event.account.address == client.address
        if isinstance(event, AccountUpdate) and event.outcomes:
            break
    paid.join()
    for one in heights.values():
        assert len(one) > 30 and one == list(range(first, first + len(one)))
    assert AccountSnapshot in seen

    async def beats() -> None:
        async with AsyncClient(demo.url) as one:
            async for event in one.stream("blocks"):
                if isinstance(event, Heartbeat):
                    return

    asyncio.run(beats())


class Wire:
    """Connections to a server that can all be cut."""

    def __init__(self, url: str) -> None:
        host, port = url.removeprefix("http://").split(":")
        self.server = (host, int(port))
        self.door = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.door.getsockname()[1]}"
        self.ends: list[socket.socket] = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, far = self.door.accept()[0], socket.create_connection(self.server)
                self.ends += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self.carry, args=(one, other), daemon=True).start()

    def carry(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        for end in self.ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.door.close()
        self.cut()
        for end in self.ends:
            end.close()


def test_a_stream_that_is_cut_goes_on_without_a_gap(demo: Demo, made: Made) -> None:
    wire = Wire(demo.url)
    heights: list[int] = []
    cuts = 0
    for event in made(wire.url).stream("blocks", "trades:EUR/USD"):
        if isinstance(event, Block):
            heights.append(event.height)
        if isinstance(event, Disconnected):
            cuts += 1
        if len(heights) == 21 and cuts == 0:
            wire.cut()
        if cuts == 1 and len(heights) > 23:
            break

    async def asynchronous() -> None:
        cut = False
        async with AsyncClient(wire.url) as client:
            async for event in client.stream("batches", from_height=heights[-1] - 5):
                if isinstance(event, Batch):
                    later.append(event.height)
                    if not cut and len(later) > 5:
                        wire.cut()
                        cut = True
                if len(later) > 8:
                    return

    later: list[int] = []
    asyncio.run(asynchronous())
    wire.close()
    assert heights == list(range(heights[0], heights[0] + len(heights)))
    assert later == list(range(heights[-1] - 5, heights[-1] - 5 + len(later)))


def test_a_local_book_is_the_one_that_a_call_shows(demo: Demo, client: Client) -> None:
    def checked(local: LocalBook, shown: Book) -> int:
        if local.height == shown.height:
            assert (local.sells, local.buys) == (shown.sells, shown.buys)
        return local.height == shown.height

    client.sell("EUR/USD", "20", "2.5")
    placed = client.buy("EUR/USD", "2", "3")
    compared, started = 0, placed.height or 0
    for local in client.follow_book("EUR/USD"):
        compared += checked(local, client.book("EUR/USD", 100))
        if compared and local.height > started + 3:
            break
    assert local.sells
    ticker = client.ticker("EUR/USD")
    assert ticker.price and ticker.day and ticker.day.batches > 0 and ticker.best_sell

    async def asynchronous() -> None:
        async with AsyncClient(demo.url) as other:
            async for local in other.follow_book("EUR/USD"):
                if checked(local, await other.book("EUR/USD", 100)) and local.height > started + 6:
                    return

    asyncio.run(asynchronous())
    client.cancel_all()


def test_an_accounts_history_is_there_and_each_order_has_a_definite_answer(client: Client) -> None:
    named = "0x" + "b7" * 16
    placed = client.sell("EUR/USD", "3", "498", client=named)
    resting = client.order_fate(client=named)
    assert (resting.status, resting.sequence) == ("resting", placed.sequence)
    assert resting.order and (resting.order.amount, resting.order.price) == (3, 498)
    client.cancel_all()
    ended = client.order_fate(resting.sequence)
    assert (ended.status, ended.why, ended.sold, ended.returned) == ("ended", "cancelled", 0, 3)
    assert [one.why for one in client.orders(limit=3) if one.client == named] == ["cancelled"]
    client.sell("EUR/USD", "20", "2.5")
    quote = client.quote("USD", "EUR", "6", "0.33333333333333334")
    assert quote.sold == 6 and quote.bought >= 2 and quote.price and quote.why in ("filled", "part")
    assert client.quote("EUR", "USD", "1").sell == "EUR"
    fits, dear = (client.quote_exact("buy", "EUR/USD", "1", bound) for bound in ("1000", "0.01"))
    assert fits.why != "beyond_bound" and dear.why in ("beyond_bound", "no_price") and dear.returned == Decimal("0.01")
    bought = client.buy("EUR/USD", "2", "3")
    fill = next(one for one in client.fills(limit=10) if one.offer == bought.sequence)
    assert fill.sell == "USD" and fill.sold <= 6 and Decimal("1.8") <= fill.bought < Decimal("2.2")
    assert bought.sequence is not None and (told := client.order_fate(bought.sequence).order) and told.asked
    assert (told.asked.side, told.asked.market) == ("buy", "EUR/USD") and told.asked.price <= 3
    # Where there was no room for an exact order, its offer has 5 % of room below the limit, and says so.
    assert Decimal("1.9") <= told.asked.amount < Decimal("2.001")
    paid = client.pay(OTHER, "EUR", "0.25")
    transfer = client.transfers(limit=1)[0]
    assert (transfer.id, transfer.amount, transfer.kind) == (paid.id, Decimal("0.25"), "payment")
    assert not transfer.is_received and transfer.reference is None
    for said in ["INV-2026-1107", UUID("8a562c67-ca16-48ba-b074-65581be6f001"), 1107]:
        paid = client.pay(OTHER, "EUR", "0.25", remittance=said)
        (found,) = client.transfers(remittance=said)
        assert (found.id, found.reference) == (paid.id, PaymentReference.of(said))
    with pytest.raises(ValueError, match="no reference of the kind text"):
        client.pay(OTHER, "EUR", "0.25", remittance="Gebühr")
    with pytest.raises(NotFoundError, match="order_unknown|no order"):
        client.order_fate(999_999)
    client.cancel_all()


@pytest.mark.parametrize("kind", [EthereumKey, Ed25519Key])
def test_own_orders_are_followed_after_a_login_and_nobody_elses(client: Client, made: Made, kind: Any) -> None:
    key = kind.generate()
    for asset in ("USD", "EUR"):
        client.pay(key.address, asset, "20")
    own = made(key=key)
    followed = own.follow_orders()
    first = next(followed)
    assert (first.is_snapshot, first.orders, first.pending, first.account) == (True, (), (), key.address)

    def state(number: int | None) -> tuple[str, str | None, Decimal | None]:
        """The next state of an order."""
        return next(
            (one.status, one.why, one.left) for told in followed for one in told.orders if one.sequence == number
        )

    placed = own.sell("EUR/USD", "2", "500")
    assert state(placed.sequence) == ("resting", None, Decimal(2))
    own.cancel(placed.sequence)
    assert state(placed.sequence) == ("ended", "cancelled", Decimal(0))
    followed.close()
    for stranger, kind_of, words in [(own, StreamError, "login_required"), (made(), ClientError, "no key")]:
        with pytest.raises(kind_of, match=words):
            for event in stranger.stream(f"orders:{OTHER}"):
                assert isinstance(event, Heartbeat)


def test_own_orders_are_followed_on_an_event_loop(demo: Demo) -> None:
    async def follow() -> None:
        async with AsyncClient(demo.url, key=EthereumKey(KEYS[0])) as own:
            async for told in own.follow_orders():
                assert told.is_snapshot and told.account == own.address
                break

    asyncio.run(follow())


def test_a_balance_is_proved_and_a_changed_proof_proves_nothing(demo: Demo, client: Client) -> None:
    assert client.proved_account().balances == client.account().balances
    told = httpx.get(f"{demo.url}/v1/accounts/{client.address}/proof").json()
    address, root, proof = address_bytes(client.address), raw(told["root"]), raw(told["proof"])
    proved = prove_account(address, root, proof)
    assert proved is not None and proved.window.highest == int(told["account"]["sequence"]["highest"])
    for at in range(len(proof)):
        changed = proof[:at] + bytes([proof[at] ^ 1]) + proof[at + 1 :]
        with pytest.raises(ProofError):
            prove_account(address, root, changed)
    absent = bytes([0x77]) * 20
    told = httpx.get(f"{demo.url}/v1/accounts/0x{absent.hex()}/proof").json()
    assert prove_account(absent, raw(told["root"]), raw(told["proof"])) is None
    with pytest.raises(ProofError):
        prove_account(address, raw(told["root"]), raw(told["proof"]))
    with pytest.raises(NotFoundError, match="proved"):
        client.proved_account("0x" + absent.hex())


def test_what_a_quorum_signed_needs_no_trust_in_a_node(demo: Demo, client: Client) -> None:
    committee = client.committee()
    assert (len(committee.keys), committee.quorum) == (1, 1)
    assert client.proved_account(committee=committee).address == client.address
    placed = client.sell("EUR/USD", "3", "500")
    proved = client.proved_fate(placed.id, committee=committee)
    assert proved.outcome == placed.outcome and proved.height == placed.height
    client.cancel_all()
    # Another validator's key, or one that signed nothing, proves nothing; nor does another epoch's.
    strangers = [
        Committee((Ed25519Key.generate().public,)),
        Committee(committee.keys, epoch=1),
        Committee((*committee.keys, Ed25519Key.generate().public)),
    ]
    for stranger in strangers:
        for ask in (
            lambda: client.proved_account(committee=stranger),
            lambda: client.proved_fate(placed.id, committee=stranger),
        ):
            with pytest.raises(ForeignAnswerError, match="fails"):
                ask()
    told = httpx.get(f"{demo.url}/v1/transactions/{placed.id}?proof=true&certified=true", timeout=600).json()
    id, root, proof = raw(placed.id), raw(told["receipts_root"]), raw(told["proof"])
    assert prove_outcome(id, root, proof) is not None
    for at in range(0, len(proof), 5):
        with pytest.raises(ProofError):
            prove_outcome(id, root, proof[:at] + bytes([proof[at] ^ 1]) + proof[at + 1 :])
    signed = told["certificate"]
    certificate, roots = raw(signed["certificate"]), (raw(signed["state_root"]), root)
    network = client.limits().network
    assert check_certificate(certificate, network, committee, *roots) >= (placed.height or 0)
    for at in range(0, len(certificate), 3):
        with pytest.raises(ProofError):
            changed = certificate[:at] + bytes([certificate[at] ^ 1]) + certificate[at + 1 :]
            check_certificate(changed, network, committee, *roots)


def test_a_foreign_server_is_told_apart_from_a_refusal(demo: Demo, made: Made) -> None:
    ethereum = made(demo.url + "/v1/status")
    with pytest.raises((ForeignAnswerError, NotFoundError)):
        ethereum.status()
    assert FolderStore("/nowhere/at/all").all() == []
