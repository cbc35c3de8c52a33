// The visitor's page: Start, the running test, its result.
import type { ComponentChildren } from "preact";
import { count, milliseconds, moment, percent, rate, size, threeDigits, time } from "../format";
import type { Evidence } from "../generated/measurement";
import { csv, largest, sampled, type Chart, type Timeline } from "../model";
import { CommandLine, Copy, Name } from "../view/parts";
import { Plot, RATE, ROUND_TRIP, type Scale } from "../view/plot";
import { stateName } from "../words";
import { NAMES, nowOf, ofDocument, ofLive } from "./charts";
import { quantile } from "./counts";
import type { Trips, VisitDirection, VisitDocument } from "./documents";
import type { Failure, Live, Phase } from "./engine";
import { about, live, planFor, show, shown, silence, start, stop } from "./state";

export function App() {
  const now = shown.value;
  return (
    <>
      <header>
        <h1>bdp</h1>
        {about.value && (
          <span class="faint of">
            <Name>{about.value.server}</Name> {about.value.bdp}
          </span>
        )}
      </header>
      <main class="visit">
        {now.kind === "start" && <Start />}
        {now.kind === "loading" && (
          <section class="panel empty" aria-busy="true">
            <h2>Result</h2>
            <p class="faint">Loading.</p>
          </section>
        )}
        {now.kind === "running" && <Running />}
        {now.kind === "failed" && <Failed failure={now.failure} />}
        {now.kind === "result" && <Result document={now.document} isOwn={now.isOwn} />}
      </main>
    </>
  );
}

const begin = () => void start();

function Start() {
  const known = about.value;
  const limits = known?.limits;
  const { idle, down, up } = planFor(limits);
  const seconds = Math.ceil((idle + down + up) / 1000) + 1;
  const bounds = [
    limits?.rate_bps != null && `at most ${rate(limits.rate_bps)}`,
    limits?.bytes_per_day != null && `${size(limits.bytes_per_day)} a day`,
  ].filter((one): one is string => typeof one === "string");
  return (
    <section class="panel empty start" aria-labelledby="start">
      <h2 id="start">Test the path to {known ? <Name>{known.server}</Name> : "this server"}</h2>
      <p>
        Measures download, upload and round trip between this browser and the server, and shows what limits them. It takes about {seconds} s
        and transfers as much as the path carries{bounds.length > 0 && `; this server allows ${bounds.join(", ")}`}.
      </p>
      {silence.value !== null && (
        <p class="error" role="alert">
          {sentence(silence.value)}
        </p>
      )}
      <div class="actions">
        <button type="button" class="main large" onClick={begin}>
          Start
        </button>
      </div>
      {known && (
        <div class="exact">
          <p class="faint">The exact test, in a terminal with bdp:</p>
          <CommandLine command={known.command} label="Command of the exact test" />
        </div>
      )}
    </section>
  );
}

/** A message as a sentence. */
const sentence = (text: string): string => {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
};

const PHASES: Record<Phase, string> = {
  opening: "Connecting",
  idle: "Round trip without load",
  down: "Download",
  draining: "Waiting until the queue is empty",
  up: "Upload",
  saving: "Fetching the explanation",
};

function Running() {
  const state = live.value?.live;
  if (!state) return <h2>{PHASES.opening}</h2>;
  const timeline = ofLive(state);
  const now = nowOf(state, timeline);
  const left = Math.max(0, state.whole - (state.now - state.began)) / 1000;
  return (
    <section class="panel live" aria-labelledby="live">
      <div class="progress">
        <div class="bar">
          <h2 id="live" aria-live="polite">
            {PHASES[state.phase]}
          </h2>
          <span class="faint">about {left.toFixed(0)} s left</span>
          <span class="tools">
            <button
              type="button"
              onClick={() => {
                stop();
              }}
            >
              Stop
            </button>
          </span>
        </div>
        <progress value={state.now - state.began} max={state.whole} aria-label="Progress" />
      </div>
      <dl class="now">
        <Now name={NAMES.down} value={rate(now.down)} />
        <Now name={NAMES.up} value={rate(now.up)} />
        <Now name="round trip" value={time(now.tripNs)} />
        <Now name="of it the browser's own" value={time(now.ownNs)} />
      </dl>
      <Charts timeline={timeline} isLive={true} hasTrips={true} />
    </section>
  );
}

const Now = ({ name, value }: { name: string; value: string }) => (
  <div>
    <dt>{name}</dt>
    <dd>{value}</dd>
  </div>
);

const TITLES: Record<Failure["kind"], string> = {
  busy: "Busy",
  refused: "The server refused the test",
  lost: "No connection",
  ended: "The server ended the test",
  stopped: "Stopped",
  unfit: "This browser can't measure",
};

function Failed({ failure }: { failure: Failure }) {
  const state = live.value?.live;
  const isLink = location.pathname.startsWith("/r/");
  const timeline = state?.down ? ofLive(state) : null;
  return (
    <>
      <section class="panel empty start" aria-labelledby="failed">
        <h2 id="failed">{isLink && failure.kind === "ended" ? "No such result" : TITLES[failure.kind]}</h2>
        <p class={failure.kind === "stopped" ? "" : "error"} role="alert">
          {sentence(failure.message)}
        </p>
        <div class="actions">
          <button type="button" class="main" onClick={begin}>
            {isLink ? "Test the path from here" : "Start again"}
          </button>
          {isLink && failure.kind === "lost" && (
            <button type="button" onClick={show}>
              Load it again
            </button>
          )}
        </div>
      </section>
      {timeline && (
        <section class="panel" aria-labelledby="until">
          <h2 id="until">What was measured until then</h2>
          <Charts timeline={timeline} isLive={false} hasTrips={true} />
        </section>
      )}
    </>
  );
}

const isGood = (direction: VisitDirection): boolean =>
  direction.finding?.limit === "asked_rate" || (direction.finding?.limit === "ceiling" && !direction.finding.remedy);

/** The direction in trouble stands first. */
const order = (directions: readonly VisitDirection[]): VisitDirection[] =>
  [...directions].sort((a, b) => Number(isGood(a)) - Number(isGood(b)));

function Result({ document, isOwn }: { document: VisitDocument; isOwn: boolean }) {
  const state = isOwn ? live.value?.live : undefined;
  const timeline = state ? ofLive(state) : ofDocument(document);
  const doubts = document.directions.flatMap((one) => one.cannot_tell.map((text) => ({ way: NAMES[one.direction], text })));
  const notes = state?.notes ?? [];
  const keep = about.value?.keep_ns;
  const until = document.until_unix_ms ?? (keep === undefined ? undefined : document.at_unix_ms + keep / 1e6);
  return (
    <>
      <section class="panel why" aria-labelledby="result">
        <div class="bar">
          <h2 id="result">
            {isOwn ? "This browser" : document.visitor} ↔ <Name>{document.server}</Name>
          </h2>
          {!isOwn && <span class="faint">{moment(document.at_unix_ms)}</span>}
          <span class="tools">
            <button type="button" class={isOwn ? "" : "main"} onClick={begin}>
              {isOwn ? "Test again" : "Test the path from here"}
            </button>
          </span>
        </div>
        <div class="verdicts" role="status">
          {order(document.directions).map((one) => (
            <Verdict key={one.direction} direction={one} />
          ))}
        </div>
        <Figures {...document} />
      </section>
      <section class="panel ends-with" aria-labelledby="next">
        <h2 id="next" class="hidden">
          Link and exact test
        </h2>
        <div>
          <h3>Link to this result</h3>
          <CommandLine command={`${location.origin}/r/${encodeURIComponent(document.key)}`} label="Link to this result" />
          <p class="faint">
            {until !== undefined && `The server keeps it until ${moment(until)}. `}It shows the visitor as {document.visitor}.
          </p>
        </div>
        <div>
          <h3>Exact test, in a terminal with bdp</h3>
          <CommandLine command={document.command} label="Command of the exact test" />
          <p class="faint">It sees both ends and makes experiments; a browser shows only what the server's kernel sees.</p>
        </div>
      </section>
      <section class="panel" aria-label="Curves">
        <Charts timeline={timeline} isLive={false} hasTrips={state !== undefined} />
      </section>
      <section class="panel detail" aria-labelledby="detail">
        <h2 id="detail">Details</h2>
        {doubts.length > 0 && (
          <List title="What a browser cannot tell">
            {doubts.map(({ way, text }) => (
              <li key={way + text}>
                {way}: {text}
              </li>
            ))}
          </List>
        )}
        <List title="How it was measured">
          <li>
            Goodput down is what TCP acknowledged, up what the server received; by the browser what the page read, or passed to its
            network stack.
          </li>
          <li>
            The server sends by {document.congestion_control}. "Browser's own" is the round trip of the page's pings less TCP's of the
            same connection.
          </li>
          {document.directions.map(
            ({ direction, waited }) =>
              waited != null && (
                <li key={direction}>
                  {NAMES[direction]}: {percent(waited)} of the time {direction === "down" ? "the page waited for data" : "data waited to be sent"}.
                </li>
              ),
          )}
          {state && (
            <li>
              This browser's clock has steps of {time(state.clockStep * 1e6)}.{" "}
              {ownDelay(state)}
            </li>
          )}
          {[...document.caveats, ...notes].map((text) => (
            <li key={text}>{sentence(text)}</li>
          ))}
        </List>
        {document.directions.map((one) => (
          <Grounds key={one.direction} direction={one} />
        ))}
      </section>
    </>
  );
}

/** What the page itself saw of its delay, over all pings. */
function ownDelay(state: Live): string {
  const own = state.pings.all.flatMap((one) => (one.took === null || one.tcpNs === null ? [] : [one.took * 1e6 - one.tcpNs]));
  return own.length === 0 ? "" : `Its own delay was ${time(quantile(own, 0.5))} at the median, ${time(quantile(own, 0.95))} at p95.`;
}

const List = ({ title, children }: { title: string; children: ComponentChildren }) => (
  <>
    <h3>{title}</h3>
    <ul class="plain">{children}</ul>
  </>
);

function Verdict({ direction }: { direction: VisitDirection }) {
  const { finding } = direction;
  const isSure = finding?.limit !== "unknown" && !isGood(direction) && finding?.confidence !== undefined;
  return (
    <div class="verdict">
      <p>
        <span class="way">{NAMES[direction.direction]}</span> <strong class="big">{rate(direction.goodput_bps)}</strong>
      </p>
      {finding && (
        <p class={isGood(direction) ? "said good" : "said"}>
          {finding.summary ?? `limited by ${stateName(finding.limit ?? "unknown")}`}
          {isSure && `; ${finding.confidence ?? ""} confidence`}
          {isSure && finding.probability != null && ` (${percent(finding.probability)})`}
        </p>
      )}
      {finding?.remedy && (
        <p>
          <b>cure:</b> {finding.remedy.text}
        </p>
      )}
      {finding?.limit === "unknown" && finding.missing !== undefined && finding.missing.length > 0 && (
        <p>
          <b>missing:</b> {finding.missing.map((one) => one.text).join(", ")}
        </p>
      )}
    </div>
  );
}

interface GridProps {
  name: string;
  head: string[];
  /** The first cell of a row is its name. */
  rows: string[][];
  class?: string;
}

/** A table that scrolls in its own place. */
const Grid = ({ name, head, rows, class: kind }: GridProps) => (
  <div class="scroll" tabIndex={0} role="region" aria-label={name}>
    <table class={kind}>
      <thead>
        <tr>
          {head.map((text) => (text === "" ? <td /> : <th scope="col">{text}</th>))}
        </tr>
      </thead>
      <tbody>
        {rows.map(([first, ...others]) => (
          <tr>
            <th scope="row">{first}</th>
            {others.map((text) => (
              <td>{text}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

const trips = (of: Trips | null | undefined) => [milliseconds(of?.p50), milliseconds(of?.p95)];

function Figures({ directions }: VisitDocument) {
  return (
    <Grid
      name="Figures"
      head={["", "goodput", "RTT ms p50", "p95", "retrans", "browser's own ms", "goodput by the browser"]}
      rows={[
        ["idle", "", ...trips(directions.find((one) => one.rtt_idle_ns)?.rtt_idle_ns), "", "", ""],
        ...directions.map((one) => [
          NAMES[one.direction],
          rate(one.goodput_bps),
          ...trips(one.rtt_loaded_ns),
          count(one.retransmits),
          milliseconds(one.browser_delay_ns),
          rate(one.browser_goodput_bps),
        ]),
      ]}
    />
  );
}

const UNITS: Record<Evidence["unit"], (value: number) => string> = {
  bytes: size,
  ns: time,
  bps: rate,
  share: percent,
  count: String,
  flag: (value) => (value === 0 ? "no" : "yes"),
};

function rule(evidence: Evidence): string {
  const { unit, at_least: least, at_most: most } = evidence;
  return least != null ? `≥ ${UNITS[unit](least)}` : most != null ? `≤ ${UNITS[unit](most)}` : "";
}

/** Where the time went, and the evidence of the finding. */
function Grounds({ direction }: { direction: VisitDirection }) {
  const spent = direction.time_spent;
  const evidence = direction.finding?.evidence ?? [];
  const states = Object.entries(spent ? (spent.counted ?? spent.whole) : {})
    .filter((state): state is [string, number] => typeof state[1] === "number" && state[1] >= 0.01)
    .sort((a, b) => b[1] - a[1]);
  if (states.length === 0 && evidence.length === 0) return null;
  const title = `Evidence ${NAMES[direction.direction]}`;
  return (
    <details>
      <summary>{title}</summary>
      {states.length > 0 && <p>Time: {states.map(([state, share]) => `${stateName(state)} ${percent(share)}`).join(", ")}.</p>}
      {evidence.length > 0 && (
        <Grid
          name={title}
          class="evidence"
          head={["what was seen", "figure", "the rule", "fact"]}
          rows={evidence.map((one) => [one.text, UNITS[one.unit](one.value), rule(one), one.fact])}
        />
      )}
    </details>
  );
}

function Charts({ timeline, isLive, hasTrips }: { timeline: Timeline; isLive: boolean; hasTrips: boolean }) {
  const [, unit] = RATE.unit(largest(timeline.goodput));
  return (
    <>
      <Figure name="goodput" title={`Goodput, ${unit}`} chart={timeline.goodput} scale={RATE} {...{ timeline, isLive }} hasTimes={!hasTrips} />
      {hasTrips && <Figure name="round-trip" title="Round trip, ms" chart={timeline.rtt} scale={ROUND_TRIP} {...{ timeline, isLive }} hasTimes={true} />}
    </>
  );
}

interface FigureProps {
  name: string;
  title: string;
  chart: Chart;
  timeline: Timeline;
  scale: Scale;
  isLive: boolean;
  hasTimes: boolean;
}

function Figure({ name, title, chart, timeline, scale, isLive, hasTimes }: FigureProps) {
  const isRate = name === "goodput";
  const [factor] = scale.unit(largest(chart));
  const said = spoken(chart, isRate);
  return (
    <figure class="chart">
      <div class="bar">
        <h3>{title}</h3>
        {isRate && (
          <ul class="legend">
            {chart.series.map((one) => (
              <li key={one.label}>
                <svg class="swatch" viewBox="0 0 12 12" aria-hidden="true">
                  <rect y="1" width="12" height="10" fill={`var(${one.colour})`} />
                </svg>
                {one.label}
              </li>
            ))}
          </ul>
        )}
        {!isLive && (
          <span class="tools">
            <Copy text={() => csv(chart, isRate ? "bps" : "ns")} label={`Copy the data of ${name} (CSV)`}>
              Copy the data (CSV)
            </Copy>
          </span>
        )}
      </div>
      <Plot {...{ name, chart, timeline, scale, hasTimes }} height={isRate ? 220 : 140} sentence={`${title}. ${said}`} />
      {!isLive && (
        <>
          <figcaption>{said}</figcaption>
          <details>
            <summary>{title} as a table</summary>
            <Grid
              name={`${title} as a table`}
              head={["s", ...chart.series.map((one) => one.label)]}
              rows={sampled(chart).map(({ t, values }) => [
                t.toFixed(1),
                ...values.map((value) => (value === null ? "" : threeDigits(value / factor))),
              ])}
            />
          </details>
        </>
      )}
    </figure>
  );
}

/** The chart in words. */
function spoken(chart: Chart, isRate: boolean): string {
  const show = isRate ? rate : time;
  return chart.series
    .map((one) => {
      const values = one.values.filter((value): value is number => value != null);
      return `${one.label}: median ${show(quantile(values, 0.5))}, lowest ${show(quantile(values, 0))}, highest ${show(quantile(values, 1))}.`;
    })
    .join(" ");
}
