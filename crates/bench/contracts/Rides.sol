// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.0;

/// A customer looks for the nearest of a thousand drivers, whose places follow from their numbers: much to compute and
/// little to write.
contract Rides {
    uint256 private constant DRIVERS = 1_000;
    uint256 private constant SIDE = 10_000;

    event Found(address indexed customer, uint256 driver, uint256 distance);

    function find(uint256 x, uint256 y) external {
        (uint256 nearest, uint256 least) = (0, type(uint256).max);
        for (uint256 driver = 0; driver < DRIVERS; driver++) {
            uint256 square = apart(x, (driver * 7919) % SIDE) + apart(y, (driver * 6131) % SIDE);
            if (square < least) {
                (nearest, least) = (driver, square);
            }
        }
        emit Found(msg.sender, nearest, root(least));
    }

    function apart(uint256 a, uint256 b) private pure returns (uint256) {
        uint256 difference = a > b ? a - b : b - a;
        return difference * difference;
    }

    /// The square root, rounded down, by Newton's method.
    function root(uint256 value) private pure returns (uint256 result) {
        result = value;
        uint256 next = value / 2 + 1;
        while (next < result) {
            result = next;
            next = (value / next + next) / 2;
        }
    }
}
