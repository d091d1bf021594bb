"""What both shells share: from what people write to operations, and the flows that need a key."""

from __future__ import annotations

import os
from decimal import ROUND_CEILING, Decimal
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from walras.client import operations
from walras.client.amounts import Assets, Number, limit_of, plain, price_of
from walras.client.calls import Session, place_of
from walras.client.certificate import Committee, check_certificate, outcome_bytes, prove_outcome
from walras.client.encoding import CANCELS_MAX, Operation, address_bytes, raw
from walras.client.envelopes import Envelopes
from walras.client.errors import (
    AmountError,
    ClientError,
    ForeignAnswerError,
    NotFoundError,
    OtherNetworkError,
    TransactionRefusedError,
)
from walras.client.fate import LASTS_MAX, fate_of, told
from walras.client.flow import Answer, Flow
from walras.client.holders import Holders
from walras.client.keys import Key, LoginTerms
from walras.client.models import Account, Fate, Offer
from walras.client.pending import FolderStore, MemoryStore, Store
from walras.client.proof import (
    ProofError,
    ProvedHolder,
    prove_account,
    prove_holder,
    prove_keys,
    prove_parameters,
)
from walras.client.purchase import Purchase, Quoted
from walras.client.references import PaymentReference, Said
from walras.client.sending import Sender
from walras.client.slots import Leaving, Slots

__all__ = ["Core", "T"]

T = TypeVar("T")
_THEN_AS_OFFER = " as an offer"
"""What the reference of an offer has that comes after an exact order."""


def host_of(server: str) -> str:
    """A server's name and port as a request's `Host` has them: a port that goes without saying is left out."""
    parts = urlsplit(server)
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    name = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return name if parts.port in (None, usual) else f"{name}:{parts.port}"


def _signed_root(body: Any, network: str, committee: Committee | None) -> bytes:
    """The state root of an answer; with a committee, one that its quorum signed."""
    root = raw(body["root"])
    if committee:
        signed = body["certificate"]
        if raw(signed["state_root"]) != root:
            raise ProofError("the certificate is for another state root")
        check_certificate(raw(signed["certificate"]), network, committee, root, raw(signed["receipts_root"]))
    return root


class Core:
    """A node and an account."""

    def __init__(
        self,
        server: str,
        key: Key | None,
        account: str | None,
        network: str | None,
        store: Store | str | os.PathLike[str] | None,
        patience: float,
        lasts: int,
        slot: int = 0,
        payer: Core | None = None,
    ) -> None:
        if not 1 <= lasts <= LASTS_MAX:
            raise ValueError(f"a transaction lasts 1 to {LASTS_MAX} blocks, not {lasts}")
        self.session = Session(server, network)
        self._sender = None
        if isinstance(store, str | os.PathLike):
            store = FolderStore(store)
        store = store if store is not None else MemoryStore()
        if key is not None:
            if slot and account is None:
                raise ValueError("a session key acts for an account: give its `account` beside `key` and `slot`")
            own = account or key.address
            address_bytes(own)
            self._sender = Sender(self.session, own.lower(), key, store, patience, lasts, slot=slot)
        self._store = store
        self._payer = payer

    @property
    def envelopes(self) -> Envelopes:
        """What seals the account's orders."""
        return Envelopes(self.session, self.sender, self._payer.sender if self._payer else self.sender)

    def _place(self, operation: Operation, reference: str | None, wait: bool, sealed: bool) -> Flow[Fate]:
        if sealed:
            return (yield from self.envelopes.send_one(operation, wait, reference))
        return (yield from self.sender.send(operation, wait, reference))

    @property
    def sender(self) -> Sender:
        """The account that sends. Raises a `ClientError` without a key."""
        if self._sender is None:
            raise ClientError("this client has no key: give it one, such as Client(server, key=EthereumKey(…))")
        return self._sender

    @property
    def slots(self) -> Slots:
        """The session keys of the account."""
        return Slots(self.session, self.sender)

    @property
    def holders(self) -> Holders:
        """Holders of assets whose issuers control them."""
        return Holders(self.session)

    def leaving(self, slot: int | None) -> Leaving:
        """A connection that leaves the stop of a slot with the node; of an account's own key without one, a cancel."""
        is_named = slot is not None or self.sender.slot != 0
        return Leaving(self.slots, self.slots.slot(slot) if is_named else None, self.login)

    @staticmethod
    def headers(token: str | None) -> dict[str, str]:
        return {} if token is None else {"authorization": f"Bearer {token}"}

    @staticmethod
    def answer(status: int, body: bytes, retry_after: str | None) -> Answer:
        seconds = float(retry_after) if retry_after is not None and retry_after.isdecimal() else None
        return Answer(status, body, seconds)

    def stream_url(self) -> str:
        return self.session.server.replace("http", "ws", 1) + "/v1/stream"

    def login(self, nonce: str, network: str) -> Flow[dict[str, str]]:
        """The login of the own account on the stream: only for this network, and for the server that was called."""
        sender = self.sender
        limits = yield from self.session.limits()
        if network != limits.network:
            raise OtherNetworkError(self.session.server, network, limits.network)
        server = host_of(self.session.server)
        terms = LoginTerms(sender.account, nonce, server, limits.chain, network)
        return {"account": sender.account, **sender.key.login(terms)}

    def fate(self, id: str) -> Flow[Fate]:
        return (yield from fate_of(self.session, id, self._store.get(id)))

    def committee(self) -> Flow[Committee]:
        """The committee that decides now, as the node names it."""

        def decode(body: Any) -> Committee:
            epoch = int(body["epoch"])
            (members,) = [one["members"] for one in body["committees"] if one["epoch"] == epoch]
            return Committee(tuple(str(member["key"]) for member in members), epoch)

        return (yield from self.session.get("/v1/validators", decode))

    def proved_account(self, address: str, committee: Committee | None) -> Flow[Account]:
        """An account that the node has proved against a state root; with a committee, one that its quorum signed."""
        limits, assets = (yield from self.session.limits()), (yield from self.session.assets())
        asked = {"certified": "true"} if committee else {}
        body = yield from self.session.get(f"/v1/accounts/{address}/proof", lambda body: body, **asked)
        server = self.session.server
        try:
            root = _signed_root(body, limits.network, committee)
            proved = prove_account(address_bytes(address), root, raw(body["proof"]))
            if proved is None or body["account"] is None:
                raise NotFoundError(server, 404, "not_found", f"it is proved that there is no account {address}")
            account = Account.of(body["account"], assets)
            held = [(assets[one.asset], one.available) for one in account.balances if one.available]
            available = {asset.number: asset.units(amount) for asset, amount in held}
        except (ProofError, KeyError, TypeError, ValueError) as error:
            raise ForeignAnswerError(server, f"its proof of {address} fails: {error}") from error
        stated = (account.highest, account.needs_reference)
        if proved.balances != available or (proved.window.highest, proved.needs_reference) != stated:
            raise ForeignAnswerError(server, f"it states another account {address} than it proves")
        return account

    def proved_keys(self, address: str, committee: Committee | None) -> Flow[dict[str, Any] | None]:
        """The policy of an account that the node has proved; with a committee, in a state that its quorum signed."""
        limits = yield from self.session.limits()
        asked = {"certified": "true"} if committee else {}
        body = yield from self.session.get(f"/v1/accounts/{address}/keys/proof", lambda body: body, **asked)
        try:
            root = _signed_root(body, limits.network, committee)
            return prove_keys(address_bytes(address), root, raw(body["proof"]))
        except (ProofError, KeyError, TypeError, ValueError) as error:
            server = self.session.server
            raise ForeignAnswerError(server, f"its proof of the keys of {address} fails: {error}") from error

    def proved_holder(self, asset: str, address: str, committee: Committee | None) -> Flow[ProvedHolder]:
        """What the node has proved of a holder; with a committee, in a state that its quorum signed."""
        account, limits = address_bytes(address), (yield from self.session.limits())
        of = (yield from self.session.assets(asset))[asset]
        asked = {"certified": "true"} if committee else {}
        path = f"/v1/assets/{of.number}/holders/{address}/proof"
        body = yield from self.session.get(path, lambda body: body, **asked)
        try:
            root = _signed_root(body, limits.network, committee)
            proved = prove_holder(of.number, account, root, raw(body["proof"]))
        except (ProofError, KeyError, TypeError, ValueError) as error:
            server = self.session.server
            raise ForeignAnswerError(server, f"its proof of the holder {address} fails: {error}") from error
        is_issuer = account == address_bytes(of.issuer)
        return ProvedHolder(proved.control, True, proved.since) if is_issuer else proved

    def proved_parameters(self, committee: Committee | None) -> Flow[dict[str, Any] | None]:
        """The parameters that the node has proved; with a committee, in a state that its quorum signed."""
        limits = yield from self.session.limits()
        asked = {"certified": "true"} if committee else {}
        body = yield from self.session.get("/v1/parameters/proof", lambda body: body, **asked)
        try:
            return prove_parameters(_signed_root(body, limits.network, committee), raw(body["proof"]))
        except (ProofError, KeyError, TypeError, ValueError) as error:
            raise ForeignAnswerError(self.session.server, f"its proof of the parameters fails: {error}") from error

    def proved_fate(self, id: str, committee: Committee) -> Flow[Fate]:
        """The fate of a committed transaction, proved against a receipts root that a committee's quorum signed."""
        limits = yield from self.session.limits()
        yield from self.session.assets()
        body = yield from self.session.get(f"/v1/transactions/{id}", lambda body: body, proof="true", certified="true")
        server = self.session.server
        try:
            root, signed = raw(body["receipts_root"]), body["certificate"]
            if raw(signed["receipts_root"]) != root:
                raise ProofError("the certificate is for another receipts root")
            roots = (raw(signed["state_root"]), root)
            check_certificate(raw(signed["certificate"]), limits.network, committee, *roots)
            proved = prove_outcome(raw(id), root, raw(body["proof"]))
            if proved != outcome_bytes(body["outcome"], proved):
                raise ProofError("the proof has another outcome than the node states")
        except (ProofError, KeyError, TypeError, ValueError) as error:
            raise ForeignAnswerError(server, f"its proof of {id} fails: {error}") from error
        return told(self.session, body, self._store.get(id))

    def pay(
        self, to: str, asset: str, amount: Number, remittance: Said | None, reference: str | None, wait: bool
    ) -> Flow[Fate]:
        address_bytes(to)
        assets = yield from self.session.assets(asset)
        of = assets[asset]
        operation: operations.Pay | operations.PayReferenced = operations.Pay(to.lower(), of.number, of.units(amount))
        if remittance is not None:
            said = PaymentReference.of(remittance)
            paid = (to.lower(), of.number, of.units(amount))
            operation = operations.PayReferenced(*paid, said.kind, said.encoded())
        return (yield from self.sender.send(operation, wait, reference))

    def offer(
        self,
        sell: str,
        buy: str,
        amount: Number,
        price: Number,
        named: tuple[str, str],
        reference: str | None,
        wait: bool,
        sealed: bool = False,
    ) -> Flow[Fate]:
        """`named` are its life and its client's name for it."""
        assets = yield from self.session.assets(sell, buy)
        sold, bought = assets[sell], assets[buy]
        terms = (sold.units(amount), limit_of(price, sold, bought))
        operation = operations.CreateOffer(sold.number, bought.number, *terms, *named)
        _check_size(operation, assets)
        return (yield from self._place(operation, reference, wait, sealed))

    def order(
        self,
        side: Literal["buy", "sell"],
        market: str,
        amount: Number,
        price: Number,
        named: tuple[str, str],
        reference: str | None,
        wait: bool,
        sealed: bool = False,
    ) -> Flow[Fate]:
        assets = yield from self.session.assets(*market.split("/"))
        base, quote = assets.market(market)
        units, limit = base.units(amount), limit_of(price, base, quote)
        if side == "sell":
            operation = operations.CreateOffer(base.number, quote.number, units, limit, *named)
            _check_size(operation, assets)
            return (yield from self._place(operation, reference, wait, sealed))
        purchase = Purchase(base, quote, units, limit, *named)
        offer, exact = purchase.offer(), purchase.exact()
        _check_size(offer, assets)
        if sealed:
            # Whoever is asked what the next batch would do with it knows the order.
            return (yield from self._place(offer, reference, wait, sealed))

        def ask(asked: operations.CreateOffer) -> Flow[Quoted]:
            return (yield from self.session.quoted(quote, base, asked.amount, asked.limit))

        is_exact = exact is not None and (yield from ask(offer)).is_whole
        first = exact if exact is not None and is_exact else offer
        fate = yield from self.sender.send(first, wait, reference, is_form=purchase.is_form)
        if fate.outcome is None or fate.outcome.result != "exact" or fate.outcome.why == "filled":
            return fate
        then = None if reference is None else reference + _THEN_AS_OFFER
        tight = yield from purchase.tightened(ask)
        return (yield from self.sender.send(tight, wait, then, is_form=purchase.is_form))

    def exact(
        self,
        side: Literal["buy", "sell"],
        market: str,
        amount: Number,
        bound: Number,
        client: str,
        reference: str | None,
        wait: bool,
        sealed: bool = False,
    ) -> Flow[Fate]:
        assets = yield from self.session.assets(*market.split("/"))
        base, quote = assets.market(market)
        sell, buy = (base, quote) if side == "sell" else (quote, base)
        operation = operations.Exact(sell.number, buy.number, side, base.units(amount), quote.units(bound), client)
        return (yield from self._place(operation, reference, wait, sealed))

    def placed_offer(self, id: str) -> Flow[tuple[Fate, str, str, Decimal, Decimal, Decimal | None] | None]:
        """The offer of a transaction: its fate, what it sells and buys, amount, price, and how much of it rests."""
        assets = yield from self.session.assets()
        fate = yield from self.fate(id)
        if fate.state != "executed" or fate.sequence is None:
            return None
        body = yield from self.session.get(f"/v1/transactions/{id}", lambda body: body)
        operation = body.get("operation")
        if operation is None or operation["type"] != "create_offer":
            return None
        sell, buy = assets[operation["sell"]], assets[operation["buy"]]
        price = price_of(Decimal(operation["limit"]), sell, buy)
        resting = yield from self.session.offer(str(body["account"]), fate.sequence)
        rests = resting.amount if resting else None
        return fate, sell.symbol, buy.symbol, sell.amount(int(operation["amount"])), price, rests

    def cancel(self, offer: Offer | int, wait: bool, sealed: bool = False) -> Flow[Fate]:
        assets = yield from self.session.assets()
        offer = yield from self._resting(offer, sealed)
        return (yield from self._place(operations.Cancel((place_of(offer, assets),)), None, wait, sealed))

    def _resting(self, offer: Offer | int, sealed: bool) -> Flow[Offer]:
        """An offer; whoever seals asks for all of them, so that the node does not learn which is meant."""
        if not isinstance(offer, int):
            return offer
        found: Offer | None
        if sealed:
            all = yield from self.session.offers(self.sender.account)
            found = next((one for one in all if one.id == offer), None)
        else:
            found = yield from self.session.offer(self.sender.account, offer)
        if found is None:
            raise NotFoundError(
                self.session.server,
                404,
                "unknown_offer",
                f"no offer {offer} of {self.sender.account} rests: it has traded, or was cancelled",
            )
        return found

    def replace(
        self, offer: Offer | int, amount: Number, price: Number, wait: bool, sealed: bool = False
    ) -> Flow[Fate]:
        assets = yield from self.session.assets()
        offer = yield from self._resting(offer, sealed)
        sell, buy = assets[offer.sell], assets[offer.buy]
        limit = limit_of(price, sell, buy)
        sizes = (sell.units(offer.amount), sell.units(amount))
        operation = operations.Replace(sell.number, buy.number, offer.limit, offer.id, *sizes, limit)
        _check_size(operations.CreateOffer(sell.number, buy.number, operation.amount, limit), assets)
        return (yield from self._place(operation, None, wait, sealed))

    def cancel_all(self, market: str | None, every: bool) -> Flow[list[Fate]]:
        assets = yield from self.session.assets()
        pair = {one.symbol for one in assets.market(market)} if market else None
        offers = yield from self.session.offers(self.sender.account)
        if self.sender.slot and not every:
            offers = [offer for offer in offers if offer.slot == self.sender.slot]
        mine = [offer for offer in offers if pair is None or {offer.sell, offer.buy} == pair]
        ids = []
        for at in range(0, len(mine), CANCELS_MAX):
            places = tuple(place_of(offer, assets) for offer in mine[at : at + CANCELS_MAX])
            try:
                ids.append((yield from self.sender.send(operations.Cancel(places), False, None)).id)
            except TransactionRefusedError as error:
                if error.code != "unknown_offer":
                    raise
        fates = []
        for id in ids:
            try:
                waits = self.sender.store.get(id) is not None
                fates.append((yield from (self.sender.retry(id, True) if waits else self.fate(id))))
            except TransactionRefusedError as error:
                if error.code != "unknown_offer":
                    raise
        return fates


def _check_size(offer: operations.CreateOffer, assets: Assets) -> None:
    """Refuses what the ledger would refuse as too little."""
    asked = (offer.amount * offer.limit).to_integral_value(rounding=ROUND_CEILING)
    for what, number, units in (("sells", offer.sell, offer.amount), ("asks for", offer.buy, int(asked))):
        asset = assets.numbered(number)
        if asset.amount(units) < asset.least:
            some, least = plain(asset.amount(units)), plain(asset.least)
            raise AmountError(f"the offer {what} {some} {asset.symbol}; the least is {least} {asset.symbol}")
