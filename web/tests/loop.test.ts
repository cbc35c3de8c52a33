import { describe, expect, it } from "vitest";
import { rate, time } from "../src/format";
import type { Event, JobOutcome as Outcome } from "../src/generated/job";
import {
  conclusion,
  duration,
  host,
  keepsFor,
  keyOf,
  limitNow,
  loopOf,
  noun,
  prediction,
  reason,
  refusal,
  secondsOf,
  steps,
  target,
  verdict,
  wanted,
  type Verified,
} from "../src/loop";

const change = (end: "near" | "far", to = "4096 131072 425984") => ({
  end,
  target: { kind: "sysctl", name: "net.ipv4.tcp_rmem" },
  from: "4096 131072 131072",
  to,
  reason: { kind: "buffer", needed_bytes: 425984, in_flight_bytes: 259983 },
  gain: null,
});

const planOf = (...changes: ReturnType<typeof change>[]) => ({
  schema: "bdp.plan/1",
  run: "62a9",
  path: { rtt_ns: 40284751, mss_bytes: 1448, streams: 1, directions: [] },
  near: { name: "fra1", address: "198.18.0.1", kernel: "6.18", device: "link0" },
  far: { name: "ams1", address: "198.18.0.2", kernel: "6.18", device: "link0" },
  changes,
  alternatives: [],
  programs: [],
  refused: [{ end: null, target: null, why: { kind: "not_of_hosts", direction: "to", limit: "path_rate" } }],
});

const estimate = (mean: number) => ({ n: 3, mean, interval: [mean, mean], next: [mean, mean] });
const variant = (name: string, bps: number, changes: unknown[]) => ({
  name,
  changes,
  not_shown: [],
  directions: [
    { direction: "to", goodput_bps: estimate(bps), loaded_p50_ns: estimate(40.4e6), loaded_p95_ns: null, retransmitted: null, beside: null },
  ],
});

const figure: Verified["goodput_bps"] = { before: 14769473, predicted: 45681009, range: [41112908, 50249110], now: 44002853, verdict: "held" };
const verified: Verified = { direction: "to", goodput_bps: figure, loaded_p50_ns: null, limit_before: "receive_window", limit_now: "path_rate" };

const event = (name: string, members: Record<string, unknown> = {}): Event => ({ schema: "bdp.event/1", event: name, ...members }) as unknown as Event;
const measured = (run: string) => event("measurement_ended", { run, measurement: { schema: "bdp.measurement/1" } });
const outcome = (ending: Outcome["ending"], error: string | null = null) =>
  ({ schema: "bdp.outcome/1", run: "62a9", ending, kept: 2, expectations: [], baseline: [], error }) as Outcome;

const START = [event("stage", { stage: "measure", streams: null }), measured("62a9")];
const PLANNED = [
  ...START,
  event("stage", { stage: "capacity", streams: 8 }),
  measured("6da9"),
  event("stage", { stage: "plan", streams: null }),
  event("plan", { plan: planOf(change("near"), change("far")) }),
];
const rehearsal = {
  runs: 3,
  choice: "plan",
  variants: [variant("before", 14.5e6, []), variant("plan", 45.7e6, [change("near"), change("far")])],
};
const REHEARSED = [...PLANNED, event("stage", { stage: "rehearse", streams: null }), event("rehearsed", { rehearsal })];
const APPLIED = [...REHEARSED, event("stage", { stage: "apply", streams: null }), event("applied", { journals: { near: null, far: 1 } })];
const VERIFIED = [
  ...APPLIED,
  event("stage", { stage: "verify", streams: null }),
  measured("2ba6"),
  event("verified", { verification: { run: "62a9", again: "2ba6", predicted: "plan", directions: [verified] } }),
];

const states = (events: Event[], asks: string | null = null, end: Outcome | null = null) =>
  steps(loopOf(events), asks, end)
    .map((step) => step.state)
    .join(" ");

describe("the steps", () => {
  it("follow the loop", () => {
    expect(states([])).toBe("later later later later later later later");
    expect(states(START.slice(0, 1))).toBe("runs later later later later later later");
    expect(states(PLANNED.slice(0, 3))).toBe("runs done later later later later later");
    expect(states(PLANNED)).toBe("done done done later later later later");
    expect(states(REHEARSED.slice(0, -1))).toBe("done done done runs later later later");
    expect(states(REHEARSED, "apply")).toBe("done done done done asks later later");
    expect(states(APPLIED.slice(0, -1))).toBe("done done done done runs later later");
    expect(states(VERIFIED.slice(0, -1))).toBe("done done done done done runs later");
    expect(states(VERIFIED, "keep")).toBe("done done done done done done asks");
    expect(states([...VERIFIED, event("kept")], null, outcome("done"))).toBe("done done done done done done done");
  });
  it("end where there is nothing to do", () => {
    const none = [...START, event("stage", { stage: "plan", streams: null }), event("plan", { plan: planOf() })];
    expect(states(none, null, outcome("done"))).toBe("done done done omitted omitted omitted omitted");
    expect(states([...REHEARSED, event("nothing_applied")], null, outcome("done"))).toBe("done done done done omitted omitted omitted");
  });
  it("fail where the loop broke", () => {
    expect(states(APPLIED.slice(0, -1), null, outcome("failed", "the tune token is wrong"))).toBe(
      "done done done done failed omitted omitted",
    );
    expect(states(START.slice(0, 1), null, outcome("cancelled"))).toBe("stopped omitted omitted omitted omitted omitted omitted");
    const stuck = [...APPLIED, event("not_put_back", { why: "no answer" })];
    expect(states(stuck, null, outcome("failed", "x"))).toBe("done done done done done failed failed");
  });
  it("go on without a rehearsal", () => {
    expect(states([...PLANNED, event("not_rehearsed", { why: "no guest" })], "apply")).toBe("done done done omitted asks later later");
  });
});

describe("the loop", () => {
  it("keeps the measurements of each stage apart", () => {
    const loop = loopOf(VERIFIED);
    expect([loop.run, loop.capacity[0]?.run, loop.capacity[0]?.streams]).toEqual(["62a9", "6da9", 8]);
  });
  it("asks for the changes of the choice, and leaves those of the far end to its owner", () => {
    expect(wanted(loopOf(REHEARSED)).map((one) => one.end)).toEqual(["near", "far"]);
    expect(wanted(loopOf([...REHEARSED, event("left_to_owner", { changes: 1 })])).map((one) => one.end)).toEqual(["near"]);
    expect(wanted(loopOf(PLANNED)).length).toBe(2);
    expect(wanted(loopOf([]))).toEqual([]);
  });
  it("tells changes apart", () => {
    const [near, far] = wanted(loopOf(PLANNED));
    expect(near && keyOf(near)).toBe("near net.ipv4.tcp_rmem 4096 131072 425984");
    expect(near && keyOf(near)).not.toBe(far && keyOf(far));
  });
});

describe("the words of the terminal", () => {
  const loop = loopOf(VERIFIED);
  it("judge a prediction", () => {
    expect(verdict(figure, "to", "", rate)).toBe("HELD → 14.8 Mbit/s -> 44.0 Mbit/s, predicted 45.7 Mbit/s (41.1 Mbit/s to 50.2 Mbit/s): -3.7 %");
    const alone = { ...figure, predicted: null, range: null, verdict: "not_predicted" as const };
    expect(verdict(alone, "from", "", rate)).toBe("measured ← 14.8 Mbit/s -> 44.0 Mbit/s");
    const delay = { before: 40.9e6, predicted: 40.4e6, range: [32.3e6, 48.4e6] as [number, number], now: 60e6, verdict: "missed" as const };
    expect(verdict(delay, "to", "round trip under load ", time)).toMatch(/^MISSED → round trip under load 40.9 ms -> 60.0 ms, .*: \+49 %$/);
  });
  it("name what limits it now", () => {
    expect(limitNow(verified)).toBe("→ limited by the path's bottleneck, before by the receive window");
    expect(limitNow({ ...verified, limit_now: "receive_window" })).toBe("→ the receive window binds still, at the rate that was planned");
    expect(limitNow({ ...verified, limit_now: "receive_window", goodput_bps: { ...figure, verdict: "missed" } })).toBe(
      "→ still limited by the receive window",
    );
    expect(limitNow({ ...verified, limit_now: null })).toBeNull();
    expect(noun("policer")).toBe("the policer");
  });
  it("conclude in a sentence", () => {
    expect(conclusion(loop, null)).toMatch(/^HELD → 14.8/);
    expect(conclusion(loopOf([...VERIFIED, event("kept")]), outcome("done"))).toMatch(/; kept until the next boot$/);
    expect(conclusion(loopOf([...VERIFIED, event("put_back", { settings: 1 })]), outcome("done"))).toMatch(/; reverted: 1 setting as before$/);
    const slow = { before: 41.9e6, predicted: 40.4e6, range: [32.3e6, 48.4e6] as [number, number], now: 50.9e6, verdict: "missed" as const };
    const missed = event("verified", { verification: { predicted: "plan", directions: [{ ...verified, loaded_p50_ns: slow }] } });
    expect(conclusion(loopOf([...APPLIED, missed]), null)).toMatch(/^HELD → .*; MISSED → round trip under load 41.9 ms -> 50.9 ms/);
    expect(conclusion(loopOf(REHEARSED), null)).toBeNull();
    expect(conclusion(loopOf(START), outcome("failed", "no route"))).toBe("no route");
    expect(conclusion(loopOf(VERIFIED), outcome("failed", "the far end does not answer"))).toBe("the far end does not answer");
    expect(conclusion(loopOf(REHEARSED), outcome("cancelled"))).toBe("stopped; nothing stays changed");
    expect(conclusion(loopOf([...APPLIED, event("not_put_back", { why: "no answer" })]), outcome("cancelled"))).toBe("no answer");
    const none = [...START, event("plan", { plan: planOf() })];
    expect(conclusion(loopOf(none), outcome("done"))).toBe("nothing to change: → the path's bottleneck: no setting of a host changes that");
    const worse = [...PLANNED, event("rehearsed", { rehearsal: { ...rehearsal, choice: null } })];
    expect(conclusion(loopOf(worse), outcome("missed"))).toBe("nothing: no change is better than what is there");
  });
  it("predict, explain and refuse", () => {
    expect(loop.rehearsal && prediction(loop.rehearsal)).toBe("→ 14.5 Mbit/s -> 45.7 Mbit/s, round trip under load 40.4 ms -> 40.4 ms");
    const { plan } = loop;
    if (!plan) throw new Error("no plan");
    const one = plan.changes[0];
    expect(one && reason(plan, one)).toBe("the path needs 254 KiB in flight; the kernel keeps that in a buffer of 416 KiB");
    const gain = { direction: "to" as const, before_bps: 15e6, after_bps: 45e6, next: "path_rate" as const, loaded_rtt_less_ns: null };
    expect(one && reason(plan, { ...one, gain })).toMatch(/; by the model → 15.0 Mbit\/s -> 45.0 Mbit\/s; then the path's bottleneck is the limit$/);
    const wmem = { kind: "sysctl" as const, name: "net.ipv4.tcp_wmem" };
    expect(refusal(plan, { end: "near", target: wmem, why: { kind: "enough", value: "4096 16384 4194304", needed: "524288" } })).toBe(
      "net.ipv4.tcp_wmem on fra1: 4096 16384 4194304 is enough; the path needs 512 KiB",
    );
    expect(host({ ...plan, far: { ...plan.near } }, "far")).toBe("the far end");
    expect(target({ kind: "route", to: "192.0.2.7", attribute: "congctl" })).toBe("route to 192.0.2.7 congctl");
  });
});

describe("the time until a change reverts", () => {
  it("is that of the command", () => {
    expect(keepsFor("bdp fix ams1 --direction to")).toBe(600);
    expect(keepsFor("bdp fix ams1 --for 90")).toBe(90);
    expect(keepsFor("bdp fix ams1 --for=30m -t 3")).toBe(1800);
    expect(secondsOf("soon")).toBeNull();
    expect([duration(600), duration(90), duration(5400)]).toEqual(["10 min", "90 s", "90 min"]);
  });
});
