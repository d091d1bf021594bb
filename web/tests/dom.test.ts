import { expect, it } from "vitest";
import { spending } from "../src/dom";

it("keeps what is written while the line before is sent", async () => {
  const amount = { value: "2" };
  let answered = () => {};
  const sent = spending([amount], () => new Promise((resolve) => (answered = resolve)));
  expect(amount.value).toBe("");
  amount.value = "3";
  answered();
  await sent;
  expect(amount.value).toBe("3");
});

it("gives back what could not be sent, but for what is written over", async () => {
  const [amount, payee] = [{ value: "2" }, { value: "lane:a" }];
  const sent = spending([amount, payee], async () => {
    payee.value = "lane:b";
    throw new Error("refused");
  });
  await expect(sent).rejects.toThrow("refused");
  expect([amount.value, payee.value]).toEqual(["2", "lane:b"]);
});
