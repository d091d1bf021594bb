// Rows of PostgreSQL's drivers for Node.js: how each reads the greatest amount.
import { readFileSync } from "node:fs";
import knex from "knex";
import pg from "pg";
import postgres from "postgres";
import { createPool, sql } from "slonik";

const GREATEST = "18446744073709551615";
const ASK = "SELECT available FROM balances";
const url = `postgresql://walras@127.0.0.1:${process.argv[2]}/postgres`;

async function row(name, how, read) {
  const { version } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
  try {
    const value = await read();
    const right = String(value) === GREATEST ? "yes" : "**no**";
    console.log(`| ${name} ${version} for Node.js | ${how} | \`${value}\` (${typeof value}) | ${right} |`);
  } catch (error) {
    console.log(`| ${name} ${version} for Node.js | ${how} | ${error.message} | refused |`);
  }
}

async function byPg(types) {
  const client = new pg.Client({ connectionString: url, types });
  await client.connect();
  try {
    return (await client.query(ASK)).rows[0].available;
  } finally {
    await client.end();
  }
}

async function byPostgres(options) {
  const reads = postgres(url, options);
  try {
    return (await reads.unsafe(ASK))[0].available;
  } finally {
    await reads.end();
  }
}

async function byKnex() {
  const reads = knex({ client: "pg", connection: url });
  try {
    return (await reads("balances").select("available"))[0].available;
  } finally {
    await reads.destroy();
  }
}

async function bySlonik(options) {
  const pool = await createPool(url, options);
  try {
    return await pool.oneFirst(sql.unsafe`SELECT available FROM balances`);
  } finally {
    await pool.end();
  }
}

const NUMERIC = 1700;
const asNumber = { getTypeParser: (oid, format) => (oid === NUMERIC ? Number : pg.types.getTypeParser(oid, format)) };
const asInteger = { types: { numeric: { to: NUMERIC, from: [NUMERIC], serialize: String, parse: BigInt } } };

await row("pg", "`query`", () => byPg());
await row("pg", "`query` with a type parser `Number`", () => byPg(asNumber));
await row("postgres", "`sql`", () => byPostgres({}));
await row("postgres", "`sql` with a type of `BigInt`", () => byPostgres(asInteger));
await row("knex", "`select`", byKnex);
await row("slonik", "`oneFirst`", () => bySlonik());
await row("slonik", "`oneFirst` with `typeParsers: []`", () => bySlonik({ typeParsers: [] }));
