// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// The code that the addresses of tokens show. A node never runs it: there, a call of a token is answered by the ledger.
/// It is for tools that fetch code and slots from a node and execute by themselves, such as forge and cast: it does to
/// the slots that the node shows what the ledger does to balances.
contract Token {
    /// Addresses of tokens: this, and the number of the asset in 32 bits.
    uint256 constant PREFIX = 0x57616c72617300000000000000000000;
    address constant OFFERS = 0x57616c7261730000000000000000000100000000;

    event Approval(address indexed owner, address indexed spender, uint256 amount);
    event Transfer(address indexed from, address indexed to, uint256 amount);

    modifier own() {
        require(uint160(address(this)) >> 32 == PREFIX, "a token is called at its own address");
        _;
    }

    modifier movable() {
        require(uint32(uint160(address(this))) != 0, "asset 0 moves as value: its token is read-only");
        _;
    }

    fallback() external {
        revert("a token has no such function");
    }

    function name() external view own returns (string memory) {
        return _symbol();
    }

    function symbol() external view own returns (string memory) {
        return _symbol();
    }

    function decimals() public view own returns (uint8) {
        return uint8(_read(keccak256("decimals")));
    }

    function totalSupply() external view own returns (uint256) {
        return _read(keccak256("issued"));
    }

    function balanceOf(address holder) public view own returns (uint256) {
        if (uint32(uint160(address(this))) == 0) return holder.balance / 10 ** (18 - decimals());
        return _read(_balance(holder));
    }

    function allowance(address owner, address spender) external view own returns (uint256) {
        return _read(_allowance(owner, spender));
    }

    function nonces(address owner) external view own returns (uint256) {
        return _read(_permits(owner));
    }

    function DOMAIN_SEPARATOR() public view own returns (bytes32) {
        bytes32 domain =
            keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
        bytes32 named = keccak256(bytes(_symbol()));
        return keccak256(abi.encode(domain, named, keccak256("1"), block.chainid, address(this)));
    }

    function transfer(address to, uint256 amount) external own movable returns (bool) {
        _transfer(msg.sender, to, amount);
        return true;
    }

    function approve(address spender, uint256 amount) external own movable returns (bool) {
        _approve(msg.sender, spender, amount);
        return true;
    }

    function transferFrom(address from, address to, uint256 amount) external own movable returns (bool) {
        bytes32 slot = _allowance(from, msg.sender);
        uint256 allowed = _read(slot);
        require(allowed >= amount, "insufficient allowance");
        if (allowed != type(uint256).max) _write(slot, allowed - amount);
        _transfer(from, to, amount);
        return true;
    }

    function permit(address owner, address spender, uint256 amount, uint256 deadline, uint8 v, bytes32 r, bytes32 s)
        external
        own
        movable
    {
        require(block.timestamp <= deadline, "the permit has expired");
        uint256 nonce = _read(_permits(owner));
        bytes32 kind =
            keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");
        bytes32 said = keccak256(abi.encode(kind, owner, spender, amount, nonce, deadline));
        bytes32 hash = keccak256(abi.encodePacked("\x19\x01", DOMAIN_SEPARATOR(), said));
        bool low = uint256(s) <= 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0;
        address signer = low ? ecrecover(hash, v, r, s) : address(0);
        require(signer != address(0) && signer == owner, "the permit is not signed by its owner");
        _write(_permits(owner), nonce + 1);
        _approve(owner, spender, amount);
    }

    function _transfer(address from, address to, uint256 amount) private {
        require(to != address(0), "transfer to the zero address");
        require(uint160(to) >> 32 != PREFIX && to != OFFERS, "transfer to a reserved address");
        uint256 held = _read(_balance(from));
        require(held >= amount, "transfer amount exceeds balance");
        if (from != to) {
            _write(_balance(from), held - amount);
            _write(_balance(to), _read(_balance(to)) + amount);
        }
        emit Transfer(from, to, amount);
    }

    function _approve(address owner, address spender, uint256 amount) private {
        _write(_allowance(owner, spender), amount);
        emit Approval(owner, spender, amount);
    }

    /// A short string, as Solidity keeps it: its bytes, and twice their number in the last one.
    function _symbol() private view returns (string memory) {
        bytes32 kept = bytes32(_read(keccak256("symbol")));
        bytes memory text = new bytes(uint8(uint256(kept)) / 2);
        for (uint256 i = 0; i < text.length; i++) text[i] = kept[i];
        return string(text);
    }

    function _balance(address holder) private pure returns (bytes32) {
        return bytes32(uint256(uint160(holder)));
    }

    function _allowance(address owner, address spender) private pure returns (bytes32) {
        return keccak256(abi.encodePacked("allowance", owner, spender));
    }

    function _permits(address owner) private pure returns (bytes32) {
        return keccak256(abi.encodePacked("permits", owner));
    }

    function _read(bytes32 slot) private view returns (uint256 value) {
        assembly {
            value := sload(slot)
        }
    }

    function _write(bytes32 slot, uint256 value) private {
        assembly {
            sstore(slot, value)
        }
    }
}
