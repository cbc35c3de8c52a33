// Compare: whether two runs, or two settings within a run, differ by more than chance.
import { signal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import * as api from "../api";
import { commandLine, withMore, type More } from "../command";
import { curvesOf, effectWords, judgement, metricName, overlay, pointsOf, repeated, tracksOf, valueWords, verdictWords } from "../compare";
import { moment, rate, significant } from "../format";
import type { ComparisonDocument } from "../generated/comparison";
import { csv, largest } from "../model";
import { about, address } from "../page";
import { goodputChart } from "../sweep";
import { svgOf } from "../svg";
import { Options, Problem, Text, withoutHelp } from "./fields";
import { CommandLine, Copy, Name } from "./parts";
import { Plot, RATE } from "./plot";
import { Scroll, Swatch, Table, Tools } from "./timeline";
import { XyFigure } from "./xy";
import "../style/compare.css";

/** Two settings within run A: `congestion=reno,cubic`. */
const by = signal("");
const more = signal<More>({});

const OWN = new Set(["by", "strict"]);
const KINDS = ["measure", "sweep", "lab", "exec"];
const store = (): string => about.value?.store_option ?? "";

interface Props {
  a: string | null;
  b: string | null;
}

export function Compare({ a, b }: Props) {
  const setting = by.value.trim();
  const words =
    a !== null && setting !== "" ? ["compare", a, "--by", setting] : a !== null && b !== null ? ["compare", a, b] : null;
  const line = words && withMore(words, more.value);
  const key = line?.join("\n");
  const [found, find] = useState<{ key: string; comparison: ComparisonDocument } | null>(null);
  const [problem, say] = useState<string | null>(null);
  useEffect(() => {
    say(null);
    if (line === null || key === undefined) return undefined;
    let isCurrent = true;
    const ask = () => {
      api.answer<ComparisonDocument>(line).then(
        (comparison) => {
          if (isCurrent) find({ key, comparison });
        },
        (error: unknown) => {
          if (isCurrent && error instanceof api.Refusal) say(withoutHelp(error.message));
        },
      );
    };
    const timer = setTimeout(ask, 150);
    const off = api.onBack(ask);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
      off();
    };
  }, [key]);
  const comparison = found !== null && found.key === key ? found.comparison : null;
  return (
    <>
      <section class="panel" aria-labelledby="compare">
        <h2 id="compare">Compare</h2>
        <Picker a={a} b={b} />
        <div class="by">
          <Text
            id="compare-by"
            label="Or two settings within run A"
            placeholder="congestion=reno,cubic"
            value={by.value}
            onValue={(value) => {
              by.value = value;
            }}
          />
          <Options
            command="compare"
            own={OWN}
            values={more.value}
            onValues={(values) => {
              more.value = values;
            }}
          />
        </div>
        {line ? (
          <CommandLine command={commandLine(line) + store()} label="The same on the command line" />
        ) : (
          <p class="faint">{a === null && b === null ? "Choose run A, such as the one before a change, and run B, the one after it." : `Choose run ${a === null ? "A" : "B"}.`}</p>
        )}
        <Problem text={problem} />
      </section>
      {comparison && line && <Result comparison={comparison} command={commandLine(line) + store()} />}
    </>
  );
}

function Picker({ a, b }: Props) {
  const [search, seek] = useState("");
  const [list, set] = useState<api.RunList | null>(null);
  const [problem, say] = useState<string | null>(null);
  useEffect(() => {
    let isCurrent = true;
    const load = () => {
      api.runs(search, null).then(
        (found) => {
          if (!isCurrent) return;
          set(found);
          say(null);
        },
        (error: unknown) => {
          if (isCurrent && error instanceof api.Refusal) say(error.message);
        },
      );
    };
    const timer = setTimeout(load, search === "" ? 0 : 200);
    const off = api.onBack(load);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
      off();
    };
    // A run of an address may be newer than the list.
  }, [search, a, b]);
  const choose = (sides: { a?: string; b?: string }) => {
    location.hash = address("compare", sides.a ?? a ?? "", sides.b ?? b ?? "");
  };
  const runs = (list?.runs ?? []).filter((run) => KINDS.includes(run.kind));
  return (
    <>
      <label class="search">
        Search{" "}
        <input
          type="search"
          value={search}
          placeholder="host, label, id or command"
          onInput={(event) => {
            seek(event.currentTarget.value);
          }}
        />
      </label>
      <Problem text={problem} />
      {list && runs.length === 0 && <p>{search === "" ? "No runs yet that could be compared." : `No run has "${search}" in its host, label, id or command.`}</p>}
      {runs.length > 0 && (
        <div class="scroll picker" tabIndex={0} role="region" aria-label="Runs to compare">
          <table class="runs">
            <thead>
              <tr>
                {["A", "B", "run"].map((name) => (
                  <th scope="col" key={name}>
                    {name}
                  </th>
                ))}
                <th scope="col" class="text">
                  host or scenario
                </th>
                <th scope="col">→ goodput</th>
                <th scope="col">← goodput</th>
                <th scope="col">started</th>
                <th scope="col" class="text">
                  kind
                </th>
              </tr>
            </thead>
            <tbody>
              {runs.map((run) => {
                const before = /^bdp verify (\w+)/.exec(run.command)?.[1];
                return (
                  <tr key={run.run}>
                    {(["a", "b"] as const).map((side) => (
                      <td key={side}>
                        <input
                          type="radio"
                          name={`compare-${side}`}
                          aria-label={`Run ${run.run} as ${side.toUpperCase()}`}
                          checked={(side === "a" ? a : b) === run.run}
                          onChange={() => {
                            choose({ [side]: run.run });
                          }}
                        />
                      </td>
                    ))}
                    <td>
                      <a href={address("run", run.run)} title={run.command}>
                        {run.run}
                      </a>
                    </td>
                    <td class="text">
                      <Name>{run.scenario}</Name>{" "}
                      {run.label !== null && (
                        <span class="faint">
                          <Name>{run.label}</Name>
                        </span>
                      )}
                      {before !== undefined && (
                        <button
                          type="button"
                          class="quiet"
                          onClick={() => {
                            choose({ a: before, b: run.run });
                          }}
                        >
                          before and after the fix
                        </button>
                      )}
                    </td>
                    <td>{rate(run.goodput_bps?.to)}</td>
                    <td>{rate(run.goodput_bps?.from)}</td>
                    <td>{moment(run.started_unix_ms)}</td>
                    <td class="text">{run.kind}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
      {list?.more === true && <p class="faint">Older runs: search for them.</p>}
    </>
  );
}

function Result({ comparison, command }: { comparison: ComparisonDocument; command: string }) {
  const { a, b, comparisons, only_a, only_b } = comparison;
  const goodput = comparisons.filter((row) => row.metric === "goodput_bps");
  const isFew = comparisons.some((row) => row.verdict === "too_few_runs");
  return (
    <section class="panel" aria-labelledby="compared">
      <h2 id="compared" class={comparison.regressed === true ? "error" : undefined}>
        <span role="status">{judgement(comparison)}</span>
      </h2>
      <ul class="plain">
        {goodput.slice(0, 4).map((row) => (
          <li key={row.point}>
            {pointWords(row.point)} goodput: {rate(row.a.p50)} in A, {rate(row.b.p50)} in B, {effectWords(row)}: <strong>{verdictWords(row)}</strong>
          </li>
        ))}
      </ul>
      <dl class="sides">
        {[a, b].map((side, index) => (
          <div key={index}>
            <dt>
              <Swatch colour={index === 0 ? "--to" : "--from"} />
              {index === 0 ? "A" : "B"}
            </dt>
            <dd>
              <a href={address("run", side.run)}>{side.run}</a> {side.label !== null && <Name>{side.label}</Name>} <Name>{side.setting ?? side.scenario}</Name>{" "}
              <span class="faint">{moment(side.started_unix_ms)}</span>
            </dd>
          </div>
        ))}
      </dl>
      {a.run !== b.run && <Overlay a={a.run} b={b.run} command={command} isFew={isFew} />}
      <Figures comparison={comparison} />
      {[
        ["A", only_a],
        ["B", only_b],
      ].map(([side, points]) => points && points.length > 0 && <p key={String(side)}>{`Only in ${String(side)}: ${String(points)}`}</p>)}
    </section>
  );
}

const pointWords = (point: string): string => ({ to: "→", from: "←" })[point] ?? point;

function Figures({ comparison: { comparisons } }: { comparison: ComparisonDocument }) {
  const text = () =>
    [
      ["point", "what", "a_n", "a_p50", "b_n", "b_p50", "difference", "low", "high", "verdict"],
      ...comparisons.map((row) => [
        `"${row.point.replaceAll('"', '""')}"`,
        row.metric,
        row.a.n,
        row.a.p50,
        row.b.n,
        row.b.p50,
        row.difference,
        row.difference_interval?.low ?? "",
        row.difference_interval?.high ?? "",
        row.verdict,
      ]),
    ]
      .map((cells) => cells.join(","))
      .join("\n") + "\n";
  return (
    <>
      <div class="bar">
        <h3>Figures</h3>
        <span class="tools">
          <Copy text={text}>Copy the data (CSV)</Copy>
        </span>
      </div>
      <Scroll label="Figures">
        <table>
          <thead>
            <tr>
              <th scope="col" class="text">
                case
              </th>
              <th scope="col" class="text">
                what
              </th>
              <th scope="col">A median</th>
              <th scope="col">B median</th>
              <th scope="col">n A/B</th>
              <th scope="col">difference, interval</th>
              <th scope="col" class="text">
                verdict
              </th>
            </tr>
          </thead>
          <tbody>
            {comparisons.map((row, index) => (
              <tr key={index}>
                <th scope="row">{comparisons[index - 1]?.point === row.point ? "" : pointWords(row.point)}</th>
                <td class="text">{metricName(row.metric)}</td>
                <td>{valueWords(row, row.a.p50)}</td>
                <td>{valueWords(row, row.b.p50)}</td>
                <td>
                  {row.a.n}/{row.b.n}
                </td>
                <td>{effectWords(row)}</td>
                <td class={`text ${row.regressed ? "error" : row.verdict === "better" ? "good" : ""}`}>{verdictWords(row)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  );
}

function Overlay({ a, b, command, isFew }: { a: string; b: string; command: string; isFew: boolean }) {
  const [loaded, set] = useState<{ a: unknown; b: unknown; commands: string[] } | null>(null);
  useEffect(() => {
    let isCurrent = true;
    set(null);
    const listed = (run: string) => api.runs(run, null).then((list) => list.runs.find((one) => one.run === run)?.command ?? "");
    Promise.all([api.document_(a), api.document_(b), listed(a), listed(b)]).then(
      ([inA, inB, ...commands]) => {
        if (isCurrent) set({ a: inA, b: inB, commands });
      },
      // The figures stand without their curves.
      () => undefined,
    );
    return () => {
      isCurrent = false;
    };
  }, [a, b]);
  const tracks = useMemo(() => loaded && { a: tracksOf(loaded.a), b: tracksOf(loaded.b) }, [loaded]);
  const curves = useMemo(() => loaded && goodputChart(curvesOf(loaded.a, loaded.b)), [loaded]);
  const [chosen, choose] = useState("");
  if (!loaded || !tracks) return null;
  const points = pointsOf(tracks.a, tracks.b);
  const point = points.includes(chosen) ? chosen : (points[0] ?? "");
  // Directions stand below each other; of more points one is chosen.
  const shown = points.length <= 2 ? points : [point];
  const again = isFew ? [...new Set(loaded.commands.flatMap((one) => repeated(one) ?? []))] : [];
  return (
    <>
      {again.length > 0 && <h3>Enough runs</h3>}
      {again.map((one) => (
        <CommandLine key={one} command={one} label="Command that makes enough runs" />
      ))}
      {points.length > 2 && (
        <p>
          <label>
            Case{" "}
            <select
              value={point}
              onChange={(event) => {
                choose(event.currentTarget.value);
              }}
            >
              {points.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
        </p>
      )}
      {shown.map((one) => (
        <Goodput key={one} tracks={tracks} point={one} command={command} />
      ))}
      {curves && (
        <XyFigure
          title="Goodput of both sweeps"
          name="compared"
          chart={curves}
          command={command}
          sentence="The curves of A and B; the table has the differences at the points that both measured."
        />
      )}
    </>
  );
}

type Tracks = ReturnType<typeof tracksOf>;

function Goodput({ tracks, point, command }: { tracks: { a: Tracks; b: Tracks }; point: string; command: string }) {
  const chart = useMemo(() => overlay(tracks.a, tracks.b, point), [tracks, point]);
  if (chart.xs.length === 0) return null;
  const [factor, unit] = RATE.unit(largest(chart));
  const timeline = { goodput: chart, rtt: chart, spans: [], until: Math.max(chart.xs.at(-1) ?? 0, 0.1) };
  const title = `Goodput ${point}, ${unit}`;
  const name = `goodput ${point}`;
  const count = (side: string) => chart.series.filter((one) => one.label.startsWith(side)).length;
  const sentence = `Runs over time: ${String(count("A"))} of A, ${String(count("B"))} of B; highest reading ${rate(largest(chart))}.`;
  return (
    <figure class="chart">
      <div class="bar">
        <h3>{title}</h3>
        <Tools csv={() => csv(chart, "bps")} svg={() => svgOf(chart, timeline, title, (value) => significant(value / factor))} name={name} command={command} />
      </div>
      <Plot name={name} chart={chart} timeline={timeline} scale={RATE} height={200} hasTimes={true} sentence={`${title}. ${sentence}`} />
      <figcaption>{sentence}</figcaption>
      <Table title={title} chart={chart} value={(value) => (value == null ? "-" : significant(value / factor))} />
    </figure>
  );
}
