/** Keccak-256, which names functions, errors and events of contracts: the page's tables are held against it. */

const MASK = (1n << 64n) - 1n;
const RATE = 136;

/** Round constants by the degree-8 shift register of the standard. */
const ROUNDS = (() => {
  let register = 1;
  const bit = () => {
    const out = register & 1;
    register = register & 0x80 ? ((register << 1) ^ 0x171) & 0xff : register << 1;
    return out;
  };
  return Array.from({ length: 24 }, () => {
    let constant = 0n;
    for (let j = 0; j <= 6; j += 1) if (bit()) constant |= 1n << BigInt(2 ** j - 1);
    return constant;
  });
})();

const turn = (word: bigint, by: number): bigint => ((word << BigInt(by)) | (word >> BigInt(64 - by))) & MASK;

function permute(a: bigint[]): void {
  for (const constant of ROUNDS) {
    const c = [0, 1, 2, 3, 4].map((x) => a[x]! ^ a[x + 5]! ^ a[x + 10]! ^ a[x + 15]! ^ a[x + 20]!);
    for (let i = 0; i < 25; i += 1) a[i]! ^= c[(i + 4) % 5]! ^ turn(c[(i + 1) % 5]!, 1);
    let [x, y, word] = [1, 0, a[1]!];
    for (let t = 0; t < 24; t += 1) {
      [x, y] = [y, (2 * x + 3 * y) % 5];
      const next = a[x + 5 * y]!;
      a[x + 5 * y] = turn(word, (((t + 1) * (t + 2)) / 2) % 64);
      word = next;
    }
    for (let row = 0; row < 25; row += 5) {
      const r = a.slice(row, row + 5);
      for (let i = 0; i < 5; i += 1) a[row + i] = r[i]! ^ (~r[(i + 1) % 5]! & MASK & r[(i + 2) % 5]!);
    }
    a[0]! ^= constant;
  }
}

/** The hash of a text, in hexadecimal. */
export function keccak(text: string): string {
  const bytes = [...new TextEncoder().encode(text)];
  const padded = [...bytes, ...new Array<number>(RATE - (bytes.length % RATE)).fill(0)];
  padded[bytes.length]! ^= 1;
  padded[padded.length - 1]! ^= 0x80;
  const state = new Array<bigint>(25).fill(0n);
  for (let at = 0; at < padded.length; at += RATE) {
    for (let i = 0; i < RATE; i += 1) state[i >> 3]! ^= BigInt(padded[at + i]!) << BigInt(8 * (i & 7));
    permute(state);
  }
  const lane = (word: bigint) => [0, 1, 2, 3, 4, 5, 6, 7].map((i) => ((word >> BigInt(8 * i)) & 255n).toString(16).padStart(2, "0")).join("");
  return "0x" + state.slice(0, 4).map(lane).join("");
}
