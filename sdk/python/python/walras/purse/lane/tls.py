"""A client of TLS 1.3 with a raw public key (RFC 8446, RFC 7250): bytes in, bytes out, no socket.

Python's own `ssl` cannot accept a raw public key. This offers exactly what the specification names, and nothing else.
"""

from __future__ import annotations

import hashlib
import hmac

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from walras.purse.lane import ed25519
from walras.purse.lane.layout import require

PROTOCOL = b"walras-lane"
KEY_PREFIX = bytes.fromhex("302a300506032b6570032100")
Cipher = type[AESGCM] | type[ChaCha20Poly1305]
CIPHERS: dict[int, tuple[Cipher, int]] = {0x1301: (AESGCM, 16), 0x1303: (ChaCha20Poly1305, 32)}
X25519, ED25519, RAW_KEY, VERSION = b"\x00\x1d", b"\x08\x07", b"\x02", b"\x03\x04"
ALERT, HANDSHAKE, DATA = 21, 22, 23
CHANGE_CIPHER = 20
RECORD_MAX = (1 << 14) + 256


def vector(data: bytes, length: int) -> bytes:
    return len(data).to_bytes(length, "big") + data


def extension(number: int, data: bytes) -> bytes:
    return number.to_bytes(2, "big") + vector(data, 2)


def message(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + vector(body, 3)


def hashed(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def extract(salt: bytes, secret: bytes) -> bytes:
    return hmac.digest(salt, secret, "sha256")


def expand(secret: bytes, label: bytes, context: bytes, length: int) -> bytes:
    info = length.to_bytes(2, "big") + vector(b"tls13 " + label, 1) + vector(context, 1)
    block, result, count = b"", b"", 1
    while len(result) < length:
        block = hmac.digest(secret, block + info + bytes([count]), "sha256")
        result, count = result + block, count + 1
    return result[:length]


class Cursor:
    """Vectors of big-endian length."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, length: int) -> bytes:
        require(length <= len(self.data), "TLS", "a message ends too early")
        part, self.data = self.data[:length], self.data[length:]
        return part

    def number(self, length: int) -> int:
        return int.from_bytes(self.take(length), "big")

    def vector(self, length: int) -> bytes:
        return self.take(self.number(length))

    def extensions(self) -> dict[int, bytes]:
        rest, found = Cursor(self.vector(2)), {}
        while rest.data:
            number = rest.number(2)
            found[number] = rest.vector(2)
        return found


class Keys:
    """One direction of traffic."""

    def __init__(self, cipher: int, secret: bytes) -> None:
        kind, length = CIPHERS[cipher]
        self.secret, self.count = secret, 0
        self.aead: AESGCM | ChaCha20Poly1305 = kind(expand(secret, b"key", b"", length))
        self.iv = int.from_bytes(expand(secret, b"iv", b"", 12), "big")

    def nonce(self) -> bytes:
        nonce, self.count = (self.iv ^ self.count).to_bytes(12, "big"), self.count + 1
        return nonce

    def seal(self, kind: int, plain: bytes) -> bytes:
        head = bytes([DATA, 3, 3]) + (len(plain) + 17).to_bytes(2, "big")
        return head + bytes(self.aead.encrypt(self.nonce(), plain + bytes([kind]), head))

    def open(self, head: bytes, sealed: bytes) -> tuple[int, bytes]:
        plain = bytes(self.aead.decrypt(self.nonce(), sealed, head)).rstrip(b"\0")
        require(plain != b"", "TLS", "an empty record")
        return plain[-1], plain[:-1]

    def finished(self, transcript: bytes) -> bytes:
        return hmac.digest(expand(self.secret, b"finished", b"", 32), hashed(transcript), "sha256")


class Client:
    """A connection to the holder of `key`. `entropy` is 64 fresh random bytes."""

    def __init__(self, key: bytes, entropy: bytes) -> None:
        require(len(entropy) == 64, "TLS", "64 random bytes")
        self.key, self.private = key, X25519PrivateKey.from_private_bytes(entropy[:32])
        self.records, self.messages, self.plain, self.output = b"", b"", b"", b""
        self.reading: Keys | None = None
        self.writing: Keys | None = None
        self.awaits, self.is_closed = 2, False
        self.transcript = self._hello(entropy[32:])
        self.output = bytes([HANDSHAKE, 3, 1]) + vector(self.transcript, 2)

    @property
    def is_open(self) -> bool:
        return self.awaits == 0

    def _hello(self, random: bytes) -> bytes:
        share = self.private.public_key().public_bytes_raw()
        extensions = [
            extension(10, vector(X25519, 2)),
            extension(13, vector(ED25519, 2)),
            extension(16, vector(vector(PROTOCOL, 1), 2)),
            extension(20, vector(RAW_KEY, 1)),
            extension(43, vector(VERSION, 1)),
            extension(51, vector(X25519 + vector(share, 2), 2)),
        ]
        ciphers = b"".join(cipher.to_bytes(2, "big") for cipher in CIPHERS)
        body = b"\3\3" + random + b"\0" + vector(ciphers, 2) + b"\1\0" + vector(b"".join(extensions), 2)
        return message(1, body)

    def to_send(self) -> bytes:
        output, self.output = self.output, b""
        return output

    def send(self, plain: bytes) -> None:
        if self.writing is None or not self.is_open:
            raise RuntimeError("the handshake is not over")
        for at in range(0, len(plain), 1 << 14):
            self.output += self.writing.seal(DATA, plain[at : at + (1 << 14)])

    def receive(self, data: bytes) -> bytes:
        """What the server says in the records that are whole."""
        self.records += data
        while len(self.records) >= 5:
            head, length = self.records[:5], int.from_bytes(self.records[3:5], "big")
            require(length <= RECORD_MAX, "TLS", "a record is too long")
            if len(self.records) < 5 + length:
                break
            body, self.records = self.records[5 : 5 + length], self.records[5 + length :]
            self._record(head, body)
        plain, self.plain = self.plain, b""
        return plain

    def _record(self, head: bytes, body: bytes) -> None:
        kind = head[0]
        if kind == CHANGE_CIPHER:
            return
        if self.reading is not None:
            require(kind == DATA, "TLS", "a record in the clear")
            kind, body = self.reading.open(head, body)
        if kind == ALERT:
            require(body[1:] == b"\0", "TLS", f"alert {body.hex()}")
            self.is_closed = True
        elif kind == HANDSHAKE:
            self.messages += body
            self._messages()
        else:
            require(kind == DATA and self.is_open, "TLS", "data before the handshake is over")
            self.plain += body

    def _messages(self) -> None:
        while len(self.messages) >= 4:
            end = 4 + int.from_bytes(self.messages[1:4], "big")
            if len(self.messages) < end:
                return
            whole, self.messages = self.messages[:end], self.messages[end:]
            require(whole[0] == self.awaits, "TLS", f"message {whole[0]} instead of {self.awaits}")
            handlers = {2: self._server_hello, 8: self._extensions, 11: self._certificate, 15: self._verify}
            handlers.get(whole[0], self._finish)(Cursor(whole[4:]), whole)

    def _server_hello(self, body: Cursor, whole: bytes) -> None:
        body.take(34)
        body.vector(1)
        self.cipher = body.number(2)
        require(self.cipher in CIPHERS, "TLS", "a cipher that was not offered")
        body.take(1)
        extensions = body.extensions()
        share = extensions.get(51, b"")
        right = extensions.get(43) == VERSION and share[:4] == X25519 + b"\0\x20" and len(share) == 36
        require(right, "TLS", "another version or key exchange")
        shared = self.private.exchange(X25519PublicKey.from_public_bytes(share[4:]))
        self.transcript += whole
        early = extract(bytes(32), bytes(32))
        self.secret = extract(self._derive(early, b"derived", b""), shared)
        self.reading = self._keys(b"s hs traffic")
        self.writing = self._keys(b"c hs traffic")
        self.awaits = 8

    def _derive(self, secret: bytes, label: bytes, transcript: bytes) -> bytes:
        return expand(secret, label, hashed(transcript), 32)

    def _keys(self, label: bytes) -> Keys:
        return Keys(self.cipher, self._derive(self.secret, label, self.transcript))

    def _extensions(self, body: Cursor, whole: bytes) -> None:
        extensions = body.extensions()
        require(extensions.get(20) == RAW_KEY, "TLS", "the server shows no raw key")
        require(extensions.get(16) == vector(vector(PROTOCOL, 1), 2), "TLS", "another protocol")
        self.transcript, self.awaits = self.transcript + whole, 11

    def _certificate(self, body: Cursor, whole: bytes) -> None:
        require(body.vector(1) == b"", "TLS", "a context")
        shown = Cursor(body.vector(3))
        require(shown.vector(3) == KEY_PREFIX + self.key, "TLS", "the server shows another key")
        self.transcript, self.awaits = self.transcript + whole, 15

    def _verify(self, body: Cursor, whole: bytes) -> None:
        require(body.take(2) == ED25519, "TLS", "another scheme")
        signed = b" " * 64 + b"TLS 1.3, server CertificateVerify\0" + hashed(self.transcript)
        require(ed25519.holds(self.key, signed, body.vector(2)), "TLS", "the server does not hold the key")
        self.transcript, self.awaits = self.transcript + whole, 20

    def _finish(self, body: Cursor, whole: bytes) -> None:
        if self.reading is None or self.writing is None:
            raise RuntimeError("keys come first")
        require(hmac.compare_digest(body.data, self.reading.finished(self.transcript)), "TLS", "the handshake differs")
        self.transcript += whole
        finished = message(20, self.writing.finished(self.transcript))
        self.output += self.writing.seal(HANDSHAKE, finished)
        self.secret = extract(self._derive(self.secret, b"derived", b""), bytes(32))
        self.reading, self.writing = self._keys(b"s ap traffic"), self._keys(b"c ap traffic")
        self.awaits = 0
