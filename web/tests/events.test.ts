import { describe, expect, it } from "vitest";
import { newLive, stageWords, take, type Live } from "../src/events";
import type { Event, JobOutcome as Outcome, Progress } from "../src/generated/job";

const progress = (values: Partial<Progress>, repetition = 1): Event => ({
  schema: "bdp.event/1",
  event: "progress",
  repetition,
  progress: {
    stage: { direction: "to" },
    elapsed_ns: 100e6,
    total_ns: 1e9,
    span_ns: 100e6,
    goodput_bps: [["to", 5e6]],
    stream_goodput_bps: [["to", [2e6, 3e6]]],
    sender_infos: [],
    arrivals: [],
    datagram_bytes: null,
    is_last: false,
    rtt_ns: 20e6,
    ...values,
  },
});

const idle = (ms: number): Event =>
  progress({ stage: "idle", elapsed_ns: ms * 1e6, total_ns: 2e9, goodput_bps: [], stream_goodput_bps: [] });

const outcome: Outcome = {
  schema: "bdp.outcome/1",
  run: "7f3a",
  ending: "done",
  kept: 1,
  expectations: [],
  baseline: [],
  error: null,
};

const after = (...events: (Event | Outcome)[]): Live => {
  const live = newLive();
  for (const [index, event] of events.entries()) take(live, index + 1, event);
  return live;
};

const drawn = (live: Live) => live.points.filter((point) => point.toSum !== null || point.rttNs !== null);

describe("events", () => {
  it("puts stages on one time axis", () => {
    const live = after(idle(100), idle(2000), progress({}), progress({ elapsed_ns: 200e6 }));
    expect(drawn(live).map((point) => point.t)).toEqual([0.1, 2, 2.1, 2.2]);
    expect(live.spans.map((span) => [span.start, span.kind])).toEqual([
      [0, "idle"],
      [2, "direction"],
    ]);
    expect(live.until).toBe(3);
    expect(live.streams).toBe(2);
  });
  it("ignores what it has seen, as after a reload", () => {
    const live = after(idle(100), idle(200));
    expect(take(live, 2, idle(200))).toBe(false);
    expect(take(live, 1, idle(100))).toBe(false);
    expect(live.points).toHaveLength(2);
    expect(take(live, 3, idle(300))).toBe(true);
    expect(live.missed).toBe(0);
  });
  it("breaks the curve at a gap and counts it", () => {
    const live = after(progress({}));
    take(live, 12, progress({ elapsed_ns: 2e9, total_ns: 10e9 }));
    expect(live.missed).toBe(10);
    expect(live.points.map((point) => point.toSum)).toEqual([5e6, null, 5e6]);
    const ts = live.points.map((point) => point.t);
    expect([...ts].sort((a, b) => a - b)).toEqual(ts);
    expect(new Set(ts).size).toBe(3);
  });
  it("counts retransmissions since the last reading", () => {
    const info = (n: number): Partial<Progress> => ({ sender_infos: [["to", [{ total_retrans: n }, { total_retrans: 1 }]]] });
    const live = after(progress(info(0)), progress({ elapsed_ns: 200e6, ...info(4) }), progress({ elapsed_ns: 300e6, ...info(4) }));
    expect(live.points.map((point) => point.retransmits)).toEqual([1, 4, 0]);
    expect(live.retransmits).toBe(5);
  });
  it("reads loss and jitter of datagrams", () => {
    const arrivals: Progress["arrivals"] = [["from", [{ sent: 100, received: 90, jitter_ns: 2e6 }]]];
    const live = after(progress({ stage: { direction: "from" }, arrivals }));
    expect(live.isUdp).toBe(true);
    expect(live.lossRatio).toBeCloseTo(0.1);
    expect(live.jitterNs).toBe(2e6);
  });
  it("begins anew with the next repetition", () => {
    const live = after(progress({}), progress({}, 2));
    expect(live.repetition).toBe(2);
    expect(live.points).toHaveLength(1);
  });
  it("draws no rate of a moment", () => {
    const live = after(progress({}), progress({ elapsed_ns: 105e6, is_last: true, span_ns: 5e6, goodput_bps: [["to", 9e9]] }));
    expect(live.points.map((point) => point.toSum)).toEqual([5e6, null]);
  });
  it("draws no rate of stragglers after the end", () => {
    const live = after(progress({}), progress({ elapsed_ns: 1.1e9, goodput_bps: [["to", 1e6]] }));
    expect(live.points.map((point) => point.toSum)).toEqual([5e6, null]);
  });
  it("ends with the outcome", () => {
    const live = after(progress({}), outcome);
    expect(live.outcome?.ending).toBe("done");
    expect(live.run).toBe("7f3a");
    expect(live.stage).toBeNull();
  });
  it("names stages, also those of later versions", () => {
    const words = (stage: unknown) => {
      const live = after(progress({ stage: stage as Progress["stage"] }));
      return live.stage ? stageWords(live.stage, "ams1") : null;
    };
    expect(words("idle")).toBe("idle round trip");
    expect(words({ direction: "from" })).toBe("from ams1");
    expect(words({ experiment: ["to", ["path_rate", "policer"]] })).toBe("experiment to ams1: path rate or policer?");
    expect(words({ later: 1 })).toBe("measuring");
  });
});

describe("jobs of any kind", () => {
  const event = (members: object) => ({ schema: "bdp.event/1", ...members }) as unknown as Event;

  it("keeps events, the result and an open question", () => {
    const live = newLive();
    take(live, 1, event({ event: "question", question: { about: "keep" } }));
    expect(live.question).toEqual({ about: "keep" });
    take(live, 2, event({ event: "kept", settings: 2 }));
    expect(live.question).toBeNull();
    take(live, 3, event({ event: "result", document: { schema: "bdp.sweep/1" } }));
    expect(live.result).toEqual({ schema: "bdp.sweep/1" });
    expect(live.events).toHaveLength(3);
  });
});
