// Runs of the lab: their points from records, and the chart by the axis of the scenario.
import type { Event } from "./generated/job";
import type { Record as CaseRecord, Published } from "./generated/lab-run";
import { percent, rate, size, time } from "./format";
import { colourOf } from "./model";
import type { Axis, Xy, XySeries } from "./xy";

/** A figure of a scenario's source, and the cases that it is about. */
export interface PublishedFigure {
  when: Readonly<Record<string, unknown>>;
  goodput_bps: Published | null;
  note: string | null;
  rows: { name: string; mean_bps: number | null }[];
}

/** A shipped scenario; its file comes when it is chosen. */
export interface Scenario {
  name: string;
  title: string;
  about: string;
  source: string;
  published: PublishedFigure[];
  cases: number;
  time_s: number;
  text?: string;
}

/** `5.57 Mbit/s to 5.60 Mbit/s; link.forward.delay=40ms` */
export const figureText = ({ when, goodput_bps, note, rows }: PublishedFigure): string =>
  [goodput_bps === null ? "" : publishedText(goodput_bps), pointText(when), note ?? "", ...rows.map((row) => `${row.name} ${rate(row.mean_bps)}`)]
    .filter((one) => one !== "")
    .join("; ");

const valueText = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

/** `flow.window=64K link.delay=2ms`, as keys of cases have it. */
export const pointText = (params: Readonly<Record<string, unknown>>): string =>
  Object.keys(params)
    .sort()
    .map((path) => `${path}=${valueText(params[path])}`)
    .join(" ");

/** The key by which events name the case of a record. */
const keyOf = (record: CaseRecord): string => [record.scenario, pointText(record.params), `#${record.repetition}`].filter((one) => one !== "").join(" ");

export interface Row {
  scenario: string;
  point: string;
  params: Readonly<Record<string, unknown>>;
  /** How often it was run, INVALID attempts included. */
  attempts: number;
  valid: number;
  verdict: "VALID" | "INVALID" | "FAILED" | "SKIPPED";
  /** Why the last attempt that does not count does not. */
  reason: string | null;
  /** Median of the valid repetitions; of an INVALID attempt, for the chart alone. */
  goodput: number | null;
  expected: number | null;
  expectedBy: string | null;
  published: Published | null;
  rtt: number | null;
  window: number | null;
  limit: string;
  expectation: string | null;
  /** Null if nothing is expected or known. */
  met: boolean | null;
}

export function median(values: readonly (number | null | undefined)[]): number | null {
  const sorted = values.filter((one): one is number => one != null).sort((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return low === undefined || high === undefined ? null : (low + high) / 2;
}

const why = (record: CaseRecord): string | null =>
  record.error ?? record.skipped ?? (record.fidelity.broken.length > 0 ? record.fidelity.broken.join("; ") + (record.fidelity.cause ? `: ${record.fidelity.cause}` : "") : null);

/** One row for each point, in the order of their parameters. */
export function rowsOf(records: readonly CaseRecord[]): Row[] {
  const points = new Map<string, CaseRecord[]>();
  for (const record of records) {
    const name = `${record.scenario} ${pointText(record.params)}`;
    const known = points.get(name);
    if (known) known.push(record);
    else points.set(name, [record]);
  }
  const rows: Row[] = [];
  for (const all of points.values()) {
    const valid = all.filter((one) => one.valid);
    const counted = valid.length > 0 ? valid : all.slice(-1);
    const [first] = counted;
    if (!first) continue;
    const finding = first.flows[0]?.findings[0];
    const invalid = all.findLast((one) => !one.valid);
    const judged = valid.map((one) => one.expectation?.met).filter((met) => met != null);
      rows.push({
      scenario: first.scenario,
      point: pointText(first.params),
      params: first.params,
      attempts: all.length,
      valid: valid.length,
      verdict: first.valid ? "VALID" : first.skipped != null ? "SKIPPED" : first.error !== null ? "FAILED" : "INVALID",
      reason: invalid ? why(invalid) : null,
      goodput: median(counted.map((one) => one.goodput_bps)),
      expected: median(counted.map((one) => one.expected_bps)),
      expectedBy: first.expected_by,
      published: first.published_bps ?? null,
      rtt: median(counted.map((one) => one.rtt_idle_ns)),
      window: median(counted.map((one) => one.window.on_the_wire_bytes)),
      limit: finding ? (finding.subject || finding.limit.replaceAll("_", " ")) : "-",
      expectation: first.expectation?.text ?? null,
      met: judged.length === 0 ? null : judged.every(Boolean),
    });
  }
  return rows.sort((a, b) => a.scenario.localeCompare(b.scenario) || order(a.params, b.params));
}

function order(a: Row["params"], b: Row["params"]): number {
  for (const path of Object.keys(a).sort()) {
    const [one, other] = [quantity(path, a[path]), quantity(path, b[path])];
    const difference = Number.isNaN(one) || Number.isNaN(other) ? valueText(a[path]).localeCompare(valueText(b[path])) : one - other;
    if (difference !== 0) return difference;
  }
  return 0;
}

const TIMES: Readonly<Record<string, number>> = { ns: 1e-9, us: 1e-6, µs: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 };

/** The number of a parameter as written, in seconds, bytes, bit/s or shares; NaN if it is none. */
export function quantity(path: string, value: unknown): number {
  if (typeof value === "number") return value;
  if (typeof value === "object" && value !== null && "every" in value) return 1 / Number(value.every);
  const found = typeof value === "string" ? /^([\d.]+) *(.*)$/.exec(value) : null;
  const number = Number(found?.[1]);
  const unit = found?.[2] ?? "?";
  const time = TIMES[unit];
  if (unit === "") return number;
  if (unit === "%") return number / 100;
  if (time !== undefined) return number * time;
  const prefix = /^([kKMGT])(iB|B|bit|bit\/s|bps)?$/.exec(unit);
  if (!prefix) return NaN;
  const power = "KMGT".indexOf((prefix[1] ?? "").toUpperCase()) + 1;
  const isDecimal = path.endsWith("rate") || (prefix[2] !== undefined && prefix[2] !== "iB");
  return number * (isDecimal ? 1000 : 1024) ** power;
}

/** The values of each parameter that has several, those with most first. */
function varied(rows: readonly Row[]): [path: string, values: Set<string>][] {
  const values = new Map<string, Set<string>>();
  for (const row of rows) {
    for (const [path, value] of Object.entries(row.params)) values.set(path, (values.get(path) ?? new Set()).add(valueText(value)));
  }
  return [...values].filter(([, set]) => set.size > 1).sort((a, b) => b[1].size - a[1].size);
}

/** Names of the points by what differs: `64K forward`; with a single point, that of the scenario. */
export function namesOf(rows: readonly Row[]): string[] {
  const paths = new Set(varied(rows).map(([path]) => path));
  const isOne = rows.every((row) => row.scenario === rows[0]?.scenario);
  return rows.map((row) => {
    const point = pointText(Object.fromEntries(Object.entries(row.params).filter(([path]) => paths.has(path))));
    return isOne && point !== "" ? point : `${row.scenario} ${point}`;
  });
}

/** Values of a parameter in words: sizes, rates and times by their unit. */
function textOf(path: string, value: unknown): Pick<Axis, "text" | "scale"> {
  const unit = /[a-zA-Zµ%]+$/.exec(String(value))?.[0] ?? "";
  if (unit in TIMES) return { text: (s) => time(s * 1e9), scale: "decades" };
  if (unit === "%") return { text: percent, scale: "decades" };
  if (path.endsWith("rate")) return { text: rate, scale: "decades" };
  return unit === "" && !/window|length|limit|buffer/.test(path) ? { text: String, scale: "doublings" } : { text: size, scale: "doublings" };
}

/** Curves of the model are drawn for so many curves. */
const MODELLED = 4;

/** The chart by the parameter that is varied; null for a single point. */
export function chartOf(rows: readonly Row[]): Xy | null {
  if (rows.length < 2) return null;
  const values = varied(rows);
  const isNumeric = (path: string) => rows.every((row) => Number.isFinite(quantity(path, row.params[path])));
  const byName = (row: Row, paths: (path: string) => boolean) => pointText(Object.fromEntries(Object.entries(row.params).filter(([path]) => paths(path))));
  let axis = rows.some((row) => row.scenario !== rows[0]?.scenario) ? undefined : (values.find(([path]) => isNumeric(path)) ?? values[0])?.[0];
  const groupOf = (row: Row) => byName(row, (path) => path !== axis && values.some(([one]) => one === path));
  // Parameters that change together: each point by its name.
  if (new Set(rows.map(groupOf)).size === rows.length) axis = undefined;
  const names = axis === undefined ? namesOf(rows) : rows.map((row) => valueText(row.params[axis]));
  const isNamed = axis === undefined || !isNumeric(axis);
  const places = [...new Set(names)];
  const groups = new Map<string, { row: Row; x: number }[]>();
  for (const [index, row] of rows.entries()) {
    const label = axis === undefined ? "" : groupOf(row);
    const x = isNamed || axis === undefined ? places.indexOf(names[index] ?? "") : quantity(axis, row.params[axis]);
    groups.set(label, [...(groups.get(label) ?? []), { row, x }]);
  }
  const series: XySeries[] = [];
  const add = (label: string, colour: string, mark: XySeries["mark"], all: readonly { row: Row; x: number }[], value: (row: Row) => number | null) => {
    const points = all.flatMap(({ row, x }) => {
      const y = value(row);
      return y === null || y <= 0 ? [] : [{ x, y }];
    });
    if (points.length > 0) series.push({ label, colour, mark, points: points.sort((one, other) => one.x - other.x) });
  };
  const all = [...groups.values()].flat();
  for (const [number, [label, group]] of [...groups].entries()) {
    const [name, colour] = [label === "" ? "goodput" : label, colourOf(number)];
    if (groups.size <= MODELLED) add(label === "" ? "model" : `model of ${label}`, colour, "dashed", group, (row) => row.expected);
    add(name, colour, isNamed ? "dots" : "line", group, (row) => (row.verdict === "VALID" ? row.goodput : null));
  }
  add("INVALID", "--bad", "crosses", all, (row) => (row.verdict === "VALID" ? null : row.goodput));
  const known = all.filter(({ row }) => row.published !== null);
  const bounds = (row: Row) => [row.published ?? []].flat();
  add("published", "--edge", "hollow", known, (row) => median(bounds(row)));
  const x: Axis = isNamed || axis === undefined ? { label: axis ?? "point", column: "point", text: String, scale: places } : { label: axis, column: axis, ...textOf(axis, rows[0]?.params[axis]) };
  return { x, y: { label: "goodput", column: "goodput_bps", text: rate, scale: "decades" }, series, bands: [], places: [] };
}

export const publishedText = (published: Published | null): string =>
  published === null ? "-" : typeof published === "number" ? rate(published) : published.map(rate).join(" to ");

/** What a lab run has done so far. */
export interface LabState {
  /** Cases of all rounds. */
  planned: number;
  settled: number;
  leftNs: number | null;
  /** Attempts that run, by key. */
  running: Map<string, number>;
  records: CaseRecord[];
  resumed: boolean;
}

export function labState(events: readonly Event[]): LabState {
  const state: LabState = { planned: 0, settled: 0, leftNs: null, running: new Map(), records: [], resumed: false };
  for (const event of events) {
    if (event.event === "planned") {
      state.planned = state.settled + event.cases;
      state.leftNs = event.time_ns;
    } else if (event.event === "case_started") state.running.set(event.key, event.attempt);
    else if (event.event === "case_ended") {
      const record = event.record as unknown as CaseRecord;
      state.records.push(record);
      const key = keyOf(record);
      for (const running of [...state.running.keys()]) if (running === key || running.startsWith(`${key} by the `)) state.running.delete(running);
      if (event.settled) state.settled += 1;
      state.leftNs = event.left_ns;
    } else if (event.event === "resumed") state.resumed = true;
  }
  return state;
}
