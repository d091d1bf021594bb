// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// The code that the addresses of tokens show. A node never runs it: there, a call of a token is answered by the ledger.
/// It is for tools that fetch code and slots from a node and execute by themselves, such as forge and cast: it does to
/// the slots that the node shows what the ledger does to balances.
///
/// A simulated transaction has the gas that it has on the node. So the functions that move units are written twice: once
/// for calls that succeed, with about the gas that the node charges at most, and once for all others, which say what is wrong.
contract Token {
    /// Addresses of tokens: this, and the number of the asset in 32 bits.
    uint256 constant PREFIX = 0x57616c72617300000000000000000000;
    uint256 constant OFFERS = 0x57616c72617300000000000000000001 << 32;
    uint256 constant MOST = type(uint256).max;

    event Approval(address indexed owner, address indexed spender, uint256 amount);
    event Transfer(address indexed from, address indexed to, uint256 amount);

    fallback() external payable {
        _move();
        require(uint160(address(this)) >> 32 == PREFIX, "a token is called at its own address");
        require(msg.value == 0, "a token takes no value");
        bool is_gas = uint32(uint160(address(this))) == 0;
        bytes4 function_ = msg.sig;
        if (function_ == 0xa9059cbb) {
            _check_change(is_gas, 68);
            _transfer(uint160(msg.sender), _address(4), _word(36));
            _return(1);
        }
        if (function_ == 0x095ea7b3) {
            _check_change(is_gas, 68);
            _approve(uint160(msg.sender), _address(4), _word(36));
            _return(1);
        }
        if (function_ == 0x23b872dd) {
            _check_change(is_gas, 100);
            uint256 from = _address(4);
            uint256 amount = _word(68);
            uint256 slot = _allowance(from, uint160(msg.sender));
            uint256 allowed = _read(slot);
            require(allowed >= amount, "insufficient allowance");
            unchecked {
                if (allowed != MOST) _write(slot, allowed - amount);
            }
            _transfer(from, _address(36), amount);
            _return(1);
        }
        if (function_ == 0xd505accf) {
            _check_change(is_gas, 228);
            _permit();
            assembly {
                return(0, 0)
            }
        }
        _answer(function_, is_gas);
    }

    /// Calls that move units and are sound in every respect.
    function _move() private {
        assembly {
            // The address of the token of asset 0. Tokens differ from it in 32 bits, and the offers in the bit above.
            let first := shl(32, 0x57616c72617300000000000000000000)
            // What is not zero in a call that is not sound.
            let wrong := or(iszero(lt(sub(xor(address(), first), 1), 0xffffffff)), callvalue())
            let one := calldataload(4)
            let two := calldataload(36)
            switch shr(224, calldataload(0))
            // transferFrom(from, to, amount)
            case 0x23b872dd {
                let amount := calldataload(68)
                wrong := or(or(wrong, shr(160, or(one, two))), or(lt(calldatasize(), 100), eq(one, two)))
                wrong := or(or(wrong, iszero(two)), lt(xor(two, first), 0x100000001))
                mstore(0, "allowance")
                mstore(9, shl(96, one))
                mstore(29, shl(96, caller()))
                let slot := keccak256(0, 49)
                let allowed := sload(slot)
                let held := sload(one)
                if iszero(or(wrong, or(lt(allowed, amount), lt(held, amount)))) {
                    if not(allowed) { sstore(slot, sub(allowed, amount)) }
                    sstore(one, sub(held, amount))
                    sstore(two, add(sload(two), amount))
                    mstore(0, amount)
                    log3(0, 32, 0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef, one, two)
                    mstore(0, 1)
                    return(0, 32)
                }
            }
            // transfer(to, amount)
            case 0xa9059cbb {
                wrong := or(or(wrong, shr(160, one)), or(lt(calldatasize(), 68), eq(caller(), one)))
                wrong := or(or(wrong, iszero(one)), lt(xor(one, first), 0x100000001))
                let held := sload(caller())
                if iszero(or(wrong, lt(held, two))) {
                    sstore(caller(), sub(held, two))
                    sstore(one, add(sload(one), two))
                    mstore(0, two)
                    log3(0, 32, 0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef, caller(), one)
                    mstore(0, 1)
                    return(0, 32)
                }
            }
            // approve(spender, amount)
            case 0x095ea7b3 {
                if iszero(or(or(wrong, shr(160, one)), lt(calldatasize(), 68))) {
                    mstore(0, "allowance")
                    mstore(9, shl(96, caller()))
                    mstore(29, shl(96, one))
                    sstore(keccak256(0, 49), two)
                    mstore(0, two)
                    log3(0, 32, 0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925, caller(), one)
                    mstore(0, 1)
                    return(0, 32)
                }
            }
        }
    }

    /// The functions that only read.
    function _answer(bytes4 function_, bool is_gas) private view {
        if (function_ == 0x06fdde03 || function_ == 0x95d89b41) {
            bytes memory text = abi.encode(_symbol());
            assembly {
                return(add(text, 32), mload(text))
            }
        }
        if (function_ == 0x313ce567) _return(_read(uint256(keccak256("decimals"))));
        if (function_ == 0x18160ddd) _return(_read(uint256(keccak256("issued"))));
        if (function_ == 0x70a08231) {
            _check_arguments(36);
            uint256 holder = _address(4);
            if (!is_gas) _return(_read(holder));
            _return(address(uint160(holder)).balance / 10 ** (18 - _read(uint256(keccak256("decimals")))));
        }
        if (function_ == 0xdd62ed3e) {
            _check_arguments(68);
            _return(_read(_allowance(_address(4), _address(36))));
        }
        if (function_ == 0x7ecebe00) {
            _check_arguments(36);
            _return(_read(_permits(_address(4))));
        }
        if (function_ == 0x3644e515) _return(uint256(_domain()));
        require(msg.data.length >= 4, "no function is named");
        revert("a token has no such function");
    }

    function _check_change(bool is_gas, uint256 length) private pure {
        require(!is_gas, "asset 0 moves as value: its token is read-only");
        _check_arguments(length);
    }

    function _check_arguments(uint256 length) private pure {
        require(msg.data.length >= length, "arguments are missing");
    }

    function _transfer(uint256 from, uint256 to, uint256 amount) private {
        require(to != 0, "transfer to the zero address");
        require(to >> 32 != PREFIX && to != OFFERS, "transfer to a reserved address");
        uint256 held = _read(from);
        require(held >= amount, "transfer amount exceeds balance");
        unchecked {
            if (from != to) {
                _write(from, held - amount);
                _write(to, _read(to) + amount);
            }
        }
        emit Transfer(address(uint160(from)), address(uint160(to)), amount);
    }

    function _approve(uint256 owner, uint256 spender, uint256 amount) private {
        _write(_allowance(owner, spender), amount);
        emit Approval(address(uint160(owner)), address(uint160(spender)), amount);
    }

    function _permit() private {
        (uint256 owner, uint256 spender, uint256 amount, uint256 deadline) =
            (_address(4), _address(36), _word(68), _word(100));
        require(block.timestamp <= deadline, "the permit has expired");
        uint256 slot = _permits(owner);
        uint256 nonce = _read(slot);
        bytes32 kind =
            keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");
        bytes32 said = keccak256(abi.encode(kind, owner, spender, amount, nonce, deadline));
        bytes32 hash = keccak256(abi.encodePacked("\x19\x01", _domain(), said));
        (uint256 v, uint256 r, uint256 s) = (_word(132), _word(164), _word(196));
        bool is_sound = v < 256 && s <= 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0;
        address signer = is_sound ? ecrecover(hash, uint8(v), bytes32(r), bytes32(s)) : address(0);
        require(signer != address(0) && uint160(signer) == owner, "the permit is not signed by its owner");
        _write(slot, nonce + 1);
        _approve(owner, spender, amount);
    }

    function _domain() private view returns (bytes32) {
        bytes32 kind =
            keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
        bytes32 named = keccak256(bytes(_symbol()));
        return keccak256(abi.encode(kind, named, keccak256("1"), block.chainid, address(this)));
    }

    /// A short string, as Solidity keeps it: its bytes, and twice their number in the last one.
    function _symbol() private view returns (string memory) {
        bytes32 kept = bytes32(_read(uint256(keccak256("symbol"))));
        bytes memory text = new bytes(uint8(uint256(kept)) / 2);
        for (uint256 i = 0; i < text.length; i++) text[i] = kept[i];
        return string(text);
    }

    function _allowance(uint256 owner, uint256 spender) private pure returns (uint256 slot) {
        assembly {
            mstore(0, "allowance")
            mstore(9, shl(96, owner))
            mstore(29, shl(96, spender))
            slot := keccak256(0, 49)
        }
    }

    function _permits(uint256 owner) private pure returns (uint256) {
        return uint256(keccak256(abi.encodePacked("permits", address(uint160(owner)))));
    }

    function _word(uint256 place) private pure returns (uint256 word) {
        assembly {
            word := calldataload(place)
        }
    }

    function _address(uint256 place) private pure returns (uint256 word) {
        word = _word(place);
        require(word >> 160 == 0, "an address has twenty bytes");
    }

    function _read(uint256 slot) private view returns (uint256 value) {
        assembly {
            value := sload(slot)
        }
    }

    function _write(uint256 slot, uint256 value) private {
        assembly {
            sstore(slot, value)
        }
    }

    function _return(uint256 value) private pure {
        assembly {
            mstore(0, value)
            return(0, 32)
        }
    }
}
