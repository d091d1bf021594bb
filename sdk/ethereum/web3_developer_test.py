"""web3.py, as it comes from the registry, against `walras demo --developer`."""

import json
import os
from pathlib import Path

import pytest
from web3 import HTTPProvider, Web3
from web3.exceptions import TransactionNotFound

ARTIFACT = json.loads((Path(__file__).parent / "build" / "Guestbook.json").read_text())


@pytest.fixture(scope="module")
def w3():
    web3 = Web3(HTTPProvider(os.environ["WALRAS_ETHEREUM"]))
    assert web3.is_connected()
    web3.eth.default_account = web3.eth.accounts[4]
    return web3


def ask(w3, method, *params):
    answer = w3.provider.make_request(method, list(params))
    assert "error" not in answer, answer
    return answer["result"]


def test_the_nodes_own_accounts_send_and_what_is_reverted_never_was(w3):
    factory = w3.eth.contract(abi=ARTIFACT["abi"], bytecode=ARTIFACT["bytecode"])
    address = w3.eth.wait_for_transaction_receipt(factory.constructor().transact()).contractAddress
    guestbook = w3.eth.contract(address=address, abi=ARTIFACT["abi"])
    height, balance = w3.eth.block_number, w3.eth.get_balance(w3.eth.default_account)
    snapshot = ask(w3, "evm_snapshot")
    sent = guestbook.functions.sign("web3.py").transact()
    assert w3.eth.get_transaction_receipt(sent).status == 1
    assert guestbook.functions.count().call() == 1
    ask(w3, "evm_mine")
    assert ask(w3, "evm_revert", snapshot) is True
    assert w3.eth.block_number == height
    assert w3.eth.get_balance(w3.eth.default_account) == balance
    assert guestbook.functions.count().call() == 0
    assert guestbook.events.Signed.get_logs(from_block=0) == []
    with pytest.raises(TransactionNotFound):
        w3.eth.get_transaction(sent)


def test_time_and_balances_are_the_developers(w3):
    before = w3.eth.get_block("latest").timestamp
    ask(w3, "evm_setNextBlockTimestamp", before + 5_000)
    ask(w3, "anvil_mine", 2)
    assert w3.eth.get_block("latest").timestamp >= before + 5_000
    poor = Web3.to_checksum_address("0x00000000000000000000000000000000000000bb")
    ask(w3, "anvil_setBalance", poor, hex(10**18))
    assert w3.eth.get_balance(poor) == 10**18
