// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// The exchange's offers, at 0x57616c7261730000000000000000000100000000.
///
/// Assets are named by their tokens. An offer is named by one word: the numbers of the two assets, the limit price and
/// the id, which the owner completes. It rests from the end of the block on and meets the batch of the next one. What
/// it gets is paid to its owner's balance without a call, and told by `Filled`.
interface IOffers {
    /// The caller's units are locked; the offer rests from the end of this block.
    event Placed(
        address indexed owner, bytes32 indexed offer, address sell, address buy, uint64 amount, uint64 asks
    );
    /// The offer is in batches up to that of block `until`, and ends with it.
    event Ends(address indexed owner, bytes32 indexed offer, uint64 until);
    /// The offer's last block has passed, and `returned` units went back. In the same receipt as `Filled`.
    event Ended(address indexed owner, bytes32 indexed offer, uint64 returned);
    /// What the offer locked went back to its owner.
    event Cancelled(address indexed owner, bytes32 indexed offer, uint64 returned);
    /// A batch sold units of the offer. `left` still rest; `returned` went back, because they are too few to rest.
    /// These logs are in the first receipt of a block, which is of no transaction.
    event Filled(
        address indexed owner, bytes32 indexed offer, uint64 sold, uint64 bought, uint64 left, uint64 returned
    );

    /// No asset has its token there.
    error UnknownAsset(address token);
    /// An offer sells one asset for another.
    error SameAsset();
    /// Amounts end below 2^63.
    error AmountTooLarge(uint256 amount);
    /// The offer sells less than the least of the asset.
    error SellsTooLittle(uint64 least);
    /// The offer asks for less than the least of the asset.
    error AsksTooLittle(uint64 least);
    /// The caller has less than it offers.
    error InsufficientBalance(uint256 held, uint64 needed);
    /// The exchange takes no offers until some have traded or been cancelled.
    error BookFull();
    /// The offer would open a pair, and as many as may are open.
    error TooManyPairs();
    /// The last block must be `first` at least: an offer is in no batch before it.
    error LifeEnded(uint64 first);
    /// The last block may be `last` at most.
    error LifeTooLong(uint64 last);
    /// As many offers end at `until` as may: name the next block.
    error EndsCrowded(uint64 until);
    /// A list of no offers.
    error NoOffers();
    /// A list of more offers than may be cancelled at once.
    error TooManyOffers(uint256 named, uint256 most);
    /// A list names an offer twice.
    error NamedTwice(bytes32 offer);
    /// No such offer of the caller rests: it was sold, cancelled, or never placed here.
    error UnknownOffer(bytes32 offer);
    /// The offers are called at their own address, not by DELEGATECALL or CALLCODE.
    error CalledByDelegation();
    /// A static call places and cancels nothing.
    error StaticCall();
    /// Asset 0 is offered out of the balance, and not sent along.
    error TakesNoValue();
    /// There is no such function.
    error UnknownFunction();

    /// Offers `amount` units of one asset for at least `asks` units of another, the price rounded up.
    function place(address sell, address buy, uint64 amount, uint64 asks) external returns (bytes32 offer);

    /// The same for an offer that ends with block `until`; `block.number + 1` is one batch, and 0 no end.
    function place(
        address sell, address buy, uint64 amount, uint64 asks, uint64 until
    ) external returns (bytes32 offer);

    /// Takes an offer of the caller's back; `returned` units are there at once.
    function cancel(bytes32 offer) external returns (uint64 returned);

    /// The same for up to 32 different offers. Those that do not rest return 0; if none rests, the call reverts.
    function cancel(bytes32[] calldata offers) external returns (uint64[] memory returned);

    /// Units that an offer still sells; zero if it does not rest.
    function amountOf(address owner, bytes32 offer) external view returns (uint64 amount);

    /// How many offers an owner has placed here. Their ids count up from 2^63.
    function placedBy(address owner) external view returns (uint64 count);

    /// What an asset was worth in the batch of this block, times 10^34; only ratios mean anything. Zero if it had no
    /// price there. A transaction sees the batch that was cleared before it.
    function valuation(address token) external view returns (uint256 value, uint64 height);

    /// Units of `buy` for 10^18 units of `sell` in the batch of this block, rounded down; zero if either had no price.
    function rate(address sell, address buy) external view returns (uint256 units, uint64 height);
}

/// What the token of an asset has of ERC-20.
interface IToken {
    function balanceOf(address holder) external view returns (uint256);
    function decimals() external view returns (uint8);
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// Where things are.
library Walras {
    IOffers internal constant OFFERS = IOffers(0x57616c7261730000000000000000000100000000);
    /// The read-only token of asset 0, which moves as value.
    address internal constant ASSET_0 = 0x57616c7261730000000000000000000000000000;

    /// Units of an asset that somebody has.
    function units(address token, address holder) internal view returns (uint256) {
        return IToken(token).balanceOf(holder);
    }

    /// Pays units of an asset, whichever it is.
    function pay(address token, address payable to, uint256 amount) internal {
        if (amount == 0) return;
        if (token != ASSET_0) {
            IToken(token).transfer(to, amount);
            return;
        }
        (bool paid, ) = to.call{value: amount * 10 ** (18 - IToken(token).decimals())}("");
        require(paid, "the receiver refused the payment");
    }
}
