/**
 * A pair's prices as candles with the volume below, by TradingView's Lightweight Charts. The library is loaded with the first
 * chart, not with the page. Its own mark needs a style that the page's policy forbids, so the attribution is the page's.
 */
import type { IChartApi, ISeriesApi, UTCTimestamp } from "lightweight-charts";
import { parseDecimal } from "@walras/client/decimal";
import { formatPrice, shorten } from "../amount";
import { h, setText } from "../dom";
import { refresh } from "../refresh";
import { dateAndClock } from "../words";
import type { Drawn } from "./bodies";
import { FAMILY, colour, onScheme } from "./theme";

export type CandlesChart = {
  element: HTMLElement;
  /** `wide` is the width of a candle in milliseconds. */
  show: (candles: Drawn[], wide: number, base: string, quote: string) => void;
  close: () => void;
};

const PAUSE_MS = 1_000;
const DAY_MS = 86_400_000;
/** Digits of a price that an axis shows. */
const DIGITS = 6;

type Library = typeof import("lightweight-charts");
type Made = { api: IChartApi; candles: ISeriesApi<"Candlestick">; volume: ISeriesApi<"Histogram"> };
type Shown = { candles: Drawn[]; wide: number; base: string; quote: string };

export function candlesChart(): CandlesChart {
  const place = h("div", { class: "canvas" });
  const element = h("div", { class: "chart fills", "data-chart": "candles", role: "img", "aria-label": "A chart without data yet" }, place);
  const ohlc = h("p", { class: "ohlc quiet", "aria-hidden": "true" });
  element.append(ohlc);
  let shown: Shown = { candles: [], wide: 60_000, base: "", quote: "" };
  let drawnOf: Shown | null = null;
  let made: Made | null = null;
  let hovered: Drawn | null = null;
  const loading = refresh(load, () => undefined, PAUSE_MS);
  loading.request();
  const stop = onScheme(repaint);

  function repaint(): void {
    if (!made) return;
    paint(made);
    drawnOf = null;
    draw();
  }

  async function load(signal: AbortSignal): Promise<void> {
    const library = await import("lightweight-charts");
    if (signal.aborted || made) return;
    made = makeChart(library, place);
    made.api.subscribeCrosshairMove(({ time, point }) => {
      hovered = point && time !== undefined ? (shown.candles.find((candle) => timeOf(candle.at, shown.wide) === time) ?? null) : null;
      tell();
    });
    draw();
  }

  function draw(): void {
    if (!made) return;
    const { candles, wide } = shown;
    const before = drawnOf;
    drawnOf = shown;
    const isSame = before !== null && before.wide === wide && before.base === shown.base && before.quote === shown.quote;
    const added = isSame ? newer(before.candles, candles) : null;
    if (added === null) {
      const last = candles.at(-1);
      made.api.timeScale().applyOptions({ timeVisible: wide < DAY_MS, secondsVisible: wide < 60_000 });
      if (last) made.candles.applyOptions({ priceFormat: formatOf(last.close) });
      made.candles.setData(candles.map((candle) => barOf(candle, wide)));
      made.volume.setData(candles.map((candle) => columnOf(candle, wide)));
      if (!isSame) made.api.timeScale().scrollToRealTime();
    }
    for (const candle of added ?? []) {
      made.candles.update(barOf(candle, wide));
      made.volume.update(columnOf(candle, wide));
    }
    tell();
  }

  /** Open, high, low, close and volume of the candle under the pointer, else of the newest. */
  function tell(): void {
    const candle = hovered ?? shown.candles.at(-1);
    setText(ohlc, candle ? `O ${price(candle.open)}  H ${price(candle.high)}  L ${price(candle.low)}  C ${price(candle.close)}  V ${amount(candle.volume)} ${shown.base}${hovered ? `, ${dateAndClock(hovered.at)}` : ""}` : "");
  }

  return {
    element,
    show(candles, wide, base, quote) {
      shown = { candles, wide, base, quote };
      const last = candles.at(-1);
      const words = last ? `: ${candles.length} intervals; the latest closes at ${price(last.close)}.` : ": none yet.";
      element.setAttribute("aria-label", `Candles of ${base} in ${quote}${words}`);
      draw();
    },
    close() {
      stop();
      loading.close();
      made?.api.remove();
    },
  };
}

const price = (value: number): string => formatPrice(parseDecimal(plain(value)));
const amount = (value: number): string => shorten(parseDecimal(plain(value)) ?? { digits: 0n, scale: 0 });
/** A double without an exponent. */
const plain = (value: number): string => value.toFixed(Math.min(18, Math.max(0, 8 - Math.floor(Math.log10(Math.abs(value) || 1)))));

/** What came after `before`, its last candle included; null where more than that has changed. */
function newer(before: Drawn[], after: Drawn[]): Drawn[] | null {
  const last = before.length - 1;
  if (last < 0 || after.length < before.length || after[0]?.at !== before[0]?.at || after[last]?.at !== before[last]?.at) return null;
  return after.slice(last);
}

/** The library shows times as UTC: what is given is the reader's clock. Days are those of UTC. */
function timeOf(at: number, wide: number): UTCTimestamp {
  const offset = wide < DAY_MS ? 60 * new Date(at).getTimezoneOffset() : 0;
  return (at / 1000 - offset) as UTCTimestamp;
}

const barOf = ({ at, open, high, low, close }: Drawn, wide: number) => ({ time: timeOf(at, wide), open, high, low, close });
const columnOf = ({ at, open, close, volume }: Drawn, wide: number) => ({
  time: timeOf(at, wide),
  value: volume,
  color: colour(close < open ? "supply-volume" : "demand-volume"),
});

function formatOf(close: number) {
  const precision = Math.min(12, Math.max(2, DIGITS - 1 - Math.floor(Math.log10(Math.abs(close) || 1))));
  return { type: "price" as const, precision, minMove: 10 ** -precision };
}

function makeChart({ CandlestickSeries, HistogramSeries, createChart }: Library, place: HTMLElement): Made {
  const api = createChart(place, {
    autoSize: true,
    layout: { attributionLogo: false, fontSize: 11, fontFamily: FAMILY },
    rightPriceScale: { scaleMargins: { top: 0.12, bottom: 0.24 } },
    timeScale: { rightOffset: 3, barSpacing: 8, minBarSpacing: 2, maxBarSpacing: 18 },
  });
  const candles = api.addSeries(CandlestickSeries, { borderVisible: false });
  const volume = api.addSeries(HistogramSeries, { priceScaleId: "", priceFormat: { type: "volume" }, lastValueVisible: false, priceLineVisible: false });
  volume.priceScale().applyOptions({ scaleMargins: { top: 0.82, bottom: 0 } });
  const made = { api, candles, volume };
  paint(made);
  return made;
}

/** The page's colours in the present scheme. */
function paint({ api, candles }: Made): void {
  const [up, down, line] = [colour("demand"), colour("supply"), colour("line")];
  api.applyOptions({
    layout: { background: { color: colour("surface") }, textColor: colour("quiet") },
    grid: { vertLines: { color: line }, horzLines: { color: line } },
    rightPriceScale: { borderColor: line },
    timeScale: { borderColor: line },
  });
  candles.applyOptions({ upColor: up, downColor: down, wickUpColor: up, wickDownColor: down });
}

/** The notice that the library's licence asks for, with the link that it names. */
export function attribution(): HTMLElement {
  const link = h("a", { href: "https://www.tradingview.com/", target: "_blank", rel: "noopener noreferrer" }, "TradingView");
  return h("p", { class: "attribution quiet" }, "Lightweight Charts™ by ", link, ", © 2025 TradingView, Inc.");
}
