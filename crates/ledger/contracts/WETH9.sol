// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

interface ISymbol {
    function symbol() external view returns (string memory);
}

/// What pays for gas, as a token that contracts can move: asset 0 itself moves as value, and its own token is read-only.
/// The genesis of every chain with contracts puts this code at 0x57616c7261730000000000000000000200000000. Each token is
/// worth one wei that the contract holds.
contract WETH9 {
    /// The read-only token of asset 0.
    ISymbol constant ASSET = ISymbol(0x57616c7261730000000000000000000000000000);

    uint8 public constant decimals = 18;
    mapping(address holder => uint256) public balanceOf;
    mapping(address holder => mapping(address spender => uint256)) public allowance;

    event Approval(address indexed holder, address indexed spender, uint256 amount);
    event Transfer(address indexed from, address indexed to, uint256 amount);
    event Deposit(address indexed holder, uint256 amount);
    event Withdrawal(address indexed holder, uint256 amount);

    error InsufficientBalance(uint256 held, uint256 needed);
    error InsufficientAllowance(uint256 allowed, uint256 needed);
    error NotPaid();

    receive() external payable {
        deposit();
    }

    function name() external view returns (string memory) {
        return string.concat("Wrapped ", ASSET.symbol());
    }

    function symbol() external view returns (string memory) {
        return string.concat("W", ASSET.symbol());
    }

    function totalSupply() external view returns (uint256) {
        return address(this).balance;
    }

    function deposit() public payable {
        balanceOf[msg.sender] += msg.value;
        emit Deposit(msg.sender, msg.value);
    }

    function withdraw(uint256 amount) external {
        _take(msg.sender, amount);
        emit Withdrawal(msg.sender, amount);
        (bool paid, ) = msg.sender.call{value: amount}("");
        if (!paid) revert NotPaid();
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        allowance[msg.sender][spender] = amount;
        emit Approval(msg.sender, spender, amount);
        return true;
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        return _move(msg.sender, to, amount);
    }

    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        uint256 allowed = allowance[from][msg.sender];
        if (from != msg.sender && allowed != type(uint256).max) {
            if (allowed < amount) revert InsufficientAllowance(allowed, amount);
            allowance[from][msg.sender] = allowed - amount;
        }
        return _move(from, to, amount);
    }

    function _move(address from, address to, uint256 amount) private returns (bool) {
        _take(from, amount);
        balanceOf[to] += amount;
        emit Transfer(from, to, amount);
        return true;
    }

    function _take(address from, uint256 amount) private {
        uint256 held = balanceOf[from];
        if (held < amount) revert InsufficientBalance(held, amount);
        balanceOf[from] = held - amount;
    }
}
