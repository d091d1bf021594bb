// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.0;

/// Videos that are uploaded: the chain keeps their data in its blocks, and who owns which here.
contract Videos {
    mapping(address => uint256) public uploads;

    event Uploaded(address indexed owner, uint256 number, bytes32 digest);

    function upload(bytes calldata data) external {
        uint256 number = uploads[msg.sender]++;
        emit Uploaded(msg.sender, number, keccak256(data));
    }
}
