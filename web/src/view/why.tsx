// Why: what limits each direction, and on what evidence.
import { bands, shares } from "../account";
import type { Field } from "../command";
import { count, milliseconds, percent, rate, size, threeDigits, time } from "../format";
import type {
  DirectionResult,
  Evidence,
  Experiment,
  Finding,
  HostFacts,
  Measurement,
  RttSummary,
  TimeSpent,
} from "../generated/measurement";
import { about } from "../page";
import { FACTS } from "../generated/facts";
import { arrow, stateColour, stateName } from "../words";
import { CommandLine, Name } from "./parts";
import { resolved, Tools } from "./timeline";

interface Props {
  measurement: Measurement;
  run: string | null;
  command: string | null;
}

/** The direction in trouble stands first. */
function order(directions: readonly DirectionResult[]): DirectionResult[] {
  const grade = (direction: DirectionResult) => {
    const limit = direction.findings[0]?.limit;
    if (limit === undefined || limit === "unknown") return 1;
    return isGood(direction.findings[0]) ? 2 : 0;
  };
  return [...directions].sort((a, b) => grade(a) - grade(b));
}

const isGood = (finding: Finding | undefined): boolean =>
  finding?.limit === "asked_rate" || (finding?.limit === "ceiling" && finding.remedy === null);

export function Why({ measurement, run, command }: Props) {
  const host = measurement.request.host;
  if (measurement.error !== null && measurement.directions.length === 0) {
    return (
      <section class="why" aria-labelledby="why">
        <h2 id="why">Why</h2>
        <p class="error">{measurement.error}</p>
        {command !== null && <CommandLine command={command} label="Command that repeats it" />}
      </section>
    );
  }
  return (
    <section class="why" aria-labelledby="why">
      <h2 id="why">Why</h2>
      {measurement.error !== null && <p class="error">{measurement.error}</p>}
      <div class="verdicts" role="status">
        {order(measurement.directions).map((direction) => (
          <Verdict key={direction.direction} direction={direction} host={host} />
        ))}
      </div>
      <Figures measurement={measurement} />
      {measurement.directions.map((direction) => (
        <Detail key={direction.direction} direction={direction} measurement={measurement} command={command} />
      ))}
      {measurement.caveats.length > 0 && (
        <>
          <h3>Caveats</h3>
          <ul class="plain">
            {measurement.caveats.map((caveat) => (
              <li key={caveat.text}>{caveat.text}</li>
            ))}
          </ul>
        </>
      )}
      <details>
        <summary>Hosts</summary>
        <div class="hosts">
          <Host title="near" host={measurement.near} />
          <Host title="far" host={measurement.far} />
        </div>
      </details>
      {command !== null && (
        <>
          <h3>Repeat it</h3>
          <CommandLine command={command} label="Command that repeats it" />
        </>
      )}
      {run !== null && (
        <p class="faint">
          run <a href={`#/run/${encodeURIComponent(run)}`}>{run}</a>: <code>{`bdp show ${run} -v${store()}`}</code> prints it, <code>{`bdp report ${run}${store()}`}</code> writes a page
        </p>
      )}
    </section>
  );
}

/** The option by which commands find the store of this page. */
const store = (): string => about.value?.store_option ?? "";

export function Verdict({ direction, host }: { direction: DirectionResult; host: string }) {
  const finding = direction.findings[0];
  const sure = finding && finding.limit !== "unknown" && !isGood(finding) ? `; ${finding.confidence} confidence` : "";
  return (
    <div class="verdict">
      <p>
        <span class="way">
          {arrow(direction.direction)} <Name>{host}</Name>
        </span>
        <strong class="big">{rate(direction.goodput_bps)}</strong>
      </p>
      {finding && (
        <p class={isGood(finding) ? "said good" : "said"}>
          {said(finding)}
          {sure}
          {sure !== "" && finding.probability !== null && ` (${percent(finding.probability)})`}
        </p>
      )}
      {finding?.remedy && said(finding) === finding.summary && (
        <p>
          <b>cure:</b> {finding.remedy.text}
          {finding.next &&
            `; the next limit that is known is the ${stateName(finding.next.limit)}, at ${rate(finding.next.goodput_bps)}`}
        </p>
      )}
      {finding?.limit === "unknown" && finding.missing.length > 0 && (
        <p>
          <b>missing:</b> {finding.missing.map((one) => one.text).join(", ")}
        </p>
      )}
    </div>
  );
}

/** Without a store there are no sentences: the limit's name then. */
function said(finding: Finding): string {
  const { summary } = finding as Partial<Finding>;
  return summary ?? `limited by ${stateName(finding.limit)}`;
}

const p = (summary: RttSummary | null, name: "p50" | "p95"): string => {
  if (!summary) return "-";
  const bound = summary.of_all?.[name];
  return (bound && !bound.exact ? ">" : "") + milliseconds(summary[name]);
};

/** A cell that leads to the field of the form that its figure comes from, if there is a form. */
const editable = (field: Field) =>
  document.getElementById(field) === null ? {} : { "data-field": field, tabIndex: 0, title: `double-click or Enter: edit the ${field}` };

function Figures({ measurement }: { measurement: Measurement }) {
  const hasUdp = measurement.directions.some((one) => one.udp !== null);
  const idle = measurement.rtt_idle_ns;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Figures">
      <table class="figures">
        <caption>Figures</caption>
        <thead>
          <tr>
            <td />
            <th scope="col">goodput</th>
            <th scope="col">of intervals, p5 to p95</th>
            {hasUdp ? <th scope="col">lost</th> : <th scope="col">retrans</th>}
            {hasUdp && <th scope="col">jitter ms</th>}
            <th scope="col">RTT ms p50</th>
            <th scope="col">p95</th>
            {!hasUdp && <th scope="col">window on the wire</th>}
          </tr>
        </thead>
        <tbody>
          {idle && (
            <tr>
              <th scope="row">idle</th>
              <td colSpan={hasUdp ? 4 : 3} />
              <td>{p(idle, "p50")}</td>
              <td>{p(idle, "p95")}</td>
              {!hasUdp && <td />}
            </tr>
          )}
          {measurement.directions.map((one) => (
            <tr key={one.direction}>
              <th scope="row" {...editable("direction")}>
                {arrow(one.direction)} <Name>{measurement.request.host}</Name>
              </th>
              <td {...editable("rate")}>{rate(one.goodput_bps)}</td>
              <td>{spread(one)}</td>
              {hasUdp ? <td {...editable("rate")}>{percent(one.udp?.loss_ratio)}</td> : <td>{count(one.retransmits)}</td>}
              {hasUdp && <td>{milliseconds(one.udp?.jitter_ns)}</td>}
              <td>{p(one.rtt_ns.loaded, "p50")}</td>
              <td>{p(one.rtt_ns.loaded, "p95")}</td>
              {!hasUdp && <td {...editable("window")}>{size(one.window.on_the_wire_bytes)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function spread(direction: DirectionResult): string {
  const low = direction.spread?.p5 ?? direction.spread?.min;
  const high = direction.spread?.p95 ?? direction.spread?.max;
  if (low == null || high == null) return "-";
  const [a, b] = [rate(low), rate(high)];
  const unit = b.split(" ")[1] ?? "";
  return a.endsWith(unit) ? `${a.split(" ")[0] ?? ""} to ${b}` : `${a} to ${b}`;
}

function Detail({ direction, measurement, command }: { direction: DirectionResult; measurement: Measurement } & Pick<Props, "command">) {
  const way = arrow(direction.direction);
  const experiments = (measurement.experiments ?? []).filter((one) => one.direction === direction.direction);
  return (
    <section class="detail">
      {direction.time_spent && <Account spent={direction.time_spent} way={way} command={command} />}
      {direction.findings.map((finding, index) => (
        <EvidenceTable key={finding.subject} finding={finding} way={way} isFirst={index === 0} />
      ))}
      {experiments.length > 0 && (
        <>
          <h3>Experiments {way}</h3>
          <ul class="plain">
            {experiments.map((one, index) => (
              <li key={index}>{experiment(one, direction)}</li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function experiment(one: Experiment, direction: DirectionResult): string {
  const ratio = direction.goodput_bps > 0 ? one.goodput_bps / direction.goodput_bps : NaN;
  const queue = one.rtt_added_ns === null ? "" : `; load added ${time(one.rtt_added_ns)} to the round trip`;
  const again = one.retransmits === null ? "" : `; ${String(one.retransmits)} retransmits`;
  const between = `, to decide between ${one.between.map(stateName).join(", ")}`;
  if (one.change === "streams") {
    return `${String(one.streams)} connections reach ${rate(one.goodput_bps)}, ${threeDigits(ratio)} times the goodput of the test${queue}${again}${between}`;
  }
  if (one.change === "paced") return `paced at ${rate(one.rate_bps)}: ${rate(one.goodput_bps)} arrive${queue}${again}${between}`;
  return `a burst of ${String(one.datagrams)} datagrams at ${rate(one.rate_bps)}: ${rate(one.goodput_bps)} arrive${queue}${between}`;
}

const UNITS: Record<Evidence["unit"], (value: number) => string> = {
  bytes: size,
  ns: time,
  bps: rate,
  share: percent,
  count: (value) => String(value),
  flag: (value) => (value === 0 ? "no" : "yes"),
};

/** Where a figure comes from, beside its name in the documents. */
function source(evidence: Evidence): string {
  const parts: string[] = [];
  if (evidence.name !== null) parts.push(evidence.name);
  if (evidence.host !== null) parts.push(`on ${evidence.host}`);
  if (evidence.samples) parts.push(`${String(evidence.samples.met)} of ${String(evidence.samples.of)} samples`);
  const start = evidence.fact.startsWith("more_streams") || evidence.fact === "burst_delay" || evidence.fact === "losses_while_paced";
  if (start) parts.push("experiment");
  return parts.join(", ");
}

function threshold(evidence: Evidence): string {
  const format = UNITS[evidence.unit];
  if (evidence.at_least !== null) return `≥ ${format(evidence.at_least)}`;
  if (evidence.at_most !== null) return `≤ ${format(evidence.at_most)}`;
  return "";
}

export function EvidenceTable({ finding, way, isFirst }: { finding: Finding; way: string; isFirst: boolean }) {
  if (finding.evidence.length === 0) return null;
  return (
    <>
      <h3>
        Evidence {way}
        {!isFirst && `, also: ${finding.summary}`}
      </h3>
      <div class="scroll" tabIndex={0} role="region" aria-label={`Evidence ${way}`}>
        <table class="evidence">
          <thead>
            <tr>
              <th scope="col">what was seen</th>
              <th scope="col">figure</th>
              <th scope="col">the rule</th>
              <th scope="col">fact</th>
            </tr>
          </thead>
          <tbody>
            {finding.evidence.map((one) => (
              <tr key={one.fact + one.text}>
                <td>{one.text}</td>
                <td>{UNITS[one.unit](one.value)}</td>
                <td>{threshold(one)}</td>
                <td>
                  <code>{one.fact}</code>
                  {source(one) !== "" && `, ${source(one)}`}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <details>
        <summary>What these facts are</summary>
        <dl class="facts">
          {[...new Set(finding.evidence.map((one) => one.fact))].map((fact) => (
            <div key={fact}>
              <dt>
                <code>{fact}</code>
              </dt>
              <dd>{FACTS[fact] ?? "of a newer bdp"}</dd>
            </div>
          ))}
        </dl>
      </details>
      {finding.candidates.length > 0 && (
        <p>
          Possible: {finding.candidates.map((one) => `${stateName(one.limit)} ${percent(one.probability)}`).join(", ")}
        </p>
      )}
    </>
  );
}

const WIDTH = 600;
const BAR = 22;
const HEIGHT = 90;

export function Account({ spent, way, command }: { spent: TimeSpent; way: string } & Pick<Props, "command">) {
  const account = spent.counted ?? spent.whole;
  const { states, other } = shares(account);
  const over = bands(spent);
  const until = over.at.at(-1) ?? 1;
  const start = over.at[0] ?? 0;
  const x = (t: number) => (((t - start) / (until - start || 1)) * WIDTH).toFixed(1);
  let left = 0;
  const segments = [...states.map((one) => ({ ...one, fill: stateColour(one.state) })), { state: null, share: other, fill: "var(--other)" }]
    .filter((one) => one.share > 0)
    .map((one) => {
      const segment = { ...one, x: left };
      left += one.share;
      return segment;
    });
  const foot: number[] = new Array<number>(Math.max(0, over.at.length - 1)).fill(0);
  const layers = over.bands.map((band) => {
    let up = "";
    let down = "";
    for (const [index, share] of band.share.entries()) {
      const [a, b] = [x(over.at[index] ?? 0), x(over.at[index + 1] ?? 0)];
      const low = foot[index] ?? 0;
      const high = Math.min(1, low + share);
      const y = (value: number) => (HEIGHT - value * HEIGHT).toFixed(1);
      up += `${index === 0 ? "M" : "L"}${a} ${y(high)}L${b} ${y(high)}`;
      down = `L${b} ${y(low)}L${a} ${y(low)}${down}`;
      foot[index] = high;
    }
    return { state: band.state, path: `${up}${down}Z` };
  });
  const sentence = `Of the time ${states.map((one) => `${percent(one.share)} ${stateName(one.state)}`).join(", ")}${other >= 0.005 ? `, ${percent(other)} other` : ""}.`;
  const title = `Where the time went ${way}`;
  const id = `time-${way === "→" ? "to" : "from"}`;
  const asCsv = () =>
    [
      ["start_s", "end_s", ...over.bands.map((band) => band.state)].join(","),
      ...foot.map((_, index) =>
        [over.at[index]?.toFixed(3), over.at[index + 1]?.toFixed(3), ...over.bands.map((band) => (band.share[index] ?? 0).toFixed(4))].join(","),
      ),
    ].join("\n") + "\n";
  return (
    <figure class="chart">
      <div class="bar">
        <h3>{title}</h3>
        <Tools csv={asCsv} svg={() => resolved(id, title)} name={`time ${way === "→" ? "to" : "from"}`} command={command} />
      </div>
      <svg id={id} class="account" viewBox={`0 0 ${WIDTH} ${BAR + 10 + HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`${title}. ${sentence}`}>
        {segments.map((one) => (
          <rect key={one.state ?? "other"} x={(one.x * WIDTH).toFixed(1)} y="0" width={(one.share * WIDTH).toFixed(1)} height={BAR} fill={one.fill}>
            <title>{`${stateName(one.state ?? "other")} ${percent(one.share)}`}</title>
          </rect>
        ))}
        <g transform={`translate(0 ${BAR + 10})`}>
          {layers.map((layer) => (
            <path key={layer.state} d={layer.path} fill={stateColour(layer.state)}>
              <title>{stateName(layer.state)}</title>
            </path>
          ))}
        </g>
      </svg>
      <div class="ends" aria-hidden="true">
        <span>{start.toFixed(1)} s</span>
        <span>{until.toFixed(1)} s</span>
      </div>
      <ul class="legend">
        {states.map((one) => (
          <li key={one.state}>
            <svg class="swatch" viewBox="0 0 12 12" aria-hidden="true">
              <rect width="12" height="12" fill={stateColour(one.state)} />
            </svg>
            {stateName(one.state)} {percent(one.share)}
          </li>
        ))}
        {other >= 0.005 && (
          <li>
            <svg class="swatch" viewBox="0 0 12 12" aria-hidden="true">
              <rect width="12" height="12" fill="var(--other)" />
            </svg>
            other {percent(other)}
          </li>
        )}
      </ul>
      <figcaption>{sentence}</figcaption>
      <details>
        <summary>{title} as a table</summary>
        <table>
          <thead>
            <tr>
              <th scope="col">state</th>
              <th scope="col">share</th>
            </tr>
          </thead>
          <tbody>
            {states.map((one) => (
              <tr key={one.state}>
                <th scope="row">{stateName(one.state)}</th>
                <td>{percent(one.share)}</td>
              </tr>
            ))}
            <tr>
              <th scope="row">other</th>
              <td>{percent(other)}</td>
            </tr>
          </tbody>
        </table>
      </details>
    </figure>
  );
}

/** The drawing as a file: the colours of the style sheet written out. */
function Host({ title, host }: { title: string; host: HostFacts }) {
  const device = host.device;
  const facts: [string, string][] = [
    ["name", host.name],
    ["address", host.address],
    ["bdp", host.bdp],
    ["system", `${host.system} ${host.kernel} ${host.arch}`.trim()],
    ["processors", `${String(host.cpus)}, ${percent(host.cpu_busy)} busy, ${percent(host.cpu_steal)} stolen`],
    ["congestion control", host.congestion_control ?? "-"],
    [
      "device",
      device
        ? `${device.name}, ${device.speed_bps === null ? "speed unknown" : rate(device.speed_bps)}, MTU ${count(device.mtu)}, ${device.qdisc ?? "qdisc unknown"}`
        : "-",
    ],
    ...Object.entries(host.sysctls),
  ];
  return (
    <table>
      <caption>{title}</caption>
      <tbody>
        {facts.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td class="text">{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
