// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.0;

/// Ten players on a square map. Every update moves all of them: twenty slots that everybody writes.
contract Game {
    int256 private constant SIDE = 250;
    int256[10] public x;
    int256[10] public y;

    /// Moves each player, and turns it round at the border.
    function update(int256 dx, int256 dy) external {
        for (uint256 player = 0; player < 10; player++) {
            x[player] = within(x[player] + dx);
            y[player] = within(y[player] + dy);
        }
    }

    function within(int256 place) private pure returns (int256) {
        return place > SIDE ? -SIDE : place < -SIDE ? SIDE : place;
    }
}
