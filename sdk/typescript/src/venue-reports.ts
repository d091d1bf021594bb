/** What a venue says of orders: reports, standings, executions. *Executed is not settled.* */
import { ClientError } from "./errors.js";
import type { VenueTerms } from "./venue-terms.js";
import { numberText, type OrderNumber, type VenueOrder, type VenueReport, type VenueSide } from "./venue.js";

/**
 * The venue refused an order or a request about one. `code` is stable (docs/venue-api.md); `remedy` is its sentence, with the next
 * valid value. A refused order is final: the next one has another number.
 */
export class OrderRefusedError extends ClientError {
  constructor(
    readonly number: OrderNumber,
    readonly code: string,
    readonly remedy: string,
  ) {
    super(`the venue refuses order ${numberText(number)} (${code}): ${remedy}`);
  }
}

/**
 * Nobody knows yet whether the venue took these orders. They are stored: `retry` sends the same bytes again, `order` asks for one,
 * and `resume` decides all.
 */
export class UndecidedOrdersError extends ClientError {
  constructor(
    readonly server: string,
    readonly numbers: readonly OrderNumber[],
    why: string,
  ) {
    super(
      `orders ${numbers.map(numberText).join(", ")} are undecided at ${server} (${why}): retry(number) sends the same bytes again ` +
        "and places none twice; resume() asks for all and ends what never came",
    );
  }
  override get leavesDoubt(): boolean {
    return true;
  }
}

/**
 * The report of a fill is not signed by a report key of the venue, or is of something else. Take it as no fill, cancel, and
 * collect: the venue is faulty. `report` has the bytes.
 */
export class UnsignedReportError extends ClientError {
  constructor(
    readonly number: OrderNumber,
    readonly index: bigint,
    readonly report: string,
    why: string,
  ) {
    super(`the report of fill ${index} of order ${numberText(number)} is no evidence (${why}): take it as no fill`);
  }
}

/** How the node's venue stands. `height` is the last certified one that it knows, `paused` a code why matching pauses. */
export type VenueStatus = {
  standing: string;
  why: string | null;
  network: string;
  venue: number;
  incarnation: number;
  day: number;
  clock_ms: number;
  height: number;
  paused: string | null;
  fills: number;
  settled: number;
};

type ErrorText = { code: string; message: string };
export type ExecutedBody = { index: string; market: number; side: VenueSide; lots: number; tick: number; fee: string; is_taker: boolean; left?: number; report: string };
export type StandingBody = { standing: string; why?: string; open?: number; executed?: number; settled?: number; bust?: number } & Partial<ErrorText>;
export type ReportBody = {
  number: OrderNumber;
  type: string;
  accepted?: { id: string; lots: number };
  executed?: ExecutedBody;
  reduced?: { lots: number };
  ended?: { lots: number; why: string };
  refused?: ErrorText;
  settled?: { index: string; height: string; fate: string };
  status?: StandingBody;
};
export type PositionBody = { orders_ahead: number };
export type PlacedResult = { reports: ReportBody[] } | { error: ErrorText };
export type OwnFillsBody = { fills: (ExecutedBody & { number: OrderNumber })[]; next: string; settled: string };

/**
 * The own side of a fill: executed, not settled yet. `fee` is in the quote asset, below zero if it is paid to the trader. `report`
 * is checked, and `evidence` its bytes: they convict a venue that settles another fill (`walras venue accuse`).
 */
export type Execution = {
  number: OrderNumber;
  index: bigint;
  market: string;
  side: VenueSide;
  amount: string;
  price: string;
  fee: string;
  isTaker: boolean;
  lots: number;
  report: VenueReport;
  evidence: string;
};
/** What the ledger did with a fill: `applied`, or the rule that it broke. */
export type FillFate = { index: bigint; height: bigint; fate: string };
export type ExecutionsPage = { executions: Execution[]; next: bigint; settled: bigint };

/**
 * Something happened to an order: `accepted`, `executed`, `reduced`, `ended`, `refused`, `overtaken`, `settled` or `status`. `lots`
 * are open after it, or were left when it ended; `why` it ended, or the code of its refusal. On a stream
 * `isOwnSession` says whether the order came through this session.
 */
export type OrderReport = {
  number: OrderNumber;
  kind: string;
  execution: Execution | null;
  fate: FillFate | null;
  lots: number | null;
  why: string | null;
  message: string | null;
  standing: StandingBody | null;
  isOwnSession: boolean;
};

/** Reads an execution, and checks and keeps its report. */
export type Checked = (number: OrderNumber, body: ExecutedBody) => Execution;

export function reportOf(body: ReportBody, checked: Checked, isOwnSession = true): OrderReport {
  const { number, type: kind, executed, settled, refused, ended, status } = body;
  return {
    ...{ number, kind, isOwnSession },
    execution: executed ? checked(number, executed) : null,
    fate: settled ? { index: BigInt(settled.index), height: BigInt(settled.height), fate: settled.fate } : null,
    lots: body.accepted?.lots ?? executed?.left ?? body.reduced?.lots ?? ended?.lots ?? null,
    why: refused?.code ?? ended?.why ?? status?.why ?? null,
    message: refused?.message ?? null,
    standing: status ?? null,
  };
}

/** The error that a report is, if it refuses. */
export function refusalOf({ number, kind, why, message }: OrderReport): OrderRefusedError | null {
  if (kind === "overtaken") return new OrderRefusedError(number, "overtaken", "a cancel of the order came first");
  return kind === "refused" ? new OrderRefusedError(number, why ?? "", message ?? "") : null;
}

/** Whether nothing of the order is open, or can come later. */
export function isOver({ kind, standing, lots }: OrderReport): boolean {
  if (kind === "executed") return lots === 0;
  return kind === "ended" || kind === "overtaken" || (standing !== null && standing.standing !== "open" && standing.standing !== "unknown");
}

/**
 * How an order stands, by the venue's definite answer: `open`, `ended`, `refused`, `overtaken` (its cancel came first) or `unknown`.
 * Amounts are of the base asset; those of an order that neither this process nor its file knows are null. `executed` waits for its
 * settle.
 */
export type OrderStanding = {
  number: OrderNumber;
  standing: string;
  why: string | null;
  message: string | null;
  order: VenueOrder | null;
  market: string | null;
  side: VenueSide | null;
  price: string | null;
  amount: string | null;
  open: string | null;
  executed: string | null;
  settled: string | null;
  bust: string | null;
  ordersAhead: number | null;
};

export function standingOf(number: OrderNumber, body: StandingBody, position: PositionBody | null, known: { order: VenueOrder; terms: VenueTerms } | null): OrderStanding {
  const amount = (lots: number | undefined) => (lots === undefined || !known ? null : known.terms.amount(lots));
  return {
    ...{ number, standing: body.standing, why: body.why ?? body.code ?? null, message: body.message ?? null },
    order: known?.order ?? null,
    market: known?.terms.name ?? null,
    side: known?.order.side ?? null,
    price: known ? known.terms.price(known.order.tick) : null,
    amount: amount(known?.order.lots),
    ...{ open: amount(body.open), executed: amount(body.executed), settled: amount(body.settled), bust: amount(body.bust) },
    ordersAhead: position?.orders_ahead ?? null,
  };
}

/** What became of an order at once. After a lost answer its executions are not told again: `executions` has all. */
export type PlacedOrder = {
  number: OrderNumber;
  order: VenueOrder;
  market: string;
  price: string;
  amount: string;
  state: "open" | "ended" | "refused";
  /** What is open. */
  left: string;
  executions: Execution[];
  refusal: OrderRefusedError | null;
};

export function placedOf(order: VenueOrder, terms: VenueTerms, told: readonly OrderReport[], refused: OrderRefusedError | null): PlacedOrder {
  const mine = told.filter(({ number }) => numberText(number) === numberText(order.number));
  const refusal = refused ?? mine.map(refusalOf).find((one) => one !== null) ?? null;
  const executions = mine.flatMap(({ execution }) => execution ?? []);
  const accepted = mine.find(({ kind }) => kind === "accepted")?.lots ?? 0;
  const left = accepted - executions.reduce((sum, { lots }) => sum + lots, 0);
  const isOver = refusal !== null || left <= 0 || mine.some(({ kind }) => kind === "ended");
  return {
    ...{ number: order.number, order, market: terms.name, price: terms.price(order.tick), amount: terms.amount(order.lots) },
    state: refusal ? "refused" : isOver ? "ended" : "open",
    left: isOver ? "0" : terms.amount(left),
    ...{ executions, refusal },
  };
}
