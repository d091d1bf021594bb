// The client of `@hey-api/openapi-ts`, against the node at WALRAS_HTTP.
import assert from "node:assert/strict";
import { client } from "../generated/hey-openapi/client.gen.js";
import * as calls from "../generated/hey-openapi/sdk.gen.js";

client.setConfig({ baseUrl: process.env.WALRAS_HTTP });
const { data: status } = await calls.status();
assert.ok(status && status.height >= 0);

const to = `0x${"22".repeat(20)}`;
const operation = { type: "pay" as const, to, asset: "USD", amount: "5" };
const body = { account: `0x${"11".repeat(20)}`, sequence: "1", until: "100", operation };
const { data: prepared } = await calls.prepare({ body });
assert.match(prepared?.says ?? "", /5(\.0+)? USD/);
