// Fix: measure, plan, rehearse, apply, verify, and keep or put back, each with its document; undo of what is in force.
import { computed, effect, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "../api";
import { commandLine, quoted } from "../command";
import { isMeasurements, type Measurement } from "../documents";
import { stageWords, type Question } from "../events";
import { Follower, newKey, running, useFollower } from "../follow";
import { milliseconds, moment, percent, rate, significant, time } from "../format";
import type { Change, PlanDocument } from "../generated/plan";
import type { RehearsalDocument } from "../generated/rehearsal";
import type { TuneDocument } from "../generated/tune";
import type { VerificationDocument } from "../generated/verification";
import * as loops from "../loop";
import type { Loop, Step } from "../loop";
import { ofLive } from "../model";
import { about, address, hostOf } from "../page";
import { arrow } from "../words";
import { Choice, Problem, Text } from "./fields";
import { Grid } from "./grid";
import { CommandLine, Name } from "./parts";
import { TimelineCharts } from "./timeline";
import { Verdict, Why } from "./why";
import "../style/fix.css";

const follower = new Follower((job) => job.kind === "fix");

/** The form's fields: name, option, label, what stands in the empty field. */
const FIELDS = [
  ["host", "", "Host", "ams1 or 192.0.2.7:5201"],
  ["direction", "--direction", "Direction", ""],
  ["time", "-t", "Time", "10s"],
  ["keep", "--for", "Revert after", "10m, unless kept"],
  ["rate", "--rate", "Rate of the bottleneck", "measured"],
  // Secrets are never part of the command, and forgotten with the page.
  ["tune_token", null, "Tune token of the far end", "without it only this host changes"],
  ["token", null, "Token of the server", "none"],
] as const;

type Field = (typeof FIELDS)[number][0];

const form = signal<Partial<Record<Field, string>>>({});
const isAlone = signal(false);
const problem = signal<string | null>(null);
const isStarting = signal(false);

const typed = (field: Field): string => form.value[field]?.trim() ?? "";
const set = (values: Partial<Record<Field, string>>): void => {
  form.value = { ...form.value, ...values };
};

const line = computed(() => {
  const words = ["fix"];
  for (const [field, option] of FIELDS) {
    if (option === null || typed(field) === "") continue;
    if (option !== "") words.push(option);
    words.push(typed(field));
  }
  return isAlone.value ? [...words, "--alone"] : words;
});

const given = (): api.Secrets => {
  const secrets: api.Secrets = {};
  for (const field of ["token", "tune_token"] as const) if (typed(field) !== "") secrets[field] = typed(field);
  return secrets;
};

const loop = computed<Loop>(() => loops.loopOf(follower.live.value?.live.events ?? []));

/** The changes that a question is about. */
const changesOf = (question: Question): Change[] => {
  const of = question as { change?: Change; changes?: Change[] };
  return of.changes ?? (of.change ? [of.change] : []);
};

/** What the reader decided in the dialog, of the changes that it named. */
const decided = signal<{ job: string; shown: Set<string>; yes: boolean } | null>(null);

/** A question about changes that the dialog named is answered by it; bdp asks about each. */
let answered: Question | null = null;
effect(() => {
  const question = follower.question.value;
  const decision = decided.value;
  if (question?.about !== "apply" || question === answered || decision?.job !== follower.job.peek()?.id) return;
  if (!decision || !changesOf(question).every((change) => decision.shown.has(loops.keyOf(change)))) return;
  answered = question;
  void attempt(() => follower.answer(decision.yes));
});

/** Only a page on loopback may change settings. */
const isLocal = /^(localhost|127\.[\d.]+|\[::1\])$/.test(location.hostname);

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Whether it worked; else the reader is told why. */
async function attempt(run: () => Promise<unknown>): Promise<boolean> {
  try {
    await run();
    problem.value = null;
    return true;
  } catch (error) {
    problem.value = textOf(error);
    return false;
  }
}

async function submit(): Promise<void> {
  if (isStarting.value || running.value) return;
  if (typed("host") === "") {
    problem.value = "type a host that runs 'bdp serve', for example ams1";
    document.getElementById("fix-host")?.focus();
    return;
  }
  isStarting.value = true;
  const hasStarted = await attempt(() => follower.start(line.value, newKey(), given()));
  isStarting.value = false;
  if (hasStarted) location.hash = address("fix");
}

/** A stored run with its plan, before anything is measured again. */
async function preview(run: string, show: (loop: Loop) => void): Promise<void> {
  const stored = await api.document_(run);
  const before = isMeasurements(stored) ? stored.runs.at(-1) : undefined;
  if (!before) throw new Error(`run ${run} has no measurement`);
  const { host, port, directions, duration_ns: ns } = before.request;
  set({
    host: port === 5201 ? host : `${host}:${String(port)}`,
    direction: directions.length === 1 ? directions[0] : "",
    time: ns === 10e9 ? "" : String(ns / 1e9),
  });
  const known: Loop = { ...loops.loopOf([]), run, before, stage: "plan" };
  show(known);
  try {
    show({ ...known, plan: await api.answer<PlanDocument>(["tune", "plan", run]) });
  } catch (error) {
    show({ ...known, stage: null });
    throw error;
  }
}

export function Fix({ run }: { run: string | null }) {
  const [known, show] = useState<Loop | null>(null);
  useFollower(follower);
  useEffect(() => {
    show(null);
    if (run !== null) void attempt(() => preview(run, show));
  }, [run]);
  const job = follower.job.value;
  useEffect(() => {
    // A job of another tab, or from before a reload, brings its form, unless somebody types there.
    const isTyping = document.activeElement?.id === "fix-host";
    if (job && run === null && typed("host") === "" && !isTyping) {
      const typedThen = (option: string) => new RegExp(` ${option}[ =](\\S+)`).exec(job.command)?.[1] ?? "";
      for (const [field, option] of FIELDS) if (option) set({ [field]: typedThen(option) });
      set({ host: hostOf(job.command) });
    }
  }, [job, run]);
  const isOld = run !== null && !follower.isRunning.value && loop.value.run !== run;
  return (
    <div class="columns">
      <div class="results">
        <FormPanel />
        <InForce />
      </div>
      <div class="results">{isOld && known ? <Before known={known} /> : <Current />}</div>
    </div>
  );
}

function FormPanel() {
  return (
    <form
      class="panel form"
      aria-labelledby="fix"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <h2 id="fix">Fix</h2>
      {!isLocal && (
        <p class="note wide">
          This page is not on loopback: it changes no settings. Run the command in a terminal there, or open the page of that machine through{" "}
          <code>ssh -L</code>.
        </p>
      )}
      {FIELDS.map(([field, option, label, placeholder]) => {
        const common = {
          id: `fix-${field}`,
          label,
          value: form.value[field] ?? "",
          onValue: (value: string) => {
            set({ [field]: value });
          },
        };
        return field === "direction" ? (
          <Choice
            key={field}
            {...common}
            choices={[
              ["", "both"],
              ["to", "to the host"],
              ["from", "from the host"],
            ]}
          />
        ) : (
          <Text key={field} {...common} placeholder={placeholder} wide={!option} secret={option === null} />
        );
      })}
      <label class="switch wide">
        <input
          type="checkbox"
          checked={isAlone.value}
          onChange={(event) => {
            isAlone.value = event.currentTarget.checked;
          }}
        />{" "}
        the path carries only this transfer
      </label>
      <CommandLine command={commandLine(line.value)} label="The same on the command line" />
      <Problem text={problem.value} />
      <div class="actions">
        <button type="submit" class="main" disabled={running.value !== null || isStarting.value || !isLocal}>
          Measure and plan
        </button>
        <Act isOff={!follower.isRunning.value} act={() => void attempt(() => follower.stop())}>
          Stop
        </Act>
      </div>
      <p class="faint wide small">
        Nothing changes before you confirm it. <code>bdp serve --allow-tune</code> prints the tune token; it is not part of the command, stored or logged.
      </p>
    </form>
  );
}

function Act(props: { act: () => void; children: string; isMain?: boolean; isOff?: boolean; label?: string; hasFocus?: boolean }) {
  return (
    <button
      type="button"
      class={props.isMain ? "main" : ""}
      disabled={props.isOff}
      aria-label={props.label}
      autofocus={props.hasFocus}
      onClick={props.act}
    >
      {props.children}
    </button>
  );
}

function Before({ known }: { known: Loop }) {
  return (
    <section class="panel loop" aria-labelledby="loop">
      <h2 id="loop">The path of run {known.run}</h2>
      <p>'Measure and plan' measures it again: a plan is made for what the path is now.</p>
      <Steps loop={known} steps={loops.steps(known, null, null)} command="" />
    </section>
  );
}

function Current() {
  const [job, live] = [follower.job.value, follower.live.value];
  const now = loop.value;
  if (!job || !live) {
    return (
      <section class="panel empty" aria-labelledby="loop">
        <h2 id="loop">The loop</h2>
        <p>
          bdp measures the path, says what limits it, plans the smallest change of settings, and rehearses it on an emulated twin. Then it asks. What
          you apply is measured again, and reverts by itself unless you keep it.
        </p>
      </section>
    );
  }
  const outcome = live.live.outcome ?? job.outcome;
  const isBad = outcome?.ending === "failed" || outcome?.ending === "missed";
  return (
    <>
      <section class="panel loop" aria-labelledby="loop">
        <h2 id="loop">
          <Name>{hostOf(job.command)}</Name>
        </h2>
        <p class={isBad ? "said error" : "said"} role="status">
          {loops.conclusion(isUndone(now) ? { ...now, kept: false } : now, outcome)}
        </p>
        {follower.trouble.value !== null && <p class="error">{follower.trouble.value}</p>}
        <Steps loop={now} steps={loops.steps(now, follower.question.value?.about ?? null, outcome)} command={job.command} />
        <CommandLine command={job.command} label="Command of this loop" />
      </section>
      {live.live.points.length > 0 && (
        <section class="panel" aria-label="Measurements of the loop">
          <TimelineCharts timeline={ofLive(live.live)} command={job.command} isLive={outcome === null} />
        </section>
      )}
    </>
  );
}

interface Shown {
  loop: Loop;
  step: Step;
  command: string;
}

const STEPS: Record<Step["name"], readonly [title: string, body: (shown: Shown) => ComponentChildren]> = {
  measure: ["Measure", (shown) => <Measured {...shown} />],
  why: ["Why", ({ loop: of, command }) => of.before && <Limits key={of.run} measurement={of.before} run={of.run} command={command} />],
  plan: ["Plan", ({ loop: { plan } }) => plan && <Plan plan={plan} />],
  rehearse: [
    "Rehearse",
    ({ loop: of }) =>
      of.rehearsal ? <Rehearsal of={of.rehearsal} /> : of.notRehearsed !== null && <p class="note">not rehearsed: {of.notRehearsed}</p>,
  ],
  apply: ["Apply", (shown) => shown.loop.plan && <Apply {...shown} plan={shown.loop.plan} />],
  verify: ["Verify", ({ loop: of }) => of.verification && <Verification of={of.verification} />],
  keep: ["Keep or put back", (shown) => <Keep {...shown} />],
};

function Steps({ loop: of, steps, command }: { loop: Loop; steps: Step[]; command: string }) {
  return (
    <ol class="steps">
      {steps.map((step) => (
        <li key={step.name} class={step.state} aria-current={step.state === "runs" || step.state === "asks" ? "step" : undefined}>
          <div class="bar">
            <h3>{STEPS[step.name][0]}</h3>
            <span class="state">{loops.STATES[step.state]}</span>
          </div>
          {STEPS[step.name][1]({ loop: of, step, command })}
        </li>
      ))}
    </ol>
  );
}

const goodputs = (measurement: Measurement): string =>
  measurement.directions.map((one) => `${arrow(one.direction)} ${rate(one.goodput_bps)}`).join(", ");

/** What reverts the changes of a far end in a terminal. */
const revertThere = (far: string): string => `bdp tune revert --at ${quoted(far)}`;

const RunLink = ({ run }: { run: string | null }) => run !== null && <a href={address("run", run)}>run {run}</a>;

function Measured({ loop: of, step, command }: Shown) {
  const stage = step.state === "runs" && follower.live.value?.live.stage;
  return (
    <>
      {of.before && (
        <p>
          {goodputs(of.before)} <RunLink run={of.run} />
        </p>
      )}
      {of.capacity.map((one) => (
        <p key={one.run}>
          with {one.streams} streams, to find the path's rate: {goodputs(one.measurement)} <RunLink run={one.run} />
        </p>
      ))}
      {stage && <p class="faint">{stageWords(stage, hostOf(command))}</p>}
    </>
  );
}

function Limits({ measurement, run, command }: { measurement: Measurement; run: string | null; command: string }) {
  const [isOpen, open] = useState(false);
  return (
    <>
      {measurement.directions.map((one) => (
        <Verdict key={one.direction} direction={one} host={measurement.request.host} />
      ))}
      <details
        onToggle={(event) => {
          open(event.currentTarget.open);
        }}
      >
        <summary>Evidence and account of time</summary>
        {isOpen && <Why measurement={measurement} run={run} command={command === "" ? null : command} />}
      </details>
    </>
  );
}

/** Settings with their host, old and new value. */
function Settings({ plan, changes, caption, hasReasons }: { plan: PlanDocument; changes: readonly Change[]; caption: string; hasReasons?: boolean }) {
  return (
    <Grid
      caption={caption}
      isText
      head={["host", "setting", "old value", "new value", ...(hasReasons ? ["reason"] : [])]}
      rows={changes.map((change) => ({
        key: loops.keyOf(change),
        cells: [
          <Name key="host">{loops.host(plan, change.end)}</Name>,
          loops.target(change.target),
          loops.valueOf(change.from),
          <b key="to">{change.to}</b>,
          ...(hasReasons ? [loops.reason(plan, change)] : []),
        ],
      }))}
    />
  );
}

function Plan({ plan }: { plan: PlanDocument }) {
  const all = [{ name: "", changes: plan.changes }, ...plan.alternatives].filter((one) => one.changes.length > 0);
  return (
    <>
      {plan.path.directions.map((one) => (
        <p key={one.direction}>
          {arrow(one.direction)} {one.goodput_bps !== null && `measured ${rate(one.goodput_bps)}, `}
          {one.limit !== null && `limited by ${loops.noun(one.limit)}, `}
          {one.rate_bps === null ? "what it can carry is not known" : `planned for ${rate(one.rate_bps)}`}
        </p>
      ))}
      {plan.changes.length === 0 && <p>change: nothing</p>}
      {all.map((one) => (
        <Settings key={one.name} plan={plan} changes={one.changes} caption={one.name === "" ? "Change" : `or ${one.name}`} hasReasons />
      ))}
      <details>
        <summary>In a program, and what is left alone</summary>
        <ul class="plain">
          {plan.programs.map((one) => (
            <li key={one.call}>
              {one.call} in a program on {loops.host(plan, one.end)}, for its own connections, in place of {loops.target(one.instead_of)}
            </li>
          ))}
          {plan.refused.map((one, index) => (
            <li key={index}>left alone: {loops.refusal(plan, one)}</li>
          ))}
        </ul>
      </details>
    </>
  );
}

/** A range and a dot on a scale from zero, with a line for what was before. */
function Range({ range, dot, old, most }: { range: readonly number[] | null; dot: number; old?: number; most: number }) {
  const x = (value: number) => (4 + (Math.max(0, value) / most) * 112).toFixed(1);
  return (
    <svg class="range" viewBox="0 0 120 14" aria-hidden="true">
      <path d="M4 7H116" stroke="var(--line)" />
      {range && <path d={`M${x(range[0] ?? 0)} 7H${x(range[1] ?? 0)}`} stroke="var(--other)" stroke-width="6" />}
      {old !== undefined && <path d={`M${x(old)} 1V13`} stroke="var(--text)" stroke-width="2" />}
      <circle cx={x(dot)} cy="7" r="3.5" fill="var(--to)" />
    </svg>
  );
}

function Rehearsal({ of }: { of: RehearsalDocument }) {
  const rows = of.variants.flatMap((variant) => variant.directions.map((way) => ({ variant, way, goodput: way.goodput_bps })));
  const most = Math.max(...rows.map(({ goodput }) => goodput.interval?.[1] ?? goodput.mean), 1);
  return (
    <>
      <p>{of.choice === null ? "nothing: no change is better than what is there" : `apply ${of.choice}, ${loops.prediction(of)}`}</p>
      {of.repeats.some(([, repeats]) => !repeats) && (
        <p class="note">the twin does not repeat the measurement closely: what it predicts is a direction, not a figure</p>
      )}
      <Grid
        caption={`Predicted on the path's twin, ${String(of.runs)} times each${of.kernel === null ? "" : `, Linux ${of.kernel}`}`}
        head={["variant", "goodput", "95 %, Mbit/s", "", "RTT ms p50/p95", "retrans", "beside another", "the other"]}
        rows={rows.map(({ variant, way, goodput }) => ({
          key: variant.name + way.direction,
          isMarked: variant.name === of.choice,
          cells: [
            `${arrow(way.direction)} ${variant.name}`,
            rate(goodput.mean),
            goodput.interval?.map((bps) => significant(Math.max(0, bps) / 1e6)).join(" to ") ?? "-",
            <Range key="range" range={goodput.interval} dot={goodput.mean} most={most} />,
            `${milliseconds(way.loaded_p50_ns?.mean)}/${milliseconds(way.loaded_p95_ns?.mean)}`,
            percent(way.retransmitted?.mean),
            rate(way.beside?.goodput_bps),
            rate(way.beside?.other_bps),
          ],
        }))}
      />
    </>
  );
}

function Apply({ loop: of, step, command, plan }: Shown & { plan: PlanDocument }) {
  const [isOpen, open] = useState(false);
  const question = follower.question.value;
  const far = loops.host(plan, "far");
  const after = loops.duration(loops.keepsFor(command));
  const changes = loops.wanted(of);
  const { near: here, far: there } = of.journals ?? { near: null, far: null };
  const done = [here === null ? "" : `this host set, journal ${String(here)}`, there === null ? "" : `${far} set, journal ${String(there)} there`];
  const decide = (yes: boolean) => {
    open(false);
    const shown = [...changes, ...(question ? changesOf(question) : [])];
    decided.value = { job: follower.job.value?.id ?? "", shown: new Set(shown.map(loops.keyOf)), yes };
  };
  return (
    <>
      {of.left > 0 && (
        <p class="note">
          {loops.settings(of.left)} of {far}: start <code>bdp serve --allow-tune</code> there, type its tune token, and start again; or{" "}
          <code>{`bdp tune export ${of.run ?? "RUN"}${about.value?.store_option ?? ""} --as sh --end far`}</code> writes a script for its owner.
        </p>
      )}
      {step.state === "asks" && (
        <>
          <Settings plan={plan} changes={changes} caption="Settings to change" />
          <div class="actions">
            <Act
              isMain
              act={() => {
                open(true);
              }}
            >
              Apply…
            </Act>
            <Act
              act={() => {
                decide(false);
              }}
            >
              Apply nothing
            </Act>
          </div>
          {isOpen && (
            <Confirm
              title={`Apply ${loops.settings(changes.length)}?`}
              decide={(yes) => {
                if (yes) decide(yes);
                else open(false);
              }}
            >
              <Settings plan={plan} changes={changes} caption="Settings that change" />
              <p>
                Then bdp measures again. All of them revert {after} after they were applied unless you keep them, and at once if the test fails or you
                stop it.
              </p>
            </Confirm>
          )}
        </>
      )}
      {of.journals && (
        <p>
          {done.filter((text) => text !== "").join("; ") || "all settings are already as planned"}
          {!of.kept && of.putBack === null && `; reverts ${after} after that unless kept`}
        </p>
      )}
      {of.nothingApplied && <p>nothing was applied</p>}
    </>
  );
}

/** Whether this host's changes were reverted after they were kept. */
function isUndone({ journals }: Loop): boolean {
  const near = journals?.near ?? null;
  return near !== null && inForce.value[""]?.journals.every((one) => one.id !== near) === true;
}

/** Names every setting on every host before anything changes. */
function Confirm({ title, children, decide }: { title: string; children: ComponentChildren; decide: (yes: boolean) => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  const no = () => {
    decide(false);
  };
  return (
    <dialog ref={dialog} class="of-settings" aria-labelledby="confirm" onClose={no}>
      <h2 id="confirm">{title}</h2>
      {children}
      <div class="actions">
        <Act hasFocus act={no}>
          Not now
        </Act>
        <Act
          isMain
          act={() => {
            decide(true);
          }}
        >
          Apply
        </Act>
      </div>
    </dialog>
  );
}

function Verification({ of }: { of: VerificationDocument }) {
  const rows = of.directions.flatMap((one) => [
    { way: one.direction, what: "", figure: one.goodput_bps, print: rate },
    ...(one.loaded_p50_ns ? [{ way: one.direction, what: "round trip under load ", figure: one.loaded_p50_ns, print: time }] : []),
  ]);
  return (
    <>
      {rows.map(({ way, what, figure, print }) => (
        <p key={way + what} class={figure.verdict === "missed" ? "error" : ""}>
          {loops.verdict(figure, way, what, print)}
        </p>
      ))}
      {of.directions.map((one) => (
        <p key={one.direction}>{loops.limitNow(one)}</p>
      ))}
      <Grid
        caption="Before, predicted and measured"
        head={["figure", "before", "predicted", "range", "measured", ""]}
        rows={rows.map(({ way, what, figure, print }) => ({
          key: way + what,
          cells: [
            `${arrow(way)} ${what || "goodput"}`,
            print(figure.before),
            figure.predicted === null ? "-" : print(figure.predicted),
            figure.range?.map(print).join(" to ") ?? "-",
            <b key="now">{print(figure.now)}</b>,
            <Range
              key="range"
              range={figure.range}
              dot={figure.now}
              old={figure.before}
              most={Math.max(figure.before, figure.now, figure.range?.[1] ?? 0, 1)}
            />,
          ],
        }))}
      />
      <p class="faint small">
        Line: before. Bar: the range that confirms the prediction. Dot: measured, <RunLink run={of.again} />
        {of.run !== null && of.again !== null && (
          <>
            {" "}
            (<a href={address("compare", of.run, of.again)}>compare</a>)
          </>
        )}
      </p>
    </>
  );
}

function Keep({ loop: of, step, command }: Shown) {
  const answer = (yes: boolean) => () => void attempt(() => follower.answer(yes));
  return (
    <>
      {step.state === "asks" && (
        <div class="actions">
          <Act isMain act={answer(true)}>
            Keep
          </Act>
          <Act act={answer(false)}>Put back</Act>
        </div>
      )}
      {of.kept && isUndone(of) && <p>this host's changes were reverted since</p>}
      {of.kept && !isUndone(of) && (
        <p>
          kept until the next boot; Undo reverts it
          {of.journals?.far != null && (
            <>
              , and <code>{revertThere(hostOf(command))}</code> that of the far end
            </>
          )}
        </p>
      )}
      {of.putBack !== null && <p>reverted: {loops.settings(of.putBack)} as before</p>}
      {of.notPutBack !== null && <p class="error">{of.notPutBack}; it reverts when its time is up, or now with Undo</p>}
    </>
  );
}

type Listed = Extract<TuneDocument, { command: "journal" }>;
type Reverted = Extract<TuneDocument, { command: "revert" }>;

/** Changes in force: of this host by the empty name, of a far end by its own. */
const inForce = signal<Record<string, Listed>>({});
const undone = signal<{ text: string; isBad: boolean } | null>(null);

const tune = <T,>(command: string, at: string): Promise<T> => api.answer<T>(["tune", command, ...(at === "" ? [] : ["--at", at])], given());

async function list(at: string): Promise<void> {
  inForce.value = { ...inForce.value, [at]: await tune<Listed>("journal", at) };
}

async function undo(command: "revert" | "confirm", at: string): Promise<void> {
  try {
    const ended = await tune<Partial<Reverted>>(command, at);
    const back = (ended.put_back?.length ?? 0) + (ended.were_back?.length ?? 0);
    const left = [...(ended.foreign ?? []), ...(ended.failed ?? [])].map((one) => loops.target(one.target));
    const text = command === "confirm" ? "kept until the next boot" : `reverted: ${loops.settings(back)} as before`;
    const isBad = left.length > 0;
    undone.value = { text: isBad ? `${text}; left alone, as somebody else changed it: ${left.join(", ")}` : text, isBad };
  } catch (error) {
    undone.value = { text: textOf(error), isBad: true };
  }
  await list(at).catch(() => undefined);
}

function InForce() {
  const host = typed("host");
  const { journals, kept, putBack } = loop.value;
  const look = (at: string, isQuiet: boolean) => {
    list(at).catch((error: unknown) => {
      if (error instanceof api.Refusal && !isQuiet) undone.value = { text: `${error.message}; in a terminal: ${revertThere(at)}`, isBad: true };
    });
  };
  const lookThere = () => {
    if (typed("tune_token") === "") {
      undone.value = { text: `type the tune token of ${host} first`, isBad: true };
      document.getElementById("fix-tune_token")?.focus();
    } else look(host, false);
  };
  useEffect(() => {
    look("", true);
    if (journals?.far != null && typed("tune_token") !== "") look(host, true);
    return api.onBack(() => {
      look("", true);
    });
  }, [journals === null, kept, putBack]);
  return (
    <section class="panel" aria-labelledby="in-force">
      <h2 id="in-force">Changes in force</h2>
      {Object.entries(inForce.value).map(([at, listed]) => (
        <Journals key={at} listed={listed} at={at} />
      ))}
      {undone.value && (
        <p class={undone.value.isBad ? "error" : "good"} role="status">
          {undone.value.text}
        </p>
      )}
      {host !== "" && (
        <p class="small">
          <button type="button" class="quiet" onClick={lookThere}>
            List those of <Name>{host}</Name>
          </button>
        </p>
      )}
    </section>
  );
}

function Journals({ listed: { journals, damaged }, at }: { listed: Listed; at: string }) {
  const name = at || "this host";
  return (
    <div class="journals">
      <p>
        <Name>{name}</Name>
        {journals.length === 0 && ": none"}
      </p>
      {journals.map((one) => (
        <div key={one.id}>
          <ul class="plain">
            {one.settings.map((setting) => (
              <li key={loops.target(setting.target)}>
                <code>{`${loops.target(setting.target)}: ${loops.valueOf(setting.before)} -> ${setting.wrote}`}</code>
                {setting.standing === "foreign" && ` (now ${loops.valueOf(setting.now)}, set by somebody else)`}
              </li>
            ))}
          </ul>
          <p class="faint small">
            journal {one.id}, {one.standing.replaceAll("_", " ")} since {moment(one.started_unix_ms)}
            {one.until_unix_ms !== null && `; reverts at ${moment(one.until_unix_ms)} unless kept`}
          </p>
        </div>
      ))}
      {damaged.map((one) => (
        <p key={one.path} class="error">
          {one.path}: {one.cause}
        </p>
      ))}
      {journals.length > 0 && (
        <div class="actions">
          <Act label={`Undo on ${name}`} act={() => void undo("revert", at)}>
            Undo
          </Act>
          {journals.some((one) => one.standing === "pending") && (
            <Act label={`Keep on ${name}`} act={() => void undo("confirm", at)}>
              Keep
            </Act>
          )}
        </div>
      )}
    </div>
  );
}
