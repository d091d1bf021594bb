/**
 * QR codes (ISO/IEC 18004) of texts in capitals, digits and `$%*+-./:` and spaces, as lane addresses and receipts are: the
 * alphanumeric mode, with error correction of level L, which holds receipts of some thousand characters.
 */
const LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:";
/** Codewords of error correction in a block, and blocks, by version from 1 on. */
const CHECKS = [7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28, 28, 28, 30, 30, 26, 28, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30];
const BLOCKS = [1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8, 8, 9, 9, 10, 12, 12, 12, 13, 14, 15, 16, 17, 18, 19, 19, 20, 21, 22, 24, 25];
const LEVEL_L = 1;

/** Rows of modules, true where they are dark; null if the text has other characters or is too long. */
export function qrCode(text: string, mask?: number): boolean[][] | null {
  if ([...text].some((letter) => !LETTERS.includes(letter))) return null;
  const version = Array.from({ length: 40 }, (_, at) => at + 1).find((one) => bitsOf(text, one) <= 8 * dataBytes(one));
  if (version === undefined) return null;
  const words = withChecks(encoded(text, version), version);
  const masks = mask === undefined ? [0, 1, 2, 3, 4, 5, 6, 7] : [mask];
  const drawn = masks.map((one) => draw(version, words, one));
  return drawn.reduce((best, one) => (penalty(one) < penalty(best) ? one : best));
}

const countBits = (version: number): number => (version < 10 ? 9 : version < 27 ? 11 : 13);
const bitsOf = (text: string, version: number): number => 4 + countBits(version) + 11 * (text.length >> 1) + 6 * (text.length % 2);

/** Modules of data and error correction, in bytes. */
function rawBytes(version: number): number {
  let modules = (16 * version + 128) * version + 64;
  if (version >= 2) {
    const aligned = Math.floor(version / 7) + 2;
    modules -= (25 * aligned - 10) * aligned - 55;
    if (version >= 7) modules -= 36;
  }
  return modules >> 3;
}
const of = (table: number[], version: number): number => table[version - 1] ?? 0;
const dataBytes = (version: number): number => rawBytes(version) - of(CHECKS, version) * of(BLOCKS, version);

function encoded(text: string, version: number): number[] {
  const bits: number[] = [];
  const put = (value: number, count: number) => {
    for (let at = count - 1; at >= 0; at -= 1) bits.push((value >> at) & 1);
  };
  put(2, 4);
  put(text.length, countBits(version));
  const values = [...text].map((letter) => LETTERS.indexOf(letter));
  for (let at = 0; at + 1 < values.length; at += 2) put(45 * (values[at] ?? 0) + (values[at + 1] ?? 0), 11);
  if (values.length % 2 === 1) put(values.at(-1) ?? 0, 6);
  const room = 8 * dataBytes(version);
  put(0, Math.min(4, room - bits.length));
  put(0, (8 - (bits.length % 8)) % 8);
  for (let fill = 0xec; bits.length < room; fill ^= 0xec ^ 0x11) put(fill, 8);
  return Array.from({ length: room / 8 }, (_, at) => bits.slice(8 * at, 8 * at + 8).reduce((sum, bit) => 2 * sum + bit, 0));
}

/** Multiplies in the field of 256 elements modulo 0x11d. */
function times(one: number, other: number): number {
  let product = 0;
  for (let bit = 7; bit >= 0; bit -= 1) {
    product = (product << 1) ^ ((product >> 7) * 0x11d);
    product ^= ((other >> bit) & 1) * one;
  }
  return product;
}

function divisor(degree: number): number[] {
  const result = [...Array<number>(degree - 1).fill(0), 1];
  for (let step = 0, root = 1; step < degree; step += 1, root = times(root, 2)) {
    for (let at = 0; at < degree; at += 1) result[at] = times(result[at] ?? 0, root) ^ (result[at + 1] ?? 0);
  }
  return result;
}

function remainder(data: number[], by: number[]): number[] {
  const result = by.map(() => 0);
  for (const byte of data) {
    const factor = byte ^ (result.shift() ?? 0);
    result.push(0);
    by.forEach((one, at) => (result[at] = (result[at] ?? 0) ^ times(one, factor)));
  }
  return result;
}

/** Data and error correction, block by block in turn. */
function withChecks(data: number[], version: number): number[] {
  const [blocks, checks, raw] = [of(BLOCKS, version), of(CHECKS, version), rawBytes(version)];
  const shorts = blocks - (raw % blocks);
  const length = Math.floor(raw / blocks) - checks;
  const by = divisor(checks);
  let at = 0;
  const rows = Array.from({ length: blocks }, (_, block) => {
    const part = data.slice(at, (at += length + (block < shorts ? 0 : 1)));
    return { part, check: remainder(part, by) };
  });
  const columns = (count: number, pick: (row: (typeof rows)[number]) => number[]) =>
    Array.from({ length: count }, (_, column) => rows.flatMap((row) => pick(row)[column] ?? [])).flat();
  return [...columns(length + 1, (row) => row.part), ...columns(checks, (row) => row.check)];
}

const MASKS: ((x: number, y: number) => boolean)[] = [
  (x, y) => (x + y) % 2 === 0,
  (_, y) => y % 2 === 0,
  (x) => x % 3 === 0,
  (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2 === 0,
  (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0,
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
];

type Grid = { size: number; dark: boolean[][]; fixed: boolean[][] };

function draw(version: number, words: number[], mask: number): boolean[][] {
  const size = 4 * version + 17;
  const empty = () => Array.from({ length: size }, () => Array<boolean>(size).fill(false));
  const grid: Grid = { size, dark: empty(), fixed: empty() };
  drawPatterns(grid, version);
  drawFormat(grid, mask);
  const free = MASKS[mask] ?? (() => false);
  let bit = 0;
  for (let right = size - 1; right >= 1; right -= 2) {
    // The column of the timing pattern has no data.
    if (right === 6) right = 5;
    const isUp = ((right + 1) & 2) === 0;
    for (let step = 0; step < size; step += 1) {
      for (const x of [right, right - 1]) {
        const y = isUp ? size - 1 - step : step;
        if (grid.fixed[y]?.[x]) continue;
        const value = (((words[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1) === 1;
        (grid.dark[y] as boolean[])[x] = value !== free(x, y);
        bit += 1;
      }
    }
  }
  return grid.dark;
}

function put({ size, dark, fixed }: Grid, x: number, y: number, isDark: boolean): void {
  if (x < 0 || y < 0 || x >= size || y >= size) return;
  (dark[y] as boolean[])[x] = isDark;
  (fixed[y] as boolean[])[x] = true;
}

function drawPatterns(grid: Grid, version: number): void {
  const { size } = grid;
  for (let at = 0; at < size; at += 1) {
    put(grid, 6, at, at % 2 === 0);
    put(grid, at, 6, at % 2 === 0);
  }
  for (const [x, y] of [[3, 3], [size - 4, 3], [3, size - 4]] as const) square(grid, x, y, 4, (ring) => ring !== 2 && ring !== 4);
  const places = alignments(version, size);
  const last = places.length - 1;
  places.forEach((y, row) => {
    places.forEach((x, column) => {
      const isCorner = (row === 0 && (column === 0 || column === last)) || (row === last && column === 0);
      if (!isCorner) square(grid, x, y, 2, (ring) => ring !== 1);
    });
  });
  if (version >= 7) drawVersion(grid, version);
}

function square(grid: Grid, x: number, y: number, radius: number, isDark: (ring: number) => boolean): void {
  for (let dy = -radius; dy <= radius; dy += 1) {
    for (let dx = -radius; dx <= radius; dx += 1) put(grid, x + dx, y + dy, isDark(Math.max(Math.abs(dx), Math.abs(dy))));
  }
}

function alignments(version: number, size: number): number[] {
  if (version === 1) return [];
  const count = Math.floor(version / 7) + 2;
  const step = version === 32 ? 26 : 2 * Math.ceil((size - 13) / (2 * count - 2));
  return [6, ...Array.from({ length: count - 1 }, (_, at) => size - 7 - step * (count - 2 - at))];
}

function drawVersion(grid: Grid, version: number): void {
  let rest = version;
  for (let step = 0; step < 12; step += 1) rest = (rest << 1) ^ ((rest >> 11) * 0x1f25);
  const bits = (version << 12) | rest;
  for (let at = 0; at < 18; at += 1) {
    const [isDark, far, near] = [((bits >> at) & 1) === 1, grid.size - 11 + (at % 3), Math.floor(at / 3)];
    put(grid, far, near, isDark);
    put(grid, near, far, isDark);
  }
}

function drawFormat(grid: Grid, mask: number): void {
  const { size } = grid;
  const data = (LEVEL_L << 3) | mask;
  let rest = data;
  for (let step = 0; step < 10; step += 1) rest = (rest << 1) ^ ((rest >> 9) * 0x537);
  const bits = ((data << 10) | rest) ^ 0x5412;
  const bit = (at: number) => ((bits >> at) & 1) === 1;
  for (let at = 0; at < 15; at += 1) {
    const around = at < 6 ? at : at < 8 ? at + 1 : 15 - at;
    if (at < 8) put(grid, 8, around, bit(at));
    else put(grid, at === 8 ? 7 : 14 - at, 8, bit(at));
    if (at < 8) put(grid, size - 1 - at, 8, bit(at));
    else put(grid, 8, size - 15 + at, bit(at));
  }
  put(grid, 8, size - 8, true);
}

/** How hard a code is to read, by the standard's four rules. */
function penalty(dark: boolean[][]): number {
  const columns = dark.map((_, x) => dark.map((row) => row[x] ?? false));
  let sum = 0;
  for (const line of [...dark, ...columns]) {
    const text = line.map((one) => (one ? "1" : "0")).join("");
    for (const run of text.match(/0{5,}|1{5,}/g) ?? []) sum += run.length - 2;
    for (const finder of ["00001011101", "10111010000"]) for (let at = text.indexOf(finder); at >= 0; at = text.indexOf(finder, at + 1)) sum += 40;
  }
  for (let y = 1; y < dark.length; y += 1) {
    for (let x = 1; x < dark.length; x += 1) {
      const one = dark[y]?.[x];
      if (one === dark[y - 1]?.[x] && one === dark[y]?.[x - 1] && one === dark[y - 1]?.[x - 1]) sum += 3;
    }
  }
  const share = dark.flat().filter(Boolean).length / dark.length ** 2;
  return sum + 10 * Math.floor(Math.abs(20 * share - 10));
}

/** The code as a picture with its quiet zone, and words for those who do not see it. */
export function qrPicture(text: string, words: string): SVGSVGElement | null {
  const rows = qrCode(text);
  if (!rows) return null;
  const [space, size] = ["http://www.w3.org/2000/svg", rows.length + 8];
  const picture = document.createElementNS(space, "svg") as SVGSVGElement;
  const attributes = { viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": words, class: "qr", "shape-rendering": "crispEdges" };
  for (const [name, value] of Object.entries(attributes)) picture.setAttribute(name, value);
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", rows.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? `M${x + 4} ${y + 4}h1v1h-1z` : []))).join(""));
  picture.append(path);
  return picture;
}
