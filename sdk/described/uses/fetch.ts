// The client of `openapi-fetch` with the types of `openapi-typescript`, against the node at WALRAS_HTTP.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { paths } from "../generated/openapi.js";

const client = createClient<paths>({ baseUrl: process.env.WALRAS_HTTP });
const { data: status } = await client.GET("/v1/status");
assert.ok(status && status.height >= 0);

const to = `0x${"22".repeat(20)}`;
const body = {
  account: `0x${"11".repeat(20)}`,
  sequence: "1",
  until: "100",
  operation: { type: "pay" as const, to, asset: "USD", amount: "5" },
};
const { data: prepared } = await client.POST("/v1/transactions/prepare", { body });
assert.match(prepared?.says ?? "", /5(\.0+)? USD/);

const id = `0x${"33".repeat(32)}`;
const { data: none, error } = await client.GET("/v1/transactions/{id}", { params: { path: { id } } });
assert.ok(none === undefined && error?.error.code === "not_found");
