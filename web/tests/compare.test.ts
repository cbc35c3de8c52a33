import { describe, expect, it } from "vitest";
import { curvesOf, effectWords, judgement, overlay, pointsOf, repeated, tracksOf, verdictWords } from "../src/compare";
import type { ComparisonDocument, Row } from "../src/generated/comparison";

const row = (values: object): Row =>
  ({
    point: "to",
    metric: "goodput_bps",
    a: { n: 6, p50: 9e6 },
    b: { n: 6, p50: 12e6 },
    difference: 3e6,
    effect: 0.34,
    difference_interval: { low: -4e6, high: 12e6, confidence: 0.938 },
    effect_interval: { low: -0.47, high: 1.39, confidence: 0.938 },
    exact: false,
    verdict: "no_difference_shown",
    judged: true,
    regressed: false,
    regression: "inconclusive",
    ...values,
  }) as Row;

describe("words of a comparison", () => {
  it("print the difference with its interval", () => {
    expect(effectWords(row({}))).toBe("+34 % (-47 % to +139 %, 93 % sure)");
    expect(effectWords(row({ effect_interval: null, difference_interval: null }))).toBe("+34 %");
    expect(effectWords(row({ metric: "retransmits", effect: null, difference: 2, difference_interval: { low: -3, high: 14, confidence: 0.95 } }))).toBe("+2 (-3 to +14)");
    expect(effectWords(row({ exact: true, effect: 0, effect_interval: { low: 0, high: 0, confidence: 1 } }))).toBe("0 % exact");
  });

  it("have the verdict of the terminal", () => {
    expect(verdictWords(row({}))).toBe("inconclusive");
    expect(verdictWords(row({ regression: null }))).toBe("no difference shown");
    expect(verdictWords(row({ regression: null, effect_interval: { low: -0.0001, high: 0.0002 } }))).toBe("no difference");
    expect(verdictWords(row({ verdict: "too_few_runs" }))).toBe("too few runs");
    expect(verdictWords(row({ verdict: "worse", regressed: true }))).toBe("REGRESSED");
    expect(verdictWords(row({ verdict: "better" }))).toBe("better");
  });

  it("judge the whole", () => {
    const all = (regressed: boolean | null, ...comparisons: Row[]) => ({ regressed, threshold: 0.05, comparisons }) as unknown as ComparisonDocument;
    expect(judgement(all(false, row({})))).toBe("No regression beyond 5 %");
    expect(judgement(all(true, row({})))).toBe("REGRESSED beyond 5 %");
    expect(judgement(all(null, row({})))).toMatch(/^Inconclusive/);
    expect(judgement(all(null, row({ verdict: "too_few_runs", a: { n: 1, p50: 1 } })))).toBe(
      "Unknown, too few runs: 1 and 6; an interval and a verdict need 6 runs on each side",
    );
  });

  it("give the command that makes enough runs", () => {
    expect(repeated("bdp measure ams1 -t 3")).toBe("bdp measure ams1 -t 3 --runs 6");
    expect(repeated("bdp measure ams1 --runs=2 -t 3")).toBe("bdp measure ams1 --runs 6 -t 3");
    expect(repeated("bdp measure ams1 --runs 8")).toBeNull();
    expect(repeated("bdp fix ams1")).toBeNull();
  });
});

const measurements = (...runs: number[][]) => ({
  schema: "bdp.measurements/1",
  runs: runs.map((bytes) => ({ directions: [{ direction: "to", received: bytes.map((sum, index) => ({ at_ns: index * 1e9, bytes: sum })) }] })),
});

describe("runs laid over each other", () => {
  const [a, b] = [tracksOf(measurements([0, 1000, 3000])), tracksOf(measurements([0, 500], [0, 700]))];

  it("have a curve for each repetition, on one time axis", () => {
    expect(a).toEqual([
      {
        point: "→",
        readings: [
          { t: 1, bps: 8000 },
          { t: 2, bps: 16000 },
        ],
      },
    ]);
    const chart = overlay(a, b, "→");
    expect(chart.series.map((one) => [one.label, one.bold])).toEqual([
      ["A", true],
      ["B run 1", false],
      ["B run 2", false],
    ]);
    expect(chart.xs).toHaveLength(4);
    expect(chart.series[0]?.values).toEqual([8000, undefined, undefined, 16000]);
  });

  it("pair the points of both, or the only ones", () => {
    expect(pointsOf(a, b)).toEqual(["→"]);
    expect(pointsOf(a, [{ point: "s1", readings: [] }])).toEqual(["→"]);
    expect(pointsOf(a, [{ point: "s1", readings: [] }, { point: "s2", readings: [] }])).toEqual([]);
  });

  it("take the flows of valid cases", () => {
    const flow = { from: "a", to: "b", received: [{ at_ns: 0, bytes: 0 }, { at_ns: 1e9, bytes: 10 }] };
    const one = { valid: true, scenario: "s1", params: { "flow.window": "64K" }, flows: [flow] };
    expect(tracksOf({ schema: "bdp.cases/1", cases: [one, { ...one, valid: false }] }).map((track) => track.point)).toEqual(["s1 window 64K a → b"]);
    expect(tracksOf(null)).toEqual([]);
  });

  it("name the curves of two sweeps by their run", () => {
    const sweep = { schema: "bdp.sweep/1", curves: [{ name: "-> ams1", axis: "streams" }] };
    expect(curvesOf(sweep, sweep).map((curve) => curve.name)).toEqual(["A", "B"]);
    expect(curvesOf(sweep, {})).toEqual([]);
  });
});
