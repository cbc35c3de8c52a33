import { describe, expect, it } from "vitest";
import type { Event } from "../src/generated/job";
import type { Record as CaseRecord } from "../src/generated/lab-run";
import { chartOf, figureText, labState, median, namesOf, pointText, quantity, rowsOf } from "../src/lab";
import { xyCsv } from "../src/xy";

/** A record with what the page reads. */
function record(params: Record<string, unknown>, values: Record<string, unknown> = {}): CaseRecord {
  return {
    scenario: "s",
    params,
    repetition: 1,
    attempt: 1,
    valid: true,
    error: null,
    fidelity: { broken: [], cause: null },
    goodput_bps: 1e6,
    expected_bps: 2e6,
    expected_by: null,
    published_bps: null,
    expectation: null,
    rtt_idle_ns: 1e6,
    window: { on_the_wire_bytes: 1000 },
    flows: [],
    ...values,
  } as unknown as CaseRecord;
}

describe("a published figure", () => {
  it("has its cases, its note and its rows", () => {
    const none = { when: {}, goodput_bps: null, note: null, rows: [] };
    expect(figureText({ ...none, when: { "link.forward.delay": "40ms" }, goodput_bps: [5.57e6, 5.6e6] })).toBe(
      "5.57 Mbit/s to 5.60 Mbit/s; link.forward.delay=40ms",
    );
    const rows = [{ name: "Linux 2.6", mean_bps: 213_980 }];
    expect(figureText({ when: { "flow.window": "..1447" }, goodput_bps: 50_000, note: "a note", rows })).toBe(
      "50.0 kbit/s; flow.window=..1447; a note; Linux 2.6 214 kbit/s",
    );
    expect(figureText(none)).toBe("");
  });
});

describe("parameters", () => {
  it.each([
    ["flow.window", "64K", 65536],
    ["flow.window", "319kB", 319_000],
    ["flow.window", "1MiB", 2 ** 20],
    ["flow.window", 576, 576],
    ["link.rate", "100M", 1e8],
    ["link.delay", "500us", 0.0005],
    ["link.loss", "0.1%", 0.001],
    ["link.loss", { every: 1000 }, 0.001],
    ["link.limit", "1000p", NaN],
    ["link.window_scale", "keep", NaN],
    ["hosts.far.sack", true, NaN],
  ])("%s = %j", (path, value, wanted) => {
    expect(String(quantity(path, value))).toBe(String(wanted));
  });
  it("are written as in keys", () => {
    expect(pointText({ b: "64K", a: { every: 1000 } })).toBe('a={"every":1000} b=64K');
  });
  it("have a median", () => {
    expect([median([]), median([3, null, 1]), median([1, 2, 4, 8])]).toEqual([null, 2, 3]);
  });
});

describe("points", () => {
  const invalid = { valid: false, attempt: 1, goodput_bps: 5, fidelity: { broken: ["late"], cause: "rustc ran" } };
  it("come in the order of their parameters, with verdict and reason", () => {
    const rows = rowsOf([
      record({ window: "64K" }, { expectation: { text: "within 5%", met: true } }),
      record({ window: "8K" }, invalid),
      record({ window: "8K" }, { attempt: 2, expectation: { text: "within 5%", met: false } }),
      record({ window: "1M" }, invalid),
      record({ window: "2M" }, { valid: false, error: "no <b>bold</b>", goodput_bps: null }),
    ]);
    expect(rows.map((row) => [row.point, row.verdict, row.valid, row.attempts, row.met, row.reason])).toEqual([
      ["window=8K", "VALID", 1, 2, false, "late: rustc ran"],
      ["window=64K", "VALID", 1, 1, true, null],
      ["window=1M", "INVALID", 0, 1, null, "late: rustc ran"],
      ["window=2M", "FAILED", 0, 1, null, "no <b>bold</b>"],
    ]);
    expect(rows[0]?.goodput).toBe(1e6);
  });
  it("are named by what differs", () => {
    expect(namesOf(rowsOf([record({ d: "forward", w: "8K" }), record({ d: "forward", w: "9K" })]))).toEqual(["w=8K", "w=9K"]);
    expect(namesOf(rowsOf([record({})]))).toEqual(["s "]);
  });
});

describe("the chart", () => {
  it("has the parameter with most values as its axis, a curve for each of the others", () => {
    const rows = rowsOf(["8K", "16K", "32K"].flatMap((w) => ["forward", "reverse"].map((d) => record({ "flow.window": w, d }))));
    const chart = chartOf(rows);
    expect(chart?.x).toMatchObject({ label: "flow.window", scale: "doublings" });
    expect(chart?.series.map((one) => [one.label, one.mark, one.points.map((point) => point.x)])).toEqual([
      ["model of d=forward", "dashed", [8192, 16384, 32768]],
      ["d=forward", "line", [8192, 16384, 32768]],
      ["model of d=reverse", "dashed", [8192, 16384, 32768]],
      ["d=reverse", "line", [8192, 16384, 32768]],
    ]);
    expect(chart && chart.x.text(8192)).toBe("8.00 KiB");
  });
  it("has names where there are no numbers, or where parameters change together", () => {
    expect(chartOf(rowsOf([record({ scale: "keep" }), record({ scale: 7 })]))?.x.scale).toEqual(["7", "keep"]);
    const both = chartOf(rowsOf([record({ a: "1ms", b: "2ms" }), record({ a: "2ms", b: "1ms" })]));
    expect(both?.x.scale).toEqual(["a=1ms b=2ms", "a=2ms b=1ms"]);
  });
  it("crosses out what is INVALID and shows published figures", () => {
    const rows = rowsOf([record({ w: 1 }, { valid: false, fidelity: { broken: ["x"], cause: null } }), record({ w: 2 }, { published_bps: [2e6, 4e6] })]);
    const chart = chartOf(rows);
    expect(chart?.series.map((one) => [one.label, one.mark, one.points])).toContainEqual(["INVALID", "crosses", [{ x: 1, y: 1e6 }]]);
    expect(chart?.series.map((one) => [one.label, one.mark, one.points])).toContainEqual(["published", "hollow", [{ x: 2, y: 3e6 }]]);
    expect(chart && xyCsv(chart)).toContain("goodput,2,1000000,,");
  });
  it("needs two points", () => {
    expect(chartOf(rowsOf([record({ w: 1 })]))).toBeNull();
  });
});

describe("events", () => {
  const schema = "bdp.event/1" as const;
  it("tell what runs, what has ended and how long it takes", () => {
    const one = record({ w: "8K" });
    const events = [
      { schema, event: "planned", cases: 2, time_ns: 8e9 },
      { schema, event: "case_started", key: "s w=8K #1", attempt: 1 },
      { schema, event: "case_started", key: "s w=9K #1 by the virtual clock", attempt: 1 },
      { schema, event: "case_ended", record: { ...one, valid: false }, settled: false, left_ns: 7e9 },
      { schema, event: "case_started", key: "s w=8K #1", attempt: 2 },
    ] as unknown as Event[];
    const running = labState(events);
    expect([...running.running]).toEqual([
      ["s w=9K #1 by the virtual clock", 1],
      ["s w=8K #1", 2],
    ]);
    expect([running.planned, running.settled, running.leftNs]).toEqual([2, 0, 7e9]);
    const more = [...events, { schema, event: "case_ended", record: record({ w: "9K" }), settled: true, left_ns: 0 }] as unknown as Event[];
    const ended = labState(more);
    expect([ended.settled, [...ended.running.keys()], ended.records.length]).toEqual([1, ["s w=8K #1"], 2]);
  });
});
