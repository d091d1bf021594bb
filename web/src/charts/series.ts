/** The numbers behind the bars of the latest blocks. */
import type { Block } from "@walras/client/bodies";

/** Blocks over which the rate is averaged. */
const RATE_BLOCKS = 10;

/** Transactions per second over the `RATE_BLOCKS` blocks up to each; null where there are none before. */
export function rates(blocks: Block[]): (number | null)[] {
  return blocks.map((block, i) => {
    const first = blocks[Math.max(0, i - RATE_BLOCKS)];
    if (!first || first.time_ms >= block.time_ms) return null;
    const total = blocks.slice(Math.max(0, i - RATE_BLOCKS) + 1, i + 1).reduce((sum, b) => sum + b.transactions, 0);
    return (1000 * total) / (block.time_ms - first.time_ms);
  });
}

/** The order in which a block passes them; an object of JSON has none. */
const PIPELINE = ["signatures", "filter", "orders", "clearing", "settlement", "effects", "log"];

/** The names of all stages in the order of the pipeline; those not known here come last, by name. */
export function stagesOf(blocks: Block[]): string[] {
  const names = [...new Set(blocks.flatMap((block) => Object.keys(block.stages_ms ?? {})))].sort();
  const others = names.filter((name) => !PIPELINE.includes(name));
  return [...PIPELINE.filter((name) => names.includes(name)), ...others];
}

/** Per stage, the running sums up to and with it, one value per block. */
export function sums(blocks: Block[], stages: string[]): number[][] {
  const running = blocks.map(() => 0);
  return stages.map((stage) => blocks.map((block, i) => (running[i]! += block.stages_ms[stage] ?? 0)));
}

export function total(block: Block): number {
  return Object.values(block.stages_ms ?? {}).reduce((sum, ms) => sum + ms, 0);
}
