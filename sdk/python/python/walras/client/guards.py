"""What goes on beside the calls: a timer that keeps a slot alive, and a connection whose end stops it.

Both begin when they are made, and end when they are closed or when they can do nothing any more; `error` says why then.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any

from websockets.asyncio.client import ClientConnection, connect as connect_async
from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection as SyncConnection, connect

from walras.client.errors import ClientError, NoAnswerError, SessionKeyError
from walras.client.flow import Flow
from walras.client.slots import Leaving
from walras.client.stream import SILENCE_S
from walras.client.waiting import within

__all__ = ["AsyncDisconnectGuard", "AsyncKeepAlive", "DisconnectGuard", "KeepAlive"]

_RETRY_S = 0.5
_LOOK_S = 0.1
_BROKEN = "the connection ended before the node said that it submits nothing: the guarded offers may have ended"


class KeepAlive:
    """Keeps a slot alive until it is closed; see `Client.keep_alive`."""

    def __init__(self, run: Callable[[Flow[float]], float], beat: Callable[[], Flow[float]]) -> None:
        self._run, self._beat = run, beat
        self._closed = threading.Event()
        self.error: ClientError | None = None
        """Why it has ended by itself; or why the last heartbeat failed, while it tries again."""
        self._thread = threading.Thread(target=self._work, name="walras keep alive", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while not self._closed.is_set():
            try:
                pause, self.error = self._run(self._beat()), None
            except SessionKeyError as error:
                self.error = error
                return
            except ClientError as error:
                pause, self.error = _RETRY_S, error
            self._closed.wait(pause)

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def close(self) -> None:
        """Ends it; the slot's timer runs on."""
        self._closed.set()
        self._thread.join()

    def __enter__(self) -> KeepAlive:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncKeepAlive:
    """Keeps a slot alive until it is closed; see `Client.keep_alive`."""

    def __init__(self, run: Callable[[Flow[float]], Awaitable[float]], beat: Callable[[], Flow[float]]) -> None:
        self._run, self._beat = run, beat
        self.error: ClientError | None = None
        self._task = asyncio.ensure_future(self._work())

    async def _work(self) -> None:
        while True:
            try:
                pause, self.error = await self._run(self._beat()), None
            except SessionKeyError as error:
                self.error = error
                return
            except ClientError as error:
                pause, self.error = _RETRY_S, error
            await asyncio.sleep(pause)

    @property
    def is_running(self) -> bool:
        return not self._task.done()

    async def close(self) -> None:
        """Ends it; the slot's timer runs on."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def __aenter__(self) -> AsyncKeepAlive:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class DisconnectGuard:
    """A connection whose end ends offers; see `Client.cancel_on_disconnect`. The `with` block begins once the node holds what ends
    them."""

    def __init__(
        self, run: Callable[[Flow[Any]], Any], leaving: Callable[[], Leaving], url: str, headers: Mapping[str, str]
    ) -> None:
        self._run, self._leaving, self._url, self._headers = run, leaving(), url, headers
        self._settled = threading.Event()
        """The node holds what ends the offers, or the connection has ended."""
        self.error: ClientError | None = None
        """Why the connection has ended: then the node has submitted what was left, unless the node itself has failed."""
        self._socket: SyncConnection | None = None
        self._thread = threading.Thread(target=self._work, name="walras disconnect guard", daemon=True)

    def __enter__(self) -> DisconnectGuard:
        self._thread.start()
        self._settled.wait()
        if self.error is not None:
            raise self.error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.withdraw()
        else:
            self.close()

    @property
    def is_held(self) -> bool:
        """Whether the connection lives and the node holds what ends the guarded offers, if there are any."""
        return self.error is None and self._leaving.is_held

    @property
    def beyond(self) -> int:
        """Of a guard without a slot, the resting offers beyond those that one cancel names: they stay."""
        return self._leaving.beyond

    def withdraw(self) -> None:
        """Takes back what was left and closes the connection: the offers stay. Raises a `ClientError` where the connection
        has ended before."""
        if self._socket is not None and self.error is None:
            try:
                self._socket.send(self._leaving.withdrawal())
            except (OSError, WebSocketException):
                # The thread says why.
                pass
        self._thread.join()
        if not self._leaving.is_withdrawn:
            raise self.error or NoAnswerError(self._url, _BROKEN)

    def close(self) -> None:
        """Closes the connection: the node submits what was left."""
        if self._socket is not None:
            self._socket.close()
        self._thread.join()

    def _work(self) -> None:
        try:
            with connect(self._url, additional_headers=self._headers) as socket:
                self._socket = socket
                socket.send(self._leaving.opened())
                heard = time.monotonic()
                while not self._leaving.is_withdrawn:
                    try:
                        flow = self._leaving.receive(str(socket.recv(timeout=_LOOK_S)))
                        heard = time.monotonic()
                    except TimeoutError:
                        if time.monotonic() - heard > SILENCE_S:
                            raise
                        flow = self._leaving.look()
                    if (reply := self._run(flow)) is not None:
                        socket.send(reply)
                    if self._leaving.is_held:
                        self._settled.set()
        except ClientError as error:
            self.error = error
        except TimeoutError:
            self.error = NoAnswerError(self._url, f"the node has been silent for {SILENCE_S:.0f} seconds")
        except (OSError, WebSocketException) as error:
            self.error = NoAnswerError(self._url, str(error))
        finally:
            self._leaving.ended()
            self._settled.set()


class AsyncDisconnectGuard:
    """A connection whose end ends offers; see `Client.cancel_on_disconnect`. The `async with` block begins
    once the node holds what ends them."""

    def __init__(
        self,
        run: Callable[[Flow[Any]], Awaitable[Any]],
        leaving: Callable[[], Leaving],
        url: str,
        headers: Mapping[str, str],
    ) -> None:
        self._run, self._leaving, self._url, self._headers = run, leaving(), url, headers
        self._settled = asyncio.Event()
        self.error: ClientError | None = None
        self._socket: ClientConnection | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> AsyncDisconnectGuard:
        self._task = asyncio.create_task(self._work())
        await self._settled.wait()
        if self.error is not None:
            raise self.error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await self.withdraw()
        else:
            await self.close()

    @property
    def is_held(self) -> bool:
        """Whether the connection lives and the node holds what ends the guarded offers, if there are any."""
        return self.error is None and self._leaving.is_held

    @property
    def beyond(self) -> int:
        """Of a guard without a slot, the resting offers beyond those that one cancel names: they stay."""
        return self._leaving.beyond

    async def withdraw(self) -> None:
        """Takes back what was left and closes the connection: the offers stay. Raises a `ClientError` where the connection
        has ended before."""
        if self._socket is not None and self.error is None:
            try:
                await self._socket.send(self._leaving.withdrawal())
            except (OSError, WebSocketException):
                # The task says why.
                pass
        await self._ended()
        if not self._leaving.is_withdrawn:
            raise self.error or NoAnswerError(self._url, _BROKEN)

    async def close(self) -> None:
        """Closes the connection: the node submits what was left."""
        if self._socket is not None:
            await self._socket.close()
        await self._ended()

    async def _ended(self) -> None:
        if self._task is not None:
            await self._task

    async def _work(self) -> None:
        try:
            async with connect_async(self._url, additional_headers=self._headers) as socket:
                self._socket = socket
                await socket.send(self._leaving.opened())
                heard = time.monotonic()
                while not self._leaving.is_withdrawn:
                    try:
                        flow = self._leaving.receive(str(await within(socket.recv(), _LOOK_S)))
                        heard = time.monotonic()
                    except (TimeoutError, asyncio.TimeoutError):
                        if time.monotonic() - heard > SILENCE_S:
                            raise
                        flow = self._leaving.look()
                    if (reply := await self._run(flow)) is not None:
                        await socket.send(reply)
                    if self._leaving.is_held:
                        self._settled.set()
        except ClientError as error:
            self.error = error
        except (TimeoutError, asyncio.TimeoutError):
            self.error = NoAnswerError(self._url, f"the node has been silent for {SILENCE_S:.0f} seconds")
        except (OSError, WebSocketException) as error:
            self.error = NoAnswerError(self._url, str(error))
        finally:
            self._leaving.ended()
            self._settled.set()
