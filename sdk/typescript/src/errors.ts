/**
 * What can go wrong, told apart: which server, what it said, and what to do. `leavesDoubt` is the question that matters
 * after something was sent: whether it is unknown if the node has it.
 */

export class ClientError extends Error {
  override readonly name: string = this.constructor.name;
  get leavesDoubt(): boolean {
    return false;
  }
}

/** Nobody answered, or the connection broke. What was asked for may have been done. */
export class NoAnswerError extends ClientError {
  constructor(
    readonly server: string,
    cause: unknown,
  ) {
    super(`no node answers at ${server} (${wordsOf(cause)}); give another address`, { cause });
  }
  override get leavesDoubt(): boolean {
    return true;
  }
}

/** The answer is none of a node of this version. */
export class ForeignAnswerError extends ClientError {
  constructor(
    readonly server: string,
    what: string,
  ) {
    super(`what answers at ${server} is no walras node of this version (${what}); give another address`);
  }
  override get leavesDoubt(): boolean {
    return true;
  }
}

/** The node refused. `code` is stable; `remedy` is its sentence: what is wrong, and what to do. */
export class RefusedError extends ClientError {
  constructor(
    readonly server: string,
    readonly status: number,
    readonly code: string,
    readonly remedy: string,
  ) {
    super(`the node at ${server} refuses (${code}): ${remedy}`);
  }
  /** A follower says for certain that it passed nothing on. */
  override get leavesDoubt(): boolean {
    return this.status >= 500 && this.code !== "follows";
  }
}

/** The node has no such thing. A node that does not answer is another error. */
export class NotFoundError extends RefusedError {}

/** The node has too much to do, or too much from this address. */
export class BusyError extends RefusedError {
  constructor(
    server: string,
    status: number,
    code: string,
    remedy: string,
    readonly retryAfterMs: number,
  ) {
    super(server, status, code, remedy);
  }
}

/**
 * A transaction was refused. Up to block `until` anybody who has its bytes may send it again; the next transaction of this
 * client takes its number, and ends that.
 */
export class TransactionRefusedError extends RefusedError {
  constructor(
    server: string,
    status: number,
    code: string,
    remedy: string,
    readonly id: string,
    readonly sequence: bigint,
    readonly until: bigint,
  ) {
    super(server, status, code, remedy);
  }
}

/** An order cannot be sealed. Nothing was sent: it never goes plain instead. */
export class SealError extends ClientError {}

/** A transaction can never take effect any more. */
export class VoidError extends ClientError {
  constructor(
    readonly server: string,
    readonly id: string,
    readonly why: string,
  ) {
    super(`transaction ${id} is void, says the node at ${server}: ${why}; sign the operation again`);
  }
}

/** Nobody knows yet what becomes of a transaction. It is stored: ask for its fate, or send it again unchanged. */
export class UndecidedError extends ClientError {
  constructor(
    readonly server: string,
    readonly id: string,
    readonly until: bigint,
    why: string,
  ) {
    super(
      `transaction ${id} is undecided at ${server} (${why}); it may count up to block ${until}: ask fate("${id}"), or ` +
        `retry("${id}"), which sends the same bytes and counts once`,
    );
  }
  override get leavesDoubt(): boolean {
    return true;
  }
}

/**
 * The same operation was sent before, by a call that has not told its result: a second one might pay twice. `height` is that
 * of its block, if it was executed meanwhile.
 */
export class SentBeforeError extends ClientError {
  constructor(
    readonly server: string,
    readonly id: string,
    readonly until: bigint,
    readonly height: number | null,
  ) {
    const unknown = `its result is unknown; it may count up to block ${until}. Ask fate("${id}") or retry("${id}")`;
    const result = height === null ? unknown : `it was executed in block ${height}`;
    const again = "to do it a second time, give it a `reference`" + (height === null ? "" : ", or call again");
    super(`the same operation was sent before as ${id} through ${server}, and ${result}; ${again}`);
  }
}

/** An account's slot has another key than the client, or none; or it cannot do what was asked. */
export class SessionKeyError extends ClientError {}

/** No sequence number is free for the account. */
export class NumbersError extends ClientError {}

/** The node is of another network than the client signs for. */
export class OtherNetworkError extends ClientError {
  constructor(
    readonly server: string,
    readonly found: string,
    readonly expected: string,
  ) {
    super(`the node at ${server} is of network ${found}, not of ${expected}: nothing was sent`);
  }
}

/** There is no such asset. */
export class UnknownAssetError extends ClientError {}

/** An amount or price is no exact number of units, or out of bounds. */
export class AmountError extends ClientError {}

/** A text is no address, or its capitals are a wrong checksum (EIP-55). */
export class AddressError extends ClientError {}

/** A key cannot be made or opened. */
export class KeyError extends ClientError {}

/** A stored transaction cannot be read or written; then nothing is sent. */
export class StoreError extends ClientError {}

/** The stream refuses a channel. */
export class StreamError extends ClientError {
  constructor(
    readonly server: string,
    readonly code: string,
    what: string,
  ) {
    super(`the stream at ${server} refuses (${code}): ${what}`);
  }
}

function wordsOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  return cause.cause instanceof Error ? `${cause.message}: ${cause.cause.message}` : cause.message;
}
