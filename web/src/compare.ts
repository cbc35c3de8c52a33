// Comparisons: the words for what bdp judged, and the curves of two runs laid over each other.
import { isMeasurements } from "./documents";
import { milliseconds, percent, rate, significant } from "./format";
import type { Row } from "./generated/comparison";
import type { ComparisonDocument } from "./generated/comparison";
import type { Curve } from "./generated/sweep";
import { ratesOf, type Chart, type Series } from "./model";
import { isSweep } from "./sweep";
import { arrow } from "./words";

type Metric = Row["metric"];

const METRICS: Readonly<Record<Metric, readonly [name: string, format: (value: number) => string]>> = {
  goodput_bps: ["goodput", rate],
  rtt_idle_ns: ["RTT idle ms", milliseconds],
  rtt_loaded_p95_ns: ["RTT loaded p95 ms", milliseconds],
  retransmits: ["retransmits", String],
  retransmit_ratio: ["retransmit ratio", percent],
  loss_ratio: ["loss ratio", percent],
};

export const metricName = (metric: Metric): string => METRICS[metric][0];
export const valueWords = ({ metric }: Row, value: number): string => METRICS[metric][1](value);

const signed = (value: number, format: (size: number) => string): string =>
  value === 0 ? format(0) : `${value < 0 ? "-" : "+"}${format(Math.abs(value))}`;

/** `+34 % (-47 % to +139 %, 93 % sure)` */
export function effectWords(row: Row): string {
  const { effect, difference, effect_interval, difference_interval } = row;
  const inUnit = effect === null;
  const format = inUnit ? METRICS[row.metric][1] : percent;
  const interval = inUnit ? difference_interval : effect_interval;
  const words = signed(inUnit ? difference : effect, format);
  if (!interval) return words;
  if (row.exact && interval.low === interval.high) return `${words} exact`;
  const sure = row.exact ? ", exact" : interval.confidence < 0.95 ? `, ${String(Math.floor(interval.confidence * 100))} % sure` : "";
  return `${words} (${signed(interval.low, format)} to ${signed(interval.high, format)}${sure})`;
}

/** A difference of so much is none. */
const NEGLIGIBLE = 0.0005;

/** The verdict as the terminal prints it. */
export function verdictWords(row: Row): string {
  if (row.regressed) return "REGRESSED";
  if (row.verdict !== "no_difference_shown") return row.verdict.replaceAll("_", " ");
  if (row.regression === "inconclusive") return "inconclusive";
  const { effect_interval: interval, exact, difference } = row;
  const isNone = interval !== null && Math.max(Math.abs(interval.low), Math.abs(interval.high)) <= NEGLIGIBLE;
  return isNone || (exact && difference === 0) ? "no difference" : "no difference shown";
}

/** What the comparison as a whole says. */
export function judgement({ regressed, threshold, comparisons }: ComparisonDocument): string {
  const beyond = `${significant(threshold * 100)} %`;
  if (regressed === false) return `No regression beyond ${beyond}`;
  if (regressed === true) return `REGRESSED beyond ${beyond}`;
  const few = comparisons.find((row) => row.judged && row.verdict === "too_few_runs");
  return few
    ? `Unknown, too few runs: ${String(few.a.n)} and ${String(few.b.n)}; an interval and a verdict need 6 runs on each side`
    : `Inconclusive: the interval holds a regression beyond ${beyond} and none; more runs narrow the interval`;
}

/** The command of a measurement with enough runs for an interval; null if it has them, or can't have them. */
export function repeated(command: string): string | null {
  const least = 6;
  const runs = /--runs[= ](\d+)/.exec(command);
  if (!/^bdp (measure|sweep) /.test(command) || Number(runs?.[1] ?? 1) >= least) return null;
  return runs ? command.replace(runs[0], `--runs ${String(least)}`) : `${command} --runs ${String(least)}`;
}

/** Goodput over time of one repetition. */
export interface Track {
  point: string;
  readings: { t: number; bps: number }[];
}

/** All repetitions of a stored run; none of a sweep, whose curves say more. */
export function tracksOf(document: unknown): Track[] {
  if (isMeasurements(document)) {
    return document.runs.flatMap((run) => run.directions.map((one) => ({ point: arrow(one.direction), readings: ratesOf(one.received) })));
  }
  if (!isCases(document)) return [];
  return document.cases.filter((one) => one.valid).flatMap(({ scenario, params, flows }) =>
    flows.map((flow) => ({
      point: [scenario, ...Object.entries(params).map(([name, value]) => `${name.replace(/^flow\./, "")} ${String(value)}`), `${flow.from} → ${flow.to}`].join(" "),
      readings: ratesOf(flow.received),
    })),
  );
}

interface Cases {
  cases: {
    valid: boolean;
    scenario: string;
    params: Record<string, unknown>;
    flows: { from: string; to: string; received: { at_ns: number; bytes: number }[] }[];
  }[];
}

const isCases = (document: unknown): document is Cases =>
  typeof document === "object" && document !== null && "schema" in document && document.schema === "bdp.cases/1";

/** The points that can be laid over each other: those of both, or the only ones of each. */
export function pointsOf(a: readonly Track[], b: readonly Track[]): string[] {
  const [inA, inB] = [new Set(a.map((one) => one.point)), new Set(b.map((one) => one.point))];
  const both = [...inA].filter((point) => inB.has(point));
  return both.length === 0 && inA.size === 1 && inB.size === 1 ? [...inA] : both;
}

/** Both runs on one time axis: a curve for each repetition, in the colour of its run. */
export function overlay(a: readonly Track[], b: readonly Track[], point: string): Chart {
  const of = (tracks: readonly Track[]) => {
    const found = tracks.filter((one) => one.point === point);
    return found.length > 0 ? found : tracks;
  };
  const sides = [
    { name: "A", colour: "--to", tracks: of(a) },
    { name: "B", colour: "--from", tracks: of(b) },
  ].flatMap(({ name, colour, tracks }) =>
    tracks.map((track, index) => ({ label: tracks.length === 1 ? name : `${name} run ${String(index + 1)}`, colour, bold: tracks.length === 1, track })),
  );
  const readings = sides.flatMap((side, index) => side.track.readings.map((reading) => ({ ...reading, index })));
  readings.sort((one, other) => one.t - other.t);
  const series: Series[] = sides.map(({ label, colour, bold }, index) => ({
    label,
    colour,
    bold,
    values: readings.map((reading) => (reading.index === index ? reading.bps : undefined)),
  }));
  return { xs: readings.map((reading, index) => reading.t + index * 1e-9), series, ticks: [] };
}

/** The curves of two sweeps, named by their run; of several curves those of one name are pairs. */
export function curvesOf(a: unknown, b: unknown): Curve[] {
  if (!isSweep(a) || !isSweep(b)) return [];
  const named = (side: string, curves: Curve[]) => curves.map((curve) => ({ ...curve, name: curves.length === 1 ? side : `${side} ${curve.name}` }));
  const all = [...named("A", a.curves), ...named("B", b.curves)];
  return all.filter((curve) => curve.axis === all[0]?.axis);
}
