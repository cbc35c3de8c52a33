// Draws a chart of one figure against another.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { marksOf, placeOf, rangeOf, textOf, xyCsv, type Xy } from "../xy";
import { stepped } from "./plot";
import { resolved, Swatch, Tools } from "./timeline";

const [LEFT, RIGHT, TOP, FOOT] = [78, 12, 10, 34];

interface Props {
  title: string;
  name: string;
  chart: Xy;
  sentence: string;
  command: string | null;
  height?: number;
}

export function XyFigure({ title, name, chart, sentence, command, height = 300 }: Props) {
  const place = useRef<HTMLElement>(null);
  const [width, widen] = useState(600);
  useLayoutEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => {
      widen(Math.max(240, element.clientWidth));
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
    };
  }, []);
  const { x, y, series } = chart;
  const [chosen, choose] = useState(-1);
  // The cursor goes from place to place, and reads all curves there.
  const stops = [...new Set(series.flatMap((one) => one.points.map((point) => point.x)))].sort((a, b) => a - b);
  const stop = stops[chosen];
  const readout =
    stop === undefined
      ? ""
      : `${textOf(x, stop)}: ${series.flatMap((one) => one.points.filter((point) => point.x === stop).map((point) => `${one.label} ${y.text(point.y)}`)).join(", ")}`;
  const press = (event: KeyboardEvent) => {
    const next = stepped(event, chosen, stops.length);
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    choose(next ?? -1);
  };
  const points = series.flatMap((one) => one.points);
  const xs = rangeOf(x, [...points.map((point) => point.x), ...chart.places.map((one) => one.from)]);
  const ys = rangeOf(y, points.flatMap((point) => [point.y, point.low ?? point.y, point.high ?? point.y]));
  const [right, bottom] = [width - RIGHT, height - FOOT];
  const atX = (value: number) => LEFT + Math.min(1, Math.max(0, placeOf(x, xs, value))) * (right - LEFT);
  const atY = (value: number) => bottom - placeOf(y, ys, value) * (bottom - TOP);
  const id = `xy-${name}`;
  return (
    <figure class="chart" ref={place}>
      <div class="bar">
        <h3>{title}</h3>
        <span class="readout" role="status">
          {readout}
        </span>
        <Tools csv={() => xyCsv(chart)} svg={() => resolved(id, title)} name={name} command={command} />
      </div>
      <svg id={id} class="xy" viewBox={`0 0 ${String(width)} ${String(height)}`} width={width} height={height} font-family="system-ui, sans-serif" font-size="11" role="application" aria-roledescription="chart" aria-label={`${title}. ${sentence} Arrow keys read it.`} tabIndex={0} onKeyDown={press} onBlur={() => { choose(-1); }}>
        {chart.bands.map((band, index) => {
          // A single value is a band, too.
          const [from, to] = [atX(band.from), atX(band.to)];
          return <rect key={band.label + String(index)} x={from - 2} y={TOP} width={to - from + 4} height={bottom - TOP} fill={`var(${band.colour})`} opacity="0.14" />;
        })}
        {marksOf(y, ys, height / 40).map((value) => (
          <g key={value}>
            <path d={`M${LEFT} ${atY(value).toFixed(1)}H${String(right)}`} stroke="var(--line)" />
            <text x={LEFT - 6} y={atY(value)} dy="4" text-anchor="end" fill="var(--faint)">
              {textOf(y, value)}
            </text>
          </g>
        ))}
        {marksOf(x, xs, width / 80).map((value) => (
          <g key={value}>
            <path d={`M${atX(value).toFixed(1)} ${TOP}V${String(bottom)}`} stroke="var(--line)" />
            <text x={atX(value)} y={bottom + 14} text-anchor="middle" fill="var(--faint)">
              {textOf(x, value)}
            </text>
          </g>
        ))}
        <text x={(LEFT + right) / 2} y={height - 5} text-anchor="middle" fill="var(--faint)">
          {x.label}
        </text>
        {stop !== undefined && <path d={`M${atX(stop).toFixed(1)} ${TOP}V${String(bottom)}`} stroke="var(--accent)" />}
        {chart.places.map((one) => (
          <path key={one.label + String(one.from)} d={`M${atX(one.from).toFixed(1)} ${TOP}V${String(bottom)}`} stroke={`var(${one.colour})`} stroke-dasharray="2 3" stroke-width="1.5">
            <title>{one.label}</title>
          </path>
        ))}
        {series.map((one) => (
          <g key={one.label} stroke={`var(${one.colour})`} fill="none">
            {(one.mark === "line" || one.mark === "dashed") && (
              <path
                d={one.points.map((point, index) => `${index === 0 ? "M" : "L"}${atX(point.x).toFixed(1)} ${atY(point.y).toFixed(1)}`).join("")}
                stroke-width={one.mark === "dashed" ? 1 : 1.5}
                stroke-dasharray={one.mark === "dashed" ? "5 4" : undefined}
              />
            )}
            {one.points.map(({ x: at, y: value, low, high }, index) => (
              <g key={index}>
                {low !== undefined && high !== undefined && <path d={`M${atX(at).toFixed(1)} ${atY(low).toFixed(1)}V${atY(high).toFixed(1)}`} />}
                {one.mark === "crosses" && <path d={`M${(atX(at) - 4).toFixed(1)} ${(atY(value) - 4).toFixed(1)}l8 8m0 -8l-8 8`} stroke-width="2" />}
                {one.mark !== "dashed" && one.mark !== "crosses" && (
                  <circle cx={atX(at)} cy={atY(value)} r={one.mark === "hollow" ? 6 : 3.5} fill={one.mark === "hollow" ? "none" : `var(${one.colour})`}>
                    <title>{`${one.label}: ${textOf(x, at)}, ${y.text(value)}`}</title>
                  </circle>
                )}
              </g>
            ))}
          </g>
        ))}
      </svg>
      <ul class="legend">
        {[...series, ...chart.bands, ...chart.places].map((one) => (
          <li key={one.label}>
            <Swatch colour={one.colour} isBold={"points" in one && one.mark !== "dashed"} />
            {one.label}
          </li>
        ))}
      </ul>
      <figcaption>{sentence}</figcaption>
    </figure>
  );
}
