// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Walras} from "../IOffers.sol";
import {MockExchange, MockOffers} from "../MockOffers.sol";
import {Vault} from "../Vault.sol";

contract VaultTest {
    address private constant EUR = 0x57616C7261730000000000000000000000000001;
    MockOffers private exchange;
    Vault private vault;

    function setUp() public {
        exchange = MockExchange.install(2);
        vault = new Vault(EUR);
        MockExchange.give(EUR, address(vault), 100_000);
    }

    function test_a_sale_locks_units_and_its_fill_is_paid_in_value() public {
        vault.sell(60_000, 50_000);
        bytes32 offer = vault.offer();
        require(vault.isTrading() && Walras.units(EUR, address(vault)) == 40_000, "the units are locked");
        exchange.fill(address(vault), offer, 45_000, 40_000);
        require(exchange.amountOf(address(vault), offer) == 15_000, "the rest waits");
        require(address(vault).balance == 40_000 * 10 ** 12, "asset 0 is value");
        vault.cancel();
        require(!vault.isTrading() && Walras.units(EUR, address(vault)) == 55_000, "the rest came back");
    }

    function test_nobody_offers_more_than_there_is() public {
        try vault.sell(100_001, 50_000) {
            revert("it must be refused");
        } catch (bytes memory why) {
            require(bytes4(why) == bytes4(keccak256("InsufficientBalance(uint256,uint64)")), "by its error");
        }
    }
}
