// Goodput above the round trip, on one time axis.
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { milliseconds, rate, significant, threeDigits } from "../format";
import { csv, largest, sampled, type Chart, type Timeline } from "../model";
import { pngOf, save, saveBlob, svgOf } from "../svg";
import { colour } from "../theme";
import { Copy, CommandLine } from "./parts";
import { cursor, nearest, Plot, RATE, ROUND_TRIP, top, type Scale } from "./plot";

interface Props {
  timeline: Timeline;
  command: string | null;
  isLive: boolean;
}

/** More series than these are not named in a row below the plot. */
const NAMED = 12;

export function TimelineCharts({ timeline, command, isLive }: Props) {
  const [isSumHidden, hideSum] = useState(false);
  const hasStreams = timeline.goodput.series.some((one) => !one.bold);
  const goodput = useMemo(
    () =>
      isSumHidden && hasStreams
        ? { ...timeline.goodput, series: timeline.goodput.series.filter((one) => !one.bold) }
        : timeline.goodput,
    [timeline, isSumHidden, hasStreams],
  );
  const [factor, unit] = RATE.unit(largest(goodput));
  const bps = (value: number | null | undefined) => (value == null ? "-" : threeDigits(value / factor));
  const hasTrips = timeline.rtt.series.some((one) => one.values.some((value) => value !== null));
  return (
    <>
      <Figure
        title={`Goodput, ${unit}`}
        name="goodput"
        chart={goodput}
        timeline={timeline}
        scale={RATE}
        csvUnit="bps"
        command={command}
        height={230}
        hasTimes={!hasTrips}
        sentence={goodputSentence(timeline.goodput)}
        switch_={
          hasStreams && (
            <label class="switch">
              <input
                type="checkbox"
                checked={!isSumHidden}
                onChange={(event) => {
                  hideSum(!event.currentTarget.checked);
                }}
              />{" "}
              sum
            </label>
          )
        }
        readout={goodputAt}
        value={bps}
        isLive={isLive}
      />
      {hasTrips && (
        <Figure
          title="Round trip, ms"
          name="round-trip"
          chart={timeline.rtt}
          timeline={timeline}
          scale={ROUND_TRIP}
          csvUnit="ns"
          command={command}
          height={140}
          hasTimes={true}
          sentence={rttSentence(timeline.rtt)}
          readout={rttAt}
          value={milliseconds}
          isLive={isLive}
        />
      )}
    </>
  );
}

interface FigureProps {
  title: string;
  name: string;
  chart: Chart;
  timeline: Timeline;
  scale: Scale;
  csvUnit: string;
  command: string | null;
  height: number;
  hasTimes: boolean;
  sentence: string;
  readout: (chart: Chart, index: number, near: number | null) => string;
  value: (value: number | null | undefined) => string;
  isLive: boolean;
  switch_?: ComponentChildren;
}

function Figure(props: FigureProps) {
  const { title, name, chart, timeline, scale, value, sentence } = props;
  const [factor] = scale.unit(largest(chart));
  const few = chart.series.length <= NAMED;
  return (
    <figure class="chart">
      <div class="bar">
        <h3>{title}</h3>
        {props.switch_}
        <Readout name={name} chart={chart} text={props.readout} />
        <Tools
          csv={() => csv(chart, props.csvUnit)}
          svg={() => svgOf(chart, timeline, title, (v) => significant(v / factor))}
          name={name}
          command={props.command}
        />
      </div>
      <Plot
        name={name}
        chart={chart}
        timeline={timeline}
        scale={scale}
        height={props.height}
        hasTimes={props.hasTimes}
        sentence={`${title}. ${sentence}`}
      />
      {name === "goodput" && (
        <ul class="legend">
          {(few ? chart.series : chart.series.filter((one) => one.bold)).map((one) => (
            <li key={one.label}>
              <Swatch colour={one.colour} isBold={one.bold} />
              {one.label}
            </li>
          ))}
          {!few && <li>{chart.series.filter((one) => !one.bold).length} streams, thin</li>}
          {chart.ticks.length > 0 && (
            <li>
              <span class="tick" /> retransmits
            </li>
          )}
        </ul>
      )}
      <figcaption>{sentence}</figcaption>
      {!props.isLive && <Table title={title} chart={chart} value={value} />}
    </figure>
  );
}

/** What the curves have where the reader points. */
function Readout({ name, chart, text }: { name: string; chart: Chart; text: FigureProps["readout"] }) {
  const at = cursor.value;
  const index = at === null ? -1 : nearest(chart.xs, at.t);
  const near = at !== null && at.plot === name && chart.series.length > 2 ? closest(chart, index, at.height * top(chart)) : null;
  return (
    <span class="readout" aria-hidden="true">
      {index < 0 ? "" : text(chart, index, near)}
    </span>
  );
}

/** The curve nearest to a value, if one is near. */
function closest(chart: Chart, index: number, wanted: number): number | null {
  let [best, distance] = [null as number | null, top(chart) * 0.06];
  for (const [number, series] of chart.series.entries()) {
    const value = series.values[index];
    if (value == null || !(Math.abs(value - wanted) < distance)) continue;
    [best, distance] = [number, Math.abs(value - wanted)];
  }
  return best;
}

/** A place that scrolls, also by keyboard. */
export const Scroll = ({ label, children }: { label: string; children: ComponentChildren }) => (
  <div class="scroll" tabIndex={0} role="region" aria-label={label}>
    {children}
  </div>
);

export function Swatch({ colour, isBold = true }: { colour: string; isBold?: boolean }) {
  return (
    <svg class="swatch" viewBox="0 0 12 12" aria-hidden="true">
      <rect x="0" y={isBold ? 1 : 4} width="12" height={isBold ? 10 : 4} fill={`var(${colour})`} />
    </svg>
  );
}

/** A drawn SVG as a file of its own, with the colours of now. */
export function resolved(id: string, title: string): string {
  const drawn = document.getElementById(id);
  if (!drawn) return "";
  const copy = drawn.cloneNode(true) as SVGElement;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const box = /^0 0 (\S+) (\S+)$/.exec(copy.getAttribute("viewBox") ?? "");
  if (!copy.hasAttribute("width") && box) {
    copy.setAttribute("width", "900");
    copy.setAttribute("height", String((900 * Number(box[2])) / Number(box[1])));
  }
  copy.removeAttribute("class");
  copy.style.background = colour("--back");
  const name = document.createElementNS("http://www.w3.org/2000/svg", "title");
  name.textContent = title;
  copy.prepend(name);
  return copy.outerHTML.replace(/var\((--[\w-]+)\)/g, (_, variable: string) => colour(variable));
}

/** What each chart offers. */
export function Tools(props: { csv: () => string; svg: () => string; name: string; command: string | null }) {
  const [shown, show] = useState(false);
  return (
    <>
      <span class="tools">
        <Copy text={props.csv} label={`Copy the data of ${props.name} (CSV)`}>
          Copy the data (CSV)
        </Copy>
        <button
          type="button"
          class="quiet"
          aria-label={`Save ${props.name} as SVG`}
          onClick={() => {
            save(`bdp-${props.name}.svg`, "image/svg+xml", props.svg());
          }}
        >
          Save as SVG
        </button>
        <button
          type="button"
          class="quiet"
          aria-label={`Save ${props.name} as PNG`}
          onClick={() => {
            pngOf(props.svg()).then(
              (blob) => {
                saveBlob(`bdp-${props.name}.png`, blob);
              },
              () => undefined,
            );
          }}
        >
          PNG
        </button>
        {props.command !== null && (
          <button
            type="button"
            class="quiet"
            aria-expanded={shown}
            aria-label={`Show the command of ${props.name}`}
            onClick={() => {
              show(!shown);
            }}
          >
            Show the command
          </button>
        )}
      </span>
      {shown && props.command !== null && <CommandLine command={props.command} label="Command of this chart" />}
    </>
  );
}

export function Table({ title, chart, value }: { title: string; chart: Chart; value: FigureProps["value"] }) {
  const [isOpen, open] = useState(false);
  const many = chart.series.length > NAMED;
  const shown = chart.series.map((one, index) => ({ one, index })).filter(({ one }) => !many || one.bold);
  return (
    <details
      onToggle={(event) => {
        open(event.currentTarget.open);
      }}
    >
      <summary>{title} as a table</summary>
      {isOpen && (
        <div class="scroll" tabIndex={0} role="region" aria-label={`${title} as a table`}>
          <table>
            <thead>
              <tr>
                <th scope="col">s</th>
                {shown.map(({ one }) => (
                  <th scope="col" key={one.label}>
                    {one.label}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {sampled(chart).map((row) => (
                <tr key={row.t}>
                  <th scope="row">{row.t.toFixed(1)}</th>
                  {shown.map(({ index }) => (
                    <td key={index}>{value(row.values[index])}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}

function quartile(values: readonly (number | null | undefined)[], share: number): number | null {
  const sorted = values.filter((value): value is number => value != null).sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null;
}

function goodputSentence(chart: Chart): string {
  const of = chart.series.filter((one) => one.bold);
  const parts = of.map((one) => {
    const name = one.label.includes(":") ? one.label : one.label.startsWith("→") ? "To the host" : "From the host";
    return `${name}: median of the readings ${rate(quartile(one.values, 0.5))}, highest ${rate(quartile(one.values, 1))}.`;
  });
  const count = chart.ticks.reduce((sum, tick) => sum + tick.count, 0);
  if (count > 0) parts.push(`${String(count)} segments retransmitted.`);
  return parts.join(" ");
}

function rttSentence(chart: Chart): string {
  const values = chart.series[0]?.values ?? [];
  return `Median of the probes ${milliseconds(quartile(values, 0.5))} ms, lowest ${milliseconds(quartile(values, 0))} ms, highest ${milliseconds(quartile(values, 1))} ms.`;
}

function goodputAt(chart: Chart, index: number, series: number | null): string {
  const t = chart.xs[index];
  if (t === undefined) return "";
  const shown = chart.series.filter((one, at) => one.bold || at === series);
  const parts = shown.filter((one) => one.values[index] != null).map((one) => `${one.label} ${rate(one.values[index])}`);
  return parts.length === 0 ? "" : `${t.toFixed(1)} s  ${parts.join("  ")}`;
}

function rttAt(chart: Chart, index: number): string {
  const value = chart.series[0]?.values[index];
  return value == null ? "" : `${(chart.xs[index] ?? 0).toFixed(1)} s  ${milliseconds(value)} ms`;
}
