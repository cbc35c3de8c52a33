// The parameters of What if: how they are typed, shown, and moved by a slider. Pure.
import { percent, rate, size, time } from "./format";

export type Name = "rate_bps" | "rtt_ns" | "loss" | "queue_bytes" | "window_bytes" | "streams";

/** Values that differ from what was measured. */
export type Values = Partial<Record<Name, number>>;

export interface Parameter {
  name: Name;
  label: string;
  /** A value as one types it. */
  example: string;
  least: number;
  most: number;
  /** Whether the slider's first position is zero. */
  hasZero: boolean;
  /** Where the slider stands if nothing is known; a path without a run begins with the rate and the round trip. */
  start: number;
  /** What an absent value is called. */
  absent: string;
  show: (value: number) => string;
  parse: (text: string) => number | null;
  round: (value: number) => number;
}

type Factors = Readonly<Record<string, number>>;

const RATES: Factors = { "": 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12 };
const TIMES: Factors = { ns: 1, us: 1e3, µs: 1e3, μs: 1e3, ms: 1e6, s: 1e9 };
const SIZES: Factors = {
  "": 1,
  b: 1,
  k: 2 ** 10,
  kib: 2 ** 10,
  kb: 1e3,
  m: 2 ** 20,
  mib: 2 ** 20,
  mb: 1e6,
  g: 2 ** 30,
  gib: 2 ** 30,
  gb: 1e9,
};
const SHARES: Factors = { "": 0.01, "%": 0.01 };

function parsed(text: string, factors: Factors, suffix = ""): number | null {
  const found = /^(\d+\.?\d*(?:e[-+]?\d+)?|\.\d+)\s*(\S*)$/i.exec(text.trim().replace(",", "."));
  if (!found) return null;
  const unit = (found[2] ?? "").toLowerCase();
  const factor = factors[suffix !== "" && unit.endsWith(suffix) ? unit.slice(0, -suffix.length) : unit];
  if (factor === undefined) return null;
  const value = Number(found[1]) * factor;
  // Nanoseconds, bytes and bits are whole.
  return factor < 1 ? value : Math.round(value);
}

const twoDigits = (value: number): number => Number(value.toPrecision(2));

/** Two digits of its unit: 65,536 stays 64 KiB. */
function roundSize(bytes: number): number {
  const unit = 1024 ** Math.max(0, Math.floor(Math.log(bytes) / Math.log(1024)));
  return Math.round(twoDigits(bytes / unit) * unit);
}

const whole = (value: number): number => Math.max(1, Math.round(value));

export const PARAMETERS: readonly Parameter[] = [
  {
    name: "rate_bps",
    label: "Rate",
    example: "100M",
    least: 1e5,
    most: 1e11,
    hasZero: false,
    start: 100e6,
    absent: "unknown",
    show: rate,
    parse: (text) => parsed(text, RATES, "bit/s"),
    round: twoDigits,
  },
  {
    name: "rtt_ns",
    label: "Round trip",
    example: "40ms",
    least: 5e4,
    most: 2e9,
    hasZero: false,
    start: 40e6,
    absent: "",
    show: time,
    parse: (text) => parsed(text, TIMES),
    round: twoDigits,
  },
  {
    name: "loss",
    label: "Loss",
    example: "0.1%",
    least: 1e-6,
    most: 0.3,
    hasZero: true,
    start: 0,
    absent: "",
    show: percent,
    parse: (text) => parsed(text, SHARES),
    round: twoDigits,
  },
  {
    name: "queue_bytes",
    label: "Queue",
    example: "256K",
    least: 1500,
    most: 2 ** 28,
    hasZero: false,
    start: 2 ** 19,
    absent: "unknown",
    show: size,
    parse: (text) => parsed(text, SIZES),
    round: roundSize,
  },
  {
    name: "window_bytes",
    label: "Window",
    example: "4M",
    least: 2 ** 11,
    most: 2 ** 30,
    hasZero: false,
    start: 2 ** 22,
    absent: "autotuned",
    show: size,
    parse: (text) => parsed(text, SIZES),
    round: roundSize,
  },
  {
    name: "streams",
    label: "Streams",
    example: "8",
    least: 1,
    most: 128,
    hasZero: false,
    start: 1,
    absent: "",
    show: String,
    parse: (text) => (/^\d+$/.test(text.trim()) ? Number(text) : null),
    round: whole,
  },
];

/** Positions of a slider, from 0. */
export const POSITIONS = 300;

/** The value at a position: even steps of its logarithm. */
export function valueAt(of: Parameter, position: number): number {
  if (of.hasZero && position <= 0) return 0;
  const [first, last] = [of.hasZero ? 1 : 0, POSITIONS];
  const share = Math.min(1, Math.max(0, (position - first) / (last - first)));
  if (share === 0 || share === 1) return share === 0 ? of.least : of.most;
  return of.round(of.least * (of.most / of.least) ** share);
}

export function positionOf(of: Parameter, value: number): number {
  if (!(value > 0)) return 0;
  const first = of.hasZero ? 1 : 0;
  const share = Math.log(value / of.least) / Math.log(of.most / of.least);
  return Math.round(first + Math.min(1, Math.max(0, share)) * (POSITIONS - first));
}

/** What is wrong with a typed value; null if nothing is. */
export function problemOf(of: Parameter, text: string): string | null {
  const value = of.parse(text);
  if (value === null) return `'${text.trim()}' is not a ${of.label.toLowerCase()}, such as ${of.example}`;
  return value > 0 || of.hasZero ? null : "must be above zero";
}

export interface Bar {
  name: string;
  value: number;
  text: string;
  isMain: boolean;
}

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

/** Bars as a drawing of their own, with a line at what was measured. */
export function barsSvg(title: string, bars: readonly Bar[], most: number, mark: number | null, colourOf: (name: string) => string): string {
  const x = (value: number) => (200 + Math.min(1, value / (most || 1)) * 400).toFixed(1);
  const height = 40 + bars.length * 26;
  const text = `fill="${colourOf("--text")}"`;
  const rows = bars.map((bar, index) => {
    const y = 34 + index * 26;
    return (
      `<text x="192" y="${String(y + 13)}" text-anchor="end" ${text}>${escaped(bar.name)}</text>` +
      `<rect x="200" y="${String(y)}" width="${(Number(x(bar.value)) - 200).toFixed(1)}" height="18" fill="${colourOf(bar.isMain ? "--to" : "--other")}"/>` +
      `<text x="608" y="${String(y + 13)}" ${text}>${escaped(bar.text)}</text>`
    );
  });
  const line = mark === null ? "" : `<path d="M${x(mark)} 30V${String(height - 4)}" stroke="${colourOf("--text")}" stroke-width="2"/>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 ${String(height)}" width="720" height="${String(height)}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="${colourOf("--back")}"/><text x="8" y="18" font-weight="bold" ${text}>${escaped(title)}</text>
${rows.join("\n")}
${line}</svg>
`;
}

/** Goodput that a job of the lab reached, by its document: of `lab run`, `twin` or `sweep`. */
export function labGoodput(document: unknown): number | null {
  const of = fields(document);
  const [summary, twin, curve] = [first(of["summary"]), first(of["twins"]), first(of["curves"])];
  const figure = fields(first(fields(twin)["figures"]))["goodput_bps"];
  const candidates = [
    fields(summary)["goodput_median_bps"],
    fields(figure)["twin"],
    fields(curve)["best_bps"],
  ];
  return candidates.find((one): one is number => typeof one === "number") ?? null;
}

const fields = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
const first = (value: unknown): unknown => (Array.isArray(value) ? (value as unknown[])[0] : null);
