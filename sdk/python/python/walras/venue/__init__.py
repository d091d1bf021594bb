"""Trading at the continuous markets of a venue: orders by a trading key, whose fills the ledger settles.

`VenueTrader` works with a thread, `AsyncVenueTrader` on an event loop; both run the same core.

- **Never twice.** Orders are stored before they are sent, under numbers that no other order of the key ever has, also
  after a crash. While an answer is missing the same bytes are sent again, and `order` has the definite answer by
  number.
- **One signature for a ladder.** `place_ladder` signs up to 64 orders at once, and moves a ladder by a list of
  replacements.
- **No rounding.** Amounts and prices are decimals in whole assets; what is no lot or no tick is refused with the
  nearest ones.
- **Evidence.** The report of each fill is checked and stored before it is told. *Executed is not settled*: a
  `settled` report follows, or a bust.

Orders go over HTTP and belong to no session of the stream, so that the end of a connection ends none of them: give
them a short life (`lasts`, `until_ms`), or trade over OUCH or FIX where a venue is to cancel on disconnect.
"""

from walras.venue.aio import AsyncVenueTrader
from walras.venue.orders import ListEntry, OrderNumber, TradingKey, VenueOrder, VenueScope, is_list_signed
from walras.venue.reports import (
    Execution,
    ExecutionsPage,
    FillFate,
    OrderRefusedError,
    OrderReport,
    OrderStanding,
    PlacedOrder,
    UndecidedOrdersError,
    UnsignedReportError,
    VenueStatus,
)
from walras.venue.sync import VenueTrader
from walras.venue.terms import VenueTerms
from walras.venue.trading import VenueQuote

__all__ = [
    "AsyncVenueTrader",
    "Execution",
    "ExecutionsPage",
    "FillFate",
    "ListEntry",
    "OrderNumber",
    "OrderRefusedError",
    "OrderReport",
    "OrderStanding",
    "PlacedOrder",
    "TradingKey",
    "UndecidedOrdersError",
    "UnsignedReportError",
    "VenueOrder",
    "VenueQuote",
    "VenueScope",
    "VenueStatus",
    "VenueTerms",
    "VenueTrader",
    "is_list_signed",
]
