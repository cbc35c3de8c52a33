// The state of a job, from its events. Pure: the page shows it, the tests feed it.
import type { Event, JobOutcome as Outcome, Progress, Direction as Way } from "./generated/job";
import type { Measurement } from "./generated/measurement";

/** The stage that runs. */
export interface Stage {
  kind: "connecting" | "idle" | "both" | "direction" | "trial" | "experiment" | "other";
  way: Way | null;
  /** Limits that an experiment decides between. */
  between: string[];
  elapsedNs: number;
  totalNs: number;
}

/** A moment of the measurement, on one time axis for all its stages. */
export interface Point {
  /** Seconds since the first stage began. */
  t: number;
  /** Goodput of each stream, bit/s. */
  to: number[] | null;
  from: number[] | null;
  /** Goodput of all streams. */
  toSum: number | null;
  fromSum: number | null;
  rttNs: number | null;
  /** Segments retransmitted since the last point. */
  retransmits: number;
}

/** A stretch of the time axis. */
export interface Span {
  start: number;
  kind: Stage["kind"];
  way: Way | null;
}

/** With the number that the page's server gives it. */
export type Question = Extract<Event, { event?: "question" }>["question"] & { number?: number };

export interface Live {
  lastId: number;
  /** Events that the server no longer had. */
  missed: number;
  repetition: number;
  stage: Stage | null;
  spans: Span[];
  points: Point[];
  /** Where the axis ends if the stage takes its time, seconds. */
  until: number;
  streams: number;
  bothAtOnce: boolean;
  retransmits: number | null;
  jitterNs: number | null;
  lossRatio: number | null;
  isUdp: boolean;
  measurements: Measurement[];
  /** All events but progress. */
  events: Event[];
  /** The document that the command prints with --json. */
  result: unknown;
  /** What the job asks; null once something follows. */
  question: Question | null;
  run: string | null;
  outcome: Outcome | null;
  /** Time of all stages before this one. */
  before: number;
  stageKey: string;
  cumulated: number;
}

export const newLive = (): Live => ({
  lastId: 0,
  missed: 0,
  repetition: 0,
  stage: null,
  spans: [],
  points: [],
  until: 0,
  streams: 0,
  bothAtOnce: false,
  retransmits: null,
  jitterNs: null,
  lossRatio: null,
  isUdp: false,
  measurements: [],
  events: [],
  result: null,
  question: null,
  run: null,
  outcome: null,
  before: 0,
  stageKey: "",
  cumulated: 0,
});

interface Arrival {
  sent: number;
  received: number;
  jitter_ns: number;
}

interface Info {
  total_retrans?: number | null;
}

const record = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};

/** The stage as it comes; later versions may have others. */
export function stageOf(progress: Progress): Stage {
  const stage: unknown = progress.stage;
  const rest = { between: [] as string[], elapsedNs: progress.elapsed_ns, totalNs: progress.total_ns };
  if (stage === "connecting" || stage === "idle" || stage === "both") return { kind: stage, way: null, ...rest };
  const fields = record(stage);
  const way = (value: unknown): Way | null => (value === "to" || value === "from" ? value : null);
  if ("direction" in fields) return { kind: "direction", way: way(fields["direction"]), ...rest };
  if ("trial" in fields) return { kind: "trial", way: way(fields["trial"]), ...rest };
  const experiment = fields["experiment"];
  if (Array.isArray(experiment)) {
    const between = Array.isArray(experiment[1]) ? experiment[1].map(String) : [];
    return { kind: "experiment", way: way(experiment[0]), ...rest, between };
  }
  return { kind: "other", way: null, ...rest };
}

type Pairs = readonly (readonly [unknown, unknown])[];

const find = (pairs: Pairs, way: Way): unknown => pairs.find(([name]) => name === way)?.[1];

function list<T>(pairs: Pairs, way: Way, read: (value: unknown) => T): T[] | null {
  const found = find(pairs, way);
  return Array.isArray(found) ? found.map(read) : null;
}

function number(pairs: Pairs, way: Way): number | null {
  const found = find(pairs, way);
  return typeof found === "number" ? found : null;
}

/** A rate of less time than this is noise. */
const LEAST_SPAN_NS = 50e6;

/** Missing events break the curves if they are of this time; the log of a long job keeps fewer readings. */
const BREAK_NS = 1e9;

/** Takes in an event; false if it was known. */
export function take(live: Live, id: number, event: Event | Outcome): boolean {
  if (id <= live.lastId) return false;
  const skipped = id - live.lastId - 1;
  live.missed += skipped;
  live.lastId = id;
  if (event.schema === "bdp.outcome/1") {
    live.outcome = event;
    live.run = event.run ?? live.run;
    live.stage = null;
    live.question = null;
    return true;
  }
  const kind: string | undefined = event.event;
  if (event.event === "progress") {
    progress(live, event.repetition, event.progress, skipped > 0);
    return true;
  }
  live.events.push(event);
  live.question = event.event === "question" ? event.question : null;
  if (event.event === "measurement_ended") live.measurements.push(event.measurement as Measurement);
  if (kind === "result") live.result = record(event)["document"] ?? null;
  if ("run" in event && typeof event.run === "string") live.run = event.run;
  return true;
}

function progress(live: Live, repetition: number, now: Progress, hasMissed: boolean): void {
  if (repetition !== live.repetition) {
    Object.assign(live, { repetition, points: [], spans: [], before: 0, stageKey: "", until: 0, cumulated: 0 });
    live.retransmits = null;
  }
  const stage = stageOf(now);
  const key = `${stage.kind} ${stage.way ?? ""} ${stage.between.join()}`;
  if (key !== live.stageKey || now.elapsed_ns < (live.stage?.elapsedNs ?? 0)) {
    if (live.stage && live.stageKey !== "") live.before += live.stage.elapsedNs;
    live.stageKey = key;
    live.cumulated = 0;
    live.spans.push({ start: live.before / 1e9, kind: stage.kind, way: stage.way });
    // The curves of two stages do not meet.
    if (live.points.length > 0) live.points.push(blank(live.before / 1e9));
  } else if (hasMissed && now.elapsed_ns - (live.stage?.elapsedNs ?? 0) >= BREAK_NS) live.points.push(blank((live.before + now.elapsed_ns) / 1e9));
  live.stage = stage;
  live.until = Math.max(live.until, (live.before + Math.max(stage.totalNs, stage.elapsedNs)) / 1e9);
  if (stage.kind === "both") live.bothAtOnce = true;

  const infos = list(now.sender_infos, "to", (value) => value as Info);
  const totals = infos?.map((info) => info.total_retrans).filter((n) => n != null) ?? [];
  let retransmits = 0;
  if (totals.length > 0) {
    const sum = totals.reduce((a, b) => a + b, 0);
    retransmits = Math.max(0, sum - live.cumulated);
    live.cumulated = Math.max(live.cumulated, sum);
    if (stage.kind === "direction" || stage.kind === "both") live.retransmits = sum;
  }
  const arrivals = list(now.arrivals, "from", (value) => value as Arrival);
  if (arrivals && arrivals.length > 0) {
    live.isUdp = true;
    const sum = (f: (a: Arrival) => number) => arrivals.reduce((s, a) => s + f(a), 0);
    const sent = sum((a) => a.sent);
    live.lossRatio = sent > 0 ? Math.max(0, 1 - sum((a) => a.received) / sent) : null;
    live.jitterNs = sum((a) => a.jitter_ns) / arrivals.length;
  }
  if (now.datagram_bytes != null) live.isUdp = true;
  const isRest = isAfterEnd(now);
  const point: Point = {
    t: (live.before + now.elapsed_ns) / 1e9,
    to: isRest ? null : streams(stage, now, "to"),
    from: isRest ? null : streams(stage, now, "from"),
    toSum: isRest ? null : number(now.goodput_bps, "to"),
    fromSum: isRest ? null : number(now.goodput_bps, "from"),
    rttNs: now.rtt_ns,
    retransmits,
  };
  live.streams = Math.max(live.streams, point.to?.length ?? 0, point.from?.length ?? 0);
  const last = live.points.at(-1);
  // uPlot needs ascending times; a reading of the same moment replaces the last.
  if (last && last.t >= point.t) {
    if (isBlank(last)) point.t = last.t + 1e-6;
    else live.points.pop();
  }
  live.points.push(point);
}

/** The rest of a stage is too short to tell a rate by, and after its time only stragglers come. */
function isAfterEnd(now: Progress): boolean {
  const span = now.span_ns ?? 0;
  if (now.is_last && now.span_ns !== null && span < LEAST_SPAN_NS) return true;
  return now.total_ns > 0 && now.elapsed_ns - span / 2 > now.total_ns;
}

/** Streams of an experiment are others than those of the test: only their sum is shown. */
function streams(stage: Stage, now: Progress, way: Way): number[] | null {
  return stage.kind === "direction" || stage.kind === "both" ? list(now.stream_goodput_bps, way, Number) : null;
}

const blank = (t: number): Point => ({
  t,
  to: null,
  from: null,
  toSum: null,
  fromSum: null,
  rttNs: null,
  retransmits: 0,
});

const isBlank = (point: Point): boolean => point.toSum === null && point.fromSum === null && point.rttNs === null;

const STAGES: Record<Stage["kind"], string> = {
  connecting: "connecting",
  idle: "idle round trip",
  both: "both directions",
  direction: "",
  trial: "trial",
  experiment: "experiment",
  other: "measuring",
};

/** `to ams1`, `idle round trip`, `experiment: path rate or policer?` */
export function stageWords(stage: Stage, host: string): string {
  const way = stage.way ? `${stage.way} ${host}` : "";
  if (stage.kind === "direction") return way;
  if (stage.kind === "trial") return `trial ${way}`;
  if (stage.kind === "experiment") {
    const limits = stage.between.map((limit) => limit.replaceAll("_", " ")).join(" or ");
    return `experiment ${way}${limits === "" ? "" : `: ${limits}?`}`;
  }
  return STAGES[stage.kind];
}
