// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.0;

/// One number that every request of a web site adds to.
contract Counter {
    uint256 public count;

    function add() external {
        count += 1;
    }
}
