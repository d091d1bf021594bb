// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.0;

/// Five stocks of which everybody buys one at a time: every buyer of a stock writes one and the same slot.
contract Exchange {
    uint256 public apple = 10_000_000;
    uint256 public amazon = 10_000_000;
    uint256 public facebook = 10_000_000;
    uint256 public google = 10_000_000;
    uint256 public microsoft = 10_000_000;

    event Bought(address indexed buyer, uint256 left);

    function buyApple() external {
        require(apple > 0, "sold out");
        apple -= 1;
        emit Bought(msg.sender, apple);
    }

    function buyAmazon() external {
        require(amazon > 0, "sold out");
        amazon -= 1;
        emit Bought(msg.sender, amazon);
    }

    function buyFacebook() external {
        require(facebook > 0, "sold out");
        facebook -= 1;
        emit Bought(msg.sender, facebook);
    }

    function buyGoogle() external {
        require(google > 0, "sold out");
        google -= 1;
        emit Bought(msg.sender, google);
    }

    function buyMicrosoft() external {
        require(microsoft > 0, "sold out");
        microsoft -= 1;
        emit Bought(msg.sender, microsoft);
    }
}
