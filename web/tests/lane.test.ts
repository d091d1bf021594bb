/** The words of the payment lane's view. */
import { expect, test } from "vitest";
import type { Lane } from "@walras/client/bodies";
import { inWords } from "../src/views/lane";

const lane: Lane = {
  height: 9,
  epoch: 2,
  heights_left: 100,
  epoch_heights: 7200,
  halted: false,
  open_cases: 0,
  waiting_claims: 0,
  members: [["0x1"], ["0x2"], ["0x3"], ["0x4"]],
  assets: [],
};

test("the lane is told in sentences", () => {
  const calm = inWords(lane);
  expect(calm).toContain("confirms payments");
  expect(calm).toContain("Epoch 2 has 100 of 7,200 blocks left. 4 validators confirm.");
  expect(calm).not.toContain("Contested");
  const busy = inWords({ ...lane, halted: true, open_cases: 1, waiting_claims: 3 });
  expect(busy).toContain("halted");
  expect(busy).toContain("without a verdict: 1.");
  expect(busy).toContain("limit on outflow: 3.");
});
