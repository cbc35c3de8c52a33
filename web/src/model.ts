// What the charts draw: from a running job, or from a stored measurement.
import type { Live } from "./events";
import type { Direction, DirectionResult, Measurement, ProbeSeries } from "./generated/measurement";
import { arrow } from "./words";

export interface Series {
  label: string;
  /** A colour of the style sheet: `--to`. */
  colour: string;
  bold: boolean;
  /** Null is a gap; undefined is a time of another curve. */
  values: (number | null | undefined)[];
}

export interface Chart {
  /** Seconds, ascending. */
  xs: number[];
  series: Series[];
  /** Retransmissions: when, and how many segments. */
  ticks: { t: number; count: number }[];
}

export interface Timeline {
  goodput: Chart;
  rtt: Chart;
  spans: { start: number; label: string }[];
  until: number;
}

/** Points that a curve has at most, and each of many curves. */
const MOST = 1200;
const MOST_OF_MANY = 400;
/** So many curves are drawn with less detail. */
export const MANY = 32;
export const COLOURS = 12;
export const colourOf = (stream: number): string => `--s${stream % COLOURS}`;

/** Readings thinned to what a chart can show. */
function thinned<T>(points: readonly T[], most = MOST): readonly T[] {
  const step = Math.max(1, Math.ceil(points.length / most));
  return step === 1 ? points : points.filter((_, index) => index % step === 0);
}

const LABELS = { connecting: "", idle: "idle", both: "↔", direction: "", trial: "trial", experiment: "experiment", other: "" };

export function ofLive(live: Live): Timeline {
  const chosen = thinned(live.points, live.streams > MANY ? MOST_OF_MANY : MOST);
  const xs = chosen.map((point) => point.t);
  const series: Series[] = [];
  if (live.streams > 1) {
    // In turn, a stream has one curve for both directions; at once, one for each.
    const ways: Direction[][] = live.bothAtOnce ? [["to"], ["from"]] : [["to", "from"]];
    for (const [index, group] of ways.entries()) {
      const [first, second] = [group[0] ?? "to", group[1]];
      for (let stream = 0; stream < live.streams; stream += 1) {
        const name = live.bothAtOnce ? `${group.map(arrow).join("")} stream ${stream + 1}` : `stream ${stream + 1}`;
        series.push({
          label: name,
          colour: colourOf(stream + index * 6),
          bold: false,
          values: chosen.map((point) => point[first]?.[stream] ?? (second && point[second]?.[stream]) ?? null),
        });
      }
    }
  }
  const sum = live.streams > 1 ? " sum" : "";
  for (const way of ["to", "from"] as const) {
    const values = chosen.map((point) => (way === "to" ? point.toSum : point.fromSum));
    if (values.some((value) => value !== null)) {
      series.push({ label: `${arrow(way)}${sum}`, colour: `--${way}`, bold: true, values });
    }
  }
  const ticks = live.points
    .filter((point) => point.retransmits > 0)
    .map((point) => ({ t: point.t, count: point.retransmits }));
  return {
    goodput: { xs, series, ticks },
    rtt: {
      xs,
      series: [{ label: "round trip", colour: "--rtt", bold: true, values: chosen.map((point) => point.rttNs) }],
      ticks: [],
    },
    spans: live.spans
      .map((span) => ({ start: span.start, label: LABELS[span.kind] + (span.way ? arrow(span.way) : "") }))
      .filter((span) => span.label !== ""),
    until: Math.max(live.until, 1),
  };
}

/** The live chart with the retransmissions of both ends, once the document is there. */
export function withTicks(timeline: Timeline, live: Live, measurement: Measurement): Timeline {
  const ticks: Chart["ticks"] = [];
  for (const direction of measurement.directions) {
    const span = live.spans.find(({ kind, way }) => kind === "both" || (kind === "direction" && way === direction.direction));
    if (span) ticks.push(...ticksOf(direction, span.start));
  }
  return { ...timeline, goodput: { ...timeline.goodput, ticks } };
}

function ticksOf(direction: DirectionResult, start: number): Chart["ticks"] {
  return direction.sent
    .map((reading, index) => ({
      t: start + reading.at_ns / 1e9,
      count: (reading.retransmits ?? 0) - (direction.sent[index - 1]?.retransmits ?? 0),
    }))
    .filter((tick) => tick.count > 0);
}

/** Rates between the readings of a receiver. */
export function ratesOf(received: readonly { at_ns: number; bytes: number }[]): { t: number; bps: number }[] {
  const chosen = thinned(received);
  return chosen.flatMap((reading, at) => {
    const last = chosen[at - 1];
    if (!last || reading.at_ns <= last.at_ns) return [];
    return [{ t: reading.at_ns / 1e9, bps: (Math.max(0, reading.bytes - last.bytes) * 8e9) / (reading.at_ns - last.at_ns) }];
  });
}

/** The chart of a stored measurement: its directions one after the other, or one on the other if they ran at once. */
export function ofMeasurement(measurement: Measurement): Timeline {
  const goodput: { t: number; way: Direction; bps: number | null }[] = [];
  const rtt: { t: number; ns: number | null }[] = [];
  const ticks: Chart["ticks"] = [];
  const spans: Timeline["spans"] = [];
  const atOnce = measurement.request.bidirectional;
  let offset = 0;
  const probes = (series: ProbeSeries | null) => {
    if (!series) return;
    const chosen = thinned(series.due_ns.map((due, index) => ({ due, ns: series.rtt_ns[index] ?? null })));
    for (const one of chosen) {
      const t = offset + one.due / 1e9;
      if (t >= 0) rtt.push({ t, ns: one.ns });
    }
  };
  if (measurement.idle_probes) {
    spans.push({ start: 0, label: "idle" });
    probes(measurement.idle_probes);
    offset = measurement.request.idle_ns / 1e9;
  }
  if (atOnce && measurement.directions.length > 0) spans.push({ start: offset, label: "↔" });
  let longest = 0;
  for (const [index, direction] of measurement.directions.entries()) {
    if (!atOnce) spans.push({ start: offset, label: arrow(direction.direction) });
    if (!atOnce || index === 0) probes(direction.probes);
    for (const { t, bps } of ratesOf(direction.received)) goodput.push({ t: offset + t, way: direction.direction, bps });
    goodput.push({ t: offset + direction.duration_ns / 1e9 + 1e-6, way: direction.direction, bps: null });
    ticks.push(...ticksOf(direction, offset));
    const took = direction.duration_ns / 1e9;
    longest = Math.max(longest, took);
    if (!atOnce) offset += took;
  }
  if (atOnce) offset += longest;
  goodput.sort((a, b) => a.t - b.t);
  rtt.sort((a, b) => a.t - b.t);
  const ways = measurement.directions.map((direction) => direction.direction);
  const ascending = (ts: number[]) => ts.map((t, index) => t + index * 1e-9);
  // Two directions at once have readings at different times: each curve spans the other's.
  const held = (way: Direction) => goodput.map((point) => (point.way === way ? point.bps : atOnce ? undefined : null));
  return {
    goodput: {
      xs: ascending(goodput.map((point) => point.t)),
      series: ways.map((way) => ({
        label: arrow(way),
        colour: `--${way}`,
        bold: true,
        values: held(way),
      })),
      ticks,
    },
    rtt: {
      xs: ascending(rtt.map((point) => point.t)),
      series: [{ label: "round trip", colour: "--rtt", bold: true, values: rtt.map((point) => point.ns) }],
      ticks: [],
    },
    spans,
    until: Math.max(offset, 0.1),
  };
}

const known = new WeakMap<Chart, number>();

/** The largest value, 0 without any. */
export function largest(chart: Chart): number {
  let most = known.get(chart);
  if (most !== undefined) return most;
  most = 0;
  for (const series of chart.series) for (const value of series.values) if (value != null && value > most) most = value;
  known.set(chart, most);
  return most;
}

/** The curves as CSV: one row for each time. */
export function csv(chart: Chart, unit: string): string {
  const rows = [["time_s", ...chart.series.map((one) => `${ascii(one.label)}_${unit}`)].join(",")];
  for (const [index, t] of chart.xs.entries()) {
    const values = chart.series.map((one) => one.values[index]);
    if (values.every((value) => value == null)) continue;
    rows.push([t.toFixed(3), ...values.map((value) => (value == null ? "" : String(Math.round(value))))].join(","));
  }
  if (chart.ticks.length > 0) {
    rows.push("", "time_s,retransmits", ...chart.ticks.map((tick) => `${tick.t.toFixed(3)},${tick.count}`));
  }
  return rows.join("\n") + "\n";
}

const ascii = (label: string): string =>
  label.replace("→", "to").replace("←", "from").replace("↔", "both").replaceAll(" ", "_");

/** About so many rows of the chart, for its table. */
export function sampled(chart: Chart, most = 40): { t: number; values: (number | null)[] }[] {
  const step = Math.max(1, Math.ceil(chart.xs.length / most));
  const rows: { t: number; values: (number | null)[] }[] = [];
  for (let index = 0; index < chart.xs.length; index += step) {
    const values = chart.series.map((one) => one.values[index] ?? null);
    if (values.some((value) => value !== null)) rows.push({ t: chart.xs[index] ?? 0, values });
  }
  return rows;
}
