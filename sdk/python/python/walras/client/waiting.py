"""Waiting for a while, on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

__all__ = ["within"]


async def within(awaited: Coroutine[Any, Any, T], seconds: float) -> T:
    """What is awaited, or ``TimeoutError``. ``asyncio.wait_for`` of Python 3.11 and before loses a cancellation that
    comes in the same moment as the result, so that a busy stream could not be ended."""
    task = asyncio.ensure_future(awaited)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    finally:
        if not task.done():
            task.cancel()
    if not done:
        raise TimeoutError
    return task.result()
