"""Where signed transactions are stored before they are sent, so that the same bytes can be sent again.

`FolderStore` lies beside a key file, where ``walras wallet`` keeps the same files in the same form: both number their
transactions above those that the other has stored, one at a time, and each can resend what the other did not finish.

A *reference* is the caller's own name for an intention, such as an invoice: the first transaction with it is the only
one. Its record stays when the transaction is final, so that asking again after a crash answers instead of paying twice.

A *torn* file (empty, cut short, of another id) tells of a disk that failed or of an older version: only what was stored
whole was ever sent. A sender asks the chain about its id and removes it.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from walras.client.encoding import Signed, raw
from walras.client.errors import StoreError

__all__ = ["FolderStore", "MemoryStore", "Store"]


class Store(Protocol):
    """Keeps transactions that are not final."""

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Excludes others that give numbers to transactions of this key."""

    def keep(self, signed: Signed, reference: str | None) -> None:
        """Stores a transaction, durably where the store is durable."""

    def forget(self, id: str) -> None:
        """Removes a transaction; the record of its reference stays."""

    def all(self) -> list[Signed]:
        """Every stored transaction."""

    def torn(self) -> list[str]:
        """The ids of transactions that are not stored whole."""

    def get(self, id: str) -> Signed | None:
        """A stored transaction; None also of a torn one."""

    def referenced(self, reference: str) -> Signed | None:
        """The transaction of a reference, also when it is final."""

    def release(self, reference: str, id: str) -> None:
        """Removes the record of a reference, if it is still of this transaction, which had no effect. Called within
        `reserved`."""

    def highest(self, account: str) -> int:
        """The highest sequence number that a sender with this store has taken."""

    def took(self, account: str, number: int) -> None:
        """Remembers a number that was taken."""

    def network(self) -> str | None:
        """The network that the key signed for before."""

    def sign_for(self, network: str) -> None:
        """Remembers the network that the key signs for."""


class MemoryStore:
    """Ends with the process: for tests, and for what may be lost."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._all: dict[str, Signed] = {}
        self._references: dict[str, Signed] = {}
        self._network: str | None = None
        self._highest: dict[str, int] = {}

    @contextmanager
    def reserved(self) -> Iterator[None]:
        with self._lock:
            yield

    def keep(self, signed: Signed, reference: str | None) -> None:
        with self._lock:
            self._all[signed.id] = signed
            if reference is not None:
                self._references[reference] = signed

    def forget(self, id: str) -> None:
        with self._lock:
            self._all.pop(id, None)

    def all(self) -> list[Signed]:
        with self._lock:
            return list(self._all.values())

    def torn(self) -> list[str]:
        return []

    def get(self, id: str) -> Signed | None:
        with self._lock:
            return self._all.get(id)

    def referenced(self, reference: str) -> Signed | None:
        with self._lock:
            return self._references.get(reference)

    def release(self, reference: str, id: str) -> None:
        with self._lock:
            known = self._references.get(reference)
            if known is not None and known.id == id:
                del self._references[reference]

    def highest(self, account: str) -> int:
        return self._highest.get(account, 0)

    def took(self, account: str, number: int) -> None:
        self._highest[account] = max(number, self.highest(account))

    def network(self) -> str | None:
        return self._network

    def sign_for(self, network: str) -> None:
        self._network = network


class FolderStore:
    """Beside a key file: ``KEY.pending`` holds transactions by id, ``KEY.references`` those with a reference.
    ``KEY.network`` names the network that the key signs for, ``KEY.ACCOUNT.number`` the highest number taken, and
    ``KEY.lock`` excludes other processes while a number is taken."""

    def __init__(self, key_file: str | os.PathLike[str]) -> None:
        self._base = base = os.fspath(key_file)
        self._pending, self._references = Path(base + ".pending"), Path(base + ".references")
        self._lock_file, self._network_file = Path(base + ".lock"), Path(base + ".network")
        self._lock = threading.RLock()

    @contextmanager
    def reserved(self) -> Iterator[None]:
        with self._lock:
            try:
                descriptor = os.open(self._lock_file, os.O_WRONLY | os.O_CREAT, 0o600)
            except OSError as error:
                raise self._fault(self._lock_file, "cannot be locked, so nothing is sent", error) from error
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield
            finally:
                os.close(descriptor)

    def keep(self, signed: Signed, reference: str | None) -> None:
        # The record comes first: a transaction that was sent is never without its reference.
        if reference is not None:
            record = {"reference": reference, "transaction": "0x" + signed.encoded.hex()}
            self._write(self._reference_file(reference), json.dumps(record).encode())
        self._write(self._pending / signed.id, signed.encoded)

    def forget(self, id: str) -> None:
        # A file that remains is only asked about again.
        with suppress(OSError):
            (self._pending / id).unlink(missing_ok=True)

    def all(self) -> list[Signed]:
        found = (self.get(name) for name in self._names())
        return [signed for signed in found if signed is not None]

    def torn(self) -> list[str]:
        return [name for name in self._names() if self.get(name) is None and (self._pending / name).exists()]

    def _names(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self._pending) if name.startswith("0x"))
        except FileNotFoundError:
            return []

    def get(self, id: str) -> Signed | None:
        path = self._pending / id
        try:
            signed = Signed(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._fault(path, "cannot be read", error) from error
        return signed if signed.is_whole() and signed.id == id else None

    def referenced(self, reference: str) -> Signed | None:
        path = self._reference_file(reference)
        try:
            return Signed(raw(json.loads(path.read_bytes())["transaction"]))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._fault(path, "cannot be read", error) from error
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{path} does not contain the record of a reference: {error}") from error

    def release(self, reference: str, id: str) -> None:
        known = self.referenced(reference)
        if known is not None and known.id == id:
            self._reference_file(reference).unlink(missing_ok=True)

    def highest(self, account: str) -> int:
        try:
            return int(self._number_file(account).read_text())
        except (FileNotFoundError, ValueError):
            # What a power failure takes away, the stored transactions and the node know.
            return 0
        except OSError as error:
            raise self._fault(self._number_file(account), "cannot be read", error) from error

    def took(self, account: str, number: int) -> None:
        if number > self.highest(account):
            self._write(self._number_file(account), f"{number}\n".encode(), durable=False)

    def _number_file(self, account: str) -> Path:
        return Path(f"{self._base}.{account}.number")

    def network(self) -> str | None:
        try:
            return self._network_file.read_text().strip()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._fault(self._network_file, "cannot be read", error) from error

    def sign_for(self, network: str) -> None:
        self._write(self._network_file, f"{network}\n".encode())

    def _reference_file(self, reference: str) -> Path:
        return self._references / sha256(reference.encode()).hexdigest()

    def _write(self, path: Path, content: bytes, durable: bool = True) -> None:
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            unfinished = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as out:
                out.write(content)
                out.flush()
                if durable:
                    os.fsync(out.fileno())
            unfinished.replace(path)
            if not durable:
                return
            folder = os.open(path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        except OSError as error:
            raise self._fault(path, "cannot be written, so nothing is sent", error) from error

    @staticmethod
    def _fault(path: Path, what: str, error: OSError) -> StoreError:
        return StoreError(f"{path} {what}: {error.strerror}")
