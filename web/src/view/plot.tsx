// One plot: a chart drawn by uPlot, redrawn as it grows.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { largest, type Chart, type Timeline } from "../model";
import { rateUnit, significant } from "../format";
import { colour } from "../svg";
import { theme } from "../theme";

export interface Scale {
  /** Factor and unit for this largest value. */
  unit: (largest: number) => readonly [number, string];
}

export const RATE: Scale = { unit: (most) => rateUnit(most) };
export const ROUND_TRIP: Scale = { unit: () => [1e6, "ms"] };

const AXIS_WIDTH = 58;
const cursors = uPlot.sync("time");

interface Props {
  chart: Chart;
  timeline: Timeline;
  scale: Scale;
  height: number;
  hasTimes: boolean;
  sentence: string;
  onPoint: (index: number | null, series: number | null) => void;
}

export function Plot({ chart, timeline, scale, height, hasTimes, sentence, onPoint }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const now = useRef({ chart, timeline, scale, onPoint });
  now.current = { chart, timeline, scale, onPoint };
  const kind = `${theme.value} ${String(height)} ${chart.series.map((one) => one.label + one.colour).join("|")}`;

  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    const font = "11px system-ui, sans-serif";
    const text = colour("--faint");
    const line = colour("--line");
    const width = () => Math.max(element.clientWidth, 120);
    const made = new uPlot(
      {
        width: width(),
        height,
        legend: { show: false },
        cursor: {
          sync: { key: cursors.key, setSeries: false, scales: ["x", null] },
          drag: { x: false, y: false },
          focus: { prox: now.current.chart.series.length > 2 ? 12 : -1 },
          points: { show: now.current.chart.series.length <= 8 },
        },
        focus: { alpha: 0.35 },
        scales: {
          x: { time: false, range: () => [0, now.current.timeline.until] },
          y: { range: (_, __, max) => [0, Math.max(max, 0) * 1.08 || 1] },
        },
        axes: [
          {
            show: true,
            stroke: text,
            font,
            size: hasTimes ? 26 : 8,
            grid: { stroke: line, width: 1 },
            ticks: { show: false },
            values: (_, splits) => splits.map((t) => (hasTimes ? `${significant(t)} s` : "")),
          },
          {
            stroke: text,
            font,
            size: AXIS_WIDTH,
            grid: { stroke: line, width: 1 },
            ticks: { show: false },
            space: 28,
            values: (_, splits) => {
              const [factor] = now.current.scale.unit(largest(now.current.chart));
              return splits.map((value) => significant(value / factor));
            },
          },
        ],
        series: [
          {},
          ...now.current.chart.series.map((one) => ({
            label: one.label,
            stroke: colour(one.colour),
            width: one.bold ? 2 : 1,
            points: { show: false },
            spanGaps: false,
          })),
        ],
        hooks: {
          draw: [
            (u) => {
              marks(u, now.current, text, line);
            },
          ],
          setCursor: [
            (u) => {
              now.current.onPoint(u.cursor.idx ?? null, focused(u));
            },
          ],
        },
      },
      data(now.current.chart),
      element,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => {
      if (width() !== made.width) made.setSize({ width: width(), height });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [kind]);

  useEffect(() => {
    plot.current?.setData(data(chart));
  }, [chart]);

  return <div ref={place} class="plot" role="img" aria-label={sentence} />;
}

const data = (chart: Chart): uPlot.AlignedData => [chart.xs, ...chart.series.map((one) => one.values)];

function focused(u: uPlot): number | null {
  const found = u.series.findIndex((one, index) => index > 0 && (one as { _focus?: boolean | null })._focus === true);
  return found > 0 ? found - 1 : null;
}

/** Stages as lines with their names, retransmissions as ticks at the foot. */
function marks(u: uPlot, now: { chart: Chart; timeline: Timeline }, text: string, line: string): void {
  const { ctx, bbox } = u;
  const ratio = uPlot.pxRatio;
  ctx.save();
  ctx.lineWidth = ratio;
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = "top";
  let free = -1;
  for (const span of now.timeline.spans) {
    const x = Math.round(u.valToPos(span.start, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.strokeStyle = line;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const width = ctx.measureText(span.label).width;
    if (x > free && x + width < bbox.left + bbox.width) {
      ctx.fillStyle = text;
      ctx.fillText(span.label, x + 4 * ratio, bbox.top + 2 * ratio);
      free = x + width + 10 * ratio;
    }
  }
  ctx.strokeStyle = colour("--bad");
  const foot = bbox.top + bbox.height;
  ctx.beginPath();
  for (const tick of now.chart.ticks) {
    const x = Math.round(u.valToPos(tick.t, "x", true));
    ctx.moveTo(x, foot);
    ctx.lineTo(x, foot - 8 * ratio);
  }
  ctx.stroke();
  ctx.restore();
}
