"""Files of order flow with known content: ITCH 5.0 in BinaryFILE frames, MoldUDP64 packets, LOBSTER's lines."""

import struct

NANOSECOND = 1_000_000_000


def message(kind: str, seconds: float, body: bytes, locate: int = 1) -> bytes:
    at = int(seconds * NANOSECOND)
    return kind.encode() + struct.pack(">HH", locate, 0) + at.to_bytes(6, "big") + body


def stock(name: str) -> bytes:
    return name.ljust(8).encode()


def event(letter: str, seconds: float) -> bytes:
    return message("S", seconds, letter.encode(), 0)


def directory(name: str) -> bytes:
    rest = b"Q" + b"N" + struct.pack(">I", 100) + b"N" + b"C" + b"Z " + b"P" + b"N" + b"N" + b"1" + b"N"
    return message("R", 25_000, stock(name) + rest + struct.pack(">I", 0) + b"N")


def add(order: int, side: str, shares: int, price: int, seconds: float) -> bytes:
    return message("A", seconds, struct.pack(">Q", order) + side.encode() + struct.pack(">I", shares) + stock("AAPL")
                   + struct.pack(">I", price))


def executed(order: int, shares: int, match: int, seconds: float) -> bytes:
    return message("E", seconds, struct.pack(">QIQ", order, shares, match))


def cancelled(order: int, shares: int, seconds: float) -> bytes:
    return message("X", seconds, struct.pack(">QI", order, shares))


def deleted(order: int, seconds: float) -> bytes:
    return message("D", seconds, struct.pack(">Q", order))


def replaced(before: int, order: int, shares: int, price: int, seconds: float) -> bytes:
    return message("U", seconds, struct.pack(">QQII", before, order, shares, price))


def broken(match: int, seconds: float) -> bytes:
    return message("B", seconds, struct.pack(">Q", match))


def trade(price: int, shares: int, match: int, seconds: float) -> bytes:
    return message("P", seconds, struct.pack(">Q", 0) + b"B" + struct.pack(">I", shares) + stock("AAPL")
                   + struct.pack(">IQ", price, match))


def day(orders: int) -> list[bytes]:
    """A day: each of the orders rests, half of them trade, and one trade is broken afterwards."""
    start = 34_200
    messages = [event("O", 11_000), event("S", 14_400), directory("AAPL"), event("Q", start)]
    for at in range(1, orders + 1):
        messages.append(add(at, "B", 100, 1_000_000 - 100 * at, start + at))
    for at in range(1, orders // 2 + 1):
        messages.append(executed(at, 100, at, start + orders + at))
    messages += [cancelled(orders, 40, 50_000), replaced(orders, orders + 1, 50, 990_000, 50_001)]
    messages += [deleted(orders + 1, 50_002), trade(1_000_000, 10, 900, 50_003), broken(1, 50_004)]
    return messages + [event("M", 57_600), event("E", 64_800), event("C", 72_000)]


def framed(messages: list[bytes], ends: bool) -> bytes:
    frames = b"".join(struct.pack(">H", len(one)) + one for one in messages)
    return frames + (b"\0\0" if ends else b"")


def packet(sequence: int, messages: list[bytes], count: int | None = None) -> bytes:
    head = b"WALRUS0001" + struct.pack(">QH", sequence, len(messages) if count is None else count)
    return head + framed(messages, False)


LOBSTER = """34200.004241176,1,16113575,18,5853300,1
34201.5,1,16113576,20,5853400,-1
35821.088778456004,4,16113575,8,5853300,1
35822.000000001,5,0,5,5853350,1
35823.1,2,16113576,5,5853400,-1
35824.1,3,16113576,15,5853400,-1
57600.0,7,0,0,-1,-1
"""
HEADER = "time,type,order,size,price,direction\n"
