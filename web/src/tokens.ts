/** Contracts that the page can name, and amounts of them: the tokens of the assets, WETH9, and the exchange's offers. */
import { shift, trimZeros } from "@walras/client/decimal";
import { format } from "./amount";
import { OFFERS, WETH9, decodeError, offerName, panicText, type Counts, type Said, type Value } from "./abi";
import type { Asset } from "@walras/client/bodies";
import { numeraire } from "./value";
import { brief, stranger } from "./words";

type Assets = ReadonlyMap<string, Asset>;

const WEI_DECIMALS = 18;
const UNLIMITED = (1n << 256n) - 1n;
/** Characters of a reason that are shown at most. */
const REASON_MAX = 300;
/** Bytes that are shown in hexadecimal at most. */
const BYTES_MAX = 1_024;

/** The asset whose token is at an address. */
export function tokenAt(assets: Assets, address: string): Asset | undefined {
  return [...assets.values()].find((asset) => asset.token === address);
}

function assetOf(assets: Assets, number: number): Asset | undefined {
  return [...assets.values()].find((asset) => asset.asset === number);
}

/** What people call a contract; `null` for those that the page does not know. */
export function contractName(assets: Assets, address: string): string | null {
  if (address === OFFERS) return "Offers";
  if (address === WETH9) return `W${numeraire(assets)?.symbol ?? "ETH"}`;
  return tokenAt(assets, address)?.symbol ?? null;
}

/** The contract's name, or the ends of its address. */
export function addressText(assets: Assets, address: string, ends = 6): string {
  return contractName(assets, address) ?? brief(address, ends);
}

function decimal(value: bigint, decimals: number, least: number): string {
  return format(trimZeros(shift({ digits: value, scale: 0 }, -decimals), Math.min(least, decimals)));
}

/** Wei as people count what pays for gas, every digit. */
export function weiText(wei: bigint, assets: Assets): string {
  return `${decimal(wei, WEI_DECIMALS, 0)} ${numeraire(assets)?.symbol ?? ""}`.trim();
}

/** A price of gas in billions of wei. */
export function gasPriceText(wei: bigint): string {
  return `${decimal(wei, 9, 0)} gwei`;
}

/** Text of hexadecimal bytes that came from elsewhere, cut where it is long. */
export function bytesText(hex: string, bytes = (hex.length - 2) / 2): string {
  const shown = hex.slice(0, 2 + 2 * BYTES_MAX);
  return bytes * 2 + 2 > shown.length ? `${shown}… (${bytes} bytes)` : shown;
}

function unitsText(value: bigint, asset: Asset | undefined): string {
  return asset ? `${decimal(value, asset.decimals, asset.decimals)} ${asset.symbol}` : `${value} units`;
}

/** A value of a call, an error or a log, as people count it. `at` is the contract that is called or logs. */
export function valueText({ field, value }: Value, said: Said, at: string, assets: Assets): string {
  if (typeof value === "bigint") return field.counts ? amountText(value, field.counts, said, at, assets) : value.toString();
  if (Array.isArray(value)) return value.map((word) => offerText(word, assets) ?? word).join("; ") || "none";
  if (field.type === "address") return addressText(assets, value, 8);
  if (field.type === "string") return `“${stranger(value, REASON_MAX)}”`;
  return (field.name === "offer" && offerText(value, assets)) || value;
}

function amountText(value: bigint, counts: Counts, said: Said, at: string, assets: Assets): string {
  if (value === UNLIMITED) return "unlimited";
  if (counts === "token" && at === WETH9) return `${decimal(value, WEI_DECIMALS, 0)} ${contractName(assets, at)}`;
  if (counts === "token") return unitsText(value, tokenAt(assets, at));
  if (counts === "wei") return weiText(value, assets);
  return unitsText(value, assetOfSaid(said, counts, assets));
}

/** The asset that an offer sells or buys: its token in a field of that name, else its number in the offer's word. */
function assetOfSaid(said: Said, side: "sell" | "buy", assets: Assets): Asset | undefined {
  const value = (name: string) => said.values.find(({ field }) => field.name === name)?.value;
  const token = value(side);
  if (typeof token === "string") return tokenAt(assets, token);
  const word = value("offer");
  const name = typeof word === "string" ? offerName(word) : null;
  return name ? assetOf(assets, name[side]) : undefined;
}

function offerText(word: string, assets: Assets): string | null {
  const name = offerName(word);
  if (!name) return null;
  const symbol = (number: number) => assetOf(assets, number)?.symbol ?? `asset ${number}`;
  return `${symbol(name.sell)} → ${symbol(name.buy)}, number ${name.id}`;
}

/** Why a call reverted, out of its output: `bytes` long, of which `output` may be the beginning. */
export function reasonText(output: string, bytes: number, assets: Assets): string {
  if (bytes === 0) return "It reverted and gave no reason.";
  const said = decodeError(output);
  if (!said) return `It reverted with ${bytesText(output, bytes)}`;
  const [first] = said.values;
  if (said.name === "Error" && typeof first?.value === "string") return `It reverted: “${stranger(first.value, REASON_MAX)}”`;
  if (said.name === "Panic" && typeof first?.value === "bigint") return `It reverted: ${panicText(first.value)}`;
  const values = said.values.map((value) => `${value.field.name} ${valueText(value, said, "", assets)}`).join(", ");
  return `It reverted: ${said.name}${values && ` (${values})`}`;
}
