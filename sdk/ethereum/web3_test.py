"""web3.py, as it comes from the registry, against a node."""

import asyncio
import json
import os
from pathlib import Path

import pytest
from eth_account import Account
from web3 import AsyncWeb3, HTTPProvider, Web3, WebSocketProvider
from web3.exceptions import ContractCustomError, ContractLogicError, Web3RPCError

URL = os.environ["WALRAS_ETHEREUM"]
ARTIFACT = json.loads((Path(__file__).parent / "build" / "Guestbook.json").read_text())
WALLET = Account.from_key("0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a")
OFFERS_ABI = json.loads((Path(__file__).parent / "abi" / "IOffers.json").read_text())
OFFERS = Web3.to_checksum_address("0x57616c7261730000000000000000000100000000")
USD, EUR = (Web3.to_checksum_address(f"0x57616c7261730000000000000000000000{asset:06x}") for asset in range(2))
OTHER = Account.from_key("0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba")


@pytest.fixture(scope="module")
def w3():
    web3 = Web3(HTTPProvider(URL))
    assert web3.is_connected()
    return web3


def send(w3, call, wallet=WALLET):
    """Signs and sends a call; its receipt."""
    fields = {"from": wallet.address, "nonce": w3.eth.get_transaction_count(wallet.address, "pending")}
    signed = wallet.sign_transaction(call.build_transaction(fields))
    sent = w3.eth.send_raw_transaction(signed.raw_transaction)
    return w3.eth.wait_for_transaction_receipt(sent, timeout=30, poll_latency=0.05)


@pytest.fixture(scope="module")
def guestbook(w3):
    factory = w3.eth.contract(abi=ARTIFACT["abi"], bytecode=ARTIFACT["bytecode"])
    receipt = send(w3, factory.constructor())
    assert receipt.status == 1
    return w3.eth.contract(address=receipt.contractAddress, abi=ARTIFACT["abi"])


def test_the_chain_is_what_the_demo_says(w3):
    assert w3.eth.chain_id == 31337
    block = w3.eth.get_block("latest", full_transactions=True)
    assert block.number > 0 and block.baseFeePerGas > 0
    assert w3.eth.get_block("finalized").number >= block.number
    history = w3.eth.fee_history(2, "latest", [50])
    assert len(history["baseFeePerGas"]) == len(history["gasUsedRatio"]) + 1
    assert w3.eth.syncing is False and w3.eth.accounts == []
    assert w3.client_version.startswith("Walras/") and w3.net.version == "31337"


def test_a_contract_is_written_read_and_tells_what_happened(w3, guestbook):
    receipt = send(w3, guestbook.functions.sign("hello"))
    assert receipt.status == 1
    assert guestbook.functions.words(WALLET.address).call() == "hello"
    events = guestbook.events.Signed.get_logs(
        from_block=receipt.blockNumber, argument_filters={"who": WALLET.address}
    )
    assert [event.args.words for event in events] == ["hello"]
    before = guestbook.functions.count().call(block_identifier=receipt.blockNumber - 1)
    assert guestbook.functions.count().call() == before + 1


def test_filters_tell_each_event_once(w3, guestbook):
    watched = guestbook.events.Signed.create_filter(from_block="latest")
    blocks = w3.eth.filter("latest")
    receipt = send(w3, guestbook.functions.sign("by a filter"))
    assert [event.args.words for event in watched.get_new_entries()] == ["by a filter"]
    assert watched.get_new_entries() == []
    assert receipt.blockHash in blocks.get_new_entries()


def test_why_a_call_reverted_is_decoded(guestbook):
    with pytest.raises(ContractLogicError, match="say something"):
        guestbook.functions.sign("").call()
    with pytest.raises(ContractCustomError):
        guestbook.functions.sign("x" * 101).call()


def test_typed_data_is_signed_by_one_and_brought_by_another(w3, guestbook):
    entry = {"who": OTHER.address, "words": "signed elsewhere"}
    domain = {"name": "Guestbook", "version": "1", "chainId": 31337, "verifyingContract": guestbook.address}
    types = {"Entry": [{"name": "who", "type": "address"}, {"name": "words", "type": "string"}]}
    signed = OTHER.sign_typed_data(domain, types, entry)
    call = guestbook.functions.signFor(
        (entry["who"], entry["words"]), signed.v, signed.r.to_bytes(32, "big"), signed.s.to_bytes(32, "big")
    )
    assert send(w3, call).status == 1
    assert guestbook.functions.words(OTHER.address).call() == entry["words"]


def test_what_is_refused_has_a_reason(w3):
    request = {"to": OTHER.address, "value": 1, "gas": 21_000, "chainId": 31337, "gasPrice": w3.eth.gas_price}
    used = WALLET.sign_transaction({**request, "nonce": 0})
    with pytest.raises(Web3RPCError, match="nonce too low"):
        w3.eth.send_raw_transaction(used.raw_transaction)
    foreign = WALLET.sign_transaction({**request, "nonce": 99, "chainId": 1})
    with pytest.raises(Web3RPCError, match="invalid chain id"):
        w3.eth.send_raw_transaction(foreign.raw_transaction)


def test_the_settlement_of_an_offer_is_read(w3):
    offers = w3.eth.contract(address=OFFERS, abi=OFFERS_ABI)
    first = send(w3, offers.functions.place(EUR, USD, 30_000_000, 3_000_000))
    send(w3, offers.functions.place(USD, EUR, 60_000_000, 6_000_000), OTHER)
    events = []
    while not events:
        owner = {"owner": WALLET.address}
        events = offers.events.Filled.get_logs(from_block=first.blockNumber, argument_filters=owner)
    event = events[0]
    assert event.transactionIndex == 0 and 0 < event.args.sold <= 30_000_000
    receipt = w3.eth.get_transaction_receipt(event.transactionHash)
    assert (receipt.status, receipt.gasUsed, receipt["from"]) == (1, 0, OFFERS)
    assert event.args.bought in [one.args.bought for one in offers.events.Filled().process_receipt(receipt)]
    transaction = w3.eth.get_transaction(event.transactionHash)
    assert (transaction.to, transaction.gas, transaction.value) == (OFFERS, 0, 0)
    block = w3.eth.get_block(event.blockNumber, full_transactions=True)
    assert block.transactions[0].hash == event.transactionHash and int.from_bytes(block.logsBloom, "big") > 0
    with pytest.raises(ContractCustomError):
        offers.functions.cancel(b"\0" * 32).call({"from": WALLET.address})


def test_requests_travel_in_batches(w3, guestbook):
    with w3.batch_requests() as batch:
        batch.add(w3.eth.get_balance(WALLET.address))
        batch.add(guestbook.functions.count())
        batch.add(w3.eth.get_block("latest"))
        balance, count, block = batch.execute()
    assert balance > 0 and count > 0 and block["number"] > 0


def test_a_subscription_tells_new_blocks(w3, guestbook):
    async def listen():
        async with AsyncWeb3(WebSocketProvider(URL.replace("http", "ws"))) as socket:
            subscription = await socket.eth.subscribe("newHeads")
            receipt = await asyncio.to_thread(send, w3, guestbook.functions.sign("over a socket"))
            async for message in socket.socket.process_subscriptions():
                assert message["subscription"] == subscription
                if message["result"]["hash"] == receipt.blockHash:
                    return

    asyncio.run(asyncio.wait_for(listen(), 30))
