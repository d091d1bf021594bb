"""The keys of a purse: H(seed, salt, index). A restored purse draws another salt, so two copies of a purse never make
the same key."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from walras.purse.disk import read_json, write_json
from walras.purse.errors import PurseError, PurseFileError
from walras.purse.lane import ed25519
from walras.purse.lane.layout import derived, u32

__all__ = ["KeyRing"]

LOST_KEYS = 1_000
"""Number of keys, beyond the last known one, among which a restored purse looks for keys of its earlier life."""


@dataclass(frozen=True)
class _Known:
    salt: str
    index: int

    def seed(self, seed: bytes) -> bytes:
        return derived("walras 2026 purse key v1", seed + self.salt.encode() + u32(self.index))


class KeyRing:
    """The public halves, in a file; with the seed each makes its secret half again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        file = read_json(path)
        try:
            self._salt = str(file["salt"])
            self._keys = {
                bytes.fromhex(one["public"].removeprefix("0x")): _Known(str(one["salt"]), int(one["index"]))
                for one in file["keys"]
            }
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            # A key that is left out would hide its money.
            raise PurseFileError(path, f"it is damaged ({error}): restore the purse from a copy") from error

    @classmethod
    def create(cls, path: Path) -> None:
        write_json(path, {"salt": token_hex(16), "keys": []})

    def _save(self) -> None:
        keys = [{"public": "0x" + key.hex(), "salt": of.salt, "index": of.index} for key, of in self._keys.items()]
        write_json(self._path, {"salt": self._salt, "keys": keys})

    def __contains__(self, key: bytes) -> bool:
        return key in self._keys

    @property
    def public(self) -> list[bytes]:
        return list(self._keys)

    def make(self, seed: bytes) -> bytes:
        """A new key, stored durably; its public half."""
        index = max((of.index + 1 for of in self._keys.values() if of.salt == self._salt), default=0)
        return self._remember(seed, _Known(self._salt, index))

    def _remember(self, seed: bytes, known: _Known) -> bytes:
        key = ed25519.public(known.seed(seed))
        self._keys[key] = known
        self._save()
        return key

    def secret(self, seed: bytes, key: bytes) -> bytes:
        """The seed of one of these keys."""
        if key not in self._keys:
            raise PurseError(f"0x{key.hex()} is not a key of this purse")
        secret = self._keys[key].seed(seed)
        if ed25519.public(secret) != key:
            raise PurseError("the seed and the list of keys belong to different purses: restore both from one copy")
        return secret

    def renew_salt(self) -> None:
        """Later keys have another salt."""
        self._salt = token_hex(16)
        self._save()

    def find_lost(self, seed: bytes, wanted: set[bytes]) -> None:
        """Looks among `wanted` for keys of an earlier life of the purse, and keeps those that it finds."""
        unknown = {key for key in wanted if key not in self}
        last = {self._salt: 0}
        for of in self._keys.values():
            last[of.salt] = max(last.get(of.salt, 0), of.index)
        for salt, first in last.items() if unknown else ():
            for index in range(first, first + LOST_KEYS):
                known = _Known(salt, index)
                if ed25519.public(known.seed(seed)) in unknown:
                    self._remember(seed, known)
