// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IToken, Walras} from "./IOffers.sol";

/// Orders that the exchange itself does not have: they end at a time, and may wait for a price of the batch before they
/// are placed (a stop order). Each is a contract of its own, so that what it holds is what it sold for.
contract LimitOrders {
    event Opened(address indexed owner, LimitOrder order);

    /// Opens an order. Its units come out of the caller's allowance; of asset 0 they are sent along as value.
    function open(LimitOrder.Terms calldata terms) external payable returns (LimitOrder order) {
        order = new LimitOrder{value: msg.value}(payable(msg.sender), terms);
        if (terms.sell != Walras.ASSET_0) IToken(terms.sell).transferFrom(msg.sender, address(order), terms.amount);
        emit Opened(msg.sender, order);
        if (terms.trigger == 0) order.place();
    }
}

/// One order.
contract LimitOrder {
    struct Terms {
        address sell;
        address buy;
        uint64 amount;
        /// Units that the whole is sold for, at least.
        uint64 asks;
        /// Units of `buy` for 10^18 units of `sell`: not placed before the batch's rate is this or lower. Zero places at
        /// once.
        uint256 trigger;
        /// Seconds since 1970, from which on anybody may end it.
        uint64 until;
    }

    address payable public immutable owner;
    Terms public terms;
    /// Its name on the exchange; zero until it is placed.
    bytes32 public offer;

    error NotTriggered(uint256 rate, uint64 height);
    error PlacedAlready();
    error NotYet(uint64 until);

    constructor(address payable owner_, Terms memory terms_) payable {
        owner = owner_;
        terms = terms_;
    }

    /// Places the order, if its time has come. Anybody may call this.
    function place() external {
        if (offer != 0) revert PlacedAlready();
        if (terms.trigger > 0) {
            (uint256 rate, uint64 height) = Walras.OFFERS.rate(terms.sell, terms.buy);
            if (rate == 0 || rate > terms.trigger) revert NotTriggered(rate, height);
        }
        offer = Walras.OFFERS.place(terms.sell, terms.buy, terms.amount, terms.asks);
    }

    /// Units that are not sold yet.
    function left() external view returns (uint64) {
        return offer == 0 ? terms.amount : Walras.OFFERS.amountOf(address(this), offer);
    }

    /// Pays the owner what was bought so far.
    function collect() public {
        Walras.pay(terms.buy, owner, Walras.units(terms.buy, address(this)));
    }

    /// Takes back what is not sold, and pays everything out: the owner at any time, others when the time is over.
    function end() external {
        if (msg.sender != owner && block.timestamp < terms.until) revert NotYet(terms.until);
        if (offer != 0 && Walras.OFFERS.amountOf(address(this), offer) > 0) Walras.OFFERS.cancel(offer);
        // Never placed from now on.
        if (offer == 0) offer = bytes32(uint256(1));
        collect();
        Walras.pay(terms.sell, owner, Walras.units(terms.sell, address(this)));
    }
}
