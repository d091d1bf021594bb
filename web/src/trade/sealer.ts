/** A worker that seals: some tens of milliseconds of arithmetic in which the page would not move. */
import { seal } from "@walras/client/sealing";

export type Asked = Parameters<typeof seal>;
export type Answered = { sealed: ReturnType<typeof seal> } | { failed: string };

const page = globalThis as unknown as { onmessage: (event: MessageEvent<Asked>) => void; postMessage: (answer: Answered) => void };

page.onmessage = ({ data }) => {
  try {
    page.postMessage({ sealed: seal(...data) });
  } catch (error) {
    page.postMessage({ failed: error instanceof Error ? error.message : String(error) });
  }
};
