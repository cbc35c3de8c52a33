// A chart of points by a parameter: what was measured, what a model expects, what a source published.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { rate, rateUnit, significant } from "../format";
import { marks } from "../svg";
import { stepped } from "./plot";
import { resolved, Swatch, Tools } from "./timeline";

/** A point, in bit/s on the y axis. */
export interface Dot {
  x: number;
  /** The value on the x axis as it was written. */
  label: string;
  y: number | null;
  model: number | null;
  /** Lowest and highest published figure, or one, or none. */
  published: readonly number[];
  isValid: boolean;
}

export interface PointChart {
  axis: string;
  /** Names instead of numbers on the x axis. */
  isCategory: boolean;
  series: { label: string; colour: string; dots: Dot[] }[];
}

const HEIGHT = 280;
const [LEFT, RIGHT, TOP, FOOT] = [58, 14, 12, 34];

/** Round values of a logarithmic axis. */
function decades(least: number, most: number): number[] {
  const all: number[] = [];
  const steps = most / least > 1000 ? [1] : [1, 2, 5];
  for (let power = Math.floor(Math.log10(least)); power <= Math.log10(most); power += 1) {
    all.push(...steps.map((step) => step * 10 ** power).filter((value) => value >= least * 0.999 && value <= most * 1.001));
  }
  return all;
}

/** Places of values on an axis, logarithmic if they span much. */
function axis(values: readonly number[], from: number, to: number, much: number, fromZero: boolean) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const isLog = least > 0 && most / least > much;
  const [low, high] = isLog ? (fromZero ? [least / 1.3, most * 1.3] : [least, most]) : fromZero ? [0, most * 1.08 || 1] : [least, most];
  const f = isLog ? Math.log10 : (value: number) => value;
  return { low, high, isLog, at: (value: number) => from + ((f(value) - f(low)) / (f(high) - f(low) || 1)) * (to - from) };
}

/** What a point says. */
const dotText = (dot: Dot): string =>
  `${dot.label}: ${rate(dot.y)}${dot.model === null ? "" : `, model ${rate(dot.model)}`}${dot.published.length === 0 ? "" : `, published ${dot.published.map(rate).join(" to ")}`}${dot.isValid ? "" : ", INVALID"}`;

interface Props {
  id: string;
  title: string;
  chart: PointChart;
  csv: () => string;
  command: string | null;
  sentence: string;
}

export function Points({ id, title, chart, csv, command, sentence }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const [width, widen] = useState(640);
  const [chosen, choose] = useState(-1);
  useLayoutEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => {
      widen(element.clientWidth);
    });
    observer.observe(element);
    widen(element.clientWidth);
    return () => {
      observer.disconnect();
    };
  }, []);
  const dots = chart.series.flatMap((one) => one.dots);
  const values = dots.flatMap((dot) => [dot.y, dot.model, ...dot.published]).filter((one): one is number => one !== null && one > 0);
  const right = width - RIGHT;
  const bottom = HEIGHT - FOOT;
  const x = axis(dots.map((dot) => dot.x), LEFT + 12, right - 12, 10, false);
  const y = axis(values.length > 0 ? values : [1], bottom, TOP, 30, true);
  const [factor, unit] = y.isLog ? [1, "bit/s"] : rateUnit(y.high);
  /** `100 k` on a logarithmic axis, which has several units. */
  const mark = (value: number) => {
    const [each, name] = y.isLog ? rateUnit(value) : [factor, ""];
    return `${significant(value / each)} ${name.replace("bit/s", "")}`;
  };
  const heights = y.isLog ? decades(y.low, y.high) : marks(y.high / factor).map((one) => one * factor);
  const path = (all: readonly Dot[], value: (dot: Dot) => number | null) =>
    all.reduce<[string, boolean]>(
      ([text, isDown], dot) => {
        const found = value(dot);
        return found === null || found <= 0 ? [text, false] : [`${text}${isDown ? "L" : "M"}${x.at(dot.x).toFixed(1)} ${y.at(found).toFixed(1)}`, true];
      },
      ["", false],
    )[0];
  // Names of values, as many as there is room for.
  let free = LEFT - 30;
  const names = [...new Map(dots.map((dot) => [dot.x, dot.label]))]
    .sort(([a], [b]) => a - b)
    .map(([at, label]) => ({ at: x.at(at), label: label.length > 18 ? `${label.slice(0, 17)}…` : label }))
    .filter(({ at, label }) => {
      const half = label.length * 3.2 + 4;
      if (at - half < free || at - half < 0 || at + half > width) return false;
      free = at + half;
      return true;
    });
  const current = dots[chosen];
  const press = (event: KeyboardEvent) => {
    const next = stepped(event, chosen, dots.length);
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    choose(next ?? -1);
  };
  return (
    <figure class="chart">
      <div class="bar">
        <h3>{`${title}, ${unit}`}</h3>
        <span class="readout" role="status">
          {current && dotText(current)}
        </span>
        <Tools csv={csv} svg={() => resolved(id, title)} name={id} command={command} />
      </div>
      <div
        ref={place}
        class="points"
        role="application"
        aria-roledescription="chart"
        aria-label={`${title}. ${sentence} Arrow keys read its points.`}
        tabIndex={0}
        onKeyDown={press}
        onBlur={() => {
          choose(-1);
        }}
      >
        <svg id={id} width={width} height={HEIGHT} viewBox={`0 0 ${width} ${HEIGHT}`} font-family="system-ui, sans-serif" font-size="11" aria-hidden="true">
          <rect width={width} height={HEIGHT} fill="var(--back)" />
          {heights.map((value) => (
            <g key={value}>
              <path d={`M${LEFT} ${y.at(value).toFixed(1)}H${right}`} stroke="var(--line)" />
              <text x={LEFT - 7} y={y.at(value) + 4} text-anchor="end" fill="var(--faint)">
                {mark(value)}
              </text>
            </g>
          ))}
          {names.map(({ at, label }) => (
            <text key={label} x={at} y={bottom + 16} text-anchor="middle" fill="var(--faint)">
              {label}
            </text>
          ))}
          <text x={right} y={HEIGHT - 4} text-anchor="end" fill="var(--faint)">
            {chart.axis}
          </text>
          {chart.series.map((one) => (
            <g key={one.label} stroke={`var(${one.colour})`} fill="none">
              {!chart.isCategory && <path d={path(one.dots, (dot) => dot.model)} stroke-dasharray="4 3" />}
              {!chart.isCategory && <path d={path(one.dots, (dot) => (dot.isValid ? dot.y : null))} stroke-width="2" />}
              {one.dots.map((dot) => (
                <DotMark key={dot.label} dot={dot} x={x.at(dot.x)} y={y.at} colour={one.colour} />
              ))}
            </g>
          ))}
          {current && <circle cx={x.at(current.x)} cy={y.at(current.y ?? y.low)} r="8" fill="none" stroke="var(--accent)" stroke-width="2" />}
        </svg>
      </div>
      <ul class="legend">
        {chart.series.map((one) => (
          <li key={one.label}>
            <Swatch colour={one.colour} />
            {one.label}
          </li>
        ))}
        {dots.some((dot) => dot.model !== null) && <li>dash: model</li>}
        {dots.some((dot) => dot.published.length > 0) && <li>hollow: published</li>}
        {dots.some((dot) => !dot.isValid) && <li>crossed: INVALID</li>}
      </ul>
      <figcaption>{sentence}</figcaption>
    </figure>
  );
}

function DotMark({ dot, x, y, colour }: { dot: Dot; x: number; y: (value: number) => number; colour: string }) {
  const figures = dot.published.map(y);
  const [low, high] = [figures[0], figures.at(-1)];
  const at = dot.y !== null && dot.y > 0 ? y(dot.y) : null;
  return (
    <>
      {low !== undefined && high !== undefined && <rect x={x - 5} y={high - 5} width="10" height={low - high + 10} rx="5" stroke="var(--edge)" />}
      {dot.model !== null && dot.model > 0 && <path d={`M${x - 6} ${y(dot.model)}h12`} />}
      {at !== null &&
        (dot.isValid ? (
          <circle cx={x} cy={at} r="3.5" fill={`var(${colour})`}>
            <title>{dotText(dot)}</title>
          </circle>
        ) : (
          <path d={`M${x - 4} ${at - 4}l8 8m0 -8l-8 8`} stroke="var(--bad)" stroke-width="2">
            <title>{dotText(dot)}</title>
          </path>
        ))}
    </>
  );
}
