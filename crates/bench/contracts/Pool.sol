// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.0;

interface IToken {
    function balanceOf(address owner) external view returns (uint256);
    function transfer(address to, uint256 value) external returns (bool);
    function transferFrom(address from, address to, uint256 value) external returns (bool);
}

/// A market of two tokens at a constant product, with a fee of 0.3 %, in the manner of Uniswap v2.
contract Pool {
    IToken public immutable token0;
    IToken public immutable token1;
    uint112 private reserve0;
    uint112 private reserve1;
    uint32 private lastTime;
    uint256 public cumulative0;
    uint256 public cumulative1;
    uint256 private unlocked = 1;

    event Swap(address indexed sender, uint256 in0, uint256 in1, uint256 out0, uint256 out1);
    event Sync(uint112 reserve0, uint112 reserve1);

    constructor(IToken first, IToken second) {
        token0 = first;
        token1 = second;
    }

    /// Takes what lies here as the reserves.
    function sync() external {
        update(token0.balanceOf(address(this)), token1.balanceOf(address(this)));
    }

    /// Sells an exact amount of one token for the other.
    function swap(bool zeroForOne, uint256 amountIn, uint256 least) external returns (uint256 amountOut) {
        require(unlocked == 1, "locked");
        unlocked = 2;
        (uint256 r0, uint256 r1) = (reserve0, reserve1);
        (uint256 rIn, uint256 rOut) = zeroForOne ? (r0, r1) : (r1, r0);
        uint256 withFee = amountIn * 997;
        amountOut = (withFee * rOut) / (rIn * 1000 + withFee);
        require(amountOut >= least, "too little");
        (IToken tokenIn, IToken tokenOut) = zeroForOne ? (token0, token1) : (token1, token0);
        require(tokenIn.transferFrom(msg.sender, address(this), amountIn), "in");
        require(tokenOut.transfer(msg.sender, amountOut), "out");
        uint256 b0 = token0.balanceOf(address(this));
        uint256 b1 = token1.balanceOf(address(this));
        require(b0 * b1 >= r0 * r1, "product");
        update(b0, b1);
        if (zeroForOne) {
            emit Swap(msg.sender, amountIn, 0, 0, amountOut);
        } else {
            emit Swap(msg.sender, 0, amountIn, amountOut, 0);
        }
        unlocked = 1;
    }

    function update(uint256 b0, uint256 b1) private {
        require(b0 <= type(uint112).max && b1 <= type(uint112).max, "overflow");
        uint32 time = uint32(block.timestamp);
        unchecked {
            uint32 elapsed = time - lastTime;
            if (elapsed > 0 && reserve0 != 0 && reserve1 != 0) {
                cumulative0 += ((uint256(reserve1) << 112) / reserve0) * elapsed;
                cumulative1 += ((uint256(reserve0) << 112) / reserve1) * elapsed;
            }
        }
        (reserve0, reserve1, lastTime) = (uint112(b0), uint112(b1), time);
        emit Sync(reserve0, reserve1);
    }
}
