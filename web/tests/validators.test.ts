import { expect, it } from "vitest";
import type { Validator } from "@walras/client/bodies";
import { closed, latency, rows } from "../src/views/validators";

const peer = (validator: number, connected = true) => ({
  validator,
  connected,
  decided: 10 + validator,
  certified: 8,
  rounds: 1,
  round_trip_ms: null,
});
const status: Validator = {
  me: 0,
  validators: 4,
  decided: 10,
  certified: 8,
  certified_anywhere: 8,
  connected: 2,
  engine: "dbft",
  epoch: 0,
  follows: false,
  silent: false,
  stranded: false,
  benched: [2, 3],
  peers: [peer(0), peer(1), peer(2), peer(3, false)],
};

it("says how each validator stands", () => {
  expect(rows(status, []).map((row) => row.state)).toEqual(["votes", "votes", "benched", "not connected"]);
  expect(rows({ ...status, silent: true }, [])[0]?.state).toBe("listens");
  expect(rows(status, []).map((row) => row.me)).toEqual([true, false, false, false]);
});

it("says whose shares of sealed orders have not come", () => {
  expect(closed({})).toBe("");
  expect(closed({ sealed_wait: { height: 7, ms: 200, silent: [2] } })).toBe("");
  expect(closed({ sealed_wait: { height: 7, ms: 9_000, silent: [2, 3] } })).toContain("height 7 for shares of validator 2, 3 that");
});

it("counts the superblocks that each is in", () => {
  const seen = rows(status, [[0, 1], [0, 2, 1], [0]]);
  expect(seen.map((row) => row.proposed)).toEqual([3, 2, 1, 0]);
  expect(seen.every((row) => row.blocks === 3)).toBe(true);
});

it("tells latency with three digits at most", () => {
  const told = [null, 0.4567, 12.34, 234.5].map((round_trip_ms) => latency({ round_trip_ms }));
  expect(told).toEqual(["–", "0.46 ms", "12.3 ms", "235 ms"]);
});
