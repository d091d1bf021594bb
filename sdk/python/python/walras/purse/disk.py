"""Files that are whole whenever somebody reads them, also after a crash; and files whose place is held beforehand."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

from walras.purse.errors import PurseError, PurseFileError

__all__ = ["HeldFile", "faults_of", "make_folder", "read_bytes", "read_json", "remove", "write", "write_json"]

RESTORE = "restore it from a copy"
FETCHED_AGAIN = "remove it, and it is fetched from a node again"


@contextmanager
def faults_of(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PurseFileError(path, f"{error.strerror}: nothing was sent") from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write(path: Path, content: bytes) -> None:
    """Replaces a file at once and durably; only its owner may read it."""
    unfinished = path.with_name(f".{token_hex(8)}.unfinished")
    with faults_of(path):
        try:
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as out:
                out.write(content)
                out.flush()
                os.fsync(out.fileno())
            unfinished.replace(path)
            _sync_folder(path.parent)
        finally:
            unfinished.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    write(path, (json.dumps(value, indent=2) + "\n").encode())


def read_bytes(path: Path) -> bytes:
    with faults_of(path):
        return path.read_bytes()


def read_json(path: Path, remedy: str = RESTORE) -> Any:
    try:
        return json.loads(read_bytes(path))
    except ValueError as error:
        raise PurseFileError(path, f"it is damaged ({error}): {remedy}") from error


def remove(path: Path) -> None:
    with faults_of(path):
        path.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    with faults_of(path):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)


class HeldFile:
    """A new file whose name and room are held before money moves; unless it is kept, it is removed."""

    def __init__(self, path: Path, room: int) -> None:
        self.path = path
        try:
            self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb")
        except FileExistsError:
            raise PurseFileError(path, "exists already, and is not overwritten: give another name") from None
        except OSError as error:
            raise PurseFileError(path, f"cannot be written ({error.strerror}): nothing was paid") from error
        try:
            self._fill(b" " * room)
        except OSError as error:
            self.drop()
            raise PurseFileError(path, f"cannot be written ({error.strerror}): nothing was paid") from error

    def _fill(self, content: bytes) -> None:
        self._file.seek(0)
        self._file.write(content)
        self._file.truncate()
        self._file.flush()
        os.fsync(self._file.fileno())

    def keep(self, content: bytes) -> None:
        try:
            self._fill(content)
            self._file.close()
            _sync_folder(self.path.parent)
        except OSError as error:
            self.drop()
            what = f"cannot be written ({error.strerror}), though it was paid: `export` tells the receipt again"
            raise PurseError(f"{self.path}: {what}") from error

    def drop(self) -> None:
        """Removes it."""
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
