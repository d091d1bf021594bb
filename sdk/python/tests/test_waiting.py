"""Waiting for a while, on an event loop."""

import asyncio

import pytest

from walras.client.waiting import within


def test_a_cancellation_that_comes_with_the_result_is_not_lost() -> None:
    async def run() -> None:
        message: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def receive() -> str:
            return await message

        waiting = asyncio.create_task(within(receive(), 60))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        message.set_result("a message")
        # The receiver ends in the next turn of the loop, and whoever waits is cancelled in it.
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(run())


def test_what_does_not_come_in_time_is_given_up() -> None:
    ended = []

    async def receive() -> str:
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            ended.append(True)

    async def run() -> None:
        with pytest.raises(TimeoutError):
            await within(receive(), 0.01)
        await asyncio.sleep(0)
        assert await within(asyncio.sleep(0, "a result"), 60) == "a result"

    asyncio.run(run())
    assert ended == [True]
