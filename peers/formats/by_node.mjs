// Gives readers of formats in JavaScript the files that by_python.py left in this folder, and prints a row for each.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const version = (name) => JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8")).version;
const row = (tool, told, act) => console.log(`| ${tool} | ${told} | ${act} |`);
const named = (name) => `${name} ${version(name)} (JavaScript)`;
const LARGE = 9007199254740993n;

/** What a reader makes of the columns, whose first rows are 2^53 + 1, 2^63 + 5 and 0.10, and whose last decimal has 16 digits. */
function told(signed, unsigned, decimals) {
  const exact = signed === LARGE && unsigned === 2n ** 63n + 5n;
  return `64-bit integers of both kinds ${exact ? "exact" : `${signed} and ${unsigned}`}; decimals 0.10 and 90071992547409.93 become ${decimals.map((one) => `${typeof one} ${one}`).join(" and ")}`;
}

const { parquetReadObjects } = await import("hyparquet");
const bytes = readFileSync("numbers.parquet");
const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
const rows = await parquetReadObjects({ file });
row(named("hyparquet"), told(rows[0].signed, rows[0].unsigned, rows.map((one) => one.decimal)), "export integers");

const { readParquet } = require("parquet-wasm/node");
const { tableFromIPC } = require("apache-arrow");
const table = tableFromIPC(readParquet(bytes).intoIPCStream());
const at = (name, index = 0) => table.getChild(name).get(index);
const decimals = [0, 1].map((index) => String(at("decimal", index)));
row(`parquet-wasm ${version("parquet-wasm")} with apache-arrow ${version("apache-arrow")} (JavaScript)`, told(at("signed"), at("unsigned"), decimals), "apply the scale of the schema");

const found = await import("@dsnp/parquetjs").then(() => "is imported", (error) => `cannot be imported: ${error.code}`);
row(named("@dsnp/parquetjs"), found, "take hyparquet");

const { decodeFromCompressedBase64 } = require("hdr-histogram-js");
const histogram = decodeFromCompressedBase64(readFileSync("histogram", "utf8"));
const figures = [50, 99, 99.9].map((percentile) => histogram.getValueAtPercentile(percentile));
const written = readFileSync("figures", "utf8").split(" ").map(Number);
const same = figures.every((figure, place) => figure === written[place]) ? "the same percentiles" : `percentiles ${figures}, not ${written.slice(0, 3)}`;
row(`hdr-histogram-js ${version("hdr-histogram-js")} of hdrhistogram 0.10.8 (Python)`, `${same}; of a greatest value of 170000 it tells ${histogram.maxValue}, the other ${written[3]}`, "keep the maximum apart");

const { dinero, add, toDecimal } = require("dinero.js");
const { dinero: bigDinero, add: addBig, toSnapshot } = require("dinero.js/bigint");
const money = { code: "USD", base: 10, exponent: 2 };
const [one, two] = [9007199254740991, 2].map((amount) => dinero({ amount, currency: money }));
const numbers = toDecimal(add(one, two));
const big = { code: "USD", base: 10n, exponent: 2n };
const [three, four] = [9007199254740991n, 2n].map((amount) => bigDinero({ amount, currency: big }));
row(named("dinero.js"), `9007199254740991 + 2 cents: ${numbers} with numbers, ${toSnapshot(addBig(three, four)).amount} cents with bigints`, "import `dinero.js/bigint`");
