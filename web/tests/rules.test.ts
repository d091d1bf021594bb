/** The rules that come and the parameters that are voted on stand beside the validators. */
import { describe, expect, it, test } from "vitest";
import { changes, nextRules, when, type Upgrade } from "../src/views/rules";
import { axeFindings } from "./looks";
import { Site, given } from "./site";

const now: Upgrade = { rules: 16, since: 40, coming: null, known: 17, operator: null, approved: [], unready: [] };

describe("words", () => {
  it("says when rules act, and when they are confirmed", () => {
    expect(nextRules(now, 50, 1_000)).toBe("none is agreed on");
    const coming = { rules: 17, acts: 170, confirms: 110, tries: 1 };
    expect(nextRules({ ...now, coming }, 50, 1_000)).toBe(`rules 17 act from ${when(170, 50, 1_000)}; they are confirmed at ${when(110, 50, 1_000)}, tried 1 of 3 times`);
    expect(nextRules({ ...now, coming: { ...coming, confirms: null, tries: 0 } }, 200, 1_000)).toBe("rules 17 act from block 170");
    expect(nextRules({ ...now, since: 60 }, 50, 1_000)).toContain("rules 16 act from block 60, in about");
  });

  it("says what a vote has made", () => {
    expect(changes({ acts: 9, parameters: [{ parameter: "fee", value: "2000" }], lists: ["JPY"], closes: ["OLD"] })).toBe("fee becomes 2,000; JPY is listed; OLD closes");
  });
});

describe.skipIf(given)("the page", () => {
  const site = Site.ofTests();

  test("tells who approves of the next rules, what is proposed, and when it acts", async () => {
    await site.open("#/validators");
    await site.page.locator(".rules [data-fact=next] dd", { hasText: "rules 17 act from block" }).waitFor();
    const rows = (list: string) => site.page.getByRole("group", { name: list, exact: true }).locator("tbody tr");
    expect(await site.page.innerText(".rules [data-fact=rules] dd")).toBe("rules 16");
    const approval = await rows("Approvals of the next rules").locator("td").allInnerTexts();
    expect(approval.slice(0, 3)).toEqual(["17", "3 of 4", "75 % of the stake"]);
    expect(await rows("Approvals of the next rules").locator("a").count()).toBe(2);
    expect((await rows("Open proposals").locator("td").allInnerTexts()).slice(0, 3)).toEqual(["fee becomes 200", "2 of 4", "50 % of the stake"]);
    expect(await rows("What has passed").locator("td").last().innerText()).toBe("reward becomes 20; JPY is listed");
    expect(await rows("Parameters").locator("td:nth-child(3)").allInnerTexts()).toEqual(["1 to 10,000", "nothing else"]);
    expect(await axeFindings(site.page)).toEqual([]);
    expect(site.complaints).toEqual([]);
  });
});
