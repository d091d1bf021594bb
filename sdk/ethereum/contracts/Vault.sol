// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Walras} from "./IOffers.sol";

/// A fund of two assets: asset 0, and one other. People pay in asset 0 until the manager's first trade, a share for each
/// wei. The manager trades the one for the other on the exchange, and can do nothing else with them. Whoever redeems
/// shares has a part of both.
///
/// What an offer locks is nobody's part, so shares are redeemed only while no offer of the fund rests.
contract Vault {
    address public immutable manager;
    address public immutable asset;
    /// The one offer that the fund may have, or had last; zero before the first.
    bytes32 public offer;
    uint256 public totalShares;
    mapping(address holder => uint256) public sharesOf;

    event Joined(address indexed holder, uint256 shares);
    event Redeemed(address indexed holder, uint256 shares, uint256 units, uint256 value);

    error NotTheManager();
    error ClosedToNewMoney();
    error OfferRests(bytes32 offer);
    error NotSoManyShares(uint256 held);
    error NotPaid();

    constructor(address asset_) {
        manager = msg.sender;
        asset = asset_;
    }

    modifier settled() {
        if (isTrading()) revert OfferRests(offer);
        _;
    }

    modifier byManager() {
        if (msg.sender != manager) revert NotTheManager();
        _;
    }

    /// Whether the fund's offer rests. What it sold has been paid to the fund's balance.
    function isTrading() public view returns (bool) {
        return Walras.OFFERS.amountOf(address(this), offer) > 0;
    }

    function join() external payable {
        if (offer != 0) revert ClosedToNewMoney();
        totalShares += msg.value;
        sharesOf[msg.sender] += msg.value;
        emit Joined(msg.sender, msg.value);
    }

    function redeem(uint256 shares) external settled {
        uint256 held = sharesOf[msg.sender];
        if (shares == 0 || shares > held) revert NotSoManyShares(held);
        uint256 units = Walras.units(asset, address(this)) * shares / totalShares;
        uint256 value = address(this).balance * shares / totalShares;
        sharesOf[msg.sender] = held - shares;
        totalShares -= shares;
        emit Redeemed(msg.sender, shares, units, value);
        Walras.pay(asset, payable(msg.sender), units);
        (bool paid, ) = msg.sender.call{value: value}("");
        if (!paid) revert NotPaid();
    }

    /// Buys the other asset for units of asset 0.
    function buy(uint64 amount, uint64 asks) external byManager settled {
        offer = Walras.OFFERS.place(Walras.ASSET_0, asset, amount, asks);
    }

    /// Sells the other asset for units of asset 0.
    function sell(uint64 amount, uint64 asks) external byManager settled {
        offer = Walras.OFFERS.place(asset, Walras.ASSET_0, amount, asks);
    }

    /// Takes the resting offer back.
    function cancel() external byManager {
        Walras.OFFERS.cancel(offer);
    }
}
