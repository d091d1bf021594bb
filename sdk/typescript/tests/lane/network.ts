/** A lane of four processes, founded by `walras init` as anybody founds one. */
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { pause } from "../../src/http.js";

/** The repository, above this file and above what is compiled from it. */
const ROOT = (() => {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "Cargo.lock"))) folder = dirname(folder);
  return folder;
})();
export const BINARY = join(ROOT, "target", process.env["WALRAS_PROFILE"] ?? "debug", "walras");
export const isBuilt = existsSync(BINARY);
export const PASSPHRASE = "secret";
const HOME_PORTS = 8;

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });

/** The first ports of rows that are free, below those that systems give out. */
async function rowsOfPorts(count: number, length: number): Promise<number[]> {
  const found: number[] = [];
  for (let first = 10_000 + ((process.pid * 7_919) % 20_000); found.length < count; first = 10_000 + ((first - 10_000 + length) % 20_000)) {
    const row = Array.from({ length }, (_, at) => first + at);
    if ((await Promise.all(row.map(isFree))).every(Boolean)) found.push(first);
  }
  return found;
}

export class LaneNetwork {
  readonly folder = mkdtempSync(join(tmpdir(), "walras-lane-"));
  private readonly nodes: ChildProcess[] = [];
  url = "";

  static async start(): Promise<LaneNetwork> {
    const network = new LaneNetwork();
    const [validators, ...shards] = (await rowsOfPorts(5, HOME_PORTS)) as [number, ...number[]];
    const addresses = [0, 1, 2, 3].map((index) => `--address=127.0.0.1:${validators + index}`);
    const assets = ["--asset", "USD:2", "--asset", "EUR:2", "--supply", "1000"];
    await network.said("init", "--validators", "4", "--lane", ...assets, ...addresses, "--home", network.folder);
    const urls = await Promise.all([0, 1, 2, 3].map((index) => network.node(index, shards)));
    network.url = urls[0] as string;
    return network;
  }

  private environment(): NodeJS.ProcessEnv {
    const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("WALRAS_")));
    return { ...clean, WALRAS_PASSPHRASE: PASSPHRASE, WALRAS_SERVER: this.url };
  }

  private async node(index: number, shards: number[]): Promise<string> {
    const log = join(this.folder, `log-${index}`);
    const out = openSync(log, "w");
    const settings = {
      WALRAS_BLOCKS__INTERVAL_MS: "20",
      WALRAS_LANE__ADDRESSES: shards.map((port) => `127.0.0.1:${port}`).join(),
      WALRAS_ETHEREUM__LISTEN: "127.0.0.1:0",
    };
    const home = join(this.folder, `validator-${index}`);
    const node = spawn(BINARY, ["node", "--listen", "127.0.0.1:0", "--home", home], { stdio: ["ignore", out, out], env: { ...this.environment(), ...settings } });
    closeSync(out);
    this.nodes.push(node);
    for (;;) {
      const found = /^listening on (http:\/\/[^ \n]+)/m.exec(readFileSync(log, "utf8"));
      if (found) return found[1] as string;
      if (node.exitCode !== null) throw new Error(readFileSync(log, "utf8"));
      await pause(50);
    }
  }

  /** What a command prints. */
  async said(...words: string[]): Promise<string> {
    return (await promisify(execFile)(BINARY, words, { env: this.environment(), cwd: this.folder, timeout: 600_000 })).stdout;
  }

  /** What a command of a purse prints. */
  async pay(purse: string, ...words: string[]): Promise<Record<string, unknown>> {
    return JSON.parse(await this.said("pay", ...words, "--purse", purse, "--json")) as Record<string, unknown>;
  }

  async stop(): Promise<void> {
    const ended = this.nodes.map((node) => new Promise((resolve) => (node.exitCode === null ? node.once("exit", resolve) : resolve(null))));
    for (const node of this.nodes) node.kill();
    await Promise.all(ended);
    rmSync(this.folder, { recursive: true, force: true });
  }
}
