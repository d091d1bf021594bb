"""titanoboa, unmodified, against a developers' chain: deploy, call, revert. WALRAS_ETHEREUM names its door."""

import os

import boa
import pytest
from eth_account import Account

# The first key of the mnemonic that everybody knows.
KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"

COUNTER = """
count: public(uint256)

@external
def raise_by(more: uint256) -> uint256:
    assert more < 10, "too much"
    self.count += more
    return self.count
"""


@pytest.fixture(scope="module")
def network():
    url = os.environ.get("WALRAS_ETHEREUM")
    if not url:
        pytest.skip("WALRAS_ETHEREUM names no node")
    with boa.set_network_env(url) as env:
        env.add_account(Account.from_key(KEY))
        yield env


def test_a_contract_is_deployed_called_and_reverts_with_its_reason(network):
    counter = boa.loads(COUNTER)
    assert counter.count() == 0
    assert counter.raise_by(7) == 7
    assert counter.count() == 7
    with boa.reverts("too much"):
        counter.raise_by(10)


def test_an_anchor_goes_back(network):
    counter = boa.loads(COUNTER)
    with network.anchor():
        counter.raise_by(3)
        assert counter.count() == 3
    assert counter.count() == 0
