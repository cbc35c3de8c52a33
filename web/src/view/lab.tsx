// Lab: the shipped scenarios; one runs here, and its cases arrive as they end.
import { computed, effect, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import * as api from "../api";
import { commandLine, withMore, type More } from "../command";
import { ofSchema } from "../documents";
import { Follower, newKey, useFollower } from "../follow";
import { milliseconds, percent, rate, size } from "../format";
import type { LabRunDocument } from "../generated/lab-run";
import { chartOf, figureText, labState, namesOf, publishedText, rowsOf, type LabState, type Row, type Scenario } from "../lab";
import { about, address, panelOf } from "../page";
import { checked, Choice, Options, Problem, Text, useEscape, withoutHelp } from "./fields";
import { CommandLine, Heads } from "./parts";
import { Scroll } from "./timeline";
import { XyFigure } from "./xy";
import "../style/lab.css";

const lab = new Follower((job) => panelOf(job.command) === "lab");
const { job, live, trouble, isRunning } = lab;

const scenarios = signal<Scenario[] | null>(null);
const search = signal("");
const chosen = signal<string | null>(null);
const problem = signal<string | null>(null);
const isStarting = signal(false);
const isStopping = signal(false);

const FIELDS = [
  ["filter", "Cases", "all"],
  ["repetitions", "Repetitions", "the file's"],
  ["jobs", "Cases at once", "automatic"],
] as const;
const OWN = new Set(["filter", "repetitions", "jobs", "clock"]);
const options = signal<More>({});

const scenario = computed(() => scenarios.value?.find((one) => one.name === chosen.value) ?? null);
const words = computed(() => withMore(["lab", "run", chosen.value ?? ""], options.value));
const refused = checked(words, () => chosen.value !== null && Object.keys(options.value).length > 0);
/** A job of another tab, or from before a reload, brings its scenario. */
effect(() => {
  const name = /^bdp lab run ([\w-]+)/.exec(job.value?.command ?? "")?.[1];
  if (name !== undefined && chosen.peek() === null) chosen.value = name;
});

const message = (error: unknown): string => withoutHelp(error instanceof Error ? error.message : String(error));

const ask = (...name: string[]) => api.answer<{ scenarios: Scenario[] }>(["lab", "list", ...name]);

async function load(): Promise<void> {
  try {
    scenarios.value ??= (await ask()).scenarios;
    problem.value = null;
  } catch (error) {
    if (!(error instanceof api.Unreachable)) problem.value = message(error);
  }
}

/** The file of the chosen scenario. */
effect(() => {
  const of = scenario.value;
  if (!of || of.text !== undefined) return;
  ask(of.name).then(
    ({ scenarios: [found] }) => {
      if (found) scenarios.value = (scenarios.peek() ?? []).map((one) => (one.name === of.name ? found : one));
    },
    (error: unknown) => {
      if (!(error instanceof api.Unreachable)) problem.value = message(error);
    },
  );
});

async function submit(): Promise<void> {
  if (isStarting.value || isRunning.value || chosen.value === null) return;
  isStarting.value = true;
  isStopping.value = false;
  problem.value = null;
  try {
    await lab.start(words.value, newKey());
  } catch (error) {
    problem.value = message(error);
  } finally {
    isStarting.value = false;
  }
}

async function stop(): Promise<void> {
  if (!isRunning.value) return;
  isStopping.value = true;
  try {
    await lab.stop();
  } catch (error) {
    problem.value = message(error);
  }
}

export function Lab() {
  useFollower(lab);
  useEscape(() => void stop());
  useEffect(() => {
    void load();
    return api.onBack(() => void load());
  }, []);
  return (
    <div class="columns">
      <List />
      <div class="results">
        <Chosen />
        <Current />
      </div>
    </div>
  );
}

/** `about 3 min` */
const about_ = (ns: number): string => (ns >= 90e9 ? `${Math.round(ns / 60e9)} min` : `${Math.round(ns / 1e9)} s`);

function List() {
  const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = (scenarios.value ?? []).filter((one) => {
    const text = `${one.name} ${one.title} ${one.source} ${one.about}`.toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
  return (
    <section class="panel" aria-labelledby="lab">
      <div class="bar">
        <h2 id="lab">Lab</h2>
        <label class="search">
          Search{" "}
          <input
            type="search"
            value={search.value}
            placeholder="window, loss, queue"
            onInput={(event) => {
              search.value = event.currentTarget.value;
            }}
          />
        </label>
      </div>
      {scenarios.value === null && problem.value === null && <p>Reading the scenarios.</p>}
      {scenarios.value !== null && shown.length === 0 && <p>No scenario has “{search.value}”.</p>}
      <ul class="scenarios" aria-label="Scenarios">
        {shown.map((one) => (
          <li key={one.name}>
            <button
              type="button"
              aria-pressed={chosen.value === one.name}
              onClick={() => {
                if (chosen.value !== one.name) options.value = {};
                chosen.value = one.name;
                problem.value = null;
              }}
            >
              <b>{one.name}</b>
              <span class="faint">
                {one.cases} {one.cases === 1 ? "case" : "cases"}, about {about_(one.time_s * 1e9)}
              </span>
              <span>{one.title}</span>
              {one.published.slice(0, 1).map((figure) => (
                <span key={one.name} class="faint cut">
                  published: {figureText(figure)}
                </span>
              ))}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Chosen() {
  const of = scenario.value;
  if (!of) {
    return (
      <section class="panel empty">
        <h2>Rehearse a path</h2>
        <p>
          A scenario describes hosts, links and flows, and which parameter varies. bdp emulates it on this machine{about.value && ` (${about.value.host})`}, runs
          each case, and compares the goodput with a model and with what the source published. Choose one; <code>s3-30k</code> takes 14 s.
        </p>
        <Problem text={problem.value} />
      </section>
    );
  }
  const value = (name: string) => {
    const found = options.value[name];
    return typeof found === "string" ? found : "";
  };
  const set = (name: string) => (next: string) => {
    options.value = Object.fromEntries(Object.entries({ ...options.value, [name]: next }).filter(([, one]) => one !== ""));
  };
  return (
    <form
      class="panel"
      aria-labelledby="scenario"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <h2 id="scenario">
        {of.name}: {of.title}
      </h2>
      {of.about !== "" && <p>{of.about}</p>}
      <p class="faint">Source: {of.source}</p>
      {of.published.length > 0 && (
        <div>
          <h3>Published</h3>
          <ul class="plain">
            {of.published.map((figure) => (
              <li key={figureText(figure)}>{figureText(figure)}</li>
            ))}
          </ul>
        </div>
      )}
      <div class="options">
        {FIELDS.map(([name, label, placeholder]) => (
          <Text key={name} id={`lab-${name}`} label={label} placeholder={placeholder} value={value(name)} onValue={set(name)} />
        ))}
        <Choice
          id="lab-clock"
          label="Clock"
          value={value("clock")}
          onValue={set("clock")}
          choices={[
            ["", "the scenario's"],
            ["real", "real"],
            ["virtual", "virtual, exact on a busy machine"],
          ]}
        />
      </div>
      <CommandLine command={commandLine(words.value)} label="The same on the command line" />
      <Problem text={problem.value ?? refused.value} />
      <div class="actions">
        <button type="submit" class="main" disabled={isRunning.value || isStarting.value}>
          Run
        </button>
        <button type="button" disabled={!isRunning.value || isStopping.value} onClick={() => void stop()}>
          Stop
        </button>
        <span class="faint">
          {of.cases} {of.cases === 1 ? "case" : "cases"}, about {about_(of.time_s * 1e9)}
        </span>
      </div>
      <Options
        command="lab run"
        own={OWN}
        values={options.value}
        onValues={(next) => {
          options.value = next;
        }}
      />
      {of.text !== undefined && (
        <details>
          <summary>The scenario's file</summary>
          <pre class="scroll" tabIndex={0} aria-label={`File of ${of.name}`}>
            {of.text}
          </pre>
        </details>
      )}
    </form>
  );
}

const ENDINGS: Readonly<Record<string, string>> = {
  done: "done",
  missed: "done, an expectation was missed",
  invalid: "done, a case has no valid attempt",
  failed: "failed",
  cancelled: "stopped",
};

function Current() {
  const current = job.value;
  const shown = live.value;
  const state = useMemo(() => shown && labState(shown.live.events), [shown]);
  if (!current || !shown || !state) return null;
  const { outcome, run, result } = shown.live;
  const records = ofSchema<LabRunDocument>(result, "bdp.cases/1")?.cases ?? state.records;
  const done = outcome !== null;
  return (
    <section class="panel" aria-labelledby="cases">
      <h2 id="cases" class="hidden">
        Cases
      </h2>
      <div class="progress">
        <p>
          <span role="status">
            {done
              ? (ENDINGS[outcome.ending] ?? "ended")
              : state.planned === 0
                ? "starting"
                : `${state.settled} of ${state.planned} ${state.planned === 1 ? "case" : "cases"}`}
          </span>
          {!done && state.leftNs !== null && <span>about {about_(state.leftNs)} left</span>}
          <span class="faint command-of" title={current.command}>
            {current.command}
          </span>
        </p>
        {!done && <progress max={state.planned || 1} value={state.settled} aria-label="Cases" />}
      </div>
      {!done && isStopping.value && <p class="note">Stopping: the cases that run go on to their end.</p>}
      {state.resumed && <p class="note">This run goes on where one of before was interrupted.</p>}
      {!done && <Started state={state} />}
      {outcome?.error != null && <p class="error">{outcome.error}</p>}
      {trouble.value !== null && <p class="error">{trouble.value}</p>}
      <Cases records={records} command={current.command} />
      {run !== null && done && (
        <p>
          Stored as run <a href={address("run", run)}>{run}</a>, with each probe and reading.
        </p>
      )}
    </section>
  );
}

function Started({ state }: { state: LabState }) {
  if (state.running.size === 0) return null;
  return (
    <ul class="plain faint" aria-label="Running cases">
      {[...state.running].map(([key, attempt]) => (
        <li key={key}>
          running {key}
          {attempt > 1 && `, attempt ${attempt}`}
        </li>
      ))}
    </ul>
  );
}

const COLUMNS = ["point", "goodput", "model", "of it", "published", "fidelity", "expectation", "limited by", "RTT ms", "window on the wire"];

/** The table and the chart of cases. */
export function Cases({ records, command }: { records: LabState["records"]; command: string | null }) {
  const rows = useMemo(() => rowsOf(records), [records, records.length]);
  const chart = useMemo(() => chartOf(rows), [rows]);
  if (rows.length === 0) return null;
  const names = namesOf(rows);
  return (
    <>
      {chart && <XyFigure name="lab-run" title={`Goodput by ${chart.x.label}`} chart={chart} command={command} sentence={verdict(rows)} />}
      {!chart && <p>{verdict(rows)}</p>}
      <Scroll label="Cases">
        <table class="cases">
          <Heads names={COLUMNS} />
          <tbody>
            {rows.map((row, index) => (
              <Point key={`${row.scenario} ${row.point}`} row={row} name={names[index] ?? ""} />
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  );
}

function Point({ row, name }: { row: Row; name: string }) {
  const isValid = row.verdict === "VALID";
  return (
    <>
      <tr>
        <th scope="row">{name}</th>
        <td>{isValid ? rate(row.goodput) : "-"}</td>
        <td title={row.expectedBy ?? undefined}>{rate(row.expected)}</td>
        <td>{isValid && row.goodput !== null && row.expected ? percent(row.goodput / row.expected) : "-"}</td>
        <td>{publishedText(row.published)}</td>
        <td class={isValid ? "good" : "error"}>
          {row.verdict}
          {row.attempts > 1 && ` ${row.valid} of ${row.attempts}`}
        </td>
        <td class="text">
          {row.met !== null && <span class={row.met ? "good" : "error"}>{row.met ? "MET " : "MISSED "}</span>}
          {row.expectation ?? "-"}
        </td>
        <td class="text">{isValid ? row.limit : "-"}</td>
        <td>{milliseconds(row.rtt)}</td>
        <td>{size(row.window)}</td>
      </tr>
      {row.reason !== null && (
        <tr class="reason">
          <td class="text faint" colSpan={COLUMNS.length}>
            <p>
              {isValid && "An attempt before: "}
              {row.reason}
            </p>
          </td>
        </tr>
      )}
    </>
  );
}

/** What came out, in a sentence. */
function verdict(rows: readonly Row[]): string {
  const valid = rows.filter((row) => row.verdict === "VALID");
  const judged = rows.filter((row) => row.met !== null);
  const ratios = valid.flatMap((row) => (row.goodput !== null && row.expected ? [row.goodput / row.expected] : []));
  const parts = [`${valid.length} of ${rows.length} ${rows.length === 1 ? "point is" : "points are"} VALID`];
  if (ratios.length > 0) parts.push(`goodput is ${percent(Math.min(...ratios))}${ratios.length > 1 ? ` to ${percent(Math.max(...ratios))}` : ""} of the model's`);
  if (judged.length > 0) parts.push(`${judged.filter((row) => row.met).length} of ${judged.length} expectations are met`);
  return `${parts.join("; ")}.`;
}
