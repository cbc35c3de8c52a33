// What if: what other figures of a path would bring, by the model at once and by the lab in seconds.
import { computed, effect, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import * as api from "../api";
import { Follower, newKey, running, useFollower } from "../follow";
import { moment, rate, time } from "../format";
import { barsSvg, labGoodput, PARAMETERS, POSITIONS, positionOf, problemOf, valueAt, type Bar, type Name, type Parameter, type Values } from "../parameters";
import { address, panelOf } from "../page";
import { colour } from "../theme";
import { stateName } from "../words";
import { Choice, Problem } from "./fields";
import { Grid } from "./grid";
import { Tools } from "./timeline";
import "../style/whatif.css";

/** What the reader changed of the path. */
const path = signal<{ run: string | null; way: string; values: Values; control: string }>({ run: null, way: "", values: {}, control: "" });
/** What is typed in a field that the reader is in. */
const typed = signal<{ name: Name; text: string } | null>(null);
const isShown = signal(false);
const answer = signal<{ wish: api.WhatIfRequest; of: api.WhatIfAnswer } | null>(null);
const problem = signal<string | null>(null);
/** What the lab was asked. */
const tried = signal<{ job: string; wish: string } | null>(null);
const runs = signal<api.StoredRun[]>([]);

const follower = new Follower((job) => panelOf(job.command) === "what-if" || job.id === tried.peek()?.job);

/** A path without a run has these, if nothing is typed. */
const FIRST: Values = Object.fromEntries(PARAMETERS.slice(0, 2).map((one) => [one.name, one.start]));

const wish = computed<api.WhatIfRequest>(() => {
  const { run, way, values, control } = path.value;
  return {
    run,
    ...(way === "to" || way === "from" ? { direction: way } : {}),
    ...(run === null ? FIRST : {}),
    ...values,
    ...(control === "" ? {} : { congestion_control: control }),
  };
});

/** One question at a time, a frame apart: the newest follows the one that is under way. */
let isAsking = false;
async function ask(): Promise<void> {
  if (isAsking) return;
  isAsking = true;
  const now = wish.peek();
  try {
    answer.value = { wish: now, of: await api.whatIf(now) };
    problem.value = null;
  } catch (error) {
    problem.value = error instanceof Error ? error.message : String(error);
  }
  isAsking = false;
  if (wish.peek() !== now) void ask();
}

effect(() => {
  const now = wish.value;
  if (!isShown.value) return undefined;
  const frame = requestAnimationFrame(() => {
    if (now !== answer.peek()?.wish) void ask();
  });
  return () => {
    cancelAnimationFrame(frame);
  };
});

const set = (values: Partial<typeof path.value>): void => {
  path.value = { ...path.value, ...values };
};

/** Back to what was measured. */
function reset(name: Name): void {
  set({ values: Object.fromEntries(Object.entries(path.value.values).filter(([one]) => one !== name)) });
}

async function tryInLab(): Promise<void> {
  const now = wish.peek();
  try {
    const { command } = await api.whatIfLab(now);
    await follower.start(command, newKey());
    tried.value = { job: follower.job.peek()?.id ?? "", wish: JSON.stringify(now) };
    problem.value = null;
  } catch (error) {
    problem.value = error instanceof Error ? error.message : String(error);
  }
}

const text = (of: Record<string, unknown> | null | undefined, name: string): string => {
  const value = of?.[name];
  return typeof value === "string" ? value : "as measured";
};

const number = (of: Record<string, unknown> | null | undefined, name: string): number | null => {
  const value = of?.[name];
  return typeof value === "number" ? value : null;
};

export function WhatIf({ run }: { run: string | null }) {
  useFollower(follower);
  useEffect(() => {
    if (path.peek().run !== run) {
      path.value = { run, way: "", values: {}, control: "" };
      answer.value = null;
    }
    isShown.value = true;
    const load = () => {
      api.runs("", null).then(
        (list) => (runs.value = list.runs.filter((one) => one.kind === "measure")),
        () => undefined,
      );
      if (problem.peek() !== null) void ask();
    };
    load();
    const off = api.onBack(load);
    return () => {
      isShown.value = false;
      off();
    };
  }, [run]);
  return (
    <div class="columns">
      <FormPanel />
      <div class="results">
        <Answer />
      </div>
    </div>
  );
}

function FormPanel() {
  const { run, way, control, values } = path.value;
  const known = answer.value?.of;
  const measured = known?.measured;
  const list = runs.value.some((one) => one.run === run) || run === null ? [] : [[run, run] as const];
  const controls = ["cubic", "reno", "bbr"];
  return (
    <form
      class="panel form"
      aria-labelledby="what-if"
      onSubmit={(event) => {
        event.preventDefault();
        void tryInLab();
      }}
    >
      <h2 id="what-if">What if</h2>
      <Choice
        id="what-run"
        label="Path"
        wide
        value={run ?? ""}
        onValue={(value) => {
          location.hash = value === "" ? address("what-if") : address("what-if", value);
        }}
        choices={[
          ["", "of the figures below"],
          ...list,
          ...runs.value.map((one) => [one.run, `run ${one.run}: ${one.scenario}, ${moment(one.started_unix_ms)}`] as const),
        ]}
      />
      {run !== null && (
        <Choice
          id="what-way"
          label="Direction"
          value={way}
          onValue={(value) => {
            set({ way: value });
          }}
          choices={[
            ["", text(known?.given, "direction")],
            ["to", "to the host"],
            ["from", "from the host"],
          ]}
        />
      )}
      <Choice
        id="what-control"
        label="Congestion control"
        value={control}
        onValue={(value) => {
          set({ control: value });
        }}
        choices={[["", run === null ? "cubic" : text(measured, "congestion_control")], ...controls.map((one) => [one, one] as const)]}
      />
      {PARAMETERS.map((one) => (
        <Slider key={one.name} of={one} measured={number(measured, one.name)} value={values[one.name] ?? number(known?.given, one.name)} canReset={run !== null || !(one.name in FIRST)} />
      ))}
      <Problem text={problem.value} />
      <div class="actions">
        <button type="submit" class="main" disabled={running.value !== null}>
          Try it in the lab
        </button>
        <button type="button" disabled={!follower.isRunning.value} onClick={() => void follower.stop()}>
          Stop
        </button>
      </div>
    </form>
  );
}

interface SliderProps {
  of: Parameter;
  /** Null if it is absent. */
  value: number | null;
  measured: number | null;
  canReset: boolean;
}

function Slider({ of, value, measured, canReset }: SliderProps) {
  const id = `what-${of.name}`;
  const text = typed.value?.name === of.name ? typed.value.text : value === null ? "" : of.show(value);
  const error = typed.value?.name === of.name ? problemOf(of, text) : null;
  const at = value ?? of.start;
  return (
    <div class={`field wide slider${error === null ? "" : " wrong"}`}>
      <label for={id}>{of.label}</label>
      <input
        id={id}
        value={text}
        placeholder={of.absent}
        autocomplete="off"
        spellcheck={false}
        aria-invalid={error !== null}
        aria-describedby={error === null ? undefined : `${id}-error`}
        onInput={(event) => {
          const next = event.currentTarget.value;
          typed.value = { name: of.name, text: next };
          if (problemOf(of, next) === null) set({ values: { ...path.value.values, [of.name]: of.parse(next) } });
        }}
        onBlur={() => (typed.value = null)}
      />
      <input
        type="range"
        aria-label={`${of.label}, slider`}
        aria-valuetext={value === null ? of.absent : of.show(value)}
        min={0}
        max={of.name === "streams" ? of.most - 1 : POSITIONS}
        value={of.name === "streams" ? at - 1 : positionOf(of, at)}
        onInput={(event) => {
          typed.value = null;
          const to = Number(event.currentTarget.value);
          set({ values: { ...path.value.values, [of.name]: of.name === "streams" ? to + 1 : valueAt(of, to) } });
        }}
      />
      {error !== null && (
        <p class="error" id={`${id}-error`} role="alert">
          {error}
        </p>
      )}
      {canReset && of.name in path.value.values && value !== measured && (
        <button
          type="button"
          class="quiet"
          onClick={() => {
            reset(of.name);
          }}
        >
          back to {measured === null ? of.absent || of.show(of.start) : `${of.show(measured)}, as measured`}
        </button>
      )}
    </div>
  );
}

/** What the lab reached, and whether it was asked about other values. */
function lab(): { goodput: number; isOther: boolean } | null {
  const live = follower.live.value?.live;
  const records = live?.events.flatMap((one): { goodput_bps?: number | null }[] => (one.event === "case_ended" ? [one.record] : []));
  const goodput = labGoodput(live?.result) ?? records?.at(-1)?.goodput_bps ?? null;
  return goodput === null ? null : { goodput, isOther: tried.value?.wish !== JSON.stringify(wish.value) };
}

function Answer() {
  const now = answer.value?.of;
  const job = follower.job.value;
  const reached = lab();
  const measured = number(now?.measured, "goodput_bps");
  if (!now) {
    return (
      <section class="panel empty">
        <p>Choose a run, or type the figures of a path. The model answers as you move a slider; the lab runs the path with the TCP of a real kernel.</p>
      </section>
    );
  }
  const outcome = follower.live.value?.live.outcome ?? job?.outcome;
  const said = !outcome ? "The lab runs." : (outcome.error ?? (outcome.ending === "cancelled" ? "The lab was stopped." : ""));
  return (
    <section class="panel" aria-labelledby="answer">
      <h2 id="answer">Goodput</h2>
      <dl class="now">
        {(
          [
            ["measured", measured],
            ["by the model", now.goodput_bps],
            [reached?.isOther ? "in the lab, of other values" : "in the lab", reached?.goodput],
          ] as const
        ).map(([name, bps]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd class="big">{rate(bps)}</dd>
          </div>
        ))}
        <div>
          <dt>round trip under load, by the model</dt>
          <dd class="big">{time(now.loaded_rtt_ns)}</dd>
        </div>
      </dl>
      <p class="said" role="status">
        {now.sentence}
      </p>
      {job && said !== "" && (
        <p class={outcome?.error ? "error" : "faint"} role="status">
          {said}
        </p>
      )}
      {now.limits.length > 0 && <Limits of={now} measured={measured} lab={reached && !reached.isOther ? reached.goodput : null} />}
    </section>
  );
}

function Limits({ of, measured, lab: reached }: { of: api.WhatIfAnswer; measured: number | null; lab: number | null }) {
  const lowest = of.limits[0]?.goodput_bps ?? 0;
  const all = [...of.limits.map((one) => one.goodput_bps), measured ?? 0, reached ?? 0];
  // Bars of limits that are far away are cut: those near are what one compares.
  const most = Math.min(Math.max(...all), 4 * Math.max(lowest, measured ?? 0, reached ?? 0));
  const bars: Bar[] = of.limits.map((one, index) => ({
    name: `${stateName(one.limit)}${index === 0 ? ", binds" : index === 1 ? ", next" : ""}`,
    value: one.goodput_bps,
    text: rate(one.goodput_bps),
    isMain: index === 0,
  }));
  const [next] = of.limits.slice(1);
  const sentence = `${stateName(of.limits[0]?.limit ?? "nothing")} binds at ${rate(lowest)}${next ? `; then ${stateName(next.limit)} at ${rate(next.goodput_bps)}` : ""}.`;
  const x = (value: number) => Math.min(1, value / (most || 1)) * 100;
  return (
    <figure class="chart">
      <div class="bar">
        <h3>Limits, lowest first</h3>
        <Tools
          csv={() => ["limit,goodput_bps", ...of.limits.map((one) => `${one.limit},${String(one.goodput_bps)}`)].join("\n") + "\n"}
          svg={() => barsSvg("Limits of goodput", bars, most, measured, colour)}
          name="limits"
          command={null}
        />
      </div>
      <Grid
        caption="Goodput that each allows"
        head={["limit", "goodput", "bar", "why"]}
        isText
        rows={of.limits.map((one, index) => ({
          key: one.limit,
          isMarked: index === 0,
          cells: [
            bars[index]?.name,
            rate(one.goodput_bps),
            <svg key="bar" class="limit" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
              <rect width={x(one.goodput_bps)} height="10" fill={index === 0 ? "var(--to)" : "var(--other)"} />
              {measured !== null && <path d={`M${x(measured).toFixed(1)} 0V10`} stroke="var(--text)" vector-effect="non-scaling-stroke" stroke-width="2" />}
            </svg>,
            one.sentence,
          ],
        }))}
      />
      <figcaption>
        {sentence}
        {measured !== null && " Line: measured."}
        {all.some((value) => value > most) && ` Bars end at ${rate(most)}.`}
      </figcaption>
    </figure>
  );
}
