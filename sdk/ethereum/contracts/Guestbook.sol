// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// What the clients deploy, call, listen to and are refused by.
contract Guestbook {
    event Signed(address indexed who, uint256 indexed number, string words);

    error TooLong(uint256 length, uint256 most);

    struct Entry {
        address who;
        string words;
    }

    bytes32 private constant ENTRY = keccak256("Entry(address who,string words)");
    bytes32 private immutable domain;
    uint256 public count;
    mapping(address => string) public words;

    constructor() {
        bytes32 kind = keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
        domain = keccak256(
            abi.encode(kind, keccak256("Guestbook"), keccak256("1"), block.chainid, address(this))
        );
    }

    receive() external payable {}

    function sign(string calldata said) external returns (uint256) {
        return enter(msg.sender, said);
    }

    /// Enters what another account has signed as typed data (EIP-712).
    function signFor(Entry calldata entry, uint8 v, bytes32 r, bytes32 s) external {
        bytes32 hash = keccak256(abi.encode(ENTRY, entry.who, keccak256(bytes(entry.words))));
        address signer = ecrecover(keccak256(abi.encodePacked("\x19\x01", domain, hash)), v, r, s);
        require(signer == entry.who, "not signed by who it says");
        enter(entry.who, entry.words);
    }

    function enter(address who, string calldata said) private returns (uint256) {
        require(bytes(said).length > 0, "say something");
        if (bytes(said).length > 100) revert TooLong(bytes(said).length, 100);
        words[who] = said;
        count += 1;
        emit Signed(who, count, said);
        return count;
    }
}
