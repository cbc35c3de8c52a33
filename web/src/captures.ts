// What a capture shows: its connections, and what is said of it as a whole.
import type { Capture, CapturedAttempts, CapturedDirection, CapturedFlow } from "./generated/pcap";
import { rate, size, time } from "./format";
import type { Chart, Timeline } from "./model";
import { arrow } from "./words";

/** The server takes no more bytes of one capture. */
export const MOST_BYTES = 4 * 2 ** 30;
/** Rows of a table; the search finds the others. */
export const MOST_ROWS = 200;

/** Why a file is not sent to bdp; null if it is. */
export function refusal(file: { name: string; size: number }): string | null {
  if (file.size === 0) return `${file.name} is empty`;
  if (file.size <= MOST_BYTES) return null;
  return `${file.name} has ${size(file.size)}, and the page takes ${size(MOST_BYTES)} at most: keep the first 96 bytes of each packet (editcap -s 96), or run bdp pcap in a terminal`;
}

export interface Connection {
  flow: CapturedFlow;
  bytes: number;
  /** The direction with most of the data: 0 is from `a` to `b`. */
  main: 0 | 1;
  limit: string;
}

const payload = (flow: CapturedFlow, way: number): number => flow.directions[way]?.payload_bytes ?? 0;

/** What limits a direction, as the finding names it. */
export const limitOf = (direction: CapturedDirection | undefined): string => direction?.findings[0]?.subject ?? "-";

/** The flows of a capture, those with most bytes first. */
export function connections(capture: { flows: readonly CapturedFlow[] }): Connection[] {
  return capture.flows
    .map((flow): Connection => {
      const main = payload(flow, 1) > payload(flow, 0) ? 1 : 0;
      const bytes = flow.directions.reduce((sum, one) => sum + one.bytes, 0);
      return { flow, bytes, main, limit: limitOf(flow.directions[main]) };
    })
    .sort((a, b) => b.bytes - a.bytes);
}

/** The connections that have all words. */
export function matching(all: readonly Connection[], search: string): readonly Connection[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return all;
  return all.filter(({ flow, limit }) => {
    const text = `${flow.a} ${flow.b} ${flow.protocol} ${limit}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

export const number = (value: number): string => value.toLocaleString("en-US");
const several = (count: number, one: string): string => `${number(count)} ${one}${count === 1 ? "" : "s"}`;

const OUTCOMES: Record<CapturedAttempts["outcome"], string> = {
  unanswered: "unanswered",
  refused: "refused",
  half_open: "answered, but the answer was not acknowledged",
  abandoned: "answered, then reset by their sender",
  answer_alone: "answers to SYNs that were not captured",
  reset_alone: "resets alone",
  stray: "of connections whose beginning was not captured",
};

/** `50,000 SYNs to 10.0.0.254:80 unanswered, from 49,999 addresses in 5.00 s (10,000/s)` */
export function attempts(one: CapturedAttempts): string {
  const what = one.protocol !== "tcp" ? `${one.protocol} flow` : ["answer_alone", "reset_alone", "stray"].includes(one.outcome) ? "attempt" : "SYN";
  const to = one.to ?? `${number(one.destinations)} addresses`;
  const port = one.port !== null ? `:${one.port}` : one.ports > 1 ? `, ${several(one.ports, "port")}` : "";
  const from = one.from ?? `${number(one.sources)} addresses`;
  const took = (one.to_ns - one.from_ns) / 1e9;
  const each = took > 0 ? ` (${number(Math.round(one.flows / took))}/s)` : "";
  return `${several(one.flows, what)} to ${to}${port} ${OUTCOMES[one.outcome]}, from ${from} in ${time(one.to_ns - one.from_ns)}${each}`;
}

/** What a reader must know of the capture as a whole. */
export function remarks(capture: Capture): string[] {
  const all = [...capture.flows, ...capture.attempts];
  if (capture.packets === capture.filtered) return [capture.filtered > 0 ? "No packet matches the filter." : "The capture holds no packets.", ...capture.caveats];
  if (!all.some((one) => one.protocol === "tcp")) return ["Nothing of TCP is in it: of other flows bdp shows figures, and no causes.", ...capture.caveats];
  return capture.caveats;
}

/** One line on the whole. */
export function summary(capture: Capture): string {
  const flows = capture.flows.length + capture.attempts.reduce((sum, one) => sum + one.flows, 0);
  return `${several(capture.packets, "packet")}, ${size(capture.bytes)} in ${time(capture.duration_ns)}, ${several(flows, "flow")}`;
}

/** Where the capture was taken, by the round trips from there. */
export function place(flow: CapturedFlow): string {
  const tcp = flow.tcp;
  if (!tcp) return "-";
  const [a, b] = tcp.to_ends_ns;
  const where = tcp.vantage === null ? "unknown" : { near_a: `at or near ${flow.a}`, near_b: `at or near ${flow.b}`, between: "between the two ends" }[tcp.vantage];
  const trips = a === null && b === null ? "" : `: ${time(a)} to ${flow.a} and back, ${time(b)} to ${flow.b}`;
  return where + trips;
}

/** Figures of a connection, by name. */
export function facts(flow: CapturedFlow): [string, string][] {
  const out: [string, string][] = [];
  const tcp = flow.tcp;
  if (tcp) {
    const offers = tcp.offers.map((one) => (one ? `MSS ${one.mss ?? "-"}, window scale ${one.window_scale ?? "none"}, ${one.sack ? "SACK" : "no SACK"}, ${one.timestamps ? "timestamps" : "no timestamps"}` : "not captured"));
    out.push(["handshake", tcp.handshake_rtt_ns === null ? "not captured in full" : time(tcp.handshake_rtt_ns)]);
    out.push([`SYN of ${flow.a}`, offers[0] ?? "-"], [`SYN of ${flow.b}`, offers[1] ?? "-"]);
    out.push(["captured", place(flow)], ["ended", tcp.ended.replaceAll("_", " ")]);
  }
  for (const [way, direction] of flow.directions.entries()) {
    const data = direction.tcp;
    const name = arrow(way === 0 ? "to" : "from");
    if (!data || direction.payload_bytes === 0) continue;
    const trips = data.rtt_to_receiver;
    const sent = data.retransmissions;
    out.push([`round trip ${name}`, `${time(data.rtt_min_ns)} at least${trips ? `; from here to the receiver ${time(trips.p50_ns)} median, ${time(trips.p95_ns)} at the 95th percentile` : ""}`]);
    out.push([`in flight ${name}`, `${size(data.in_flight_most_bytes)} at most; receive window ${size(data.window_least_bytes)} to ${size(data.window_most_bytes)}`]);
    out.push([`retransmitted ${name}`, `${number(sent.segments)} of ${several(data.segments, "segment")}: ${sent.fast} fast, ${sent.timeout} after a timeout, ${sent.needless} needless`]);
  }
  return out;
}

/** Intervals of the curve of goodput. */
const STEPS = 120;

/** Goodput over time, from the progress of the acknowledgements; null if there is none. */
export function timelineOf(flow: CapturedFlow): Timeline | null {
  const until = (flow.to_ns - flow.from_ns) / 1e9;
  if (!(until > 0)) return null;
  const step = until / STEPS;
  const xs = Array.from({ length: STEPS }, (_, index) => (index + 0.5) * step);
  const series: Chart["series"] = [];
  const ticks: Chart["ticks"] = [];
  for (const [way, direction] of flow.directions.entries()) {
    const trace = direction.tcp?.trace ?? [];
    if (!direction.tcp || trace.length < 3) continue;
    // Times of a direction begin at its first byte of data, which is not far from the beginning of the last.
    const first = until - (trace.at(-1)?.at_ns ?? 0) / 1e9;
    const offset = Math.max(0, Math.min(first, (flow.tcp?.handshake_rtt_ns ?? 0) / 1e9));
    const acked = (t: number): number => {
      const at = (t - offset) * 1e9;
      const next = trace.findIndex((one) => one.at_ns > at);
      if (next === 0) return 0;
      const [a, b] = [trace[(next < 0 ? trace.length : next) - 1], trace[next]];
      if (!a) return 0;
      return !b ? a.acked_bytes : a.acked_bytes + ((b.acked_bytes - a.acked_bytes) * (at - a.at_ns)) / (b.at_ns - a.at_ns);
    };
    const name = way === 0 ? "to" : "from";
    series.push({ label: `${arrow(name)} ${way === 0 ? flow.b : flow.a}`, colour: `--${name}`, bold: true, values: xs.map((t) => (Math.max(0, acked(t + step / 2) - acked(t - step / 2)) * 8) / step) });
    for (const [at] of (direction.tcp.retransmitted_at ?? []) as [number, number][]) ticks.push({ t: offset + at / 1e9, count: 1 });
  }
  if (series.length === 0) return null;
  return { goodput: { xs, series, ticks }, rtt: { xs: [], series: [], ticks: [] }, spans: [], until };
}

/** The filter that leaves this connection alone. */
export function filterOf(flow: CapturedFlow): string {
  const ends = [flow.a, flow.b].map((end) => {
    const colon = end.lastIndexOf(":");
    return [end.slice(0, colon).replace(/^\[|\]$/g, ""), end.slice(colon + 1)] as const;
  });
  return ends.map(([host, port]) => `host ${host}${port === "0" ? "" : ` and port ${port}`}`).join(" and ");
}

/** `316 kbit/s`, of the direction with most of the data. */
export const goodputOf = ({ flow, main }: Connection): string => rate(flow.directions[main].goodput_bps);
