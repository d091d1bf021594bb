/** The words and figures of the market edge's view. */
import { expect, test } from "vitest";
import { inWords, micros, rows, type Fairness } from "../src/views/fairness";

const figure = { p50_us: 0.54, p99_us: 12, label: "proven" as const };
const edge: Fairness = {
  epoch: 3,
  layers: [1, 2, 4],
  hedging: 1,
  proxies: [1, 2],
  gateways: [1000, 1001, 1002, 1003],
  headroom_us: 900,
  packets: 12_000,
  orders: 40,
  orders_restamped: 0,
  order_copies: 0,
  forged_or_malformed_datagrams: 0,
  sampled_packets: 100,
  delivery_window: figure,
  lateness: { ...figure, label: "estimated" },
  hold_time: figure,
  one_way_delay: figure,
  clock_error_bound_us: null,
  clock_offsets: [],
  share_within_1_us: { value: 0.9731, label: "estimated" },
  share_proven_within_1_us: { value: 0, label: "proven" },
  evictions: 0,
  log: [],
};

test("the edge is told in sentences", () => {
  const calm = inWords(edge);
  expect(calm).toContain("Epoch 3: layers of 1, 2, 4, hedging 1; 2 proxies and 4 gateways.");
  expect(calm).toContain("12,000 packets went out and 40 orders came in; deadlines are 900.0 µs ahead.");
  expect(calm).not.toContain("evicted");
  expect(inWords({ ...edge, evictions: 2, orders_restamped: 1 })).toContain("evicted: 2.");
  expect(inWords({ ...edge, epoch: 0 })).toBe("The market edge has no members yet.");
});

test("no figure is without its label, and what is not known is called so", () => {
  const shown = rows(edge);
  expect(shown.every((row) => row.label !== "")).toBe(true);
  expect(shown[0]).toEqual({ name: "Delivery window", median: "0.5 µs", worst: "12.0 µs", label: "proven" });
  expect(shown[1]?.label).toBe("estimated");
  expect(shown.map((row) => row.median).slice(4)).toEqual(["97.3 %", "0.0 %", "unknown", "unknown"]);
  expect(shown.at(-1)?.label).toBe("unknown");
  expect(micros(null)).toBe("unknown");
  const clock = { member: 1_000, ahead_us: 2, bound_us: 40, drift_ppm: 0, share_of_pure_probes: 0.5, label: "estimated" as const };
  const probed = rows({ ...edge, clock_offsets: [clock, { ...clock, member: 1_001, ahead_us: -31.25 }] });
  expect(probed.at(-1)).toEqual({ name: "Largest clock offset by probes, of member 1,001", median: "-31.3 µs", worst: "± 40.0 µs", label: "estimated" });
});
