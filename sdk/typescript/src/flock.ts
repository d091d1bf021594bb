/**
 * Locks of files for Node.js, which has none: the program `flock` (util-linux) holds one. It ends with this process, however
 * that ends.
 */
import { spawn } from "node:child_process";

const IN_USE = 75;

/** Holds the lock of a file until the answer is called. `inUse` and `failed` make the errors. */
export async function holdLock(path: string, inUse: () => Error, failed: (why: string) => Error): Promise<() => Promise<void>> {
  const holder = spawn("flock", ["--exclusive", "--nonblock", "--conflict-exit-code", String(IN_USE), path, "cat"], {
    stdio: ["pipe", "pipe", "ignore"],
  });
  const held = new Promise<void>((resolve, reject) => {
    holder.on("error", (error) => reject(failed(error.message)));
    holder.on("exit", (code) => reject(code === IN_USE ? inUse() : failed(`flock ended with ${code}`)));
    // It answers once it has the lock.
    holder.stdout.once("data", () => resolve());
  });
  holder.stdin.on("error", () => undefined);
  holder.stdin.write("\n");
  await held;
  // The lock alone keeps no program running.
  holder.unref();
  for (const pipe of [holder.stdin, holder.stdout]) (pipe as unknown as { unref(): void }).unref();
  return async () => {
    const ended = new Promise<void>((resolve) => holder.once("exit", () => resolve()));
    holder.ref();
    holder.stdin.end();
    await ended;
  };
}
