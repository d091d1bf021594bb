"""A client of a Walras node: keys, accounts, offers, payments, market data and the live stream.

`Client` works with a thread, `AsyncClient` on an event loop; both have the same methods and run the same core.

- **No rounding.** Amounts and prices are `decimal.Decimal` in whole assets. What would lose a part of a unit is refused.
- **Never twice.** A transaction is stored before it is sent, and only its bytes are sent again. With a `reference` a
  payment happens once, also when the program asks again after a crash; without one, an operation whose result is
  unknown is not signed a second time.
- **Definite.** A transaction is pending, executed, refused, void, or unknown to the node, and the answer says which
  (`Fate`). An error names the server, what it said and what to do.
- **Parallel.** Threads, tasks and processes that share a store never take the same sequence number.
- **Verified.** `proved_account` and `proved_fate` check balances and outcomes against what a quorum of a known
  `Committee` has signed.

**Invariant.** Everything but `sync` and `aio` is without sockets; a node never chooses what is signed.

**What nodes lack, and this client does not pretend**: a stream from any past height (what can be read is read, the rest
is a `Missed` event); a look-up by the caller's own reference (the store has it); the first height that a node's index
of transactions knows (it is inferred from kept blocks).
"""

try:
    from walras.client.aio import AsyncClient
    from walras.client.amounts import Asset, Assets, Number
    from walras.client.book import BookBrokenError, BookUpdate, Change, LocalBook
    from walras.client.certificate import Committee
    from walras.client.encoding import checked_address
    from walras.client.errors import (
        AddressError,
        AmountError,
        BusyError,
        ClientError,
        ForeignAnswerError,
        KeyFileError,
        NoAnswerError,
        NotFoundError,
        NumbersError,
        OtherNetworkError,
        RefusedError,
        SealError,
        SentBeforeError,
        SessionKeyError,
        StoreError,
        StreamError,
        TransactionRefusedError,
        UndecidedError,
        UnknownAssetError,
        VoidError,
    )
    from walras.client.frames import to_pandas, to_polars
    from walras.client.guards import AsyncDisconnectGuard, AsyncKeepAlive, DisconnectGuard, KeepAlive
    from walras.client.history import OrderFate, OwnOrders, PastFill, PastOrder, PendingOrder, Transfer
    from walras.client.holders import Holder
    from walras.client.keys import Ed25519Key, EthereumKey, Key
    from walras.client.models import (
        Account,
        Balance,
        Batch,
        BatchTrade,
        Block,
        Book,
        Candle,
        Day,
        Fate,
        Fill,
        Level,
        Limits,
        Market,
        Offer,
        OrderTerms,
        Outcome,
        PricePoint,
        Quote,
        SessionCap,
        SessionKey,
        Status,
        Ticker,
        Trade,
    )
    from walras.client.pending import FolderStore, MemoryStore, Store
    from walras.client.policy import KeyConsent, PolicyRequest, missing_weight, policy_salt
    from walras.client.proof import ProvedHolder
    from walras.client.references import PaymentReference
    from walras.client.stream import AccountSnapshot, AccountUpdate, Disconnected, Event, Heartbeat, Missed
    from walras.client.sync import Client
    from walras.client.venue import VenueDay, VenueMarket, VenueReport, VenueStep, VenueTrade
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"{error}; the client needs more: pip install 'walras[client]'", name=error.name
    ) from error

__all__ = [
    "Account",
    "AccountSnapshot",
    "AccountUpdate",
    "AddressError",
    "AmountError",
    "Asset",
    "Assets",
    "AsyncClient",
    "AsyncDisconnectGuard",
    "AsyncKeepAlive",
    "Balance",
    "Batch",
    "BatchTrade",
    "Block",
    "Book",
    "BookBrokenError",
    "BookUpdate",
    "BusyError",
    "Candle",
    "Change",
    "Client",
    "ClientError",
    "Committee",
    "Day",
    "DisconnectGuard",
    "Disconnected",
    "Ed25519Key",
    "EthereumKey",
    "Event",
    "Fate",
    "Fill",
    "FolderStore",
    "ForeignAnswerError",
    "Heartbeat",
    "Holder",
    "KeepAlive",
    "Key",
    "KeyConsent",
    "KeyFileError",
    "Level",
    "Limits",
    "LocalBook",
    "Market",
    "MemoryStore",
    "Missed",
    "NoAnswerError",
    "NotFoundError",
    "Number",
    "NumbersError",
    "Offer",
    "OrderFate",
    "OrderTerms",
    "OwnOrders",
    "OtherNetworkError",
    "Outcome",
    "PastFill",
    "PastOrder",
    "PaymentReference",
    "PendingOrder",
    "PolicyRequest",
    "PricePoint",
    "ProvedHolder",
    "Quote",
    "RefusedError",
    "SealError",
    "SentBeforeError",
    "SessionCap",
    "SessionKey",
    "SessionKeyError",
    "Status",
    "Store",
    "StoreError",
    "StreamError",
    "Ticker",
    "Trade",
    "TransactionRefusedError",
    "Transfer",
    "UndecidedError",
    "UnknownAssetError",
    "VenueDay",
    "VenueMarket",
    "VenueReport",
    "VenueStep",
    "VenueTrade",
    "VoidError",
    "checked_address",
    "missing_weight",
    "policy_salt",
    "to_pandas",
    "to_polars",
]
