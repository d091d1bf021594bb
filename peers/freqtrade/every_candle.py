"""Buys at each candle, and sells after a minute, whatever prices do: what is tried is the exchange, not the idea."""

from datetime import datetime
from typing import Any

from freqtrade.strategy import IStrategy
from pandas import DataFrame


class EveryCandle(IStrategy):
    INTERFACE_VERSION = 3
    timeframe = "1m"
    can_short = False
    minimal_roi = {"0": 10}
    stoploss = -0.9
    process_only_new_candles = True
    startup_candle_count = 0
    # An exchange that clears batches has no market orders.
    order_types = {
        **dict.fromkeys(("entry", "exit", "emergency_exit", "force_entry", "force_exit", "stoploss"), "limit"),
        "stoploss_on_exchange": False,
    }

    def populate_indicators(self, dataframe: DataFrame, metadata: dict[str, Any]) -> DataFrame:
        return dataframe

    def populate_entry_trend(self, dataframe: DataFrame, metadata: dict[str, Any]) -> DataFrame:
        dataframe["enter_long"] = 1
        return dataframe

    def populate_exit_trend(self, dataframe: DataFrame, metadata: dict[str, Any]) -> DataFrame:
        return dataframe

    def custom_exit(self, pair: str, trade: Any, current_time: datetime, *rest: Any, **more: Any) -> str | None:
        return "a minute" if (current_time - trade.date_last_filled_utc).total_seconds() >= 60 else None
