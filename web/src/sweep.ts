// Sweeps: the form as a command line, points as they come, and the words for what bdp found.
import type { Event } from "./generated/job";
import type { Curve, Need, Point, SweepDocument } from "./generated/sweep";
import type { Axis, Xy, XyPoint, XySeries, XySpan } from "./xy";
import { percent, rate, size, time } from "./format";
import { withMore, type More, type OptionNames } from "./command";

export type Parameter = "window" | "streams" | "length" | "mss" | "congestion" | "bitrate";

interface ParameterWords {
  name: string;
  option: string;
  example: string;
}

export const PARAMETERS: Readonly<Record<Parameter, ParameterWords>> = {
  window: { name: "Window", option: "-w", example: "16K..4M" },
  streams: { name: "Streams", option: "-P", example: "1..16" },
  length: { name: "Length of a write", option: "-l", example: "4K..1M" },
  mss: { name: "MSS", option: "-M", example: "536..1448" },
  congestion: { name: "Congestion control", option: "-C", example: "reno,cubic,bbr" },
  bitrate: { name: "Rate", option: "-b", example: "1M..100M" },
};

export interface SweepForm {
  place: "host" | "scenario";
  host: string;
  scenario: string;
  parameter: Parameter;
  values: string;
  second: Parameter | "";
  secondValues: string;
  direction: "turn" | "to" | "from" | "both";
  time: string;
  runs: string;
  points: string;
  refine: boolean;
  more: More;
}

export const EMPTY_SWEEP: SweepForm = {
  place: "host",
  host: "",
  scenario: "",
  parameter: "window",
  values: "16K..4M",
  second: "",
  secondValues: "",
  direction: "to",
  time: "",
  runs: "",
  points: "",
  refine: true,
  more: {},
};

const DIRECTIONS: Readonly<Record<SweepForm["direction"], readonly string[]>> = {
  turn: [],
  to: ["--forward"],
  from: ["-R"],
  both: ["--bidir"],
};

/** The options that have fields, for errors and the list of the others. */
export const SWEEP_OPTIONS: OptionNames = [
  ["-w", "--window", "window"],
  ["-P", "--streams", "streams"],
  ["-l", "--length", "length"],
  ["-M", "--mss", "mss"],
  ["-C", "--congestion", "congestion"],
  ["-b", "--bitrate", "bitrate"],
  ["-t", "--time", "time"],
  ["", "--runs", "runs"],
  ["", "--points", "points"],
  ["", "--in", "place"],
  ["-R", "--reverse", "direction"],
  ["", "--forward", "direction"],
  ["", "--bidir", "direction"],
  ["", "--no-refine", "refine"],
];

/** The words after `bdp`. */
export function sweepWords(form: SweepForm): string[] {
  const line = ["sweep"];
  const target = form.place === "host" ? form.host.trim() : form.scenario.trim();
  if (form.place === "scenario") line.push("--in");
  if (target !== "") line.push(target);
  for (const [parameter, values] of [
    [form.parameter, form.values],
    [form.second, form.secondValues],
  ] as const) {
    if (parameter !== "" && values.trim() !== "") line.push(PARAMETERS[parameter].option, values.trim());
  }
  line.push(...DIRECTIONS[form.direction]);
  for (const [option, value] of [
    ["-t", form.time],
    ["--runs", form.runs],
    ["--points", form.points],
  ] as const) {
    if (value.trim() !== "") line.push(option, value.trim());
  }
  if (!form.refine) line.push("--no-refine");
  return withMore(line, form.more);
}

const ORDER = ["window", "streams", "length", "mss", "congestion"] as const;
type Swept = (typeof ORDER)[number];

/** A measured point of a running sweep. */
interface LivePoint {
  params: Map<string, string>;
  way: string;
  streams: number;
  x: Partial<Record<Swept, number>>;
  goodput: number;
  model: number | null;
}

const object = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
const first = (value: unknown): Record<string, unknown> => object(Array.isArray(value) ? value[0] : null);
const number = (value: unknown): number | undefined => (typeof value === "number" && value > 0 ? value : undefined);

const ARROWS: Readonly<Record<string, string>> = { to: "→", from: "←" };

function pointsOf(event: Event): LivePoint[] {
  const members = object(event);
  if (members["event"] === "point_ended") {
    const measurement = object(members["measurement"]);
    const request = object(measurement["request"]);
    const params = new Map(
      String(members["key"])
        .split(" ")
        .map((word) => word.split("=", 2) as [string, string]),
    );
    const directions = Array.isArray(measurement["directions"]) ? measurement["directions"].map(object) : [];
    return directions.map((direction) => ({
      params,
      way: ARROWS[String(direction["direction"])] ?? "",
      streams: number(request["streams"]) ?? 1,
      x: {
        window: number(object(direction["window"])["on_the_wire_bytes"]) ?? number(request["window"]),
        streams: number(request["streams"]),
        length: number(request["length"]),
        mss: number(request["mss"]),
      },
      goodput: number(direction["goodput_bps"]) ?? 0,
      model: null,
    }));
  }
  if (members["event"] !== "case_ended") return [];
  const record = object(members["record"]);
  const flow = first(object(record["case"])["flows"]);
  if (record["valid"] !== true) return [];
  const params = new Map(Object.entries(object(record["params"])).map(([name, value]) => [name.replace(/^flow\./, ""), String(value)]));
  return [
    {
      params,
      way: "",
      streams: number(flow["streams"]) ?? 1,
      x: {
        window: number(object(record["window"])["on_the_wire_bytes"]) ?? number(flow["window"]),
        streams: number(flow["streams"]),
        length: number(flow["length"]),
        mss: number(flow["mss"]),
      },
      goodput: number(record["goodput_bps"]) ?? 0,
      model: number(record["expected_bps"]) ?? null,
    },
  ];
}

const AXES: Readonly<Record<Swept, readonly [label: string, column: string]>> = {
  window: ["window on the wire", "window_bytes"],
  streams: ["streams", "streams"],
  length: ["bytes of one write", "length_bytes"],
  mss: ["MSS, bytes", "mss_bytes"],
  congestion: ["congestion control", "congestion"],
};

/** The unit of a value on the axis. */
const unitOf = (what: Swept) => (what === "window" || what === "length" ? size : String);

const axis = (what: Swept, names: readonly string[]): Axis => ({
  label: AXES[what][0],
  column: AXES[what][1],
  text: unitOf(what),
  scale: what === "congestion" ? names : what === "mss" ? "decades" : "doublings",
});

const GOODPUT: Axis = { label: "goodput", column: "goodput_bps", text: rate, scale: "decades" };
const DELAY: Axis = { label: "delivery delay", column: "delivery_delay_ns", text: time, scale: "decades" };

const colour = (index: number): string => `--s${String(index % 12)}`;

/** The points of a running sweep; null before the first. */
export function liveChart(events: readonly Event[]): Xy | null {
  const points = events.flatMap(pointsOf).filter((point) => point.goodput > 0);
  if (points.length === 0) return null;
  const varied = (name: string) => new Set(points.map((point) => point.params.get(name))).size;
  const known = ORDER.filter((name) => points.some((point) => point.params.has(name)));
  const along = known.find((name) => varied(name) > 1) ?? known[0] ?? "window";
  const names = [...new Set(points.map((point) => point.params.get(along) ?? ""))];
  const curves = new Map<string, LivePoint[]>();
  for (const point of points) {
    const others = [...point.params].filter(([name]) => name !== along && varied(name) > 1);
    const name = [point.way, ...others.map(([key, value]) => `${key} ${value}`)].filter((word) => word !== "").join(" ");
    curves.set(name, [...(curves.get(name) ?? []), point]);
  }
  const x = (point: LivePoint) => (along === "congestion" ? names.indexOf(point.params.get(along) ?? "") : point.x[along]);
  const series = [...curves].flatMap(([name, list], index): XySeries[] => {
    const placed = list.flatMap((point) => {
      const at = x(point);
      return at === undefined ? [] : [{ at, ...point }];
    });
    placed.sort((a, b) => a.at - b.at);
    const isOnce = new Set(placed.map((point) => point.at)).size === placed.length;
    const model = new Map(placed.flatMap((point) => (point.model === null ? [] : [[point.at, point.model] as const])));
    return [
      {
        label: name === "" ? "measured" : name,
        colour: colour(index),
        mark: isOnce && along !== "congestion" ? "line" : "dots",
        points: placed.map((point) => ({ x: point.at, y: point.goodput })),
      },
      ...modelSeries(name, index, [...model].map(([at, y]) => ({ x: at, y })), along),
    ];
  });
  return { x: axis(along, names), y: GOODPUT, series, bands: [], places: [] };
}

function modelSeries(name: string, index: number, points: XyPoint[], along: Swept): XySeries[] {
  if (points.length === 0 || along === "congestion") return [];
  return [{ label: name === "" ? "model" : `${name}, model`, colour: colour(index + 6), mark: "dashed", points }];
}

/** What varies along the axis of a curve. */
export const alongOf = (curve: Curve): Swept => (curve.axis === "window_asked" || curve.axis === "window_on_the_wire" ? "window" : curve.axis);

/** `305 KiB`, `8 streams`, `cubic` */
export function placeWords(curve: Curve, x: number): string {
  const along = alongOf(curve);
  if (along === "congestion") return curve.points.find((point) => point.x === x)?.asked ?? String(x);
  if (along === "streams") return `${String(x)} ${x === 1 ? "stream" : "streams"}`;
  return along === "mss" ? `${String(x)} B` : size(x);
}

/** `→ ams1`, `s1-64k streams 4` */
export const curveName = ({ name }: Curve): string => name.replace(/^-> /, "→ ").replace(/^<- /, "← ");

/** Goodput of each curve as the document has it, with the model, the knee and the recommended ranges. */
export function goodputChart(curves: readonly Curve[]): Xy | null {
  return chart(curves, GOODPUT, (point) => point.goodput_bps.p50);
}

/** The equivalent delay; null without any. */
export function delayChart(curves: readonly Curve[]): Xy | null {
  return chart(curves, DELAY, (point) => point.delivery_delay_ns);
}

function chart(curves: readonly Curve[], y: Axis, value: (point: Point) => number | null): Xy | null {
  const [head] = curves;
  if (!head) return null;
  const along = alongOf(head);
  const isOnly = curves.length === 1;
  const names = [...new Set(curves.flatMap((curve) => curve.points.map((point) => point.asked)))];
  const at = (point: Point) => (along === "congestion" ? names.indexOf(point.asked) : point.x);
  const ofGoodput = y === GOODPUT;
  const series = curves.flatMap((curve, index): XySeries[] => {
    const name = isOnly ? "" : curveName(curve);
    const points = curve.points.flatMap((point): XyPoint[] => {
      const found = value(point);
      if (found === null || found <= 0) return [];
      const { n, min, max, p5, p95 } = point.goodput_bps;
      const bounds = ofGoodput && n > 1 && min > 0 ? { low: p5 ?? min, high: p95 ?? max } : {};
      return [{ x: at(point), y: found, ...bounds }];
    });
    const model = curve.points.flatMap((point) => (point.expected_bps === null || point.expected_bps <= 0 ? [] : [{ x: at(point), y: point.expected_bps }]));
    if (points.length === 0) return [];
    return [
      { label: name === "" ? "measured" : name, colour: colour(index), mark: along === "congestion" || points.length < curve.points.length ? "dots" : "line", points },
      ...(ofGoodput ? modelSeries(name, index, model, along) : []),
    ];
  });
  if (series.length === 0) return null;
  // Ranges of several curves would hide each other: the list below has them.
  const marked = isOnly && ofGoodput ? [head] : [];
  const bands = marked.flatMap(({ for_throughput, for_latency }): XySpan[] => [
    ...(for_throughput ? [{ label: "for throughput", colour: "--s2", ...for_throughput }] : []),
    ...(for_latency ? [{ label: "for latency", colour: "--s4", ...for_latency }] : []),
  ]);
  const places = marked.flatMap(({ knee, product_bytes }): XySpan[] => [
    ...(knee?.x == null ? [] : [{ label: "knee", colour: "--bad", from: knee.x, to: knee.x }]),
    ...(product_bytes === null || along !== "window" ? [] : [{ label: "rate × RTT", colour: "--edge", from: product_bytes, to: product_bytes }]),
  ]);
  return { x: axis(along, names), y, series, bands, places };
}

/** `305 KiB: 941 Mbit/s; the interval ends at 305 KiB` */
export function kneeWords(curve: Curve): string {
  const { knee, fall } = curve;
  const place = (x: number) => placeWords(curve, x);
  if (fall) return `none: goodput falls between ${place(fall.from)} and ${place(fall.to)}, so something else limited it there`;
  if (!knee) return curve.axis === "congestion" ? "none: congestion controls have no order" : "unknown: too few points, or none valid at the end";
  if (knee.where === "below") return "outside the sweep: the smallest value already reaches the plateau";
  if (knee.where === "above" || knee.x === null) return "outside the sweep: goodput still rises at its end";
  const words = `${place(knee.x)}: ${rate(knee.goodput_bps)}`;
  if (!knee.interval) return words;
  const { above, up_to, confidence } = knee.interval;
  const low = above === null ? "the smallest value" : `above ${place(above)}`;
  const high = up_to === null ? "beyond the largest" : `up to ${place(up_to)}`;
  return `${words} (${low}, ${high}, ${percent(confidence)} sure)`;
}

/** `305 KiB to 363 KiB` */
export function rangeWords(curve: Curve, span: { from: number; to: number } | null): string {
  if (!span) return "unknown";
  return span.from === span.to ? placeWords(curve, span.from) : `${placeWords(curve, span.from)} to ${placeWords(curve, span.to)}`;
}

/** `19 streams × 16.5 KiB: 680 KiB (calculated)` */
export function needWords(need: Need): string {
  const window = `${need.streams === 1 ? "one window of" : `${String(need.streams)} streams ×`} ${size(need.window_bytes)}`;
  return `${window}: ${size(need.buffer_bytes)} (${need.measured ? "measured" : "calculated"})`;
}

export const isSweep = (document: unknown): document is SweepDocument => object(document)["schema"] === "bdp.sweep/1";
