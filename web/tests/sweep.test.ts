import { describe, expect, it } from "vitest";
import type { Event } from "../src/generated/job";
import type { Curve } from "../src/generated/sweep";
import { EMPTY_SWEEP, goodputChart, kneeWords, liveChart, rangeWords, sweepWords } from "../src/sweep";
import { logMarks, placeOf, rangeOf, xyCsv } from "../src/xy";

describe("the command of a sweep", () => {
  it("follows the form", () => {
    expect(sweepWords({ ...EMPTY_SWEEP, host: " ams1 " })).toEqual(["sweep", "ams1", "-w", "16K..4M", "--forward"]);
    expect(
      sweepWords({
        ...EMPTY_SWEEP,
        place: "scenario",
        scenario: "s1-64k",
        parameter: "streams",
        values: "1..8",
        second: "window",
        secondValues: "64K,128K",
        direction: "turn",
        runs: "3",
        refine: false,
        more: { clock: "virtual" },
      }),
    ).toEqual(["sweep", "--in", "s1-64k", "-P", "1..8", "-w", "64K,128K", "--runs", "3", "--no-refine", "--clock=virtual"]);
  });
});

const measured = (window: number, streams: number, bps: number): Event =>
  ({
    schema: "bdp.event/1",
    event: "point_ended",
    key: `window=${String(window)} streams=${String(streams)}`,
    done: 1,
    planned: 4,
    measurement: {
      request: { window, streams },
      directions: [{ direction: "to", goodput_bps: bps, window: { on_the_wire_bytes: window + 10 } }],
    },
  }) as unknown as Event;

const ended = (window: string, bps: number, valid = true): Event =>
  ({
    schema: "bdp.event/1",
    event: "case_ended",
    record: {
      params: { "flow.window": window, "flow.direction": "forward" },
      valid,
      goodput_bps: bps,
      expected_bps: bps * 1.1,
      window: { on_the_wire_bytes: Number(window) },
      case: { flows: [{ window: Number(window), streams: 1 }] },
    },
  }) as unknown as Event;

describe("points as they come", () => {
  it("places measurements by the window on the wire, with a curve for each other value", () => {
    const chart = liveChart([measured(200, 1, 2e6), measured(100, 1, 1e6), measured(100, 4, 4e6)]);
    expect(chart?.x.label).toBe("window on the wire");
    expect(chart?.series.map((one) => one.label)).toEqual(["→ streams 1", "→ streams 4"]);
    expect(chart?.series[0]?.points).toEqual([
      { x: 110, y: 1e6 },
      { x: 210, y: 2e6 },
    ]);
  });

  it("shows records of the lab beside their model, valid ones only", () => {
    const chart = liveChart([ended("100", 1e6), ended("200", 2e6, false)]);
    expect(chart?.series.map((one) => [one.label, one.points.length])).toEqual([
      ["measured", 1],
      ["model", 1],
    ]);
    expect(liveChart([])).toBeNull();
  });
});

const curve = (values: object): Curve =>
  ({
    name: "-> ams1",
    axis: "window_on_the_wire",
    best_bps: 2e6,
    product_bytes: 2048,
    points: [
      { asked: "1 KiB", x: 1024, goodput_bps: { n: 3, min: 0.9e6, p5: null, p50: 1e6, p95: null, max: 1.2e6 }, expected_bps: null },
      { asked: "2 KiB", x: 2048, goodput_bps: { n: 1, min: 2e6, p5: null, p50: 2e6, p95: null, max: 2e6 }, expected_bps: 2.1e6 },
    ],
    unmeasured: [],
    knee: { where: "at", x: 2048, goodput_bps: 2e6, interval: { above: 1024, up_to: null, confidence: 0.9 } },
    fall: null,
    for_throughput: { from: 2048, to: 2048 },
    for_latency: { from: 1024, to: 2048 },
    ...values,
  }) as unknown as Curve;

describe("what bdp found", () => {
  it("is marked as the document says", () => {
    const chart = goodputChart([curve({})]);
    expect(chart?.series.map((one) => one.label)).toEqual(["measured", "model"]);
    expect(chart?.series[0]?.points[0]).toEqual({ x: 1024, y: 1e6, low: 0.9e6, high: 1.2e6 });
    expect(chart?.bands.map((one) => [one.label, one.from, one.to])).toEqual([
      ["for throughput", 2048, 2048],
      ["for latency", 1024, 2048],
    ]);
    expect(chart?.places.map((one) => one.label)).toEqual(["knee", "rate × RTT"]);
    expect(goodputChart([])).toBeNull();
  });

  it("has words", () => {
    expect(kneeWords(curve({}))).toBe("2.00 KiB: 2.00 Mbit/s (above 1.00 KiB, beyond the largest, 90 % sure)");
    expect(kneeWords(curve({ knee: { where: "above", x: null } }))).toContain("still rises");
    expect(kneeWords(curve({ knee: null, fall: { from: 1024, to: 2048 } }))).toContain("falls between 1.00 KiB and 2.00 KiB");
    expect(kneeWords(curve({ knee: null }))).toContain("unknown");
    expect(rangeWords(curve({}), null)).toBe("unknown");
    expect(rangeWords(curve({ axis: "streams" }), { from: 1, to: 4 })).toBe("1 stream to 4 streams");
  });
});

describe("logarithmic axes", () => {
  it("have round marks", () => {
    expect(logMarks(9e5, 5e7, "decades", 10)).toEqual([1e6, 2e6, 5e6, 1e7, 2e7, 5e7]);
    expect(logMarks(9e5, 2e9, "decades", 5)).toEqual([1e6, 1e7, 1e8, 1e9]);
    expect(logMarks(1000, 5000, "doublings", 10)).toEqual([1024, 2048, 4096]);
    expect(logMarks(1, 1 << 20, "doublings", 6).length).toBeLessThanOrEqual(6);
    expect(logMarks(0, 1, "decades", 5)).toEqual([]);
  });

  it("place values between their ends, and have room around them", () => {
    const axis = { label: "", column: "x", text: String, scale: "decades" as const };
    expect(placeOf(axis, [1, 100], 10)).toBeCloseTo(0.5);
    const [low, high] = rangeOf(axis, [0, 10, 1000]);
    expect(low).toBeLessThan(10);
    expect(high).toBeGreaterThan(1000);
    expect(rangeOf(axis, [])).toEqual([1, 10]);
    expect(rangeOf({ ...axis, scale: ["a", "b"] }, [])).toEqual([-0.5, 1.5]);
  });

  it("give their data as CSV, names quoted", () => {
    const chart = goodputChart([curve({}), curve({ name: 'a, "b"' })]);
    expect(chart && xyCsv(chart).split("\n")[0]).toBe("curve,window_bytes,goodput_bps,low,high");
    expect(chart && xyCsv(chart)).toContain('"a, ""b""",1024,1000000,900000,1200000');
  });
});
