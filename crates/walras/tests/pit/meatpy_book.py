"""Prints the book that MeatPy makes of a file of ITCH 5.0: levels of buys and sells, each [tick, lots, orders]."""

import datetime
import json
import sys

from meatpy.itch50 import ITCH50MarketProcessor, ITCH50MessageReader

path, symbol = sys.argv[1:]
processor = ITCH50MarketProcessor(symbol, datetime.datetime(2026, 1, 1))
for message in ITCH50MessageReader().read_file(path):
    processor.process_message(message)
book = processor.current_lob
print(json.dumps([
    [[level.price, level.total_volume, level.n_orders] for level in side]
    for side in (book.bid_levels, book.ask_levels)
]))
