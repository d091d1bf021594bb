// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// The code that the address of the offers shows. A node never runs it: there, a call of the offers is answered by the
/// ledger. Tools that fetch code from a node and execute by themselves cannot see the book, and are told so.
contract Offers {
    fallback() external {
        revert("the offers of the exchange are executed by a node only: send or call without a local simulation");
    }
}
