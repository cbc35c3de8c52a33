// One plot: curves on a canvas, redrawn as they grow. Plots share their time axis and its cursor.
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { rateUnit, significant, threeDigits } from "../format";
import { largest, MANY, type Chart, type Timeline } from "../model";
import { marks } from "../svg";
import { colour, theme } from "../theme";

export interface Scale {
  /** Factor and unit for this largest value. */
  unit: (largest: number) => readonly [number, string];
}

export const RATE: Scale = { unit: (most) => rateUnit(most) };
export const ROUND_TRIP: Scale = { unit: () => [1e6, "ms"] };

/** Where the reader points: a time, and the share of the height in one of the plots. */
export const cursor = signal<{ t: number; plot: string; height: number } | null>(null);

const LEFT = 58;
const RIGHT = 8;
const TOP = 18;
export interface Frame {
  width: number;
  height: number;
  foot: number;
  until: number;
  most: number;
}

/** The largest value of the axis. */
export const top = (chart: Chart): number => largest(chart) * 1.08 || 1;

/** Index of the time nearest to this one; -1 without any. */
export function nearest(xs: readonly number[], t: number): number {
  let [low, high] = [0, xs.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((xs[middle] ?? 0) < t) low = middle + 1;
    else high = middle;
  }
  const before = low > 0 && t - (xs[low - 1] ?? 0) < (xs[low] ?? 0) - t;
  return xs.length === 0 ? -1 : before ? low - 1 : low;
}

/** Where a key of the cursor leads among so many readings; null takes the cursor away, undefined is another key. */
export function stepped(event: KeyboardEvent, at: number, count: number): number | null | undefined {
  const step = Math.max(1, Math.round(count / 100));
  const by: Readonly<Record<string, number>> = { ArrowLeft: -step, ArrowRight: step, PageUp: -10 * step, PageDown: 10 * step, Home: -count, End: count };
  if (event.ctrlKey || event.altKey || event.metaKey || count === 0) return undefined;
  const move = event.key === "Escape" && at >= 0 ? null : by[event.key];
  if (move == null) return move;
  return at < 0 ? (move < 0 ? count - 1 : 0) : Math.min(count - 1, Math.max(0, at + move));
}

interface Props {
  name: string;
  chart: Chart;
  timeline: Timeline;
  scale: Scale;
  height: number;
  hasTimes: boolean;
  sentence: string;
}

export function Plot({ name, chart, timeline, scale, height, hasTimes, sentence }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const line = useRef<HTMLDivElement>(null);
  const [width, widen] = useState(0);
  const [said, say] = useState("");
  const foot = hasTimes ? 22 : 8;

  useLayoutEffect(() => {
    const place = canvas.current?.parentElement;
    if (!place) return undefined;
    const observer = new ResizeObserver(() => {
      widen(place.clientWidth);
    });
    observer.observe(place);
    widen(place.clientWidth);
    return () => {
      observer.disconnect();
    };
  }, []);

  const colours = theme.value;
  useLayoutEffect(() => {
    const element = canvas.current;
    if (!element || width === 0) return;
    // With many curves a dense screen gets no more points than others.
    const ratio = chart.series.length > MANY ? 1 : devicePixelRatio;
    const size = [Math.round(width * ratio), Math.round(height * ratio)] as const;
    if (element.width !== size[0] || element.height !== size[1]) [element.width, element.height] = size;
    const context = element.getContext("2d");
    if (!context) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw(context, chart, timeline, scale, { width, height, foot, until: timeline.until, most: top(chart) });
  }, [chart, timeline, width, height, foot, colours]);

  useEffect(
    () =>
      cursor.subscribe((at) => {
        const element = line.current;
        if (!element) return;
        element.hidden = at === null || at.t > timeline.until;
        if (at) element.style.left = `${LEFT + (at.t / timeline.until) * (width - LEFT - RIGHT)}px`;
      }),
    [timeline.until, width],
  );

  const move = (event: PointerEvent) => {
    const box = canvas.current?.getBoundingClientRect();
    if (!box) return;
    const share = (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT);
    const up = 1 - (event.clientY - box.top - TOP) / (box.height - TOP - foot);
    cursor.value = share < 0 || share > 1 ? null : { t: share * timeline.until, plot: name, height: up };
  };
  const leave = () => {
    cursor.value = null;
  };
  const press = (event: KeyboardEvent) => {
    const now = cursor.peek();
    // Where nothing was read there is nothing to stop at.
    const stops = chart.xs.filter((_, at) => chart.series.some((one) => one.bold && one.values[at] != null));
    const next = stepped(event, now === null ? -1 : nearest(stops, now.t), stops.length);
    if (next === undefined) return;
    // Escape takes the cursor away, and does not also stop the test.
    event.preventDefault();
    event.stopPropagation();
    const t = next === null ? undefined : stops[next];
    const index = t === undefined ? null : nearest(chart.xs, t);
    cursor.value = t === undefined ? null : { t, plot: name, height: NaN };
    const [factor, unit] = scale.unit(largest(chart));
    const values = chart.series.flatMap((one) => {
      const value = index === null || !one.bold ? null : one.values[index];
      return value == null ? [] : [`${one.label} ${threeDigits(value / factor)} ${unit}`];
    });
    say(t === undefined ? "" : `${t.toFixed(1)} s: ${values.join(", ")}`);
  };
  return (
    <div
      class={hasTimes ? "plot low" : "plot"}
      role="application"
      aria-roledescription="chart"
      aria-label={`${sentence} Arrow keys read it.`}
      tabIndex={0}
      onPointerMove={move}
      onPointerLeave={leave}
      onKeyDown={press}
      onBlur={leave}
    >
      <span class="hidden" role="status">
        {said}
      </span>
      <canvas ref={canvas} style={{ height: `${height}px` }} />
      <div ref={line} class="cursor" hidden />
    </div>
  );
}

function draw(context: CanvasRenderingContext2D, chart: Chart, timeline: Timeline, scale: Scale, frame: Frame): void {
  const { width, height, foot, until, most } = frame;
  const [right, bottom] = [width - RIGHT, height - foot];
  const x = (t: number) => LEFT + (t / until) * (right - LEFT);
  const y = (value: number) => bottom - (value / most) * (bottom - TOP);
  const text = colour("--faint");
  context.clearRect(0, 0, width, height);
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = text;
  context.strokeStyle = colour("--line");
  context.lineWidth = 1;

  const path = (lines: () => void) => {
    context.beginPath();
    lines();
    context.stroke();
  };
  const [factor] = scale.unit(largest(chart));
  const values = marks(most / factor, Math.max(2, Math.floor(height / 45))).map((value) => value * factor);
  const times = marks(until, Math.max(2, Math.floor(width / 110)));
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const value of values) context.fillText(significant(value / factor), LEFT - 7, y(value));
  path(() => {
    for (const value of values) {
      const at = Math.round(y(value)) + 0.5;
      context.moveTo(LEFT, at);
      context.lineTo(right, at);
    }
    for (const t of times) {
      const at = Math.round(x(t)) + 0.5;
      context.moveTo(at, TOP);
      context.lineTo(at, bottom);
    }
  });
  if (foot > 10) {
    context.textBaseline = "top";
    for (const t of times) {
      const label = `${significant(t)} s`;
      const half = context.measureText(label).width / 2;
      context.textAlign = "center";
      context.fillText(label, Math.min(x(t), right - half), bottom + 6);
    }
  }

  context.lineJoin = "bevel";
  context.save();
  context.rect(LEFT, 0, right - LEFT, bottom + 1);
  context.clip();
  const places = chart.xs.map(x);
  for (const group of grouped(chart)) {
    context.strokeStyle = colour(group.colour);
    context.lineWidth = group.isBold ? 2 : 1;
    path(() => {
      for (const values of group.curves) curve(context, places, values, bottom, (bottom - TOP) / most);
    });
  }
  context.restore();

  context.strokeStyle = colour("--bad");
  context.lineWidth = 1;
  path(() => {
    for (const tick of chart.ticks) {
      const at = Math.round(x(tick.t)) + 0.5;
      context.moveTo(at, bottom);
      context.lineTo(at, bottom - 9);
    }
  });

  context.strokeStyle = colour("--edge");
  context.textAlign = "left";
  context.textBaseline = "top";
  let free = -1;
  for (const span of timeline.spans) {
    const at = Math.round(x(span.start)) + 0.5;
    path(() => {
      context.moveTo(at, 2);
      context.lineTo(at, bottom);
    });
    const end = at + 4 + context.measureText(span.label).width;
    if (at < free || end > right) continue;
    context.fillText(span.label, at + 4, 3);
    free = end + 6;
  }
}

interface Group {
  colour: string;
  isBold: boolean;
  curves: Chart["series"][number]["values"][];
}

/** Curves of one colour are one path. The bold ones come last, over the others. */
function grouped(chart: Chart): Group[] {
  const groups = new Map<string, Group>();
  for (const series of chart.series) {
    const key = `${series.colour} ${String(series.bold)}`;
    const group = groups.get(key) ?? { colour: series.colour, isBold: series.bold, curves: [] };
    group.curves.push(series.values);
    groups.set(key, group);
  }
  return [...groups.values()].sort((a, b) => Number(a.isBold) - Number(b.isBold));
}

/** A curve with gaps where a value is null; a reading between two gaps is a short dash. */
function curve(
  context: CanvasRenderingContext2D,
  places: readonly number[],
  values: readonly (number | null | undefined)[],
  bottom: number,
  factor: number,
): void {
  let isDown = false;
  // Indexed: this runs for every reading of every stream, ten times a second.
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index];
    if (value === undefined) continue;
    if (value === null) {
      isDown = false;
      continue;
    }
    const at = places[index] ?? 0;
    const y = bottom - value * factor;
    if (isDown) context.lineTo(at, y);
    else {
      context.moveTo(at - 0.5, y);
      context.lineTo(at, y);
    }
    isDown = true;
  }
}
