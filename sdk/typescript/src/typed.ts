/**
 * The hash of typed data (EIP-712), for what native transactions need: one structure, whose lists hold flat ones. It is
 * computed here, so that no node decides what a key signs.
 */
import { keccak_256 } from "@noble/hashes/sha3.js";
import { bytesToHex, concatBytes, hexToBytes, utf8ToBytes } from "@noble/hashes/utils.js";

type Member = { name: string; type: string };
type Plain = string | number;
type Structure = Record<string, Plain | Record<string, Plain>[]>;
export type TypedData = {
  types: Record<string, Member[]>;
  primaryType: string;
  domain: Record<string, Plain>;
  message: Structure;
};

/** The 32 bytes that a key signs. Throws where a type is none of those that native transactions have. */
export function hashTypedData(data: TypedData): Uint8Array {
  const domain = hashStruct(data.types, "EIP712Domain", data.domain);
  const message = hashStruct(data.types, data.primaryType, data.message);
  return keccak_256(concatBytes(new Uint8Array([0x19, 0x01]), domain, message));
}

/** `0x` and hexadecimal digits. */
export const toHex = (bytes: Uint8Array): string => "0x" + bytesToHex(bytes);

/** The bytes of hexadecimal digits after `0x`. */
export const fromHex = (hex: string): Uint8Array => hexToBytes(hex.replace(/^0x/, ""));

function hashStruct(types: TypedData["types"], name: string, values: Structure): Uint8Array {
  const members = types[name] ?? [];
  const words = members.map(({ name: field, type }) => {
    const value = values[field];
    if (value === undefined) throw new Error(`typed data: a ${type} is missing`);
    if (!Array.isArray(value)) return word(type, value);
    const element = type.replace(/\[\]$/, "");
    return keccak_256(concatBytes(...value.map((one) => hashStruct(types, element, one))));
  });
  return keccak_256(concatBytes(keccak_256(utf8ToBytes(typeText(types, name))), ...words));
}

/** A structure's name and fields, and after them the structures of its lists, by name. */
function typeText(types: TypedData["types"], name: string): string {
  const text = (of: string): string =>
    `${of}(${(types[of] ?? []).map((member) => `${member.type} ${member.name}`).join(",")})`;
  const lists = (types[name] ?? []).filter((member) => member.type.endsWith("[]"));
  const elements = [...new Set(lists.map((member) => member.type.slice(0, -2)))].sort();
  return text(name) + elements.map(text).join("");
}

function word(type: string, value: Plain): Uint8Array {
  if (type === "string") return keccak_256(utf8ToBytes(String(value)));
  if (type === "bytes") return keccak_256(fromHex(String(value)));
  if (type === "bytes32") return padded(fromHex(String(value)));
  // Bytes of fewer than 32 stand on the left.
  if (type === "bytes16") return concatBytes(fromHex(String(value)), new Uint8Array(16));
  if (type === "address") return padded(fromHex(String(value)));
  if (/^uint\d+$/.test(type)) return padded(fromHex(BigInt(value).toString(16).padStart(64, "0")));
  throw new Error(`typed data: no native transaction has a ${type}`);
}

function padded(bytes: Uint8Array): Uint8Array {
  const result = new Uint8Array(32);
  result.set(bytes, 32 - bytes.length);
  return result;
}
