#!/bin/sh
# viem 2.57.20, ethers 6.17.0, @metamask/eth-sig-util 9.0.0 (npm) and eth-account 0.14.0 (PyPI): one message of typed data (EIP-712)
# has different hashes where `types.EIP712Domain` lists fewer fields than the domain has, or lists them in another order.
#
# Such a description is valid: the standard lets a protocol leave fields of the domain out. Some libraries hash the domain as it is
# described, others as they find it, in the order of the standard, and read no description. So a signature that one library makes is
# false for another one, and nothing says why. The guess was that all follow the description where there is one.
# Seen on 29 November 2026:
#   fewer: viem and eth-sig-util 0xd547…, ethers 0x4968… (that of all four fields), eth-account raises ValidationError
#   turned: viem and eth-sig-util 0x6a5d…, ethers and eth-account 0x4968…; with all fields in order all four say 0x4968…
# Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit viem@2.57.20 ethers@6.17.0 @metamask/eth-sig-util@9.0.0 >/dev/null
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check eth-account==0.14.0
cat > messages.json <<'JSON'
{
  "full": ["name", "version", "chainId", "verifyingContract"],
  "fewer": ["name", "chainId"],
  "turned": ["chainId", "name", "version", "verifyingContract"]
}
JSON
cat > hash.mjs <<'JS'
import { readFileSync } from "node:fs";
import { SignTypedDataVersion, TypedDataUtils } from "@metamask/eth-sig-util";
import { TypedDataEncoder } from "ethers";
import { hashTypedData } from "viem";

const kinds = { name: "string", version: "string", chainId: "uint256", verifyingContract: "address" };
const domain = { name: "Notes", version: "1", chainId: 1, verifyingContract: "0x00000000000000000000000000000000000000aa" };
const types = { Note: [{ name: "text", type: "string" }] };
const message = { text: "paid" };
for (const [name, fields] of Object.entries(JSON.parse(readFileSync("messages.json", "utf8")))) {
  const all = { ...types, EIP712Domain: fields.map((field) => ({ name: field, type: kinds[field] })) };
  const data = { domain, types: all, primaryType: "Note", message };
  const metamask = "0x" + Buffer.from(TypedDataUtils.eip712Hash(data, SignTypedDataVersion.V4)).toString("hex");
  console.log(name, "viem", hashTypedData(data));
  console.log(name, "eth-sig-util", metamask);
  console.log(name, "ethers", TypedDataEncoder.hash(domain, types, message));
}
JS
cat > hash.py <<'PYTHON'
import json

from eth_account.messages import encode_typed_data
from eth_utils import keccak

kinds = {"name": "string", "version": "string", "chainId": "uint256", "verifyingContract": "address"}
domain = {"name": "Notes", "version": "1", "chainId": 1, "verifyingContract": "0x00000000000000000000000000000000000000aa"}
for name, fields in json.load(open("messages.json")).items():
    described = [{"name": field, "type": kinds[field]} for field in fields]
    types = {"Note": [{"name": "text", "type": "string"}], "EIP712Domain": described}
    data = {"domain": domain, "types": types, "primaryType": "Note", "message": {"text": "paid"}}
    try:
        told = encode_typed_data(full_message=data)
        print(name, "eth-account", "0x" + keccak(b"\x19" + told.version + told.header + told.body).hex())
    except Exception as error:
        print(name, "eth-account", type(error).__name__, str(error)[:60])
PYTHON
{ node hash.mjs; venv/bin/python hash.py; } > seen
cat seen
is() { grep -q "^$1 $2 $3" seen; }
all=0x49686025 fewer=0xd547b759 turned=0x6a5d85fa
for one in viem eth-sig-util ethers eth-account; do is full $one $all; done
for one in viem eth-sig-util; do is fewer $one $fewer && is turned $one $turned; done
is fewer ethers $all && is turned ethers $all && is turned eth-account $all && is fewer eth-account ValidationError
