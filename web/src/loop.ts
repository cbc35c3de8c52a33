// The loop of `bdp fix`, from its events. Pure: the page shows it, the tests feed it.
import { percent, rate, size, time } from "./format";
import type { Event, JobOutcome as Outcome } from "./generated/job";
import type { Measurement } from "./generated/measurement";
import type { Change, Limit, PlanDocument, Reason, Refused, Target } from "./generated/plan";
import type { RehearsalDocument } from "./generated/rehearsal";
import type { VerificationDocument } from "./generated/verification";
import { arrow, stateName } from "./words";

export type Verified = VerificationDocument["directions"][number];
export type Figure = Verified["goodput_bps"];
export type Variant = RehearsalDocument["variants"][number];
export type Predicted = Variant["directions"][number];

/** What the loop has come to. */
export interface Loop {
  stage: string | null;
  /** Streams of the measurement that shows the path's rate. */
  streams: number | null;
  run: string | null;
  before: Measurement | null;
  capacity: { streams: number; run: string | null; measurement: Measurement }[];
  plan: PlanDocument | null;
  notRehearsed: string | null;
  rehearsal: RehearsalDocument | null;
  /** Changes of the far end that need its tune token. */
  left: number;
  nothingApplied: boolean;
  /** Numbers of the journals of the applied changes. */
  journals: { near: number | null; far: number | null } | null;
  verification: VerificationDocument | null;
  kept: boolean;
  /** Number of settings that are as before again. */
  putBack: number | null;
  notPutBack: string | null;
}

/** The events of a name. */
type Of<K, E = Event> = E extends { event?: infer N } ? (K extends N ? E : never) : never;

/** Takes in the events of a job. */
export function loopOf(events: readonly Event[]): Loop {
  const last = <K extends Event["event"]>(name: K) => events.findLast((one) => one.event === name) as Of<K> | undefined;
  const stage = last("stage");
  const loop: Loop = {
    stage: stage?.stage ?? null,
    streams: stage?.streams ?? null,
    run: null,
    before: null,
    capacity: [],
    plan: (last("plan")?.plan as PlanDocument | undefined) ?? null,
    notRehearsed: last("not_rehearsed")?.why ?? null,
    rehearsal: (last("rehearsed")?.rehearsal as RehearsalDocument | undefined) ?? null,
    left: last("left_to_owner")?.changes ?? 0,
    nothingApplied: last("nothing_applied") !== undefined,
    journals: last("applied")?.journals ?? null,
    verification: (last("verified")?.verification as VerificationDocument | undefined) ?? null,
    kept: last("kept") !== undefined,
    putBack: last("put_back")?.settings ?? null,
    notPutBack: last("not_put_back")?.why ?? null,
  };
  let at: Of<"stage"> | undefined;
  for (const event of events) {
    if (event.event === "stage") at = event;
    if (event.event !== "measurement_ended") continue;
    const measurement = event.measurement as Measurement;
    if (at?.stage === "measure") [loop.before, loop.run] = [measurement, event.run];
    else if (at?.stage === "capacity") loop.capacity.push({ streams: at.streams ?? 1, run: event.run, measurement });
  }
  return loop;
}

export type StepName = "measure" | "why" | "plan" | "rehearse" | "apply" | "verify" | "keep";
export type StepState = "later" | "runs" | "asks" | "done" | "failed" | "stopped" | "omitted";

/** What each state is called. */
export const STATES: Record<StepState, string> = {
  later: "not yet",
  runs: "running",
  asks: "waiting for you",
  done: "done",
  failed: "failed",
  stopped: "stopped",
  omitted: "omitted",
};

export interface Step {
  name: StepName;
  state: StepState;
}

const STAGES: Record<string, StepName> = {
  measure: "measure",
  capacity: "measure",
  plan: "plan",
  rehearse: "rehearse",
  apply: "apply",
  verify: "verify",
};

/** The steps in order, each with its state. */
export function steps(loop: Loop, asks: string | null, outcome: Outcome | null): Step[] {
  const done: Record<StepName, boolean> = {
    measure: loop.before !== null && loop.stage !== "measure" && loop.stage !== "capacity",
    why: loop.before !== null,
    plan: loop.plan !== null,
    rehearse: loop.rehearsal !== null,
    apply: loop.journals !== null,
    verify: loop.verification !== null,
    keep: loop.kept || loop.putBack !== null,
  };
  const runs = outcome === null && loop.stage !== null ? STAGES[loop.stage] : undefined;
  const asking: StepName | null = asks === "apply" ? "apply" : asks === "keep" ? "keep" : null;
  const broken = outcome?.ending === "failed" ? "failed" : outcome?.ending === "cancelled" ? "stopped" : null;
  // A loop that broke did so at the first step that is not done.
  let hasBroken = false;
  return (Object.keys(done) as StepName[]).map((name) => {
    const state = (): StepState => {
      if (name === "keep" && loop.notPutBack !== null) return "failed";
      if (done[name]) return "done";
      if (name === "rehearse" && loop.notRehearsed !== null) return "omitted";
      if (outcome === null) return asking === name ? "asks" : runs === name ? "runs" : "later";
      if (broken !== null && !hasBroken) {
        hasBroken = true;
        return broken;
      }
      return "omitted";
    };
    return { name, state: state() };
  });
}

/** Changes that the loop asks for: those of the rehearsal's choice, without those that the far end's owner has to make. */
export function wanted(loop: Loop): Change[] {
  const { plan, rehearsal } = loop;
  if (!plan) return [];
  const all = rehearsal ? (chosen(rehearsal)?.changes ?? []) : plan.changes;
  return loop.left > 0 ? all.filter((one) => one.end === "near") : all;
}

export const chosen = (rehearsal: RehearsalDocument): Variant | undefined =>
  rehearsal.variants.find((one) => one.name === rehearsal.choice);

/** `net.ipv4.tcp_rmem`, `route to 192.0.2.7 congctl` */
export function target(of: Target): string {
  switch (of.kind) {
    case "sysctl":
      return of.name;
    case "route":
      return `route to ${of.to} ${of.attribute}`;
    case "qdisc":
      return `qdisc of ${of.device}`;
  }
}

/** Tells one change of a loop from another. */
export const keyOf = (change: Pick<Change, "end" | "target" | "to">): string => `${change.end} ${target(change.target)} ${change.to}`;

/** A machine of a plan: its name, or which end it is if both have the same. */
export function host(plan: PlanDocument, end: "near" | "far"): string {
  const name = plan[end]?.name ?? "";
  return name !== "" && plan.near.name !== plan.far?.name ? name : `the ${end} end`;
}

/** Values as the kernel prints them are apart by tabs or blanks. */
export const valueOf = (text: string | null): string => text ?? "not set";

export function reason(plan: PlanDocument, change: Change): string {
  const of: Reason = change.reason;
  const why = (): string => {
    switch (of.kind) {
      case "buffer":
        return `the path needs ${size(of.in_flight_bytes)} in flight; the kernel keeps that in a buffer of ${size(of.needed_bytes)}`;
      case "off":
        return "it is off, and this path needs it";
      case "random_loss":
        return `${percent(of.loss)} of the segments are lost whatever the rate, and ${of.congestion_control} makes its window smaller after each loss`;
      case "standing_queue":
        return `the sender keeps a queue standing that adds ${time(of.added_ns)} to the median round trip`;
      case "shallow_queue":
        return "its bursts overflow a short queue on the path";
      case "policer":
        return `the path drops what exceeds ${rate(of.rate_bps)}; a sender that goes by rate loses less`;
      case "slow_start":
        return `the transfer was over after ${of.round_trips.toFixed(0)} round trips, in slow start; a larger first window saves some`;
      case "timeouts":
        return `${String(of.timeouts)} retransmission timeouts, each of at least 200 ms, many round trips of this path`;
      case "mtu_black_hole":
        return `packets of full size vanish; with it ${host(plan, change.end)} finds the size that passes`;
      case "host_drops":
        return `the kernel dropped ${String(of.packets)} packets of its receive backlog`;
    }
  };
  const gain = change.gain;
  if (!gain) return why();
  const way = arrow(gain.direction);
  if (gain.loaded_rtt_less_ns !== null) return `${why()}; by the model ${way} up to ${time(gain.loaded_rtt_less_ns)} less round trip under load`;
  const next = gain.next === null ? "" : `; then ${noun(gain.next)} is the limit`;
  return `${why()}; by the model ${way} ${rate(gain.before_bps)} -> ${rate(gain.after_bps)}${next}`;
}

/** Why something is left alone. */
export function refusal(plan: PlanDocument, { target: of, end, why }: Refused): string {
  const what = of ? `${target(of)}${end ? ` on ${host(plan, end)}` : ""}: ` : "";
  const bytes = (text: string) => (Number(text) >= 4096 ? size(Number(text)) : text);
  switch (why.kind) {
    case "not_of_hosts":
      return `${arrow(why.direction)} ${noun(why.limit)}: no setting of a host changes that`;
    case "enough":
      return `${what}${why.value} is enough; the path needs ${bytes(why.needed)}`;
    case "not_read":
      return `${what}this kernel does not read it`;
    case "memory":
      return `${what}it takes ${size(why.needed_bytes)}, and TCP on this host may take ${size(why.available_bytes)} before it saves memory`;
    case "not_available":
      return `${what}its kernel has no ${why.name}; 'modprobe tcp_${why.name}' may load it`;
    case "not_ours":
      return `${what}somebody set it to '${why.value}', and bdp could not put that back`;
    case "asked":
      return `${why.option} was asked for, and binds; leave it out`;
    case "unknown":
      return `${what}its value there is not known`;
  }
}

const NOUNS: Partial<Record<Limit, string>> = {
  path_rate: "the path's bottleneck",
  shallow_queue: "the short queue",
  half_duplex: "the half-duplex medium",
  cross_traffic: "other traffic",
  ecn_marks: "congestion marks (ECN)",
  congestion_loss: "losses of a full queue",
  random_loss: "random loss",
  sack_missing: "recovery without SACK",
  timestamps_missing: "retransmission without timestamps",
  reordering: "reordering",
  reverse_path: "the way back",
  mtu_black_hole: "the MTU black hole",
  path_changed: "the change of the path",
  slow_start: "slow start",
  slow_writer: "the sending program",
  slow_reader: "the receiving program",
  cpu: "a processor",
  unknown: "something unknown",
};

/** `the receive window`, as the terminal says it. */
export const noun = (limit: Limit): string => NOUNS[limit] ?? `the ${stateName(limit)}`;

const VERDICTS: Record<Figure["verdict"], string> = {
  held: "HELD",
  exceeded: "EXCEEDED",
  missed: "MISSED",
  not_predicted: "measured",
};

/** `HELD → 14.8 Mbit/s -> 44.0 Mbit/s, predicted 45.7 Mbit/s (41.1 Mbit/s to 50.2 Mbit/s): -3.7 %` */
export function verdict(figure: Figure, way: "to" | "from", what: string, print: (value: number) => string): string {
  const begin = `${VERDICTS[figure.verdict]} ${arrow(way)} ${what}${print(figure.before)} -> ${print(figure.now)}`;
  if (figure.predicted === null || !figure.range) return begin;
  const off = figure.predicted > 0 ? figure.now / figure.predicted - 1 : 0;
  const [low, high] = figure.range;
  return `${begin}, predicted ${print(figure.predicted)} (${print(low)} to ${print(high)}): ${off < 0 ? "-" : "+"}${percent(Math.abs(off))}`;
}

/** What limits a direction after the change. */
export function limitNow(of: Verified): string | null {
  const [before, now] = [of.limit_before, of.limit_now];
  if (now === null) return null;
  const way = arrow(of.direction);
  const { verdict: judged, ...goodput } = of.goodput_bps;
  const isBetter = (judged === "held" || judged === "exceeded") && goodput.now > goodput.before;
  if (before === now && isBetter) return `${way} ${noun(now)} binds still, at the rate that was planned`;
  if (before === now) return `${way} still limited by ${noun(now)}`;
  return `${way} limited by ${noun(now)}${before === null ? "" : `, before by ${noun(before)}`}`;
}

/** The loop's result in one sentence, once there is one. */
export function conclusion(loop: Loop, outcome: Outcome | null): string | null {
  const { plan, rehearsal, verification } = loop;
  if (outcome !== null && outcome.error !== null) return outcome.error;
  if (verification) {
    // Goodput, and whatever else was missed.
    const of = verification.directions.flatMap((one) => [
      verdict(one.goodput_bps, one.direction, "", rate),
      ...(one.loaded_p50_ns?.verdict === "missed" ? [verdict(one.loaded_p50_ns, one.direction, "round trip under load ", time)] : []),
    ]);
    const end = loop.kept ? "; kept until the next boot" : loop.putBack === null ? "" : `; reverted: ${settings(loop.putBack)} as before`;
    return `${of.join("; ")}${end}`;
  }
  if (outcome === null) return null;
  if (outcome.ending === "cancelled") return loop.notPutBack ?? "stopped; nothing stays changed";
  if (plan?.changes.length === 0) {
    const why = plan.refused[0];
    return `nothing to change${why ? `: ${refusal(plan, why)}` : ""}`;
  }
  if (rehearsal?.choice === null) return "nothing: no change is better than what is there";
  if (loop.nothingApplied) return "nothing was applied";
  return null;
}

export const settings = (count: number): string => `${String(count)} setting${count === 1 ? "" : "s"}`;

/** `→ 14.5 Mbit/s -> 45.7 Mbit/s, round trip under load 40.4 ms -> 40.4 ms` */
export function prediction(rehearsal: RehearsalDocument): string {
  const before = rehearsal.variants.find((one) => one.name === "before");
  const parts = (chosen(rehearsal)?.directions ?? []).map((now) => {
    const then = before?.directions.find((one) => one.direction === now.direction);
    if (!then) return "";
    const delay =
      then.loaded_p50_ns && now.loaded_p50_ns
        ? `, round trip under load ${time(then.loaded_p50_ns.mean)} -> ${time(now.loaded_p50_ns.mean)}`
        : "";
    return `${arrow(now.direction)} ${rate(then.goodput_bps.mean)} -> ${rate(now.goodput_bps.mean)}${delay}`;
  });
  return parts.filter((part) => part !== "").join("; ");
}

/** Seconds of a duration as the command line takes it: `10m`, `90`, `1h`. */
export function secondsOf(text: string): number | null {
  const found = /^(\d+(?:\.\d+)?)(ms|s|m|min|h|d)?$/.exec(text.trim());
  const factor = { ms: 1e-3, s: 1, m: 60, min: 60, h: 3600, d: 86400 }[found?.[2] ?? "s"];
  return found && factor !== undefined ? Number(found[1]) * factor : null;
}

export const duration = (s: number): string => (s >= 120 ? `${String(Math.round(s / 6) / 10)} min` : `${String(s)} s`);

/** Time after which the changes of a fix revert, seconds, by its command. */
export const keepsFor = (command: string): number => secondsOf(/ --for[ =]'?([\w.]+)/.exec(command)?.[1] ?? "10m") ?? 600;
