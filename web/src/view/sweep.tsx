// Sweep: how goodput depends on window, streams, length, MSS or congestion control, and where it stops rising.
import { batch, computed, effect, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import * as api from "../api";
import { commandLine, namedIn } from "../command";
import { stageWords } from "../events";
import { Follower, newKey, useFollower } from "../follow";
import { milliseconds, rate, seconds, size } from "../format";
import type { Curve, SweepDocument } from "../generated/sweep";
import { about, hostOf, nameOf } from "../page";
import {
  alongOf,
  curveName,
  delayChart,
  EMPTY_SWEEP,
  goodputChart,
  isSweep,
  kneeWords,
  liveChart,
  needWords,
  PARAMETERS,
  rangeWords,
  SWEEP_OPTIONS,
  sweepWords,
  type Parameter,
  type SweepForm,
} from "../sweep";
import { checked, Choice, commands, loadCommands, Options, Problem, Text, useEscape, withoutHelp } from "./fields";
import { CommandLine } from "./parts";
import { Scroll } from "./timeline";
import { XyFigure } from "./xy";
import "../style/sweep.css";

const follower = new Follower((job) => nameOf(job.command) === "sweep");
const { job, live, trouble, isRunning } = follower;

const form = signal<SweepForm>(EMPTY_SWEEP);
const startProblem = signal<string | null>(null);
const isStarting = signal(false);
const line = computed(() => sweepWords(form.value));
const hasTarget = () => (form.peek().place === "host" ? form.peek().host : form.peek().scenario).trim() !== "";
const refused = checked(line, hasTarget);
const problem = computed(() => startProblem.value ?? refused.value);

/** Names of the shipped scenarios. */
const scenarios = signal<{ name: string; title: string }[]>([]);

effect(() => {
  if (line.value.length > 0) startProblem.value = null;
});

/** A sweep of another tab, or from before a reload, brings its host. */
effect(() => {
  const command = job.value?.command;
  if (command !== undefined && form.peek().host === "") set({ host: hostOf(command) });
});

function set(values: Partial<SweepForm>): void {
  form.value = { ...form.peek(), ...values };
}

async function submit(): Promise<void> {
  if (isStarting.value || isRunning.value) return;
  if (!hasTarget()) {
    startProblem.value = form.value.place === "host" ? "type a host that runs 'bdp serve', or sweep in a scenario" : "choose a scenario, for example s0-window-i";
    document.getElementById(`sweep-${form.value.place}`)?.focus();
    return;
  }
  batch(() => {
    isStarting.value = true;
    startProblem.value = null;
  });
  try {
    await follower.start(line.value, newKey());
  } catch (error) {
    startProblem.value = withoutHelp(error instanceof Error ? error.message : String(error));
  } finally {
    isStarting.value = false;
  }
}

const stop = () => {
  follower.stop().catch((error: unknown) => {
    startProblem.value = error instanceof Error ? error.message : String(error);
  });
};

export function Sweep() {
  useFollower(follower);
  useEscape(stop);
  useEffect(() => {
    loadCommands();
    if (scenarios.peek().length > 0) return;
    api.answer<{ scenarios: { name: string; title: string }[] }>(["lab", "list"]).then(
      (list) => (scenarios.value = list.scenarios),
      () => undefined,
    );
  }, []);
  return (
    <div class="columns">
      <FormPanel />
      <div class="results">
        <Current />
      </div>
    </div>
  );
}

/** Options that the form has fields for. */
const OWN = new Set(SWEEP_OPTIONS.map(([, long]) => long.slice(2)));

function FormPanel() {
  const now = form.value;
  const text = problem.value;
  const wrong = text === null ? null : namedIn(text, SWEEP_OPTIONS);
  const takesRate = commands.value?.some((one) => one.name === "sweep" && one.arguments.some((argument) => argument.long === "bitrate")) === true;
  const parameters = (Object.keys(PARAMETERS) as Parameter[]).filter((one) => one !== "bitrate" || takesRate);
  const named = parameters.map((one) => [one, PARAMETERS[one].name] as const);
  const errorOf = (...fields: string[]) => (wrong !== null && fields.includes(wrong) ? text : null);
  const inFields = [now.parameter, now.second, "time", "runs", "points", "place", "direction"];
  const typed = (field: "host" | "scenario" | "values" | "secondValues" | "time" | "runs" | "points") => ({
    id: `sweep-${field}`,
    value: now[field],
    onValue: (value: string) => {
      set({ [field]: value });
    },
  });
  return (
    <form
      class="panel form"
      aria-labelledby="sweep"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <h2 id="sweep">Sweep</h2>
      <Choice
        id="sweep-place"
        label="Where"
        wide
        value={now.place}
        choices={[
          ["host", "to a host"],
          ["scenario", "in a scenario of the lab"],
        ]}
        onValue={(place) => {
          set({ place });
        }}
      />
      {now.place === "host" ? (
        <Text {...typed("host")} label="Host" placeholder="ams1 or 192.0.2.7:5201" list="sweep-list" wide />
      ) : (
        <Text {...typed("scenario")} label="Scenario" placeholder="s0-window-i" list="sweep-list" wide error={errorOf("place")} />
      )}
      <datalist id="sweep-list">
        {now.place === "host"
          ? (about.value?.hosts ?? []).map((host) => <option key={host} value={host} />)
          : scenarios.value.map(({ name, title }) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
      </datalist>
      <Choice
        id="sweep-parameter"
        label="Vary"
        value={now.parameter}
        choices={named}
        onValue={(parameter) => {
          set({ parameter, values: PARAMETERS[parameter].example, ...(now.second === parameter ? { second: "" } : {}) });
        }}
      />
      <Text {...typed("values")} label="Values" placeholder={PARAMETERS[now.parameter].example} error={errorOf(now.parameter)} />
      <Choice
        id="sweep-second"
        label="A curve for each"
        value={now.second}
        choices={[["", "-"], ...named.filter(([one]) => one !== now.parameter)]}
        onValue={(second) => {
          set({ second });
        }}
      />
      {now.second === "" ? (
        <span />
      ) : (
        <Text {...typed("secondValues")} label="of these values" placeholder={PARAMETERS[now.second].example} error={errorOf(now.second)} />
      )}
      <Choice
        id="sweep-direction"
        label="Direction"
        wide
        value={now.direction}
        error={errorOf("direction")}
        choices={[
          ["to", "to the host"],
          ["from", "from the host"],
          ["turn", now.place === "host" ? "one after the other" : "as in the scenario"],
          ["both", "both at once"],
        ]}
        onValue={(direction) => {
          set({ direction });
        }}
      />
      <Text {...typed("time")} label="Time of each point" placeholder="3s" error={errorOf("time")} />
      <Text {...typed("runs")} label="Runs of each point" placeholder="1" error={errorOf("runs")} />
      <Text {...typed("points")} label="Points of a range" placeholder="one per doubling" error={errorOf("points")} />
      <label class="switch">
        <input
          type="checkbox"
          checked={now.refine}
          onChange={(event) => {
            set({ refine: event.currentTarget.checked });
          }}
        />{" "}
        Add points at the knee
      </label>
      <CommandLine command={commandLine(line.value)} label="The same on the command line" />
      <Problem text={wrong === null || !inFields.includes(wrong) ? text : null} />
      <div class="actions">
        <button type="submit" class="main" disabled={isRunning.value || isStarting.value}>
          Start
        </button>
        <button type="button" disabled={!isRunning.value} onClick={stop}>
          Stop
        </button>
        <span class="faint">Enter starts, Escape stops</span>
      </div>
      <Options
        command="sweep"
        own={OWN}
        values={now.more}
        onValues={(more) => {
          set({ more });
        }}
      />
    </form>
  );
}

function Current() {
  const shown = live.value;
  const events = shown?.live.events;
  const points = events?.length ?? 0;
  const chart = useMemo(() => liveChart(events ?? []), [events, points]);
  const current = job.value;
  if (!current || !shown) return <Empty />;
  const { outcome, result, run } = shown.live;
  const isOver = outcome !== null;
  return (
    <>
      <section class="panel" aria-labelledby="sweep-now">
        <h2 id="sweep-now" class="hidden">
          {isOver ? "Last sweep" : "Running sweep"}
        </h2>
        <Progress />
        <Problem text={outcome?.error ?? trouble.value} />
        {outcome?.ending === "cancelled" && <p class="note">Stopped: the points until then are kept.</p>}
        {!isSweep(result) && chart && (
          <XyFigure
            title="Goodput"
            name="sweep"
            chart={chart}
            command={current.command}
            sentence="The values measured so far."
          />
        )}
        {isOver && !isSweep(result) && run !== null && (
          <p>
            <a href={`#/run/${encodeURIComponent(run)}`}>Run {run}</a> has its points.
          </p>
        )}
      </section>
      {isSweep(result) && (
        <section class="panel" aria-label="Result">
          <SweepResult sweep={result} command={current.command} />
        </section>
      )}
    </>
  );
}

function Progress() {
  const state = live.value?.live;
  const command = job.value?.command ?? "";
  if (!state) return null;
  const ended = state.events.filter((event) => event.event === "point_ended" || event.event === "case_ended");
  const last = ended.at(-1);
  const planned = state.events.findLast((event) => event.event === "planned" || event.event === "point_ended");
  const of =
    planned?.event === "point_ended" ? planned.planned : planned?.event === "planned" ? Math.max(planned.cases, ended.length) : 0;
  const left = last?.event === "case_ended" && last.left_ns > 0 ? `, ${seconds(last.left_ns)} left` : "";
  const stage = state.stage ? `, ${stageWords(state.stage, hostOf(command) || "the host")}` : "";
  const words = state.outcome ? (state.outcome.ending === "done" ? "done" : state.outcome.ending) : ended.length === 0 ? "the first point" : `${String(ended.length)} of ${String(of)} points`;
  return (
    <div class="progress">
      <p>
        <span>
          <span role="status">{words}</span>
          {state.outcome === null && stage + left}
        </span>
        <span class="faint command-of" title={command}>
          {command}
        </span>
      </p>
      {state.outcome === null && <progress max={Math.max(1, of)} value={ended.length} aria-label="Points measured" />}
    </div>
  );
}

/** What bdp found, and the curve. */
export function SweepResult({ sweep, command }: { sweep: SweepDocument; command: string | null }) {
  const { curves, memory, run } = sweep;
  const goodput = useMemo(() => goodputChart(curves), [curves]);
  const delay = useMemo(() => delayChart(curves), [curves]);
  const store = about.value?.store_option ?? "";
  const sentence = curves.map((curve) => `${curves.length > 1 ? `${curveName(curve)}: ` : ""}Knee ${kneeWords(curve)}.`).join(" ");
  return (
    <>
      {curves.map((curve) => (
        <Found key={curve.name} curve={curve} isOnly={curves.length === 1} />
      ))}
      {goodput && <XyFigure title="Goodput" name="sweep-goodput" chart={goodput} sentence={sentence} command={command} />}
      {delay && (
        <XyFigure
          title="Equivalent delivery delay"
          name="sweep-delay"
          chart={delay}
          sentence="Delay that, added to the idle round trip, explains the goodput by the window."
          command={command}
          height={200}
        />
      )}
      {curves.map((curve) => (
        <Points key={curve.name} curve={curve} />
      ))}
      {memory.length > 0 && (
        <ul class="plain">
          {memory.map(({ path, one, parallel }) => (
            <li key={path}>
              Memory of socket buffers for 95 % of the plateau{memory.length > 1 && `, ${path}`}: {needWords(one)}; {needWords(parallel)}
            </li>
          ))}
        </ul>
      )}
      {run !== null && (
        <>
          <h3>Next</h3>
          <CommandLine command={`bdp report ${run}${store}`} label="Command that writes a report" />
          <CommandLine command={`bdp show ${run}${store}`} label="Command that prints it" />
        </>
      )}
      {command !== null && <CommandLine command={command} label="Command that repeats it" />}
    </>
  );
}

function Found({ curve, isOnly }: { curve: Curve; isOnly: boolean }) {
  const isWindow = alongOf(curve) === "window";
  return (
    <div class="found">
      {!isOnly && (
        <h3>{curveName(curve)}</h3>
      )}
      <dl>
        <dt>knee</dt>
        <dd>
          <strong>{kneeWords(curve)}</strong>
        </dd>
        {alongOf(curve) !== "congestion" && (
          <>
            <dt>for throughput</dt>
            <dd>{rangeWords(curve, curve.for_throughput)}</dd>
          </>
        )}
        {isWindow && (
          <>
            <dt>for latency</dt>
            <dd>{rangeWords(curve, curve.for_latency)}</dd>
          </>
        )}
        {isWindow && curve.product_bytes !== null && (
          <>
            <dt>rate × RTT</dt>
            <dd>{size(curve.product_bytes)}</dd>
          </>
        )}
      </dl>
    </div>
  );
}

function Points({ curve }: { curve: Curve }) {
  const hasModel = curve.points.some((point) => point.expected_bps !== null);
  const isWindow = alongOf(curve) === "window";
  const isRepeated = curve.points.some((point) => point.goodput_bps.n > 1);
  const skipped = curve.points.reduce((sum, point) => sum + point.not_counted, 0);
  return (
    <Scroll label={`Points ${curve.name}`}>
      <table>
        <caption>{curveName(curve)}</caption>
        <thead>
          <tr>
            <th scope="col">asked</th>
            {isWindow && <th scope="col">on the wire</th>}
            <th scope="col">goodput</th>
            {isRepeated && <th scope="col">runs, lowest to highest</th>}
            {hasModel && <th scope="col">model</th>}
            <th scope="col">RTT idle ms</th>
            <th scope="col">loaded p95 ms</th>
            <th scope="col">retrans</th>
            {isWindow && <th scope="col">delivery delay ms</th>}
          </tr>
        </thead>
        <tbody>
          {curve.points.map((point) => {
            const { n, min, max, p50 } = point.goodput_bps;
            return (
              <tr key={point.asked + String(point.x)}>
                <th scope="row">{point.asked}</th>
                {isWindow && <td>{size(point.on_the_wire_bytes)}</td>}
                <td>{rate(p50)}</td>
                {isRepeated && <td>{`${String(n)}, ${rate(min)} to ${rate(max)}`}</td>}
                {hasModel && <td>{rate(point.expected_bps)}</td>}
                <td>{milliseconds(point.rtt_idle_ns)}</td>
                <td>{milliseconds(point.rtt_loaded_p95_ns)}</td>
                <td>{point.retransmits ?? "-"}</td>
                {isWindow && <td>{point.delivery_delay_below_resolution === true ? "below" : milliseconds(point.delivery_delay_ns)}</td>}
              </tr>
            );
          })}
          {curve.unmeasured.map((one) => (
            <tr key={one.asked}>
              <th scope="row">{one.asked}</th>
              <td colSpan={8} class="text">
                no valid run of {one.runs}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {skipped > 0 && <p class="faint">{skipped} INVALID runs are left out.</p>}
    </Scroll>
  );
}

const Empty = () => (
  <section class="panel empty" aria-labelledby="sweep-empty">
    <h2 id="sweep-empty">No sweep yet</h2>
    <p>
      A sweep measures one path with several windows, streams or other values, and finds the value beyond which nothing is gained. The
      other machine runs <code>bdp serve</code>; a scenario of the lab needs no other machine.{" "}
      <button
        type="button"
        class="quiet"
        onClick={() => {
          form.value = { ...EMPTY_SWEEP, host: form.peek().host, place: "scenario", scenario: "s0-window-i", values: "16K..1M", time: "1s", more: { clock: "virtual" } };
        }}
      >
        Fill in an example
      </button>
    </p>
  </section>
);
