/** Frames, and the replies of a shard. */
import { type Answer, encodeAnswer, encodeExcluded, readAnswer, readExcluded } from "./certificate.js";
import { Reader, Refused, join, need, parsed, text, u32, u64, u8 } from "./layout.js";
import { ACKNOWLEDGEMENT, CONFIRMATION } from "./payment.js";

export const REPLY_BYTES_MAX = 16_384;

export const frame = (number: number, body: Uint8Array): Uint8Array => join(u32(4 + body.length), u32(number), body);

/** The whole frames at the beginning, each with its number, and the rest. */
export function split(data: Uint8Array, bodyMax: number): { frames: { number: number; body: Uint8Array }[]; rest: Uint8Array } {
  const frames: { number: number; body: Uint8Array }[] = [];
  while (data.length >= 8) {
    const head = new Reader(data);
    const [length, number] = [head.u32(), head.u32()];
    need(length >= 4, "a frame is shorter than its number");
    need(length - 4 <= bodyMax, "a frame is larger than any message");
    if (data.length < 4 + length) break;
    frames.push({ number, body: data.slice(8, 4 + length) });
    data = data.slice(4 + length);
  }
  return { frames, rest: data };
}

type SignedPosition = { kind: number; size: number; position: bigint; root: Uint8Array; signature: Uint8Array };
export type Reply =
  | { reply: "answer"; kind: number; digest: Uint8Array; answer: Answer }
  | { reply: "refusal"; again: boolean; text: string }
  | { reply: "position"; signed: SignedPosition | null }
  | { reply: "bls"; kind: number; digest: Uint8Array; validator: number; signature: Uint8Array }
  | { reply: "batch"; scheme: number; validator: number; position: bigint; excluded: number[]; signature: Uint8Array }
  | { reply: "spender"; output: Uint8Array; spender: { signature: Uint8Array; payment: Uint8Array } | null };

export function encodeReply(of: Reply): Uint8Array {
  switch (of.reply) {
    case "answer":
      return join(u8(1), u8(of.kind), of.digest, encodeAnswer(of.answer));
    case "refusal":
      return join(u8(2), u8(of.again ? 1 : 0), text(of.text));
    case "position": {
      if (!of.signed) return join(u8(3), u8(0));
      const { kind, size, position, root, signature } = of.signed;
      return join(u8(3), u8(1), u8(kind), u32(size), u64(position), root, signature);
    }
    case "bls":
      return join(u8(4), u8(of.kind), of.digest, u8(of.validator), of.signature);
    case "batch":
      return join(u8(5), u8(of.scheme), u8(of.validator), u64(of.position), encodeExcluded(of.excluded), of.signature);
    case "spender":
      return join(u8(6), of.output, of.spender ? join(u8(1), of.spender.signature, of.spender.payment) : u8(0));
  }
}

const isAnswerKind = (kind: number | undefined): kind is number => kind === CONFIRMATION || kind === ACKNOWLEDGEMENT;

function answered(body: Uint8Array): Reply {
  const kind = body[0];
  if (!isAnswerKind(kind)) throw new Refused("an answer is of no known kind");
  return parsed((reader) => ({ reply: "answer", kind, digest: reader.digest(), answer: readAnswer(reader) }), body.slice(1));
}

function refusal(body: Uint8Array): Reply {
  need(body.length >= 1 && (body[0] as number) <= 1, "a refusal is final (0) or not (1)");
  try {
    return { reply: "refusal", again: body[0] === 1, text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body.slice(1)) };
  } catch {
    throw new Refused("a refusal is no text");
  }
}

function readPosition(reader: Reader): SignedPosition {
  const kind = reader.u8();
  need(kind >= 2 && kind <= 6, "Malformed");
  return { kind, size: reader.u32(), position: reader.u64(), root: reader.digest(), signature: reader.signature() };
}

function blsAnswered(body: Uint8Array): Reply {
  need(body.length === 82, "an answer is malformed");
  const kind = body[0];
  if (!isAnswerKind(kind)) throw new Refused("an answer is of no known kind");
  return { reply: "bls", kind, digest: body.slice(1, 33), validator: body[33] as number, signature: body.slice(34) };
}

const batchAnswered = (body: Uint8Array): Reply =>
  parsed((reader) => {
    const [scheme, validator, position] = [reader.u8(), reader.u8(), reader.u64()];
    const excluded = readExcluded(reader);
    need(scheme === 2 || scheme === 3, "Malformed");
    return { reply: "batch", scheme, validator, position, excluded, signature: reader.take(scheme === 2 ? 64 : 48) };
  }, body);

const spender = (body: Uint8Array): Reply =>
  parsed((reader) => {
    const output = reader.digest();
    return { reply: "spender", output, spender: reader.option((of) => ({ signature: of.signature(), payment: of.rest() })) };
  }, body);

const KINDS: Record<number, { read: (body: Uint8Array) => Reply; malformed: string }> = {
  1: { read: answered, malformed: "an answer is malformed" },
  2: { read: refusal, malformed: "a refusal is empty" },
  3: { read: (body) => parsed((reader) => ({ reply: "position", signed: reader.option(readPosition) }), body), malformed: "a position is malformed" },
  4: { read: blsAnswered, malformed: "an answer is malformed" },
  5: { read: batchAnswered, malformed: "the answer to a batch is malformed" },
  6: { read: spender, malformed: "what spends an output is malformed" },
};

export function parseReply(body: Uint8Array): Reply {
  need(body.length > 0, "a reply is empty");
  const kind = KINDS[body[0] as number];
  if (!kind) throw new Refused("a reply is of no known kind");
  try {
    return kind.read(body.slice(1));
  } catch (error) {
    // What is wrong inside has one name here: the connection is closed.
    if (error instanceof Refused && ["Malformed", "WrongPath"].includes(error.reason)) throw new Refused(kind.malformed);
    throw error;
  }
}
