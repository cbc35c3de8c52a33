// Run: the form, the running measurement, and its answer.
import { batch, computed, effect, signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import * as api from "../api";
import { commandLine, EMPTY, fieldOf, OPTIONS, PRESETS, words, type Field, type Form } from "../command";
import { stageWords } from "../events";
import { newKey, result, run, useFollower } from "../follow";
import type { JobOutcome as Outcome } from "../generated/job";
import { milliseconds, percent, rate, seconds } from "../format";
import { ofLive, withTicks } from "../model";
import { arrow } from "../words";
import { about, hasRuns, hostOf, showRun } from "../page";
import { Choice, Options, Problem, Text, useEscape, withoutHelp } from "./fields";
import { CommandLine } from "./parts";
import { TimelineCharts } from "./timeline";
import { Why } from "./why";

const { job, live, trouble, isRunning } = run;
const form = signal<Form>(EMPTY);
const problem = signal<{ text: string; field: Field | null } | null>(null);
const startProblem = signal<string | null>(null);
const isStarting = signal(false);

const line = computed(() => words(form.value));

/** The server checks what is typed, once typing pauses. */
let checking = 0;
effect(() => {
  const now = line.value;
  clearTimeout(checking);
  startProblem.value = null;
  if (form.peek().host.trim() === "") {
    problem.value = null;
    return;
  }
  checking = window.setTimeout(() => {
    api.check(now).then(
      () => {
        if (line.peek() === now) problem.value = null;
      },
      (error: unknown) => {
        if (line.peek() === now && error instanceof api.Refusal && error.status !== 401) {
          const text = withoutHelp(error.message);
          const field = fieldOf(text, form.peek());
          problem.value = { text: field === null ? text : text.replace(/^invalid value '.*?' for '.*?': /, ""), field };
        }
      },
    );
  }, 200);
});

/** A job of another tab, or from before a reload, brings its host. */
effect(() => {
  const command = job.value?.command;
  if (command !== undefined && form.peek().host === "") form.value = { ...form.peek(), host: hostOf(command) };
});

const set = (values: Partial<Form>): void => {
  form.value = { ...form.value, ...values };
};

async function submit(): Promise<void> {
  if (isStarting.value || isRunning.value) return;
  if (form.value.host.trim() === "") {
    problem.value = { text: "type a host that runs 'bdp serve', for example ams1 or 127.0.0.1", field: "host" };
    document.getElementById("host")?.focus();
    return;
  }
  batch(() => {
    isStarting.value = true;
    startProblem.value = null;
  });
  try {
    await run.start(line.value, newKey());
    showRun(null);
  } catch (error) {
    if (error instanceof api.Refusal && error.status === 400) {
      problem.value = { text: error.message, field: fieldOf(error.message, form.value) };
    } else startProblem.value = error instanceof Error ? error.message : String(error);
  } finally {
    isStarting.value = false;
  }
}

async function end(): Promise<void> {
  try {
    await run.stop();
  } catch (error) {
    startProblem.value = error instanceof Error ? error.message : String(error);
  }
}

/** From a figure to the field that it comes from. */
function edit(event: Event): void {
  const field = event.target instanceof Element ? event.target.closest("[data-field]")?.getAttribute("data-field") : null;
  const input = field == null ? null : document.getElementById(field);
  input?.focus();
  if (input instanceof HTMLInputElement) input.select();
}

export function Run() {
  useFollower(run);
  useEscape(() => void end());
  return (
    <div class="columns">
      <FormPanel />
      <div
        class="results"
        onDblClick={edit}
        onKeyDown={(event) => {
          if (event.key === "Enter") edit(event);
        }}
      >
        <Current />
      </div>
    </div>
  );
}

function FormPanel() {
  const error = problem.value;
  const current = form.value;
  return (
    <form
      class="panel form"
      aria-labelledby="run"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <h2 id="run">Run</h2>
      <div class="presets" role="group" aria-label="Presets">
        {PRESETS.map((preset) => (
          <button
            key={preset.name}
            type="button"
            title={preset.title}
            onClick={() => {
              form.value = { ...EMPTY, host: current.host, ...preset.values };
            }}
          >
            {preset.name}
          </button>
        ))}
      </div>
      <Input field="host" label="Host" placeholder="ams1 or 192.0.2.7:5201" list="hosts" wide />
      <datalist id="hosts">
        {(about.value?.hosts ?? []).map((host) => (
          <option key={host} value={host} />
        ))}
      </datalist>
      <Select
        field="direction"
        label="Direction"
        wide
        choices={[
          ["turn", "to the host, then from it"],
          ["to", "to the host"],
          ["from", "from the host"],
          ["both", "both at once"],
        ]}
      />
      <Input field="time" label="Time" placeholder="10s" />
      <Input field="streams" label="Streams" placeholder="1" />
      <Input field="window" label="Window" placeholder="autotuned" />
      <Input field="length" label="Length" placeholder={current.protocol === "udp" ? "path MTU" : "128K"} />
      <Input field="mss" label="MSS" placeholder="of the path" />
      <Input field="congestion" label="Congestion control" placeholder="the sender's" />
      <Select
        field="protocol"
        label="Protocol"
        choices={[
          ["tcp", "TCP"],
          ["udp", "UDP"],
        ]}
      />
      <Input field="rate" label="Rate of each stream" placeholder={current.protocol === "udp" ? "50M" : "unlimited"} />
      <CommandLine command={commandLine(line.value)} label="The same on the command line" />
      {error && error.field === null && (
        <p class="error" id="form-error" role="alert">
          {error.text}
        </p>
      )}
      <Problem text={startProblem.value} />
      <div class="actions">
        <button type="submit" class="main" disabled={isRunning.value || isStarting.value}>
          Start
        </button>
        <button type="button" disabled={!isRunning.value} onClick={() => void end()}>
          Stop
        </button>
        <span class="faint">Enter starts, Escape stops</span>
      </div>
      <Options
        command="measure"
        own={OWN}
        values={current.more}
        onValues={(more) => {
          set({ more });
        }}
      />
    </form>
  );
}

type TextField = Exclude<Field, "direction" | "protocol">;

const errorOf = (field: Field): string | null => (problem.value?.field === field ? problem.value.text : null);

const Input = ({ field, ...rest }: { field: TextField; label: string; placeholder: string; list?: string; wide?: boolean }) => (
  <Text
    {...rest}
    id={field}
    value={form.value[field]}
    error={errorOf(field)}
    onValue={(value) => {
      set({ [field]: value });
    }}
  />
);

const Select = <F extends "direction" | "protocol">({ field, ...rest }: { field: F; label: string; choices: [Form[F], string][]; wide?: boolean }) => (
  <Choice
    {...rest}
    id={field}
    value={form.value[field]}
    error={errorOf(field)}
    onValue={(value) => {
      set({ [field]: value });
    }}
  />
);

/** Options that the form has fields for. */
const OWN = new Set(OPTIONS.map(([, long]) => long.slice(2)));

function Current() {
  const current = job.value;
  const shown = live.value;
  const ended = result.value !== null && result.value.id === current?.id ? result.value.measurement : null;
  const timeline = useMemo(() => {
    if (!shown || shown.live.points.length === 0) return null;
    const drawn = ofLive(shown.live);
    return ended ? withTicks(drawn, shown.live, ended) : drawn;
  }, [shown, ended]);
  if (!current || !shown) return <Empty />;
  const isBlank = current.state === "ended" && timeline !== null && timeline.rtt.xs.every((_, at) => timeline.rtt.series[0]?.values[at] == null) && timeline.goodput.series.length === 0;
  const state = shown.live;
  const host = hostOf(current.command) || "the host";
  const ending = state.outcome?.ending;
  return (
    <>
      <section class="panel" aria-labelledby="now">
        <h2 id="now" class="hidden">
          {current.state === "running" ? "Running" : "Last run"}
        </h2>
        <Progress host={host} />
        {state.outcome?.error != null && <p class="error">{state.outcome.error}</p>}
        {ending === "cancelled" && <p class="note">Stopped; the figures cover the time until then.</p>}
        {trouble.value !== null && <p class="error">{trouble.value}</p>}
        <Expectations outcome={state.outcome} />
        {timeline && !isBlank && <TimelineCharts timeline={timeline} command={current.command} isLive={current.state === "running"} />}
      </section>
      {ended && (
        <div class="panel">
          <Why measurement={ended} run={state.run} command={current.command} />
        </div>
      )}
    </>
  );
}

interface Judged {
  expectation: string;
  met: boolean;
}

function Expectations({ outcome }: { outcome: Outcome | null }) {
  const judged = (outcome?.expectations ?? []) as Judged[];
  if (judged.length === 0) return null;
  return (
    <ul class="plain">
      {judged.map((one) => (
        <li key={one.expectation} class={one.met ? "good" : "error"}>
          {one.met ? "MET" : "MISSED"} {one.expectation}
        </li>
      ))}
    </ul>
  );
}

/** The stage that is read out changes with the stage, not with every reading. */
function Progress({ host }: { host: string }) {
  const state = live.value?.live;
  if (!state) return null;
  const stage = state.stage;
  const isOver = state.outcome !== null;
  const name = isOver ? endOf(state.outcome?.ending) : stage ? stageWords(stage, host) : "starting";
  const left = stage && stage.totalNs > 0 ? stage.totalNs - stage.elapsedNs : null;
  const share = stage && stage.totalNs > 0 ? Math.min(1, stage.elapsedNs / stage.totalNs) : 0;
  const last = state.points.at(-1);
  const repeated = state.repetition > 1 ? `run ${String(state.repetition)}, ` : "";
  return (
    <div class="progress">
      <p>
        <span>
          {repeated}
          {name}
          {!isOver && left !== null && `, ${seconds(left)} left`}
        </span>
        <span class="hidden" role="status">
          {name}
        </span>
        <span class="faint command-of" title={job.value?.command}>
          {job.value?.command}
        </span>
      </p>
      {!isOver && <progress max={1} value={share} aria-label="Progress of this stage" />}
      {!isOver && (
        <dl class="now" aria-hidden="true">
          <Reading name={`${arrow("to")} goodput`} value={last?.toSum == null ? "-" : rate(last.toSum)} />
          <Reading name={`${arrow("from")} goodput`} value={last?.fromSum == null ? "-" : rate(last.fromSum)} />
          <Reading name="round trip" value={last?.rttNs == null ? "-" : `${milliseconds(last.rttNs)} ms`} />
          {state.isUdp ? (
            <>
              <Reading name="jitter" value={state.jitterNs === null ? "-" : `${milliseconds(state.jitterNs)} ms`} />
              <Reading name="lost" value={percent(state.lossRatio)} />
            </>
          ) : (
            <Reading name={`${arrow("to")} retransmits`} value={state.retransmits === null ? "-" : String(state.retransmits)} />
          )}
        </dl>
      )}
    </div>
  );
}

const endOf = (ending: string | undefined): string =>
  ({ done: "done", missed: "done, an expectation was missed", failed: "failed", cancelled: "stopped", invalid: "invalid" })[ending ?? ""] ??
  "ended";

const Reading = ({ name, value }: { name: string; value: string }) => (
  <div>
    <dt>{name}</dt>
    <dd>{value}</dd>
  </div>
);

function Empty() {
  return (
    <section class="panel empty" aria-labelledby="empty">
      <h2 id="empty">{hasRuns.value === false ? "No runs yet" : "Nothing is running"}</h2>
      <p>
        Start <code>bdp serve</code> on the other machine; it prints its address and a token. Type its host into
        the form and press Enter. Two seconds of idle round trips come first, then ten seconds each way.
      </p>
      <p>
        To try it on this machine alone: <code>bdp serve</code> in a terminal, and the host <code>127.0.0.1</code>.{" "}
        <button
          type="button"
          class="quiet"
          onClick={() => {
            set({ host: "127.0.0.1", time: "3" });
            document.getElementById("host")?.focus();
          }}
        >
          Fill in this example
        </button>
      </p>
      {hasRuns.value === true && (
        <p>
          <a href="#/history">Earlier runs</a> are in the history.
        </p>
      )}
    </section>
  );
}
