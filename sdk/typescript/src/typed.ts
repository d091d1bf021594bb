/**
 * The hash of typed data (EIP-712), for what native transactions need: one flat structure. It is computed here,
 * so that no node decides what a key signs.
 */
import { keccak_256 } from "@noble/hashes/sha3.js";
import { bytesToHex, concatBytes, hexToBytes, utf8ToBytes } from "@noble/hashes/utils.js";

type Member = { name: string; type: string };
export type TypedData = {
  types: Record<string, Member[]>;
  primaryType: string;
  domain: Record<string, string | number>;
  message: Record<string, string | number>;
};

/** The 32 bytes that a key signs. Throws where a type is none of those that native transactions have. */
export function hashTypedData(data: TypedData): Uint8Array {
  const domain = hashStruct("EIP712Domain", data.types["EIP712Domain"] ?? [], data.domain);
  const message = hashStruct(data.primaryType, data.types[data.primaryType] ?? [], data.message);
  return keccak_256(concatBytes(new Uint8Array([0x19, 0x01]), domain, message));
}

/** `0x` and hexadecimal digits. */
export const toHex = (bytes: Uint8Array): string => "0x" + bytesToHex(bytes);

/** The bytes of hexadecimal digits after `0x`. */
export const fromHex = (hex: string): Uint8Array => hexToBytes(hex.replace(/^0x/, ""));

function hashStruct(name: string, members: Member[], values: Record<string, string | number>): Uint8Array {
  const form = `${name}(${members.map((member) => `${member.type} ${member.name}`).join(",")})`;
  const words = members.map((member) => word(member.type, values[member.name]));
  return keccak_256(concatBytes(keccak_256(utf8ToBytes(form)), ...words));
}

function word(type: string, value: string | number | undefined): Uint8Array {
  if (value === undefined) throw new Error(`typed data: a ${type} is missing`);
  if (type === "string") return keccak_256(utf8ToBytes(String(value)));
  if (type === "bytes") return keccak_256(fromHex(String(value)));
  if (type === "bytes32") return padded(fromHex(String(value)));
  if (type === "address") return padded(fromHex(String(value)));
  if (/^uint\d+$/.test(type)) return padded(fromHex(BigInt(value).toString(16).padStart(64, "0")));
  throw new Error(`typed data: no native transaction has a ${type}`);
}

function padded(bytes: Uint8Array): Uint8Array {
  const result = new Uint8Array(32);
  result.set(bytes, 32 - bytes.length);
  return result;
}
