// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IOffers, IToken, Walras} from "./IOffers.sol";

/// What the mock needs of foundry.
interface Vm {
    function etch(address target, bytes calldata code) external;
    function deal(address account, uint256 wei_) external;
}

Vm constant VM = Vm(0x7109709ECfa91a80626fF3989D68f67F5b1DD12D);

/// An exchange for `forge test`, whose machine has no offers: call `MockExchange.install` first. The test is the batch.
library MockExchange {
    /// Puts the offers and the tokens of assets 0 to `assets - 1`, of six decimals each, at their addresses.
    function install(uint32 assets) internal returns (MockOffers) {
        VM.etch(address(Walras.OFFERS), type(MockOffers).runtimeCode);
        for (uint160 number; number < assets; number++) {
            VM.etch(address(uint160(Walras.ASSET_0) + number), type(MockToken).runtimeCode);
        }
        return MockOffers(address(Walras.OFFERS));
    }

    /// Gives units of an asset to an account.
    function give(address token, address to, uint256 units) internal {
        MockToken(token).set(to, IToken(token).balanceOf(to) + units);
    }
}

/// The token of an asset; that of asset 0 shows the wei of its holders.
contract MockToken {
    uint8 public constant decimals = 6;
    mapping(address => uint256) private held;

    function balanceOf(address holder) public view returns (uint256) {
        return isValue() ? holder.balance / 10 ** 12 : held[holder];
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        require(!isValue(), "asset 0 moves as value");
        require(held[msg.sender] >= amount, "ERC20: transfer amount exceeds balance");
        held[msg.sender] -= amount;
        held[to] += amount;
        return true;
    }

    /// For tests and the mock alone: what an account has.
    function set(address holder, uint256 units) external {
        if (isValue()) VM.deal(holder, units * 10 ** 12 + holder.balance % 10 ** 12);
        else held[holder] = units;
    }

    function isValue() private view returns (bool) {
        return address(this) == Walras.ASSET_0;
    }
}

/// The offers, with the errors and events of the exchange, but without its limits of sizes, pairs and lives.
/// An offer's word is its own here: only its last eight bytes, the id, are those of the exchange.
contract MockOffers {
    struct Resting {
        address sell;
        address buy;
        uint64 amount;
    }

    mapping(address => mapping(bytes32 => Resting)) private resting;
    mapping(address => uint64) public placedBy;

    function place(address sell, address buy, uint64 amount, uint64 asks) external returns (bytes32 offer) {
        if (sell == buy) revert IOffers.SameAsset();
        if (sell.code.length == 0) revert IOffers.UnknownAsset(sell);
        if (buy.code.length == 0) revert IOffers.UnknownAsset(buy);
        take(sell, amount);
        offer = bytes32(uint256(keccak256(abi.encode(sell, buy, asks))) << 64 | (1 << 63) + placedBy[msg.sender]++);
        resting[msg.sender][offer] = Resting(sell, buy, amount);
        emit IOffers.Placed(msg.sender, offer, sell, buy, amount, asks);
    }

    function cancel(bytes32 offer) external returns (uint64 returned) {
        Resting memory found = resting[msg.sender][offer];
        returned = found.amount;
        if (returned == 0) revert IOffers.UnknownOffer(offer);
        delete resting[msg.sender][offer];
        MockExchange.give(found.sell, msg.sender, returned);
        emit IOffers.Cancelled(msg.sender, offer, returned);
    }

    function amountOf(address owner, bytes32 offer) external view returns (uint64) {
        return resting[owner][offer].amount;
    }

    /// What a batch does to an offer: the test says how much of it was sold, and for how much.
    function fill(address owner, bytes32 offer, uint64 sold, uint64 bought) external {
        Resting storage found = resting[owner][offer];
        if (found.amount < sold) revert IOffers.UnknownOffer(offer);
        found.amount -= sold;
        MockExchange.give(found.buy, owner, bought);
        emit IOffers.Filled(owner, offer, sold, bought, found.amount, 0);
    }

    function take(address token, uint64 amount) private {
        uint256 held = IToken(token).balanceOf(msg.sender);
        if (held < amount) revert IOffers.InsufficientBalance(held, amount);
        MockToken(token).set(msg.sender, held - amount);
    }
}
