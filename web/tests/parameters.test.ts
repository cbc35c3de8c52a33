import { describe, expect, it } from "vitest";
import { barsSvg, labGoodput, PARAMETERS, POSITIONS, positionOf, problemOf, valueAt, type Name, type Parameter } from "../src/parameters";

const of = (name: Name): Parameter => PARAMETERS.find((one) => one.name === name) as Parameter;

describe("a typed value", () => {
  it.each([
    ["rate_bps", "94.1 Mbit/s", 94.1e6],
    ["rate_bps", "1G", 1e9],
    ["rate_bps", "9600", 9600],
    ["rtt_ns", "24.2ms", 24.2e6],
    ["rtt_ns", "80 µs", 80e3],
    ["rtt_ns", "0.0000015 s", 1500],
    ["rtt_ns", "1.5 s", 1.5e9],
    ["loss", "0.05 %", 0.0005],
    ["loss", "2", 0.02],
    ["loss", "0", 0],
    ["queue_bytes", "64.0 KiB", 65536],
    ["window_bytes", "64k", 65536],
    ["window_bytes", "64kB", 64000],
    ["window_bytes", "1,5M", 1572864],
    ["streams", " 8 ", 8],
  ] as const)("%s %s", (name, text, value) => {
    expect(of(name).parse(text)).toBeCloseTo(value, 9);
    expect(problemOf(of(name), text)).toBeNull();
  });
  it.each([
    ["rate_bps", "fast"],
    ["rate_bps", "0"],
    ["rtt_ns", "40"],
    ["rtt_ns", "-1ms"],
    ["loss", "100 ms"],
    ["queue_bytes", "64 bit/s"],
    ["streams", "1.5"],
    ["streams", "0"],
    ["streams", ""],
  ] as const)("%s refuses '%s'", (name, text) => {
    expect(problemOf(of(name), text)).toBeTruthy();
  });
  it("is whole where its unit is", () => {
    expect(of("rtt_ns").parse("24.2ms")).toBe(24200000);
    expect(of("window_bytes").parse("78.62 KiB")).toBe(80507);
  });
  it("is what is shown", () => {
    for (const one of PARAMETERS) {
      const shown = one.show(one.start);
      expect(one.parse(shown), `${one.name} ${shown}`).toBeCloseTo(one.start, 6);
    }
  });
});

describe("a slider", () => {
  it("goes from the least to the most, and rises", () => {
    for (const one of PARAMETERS) {
      expect(valueAt(one, 0)).toBe(one.hasZero ? 0 : one.least);
      expect(valueAt(one, POSITIONS)).toBe(one.most);
      for (let at = 1; at <= POSITIONS; at += 1) {
        expect(valueAt(one, at), `${one.name} at ${String(at)}`).toBeGreaterThanOrEqual(valueAt(one, at - 1));
      }
    }
  });
  it("stands at its value", () => {
    for (const one of PARAMETERS.filter((parameter) => parameter.name !== "streams")) {
      for (const at of [0, 1, 37, 150, POSITIONS]) {
        expect(Math.abs(positionOf(one, valueAt(one, at)) - at), one.name).toBeLessThanOrEqual(1);
      }
    }
    expect(positionOf(of("rate_bps"), 1e15)).toBe(POSITIONS);
    expect(positionOf(of("loss"), 0)).toBe(0);
    expect(positionOf(of("loss"), 1e-9)).toBe(1);
  });
});

describe("the lab's goodput", () => {
  it("is in the document of each kind", () => {
    expect(labGoodput({ summary: [{ goodput_median_bps: 44e6 }] })).toBe(44e6);
    expect(labGoodput({ twins: [{ figures: [{ goodput_bps: { measured: 1, twin: 45e6 } }] }] })).toBe(45e6);
    expect(labGoodput({ curves: [{ best_bps: 46e6 }] })).toBe(46e6);
  });
  it("is not there without one", () => {
    for (const document of [null, undefined, [], {}, { summary: [] }, { summary: [{ goodput_median_bps: null }] }, "text"]) {
      expect(labGoodput(document)).toBeNull();
    }
  });
});

describe("the bars as a drawing", () => {
  const bars = [
    { name: "window, <binds>", value: 15e6, text: "15.0 Mbit/s", isMain: true },
    { name: "rate", value: 900e6, text: "900 Mbit/s", isMain: false },
  ];
  it("is well formed, and cuts what is far away", () => {
    const svg = barsSvg("Limits", bars, 60e6, 30e6, (name) => name);
    expect(svg).toContain("window, &lt;binds>");
    expect([...svg.matchAll(/<rect x="200" y="\d+" width="([\d.]+)"/g)].map((found) => found[1])).toEqual(["100.0", "400.0"]);
    expect(svg).toContain("M400.0 30V");
    expect(barsSvg("Limits", [], 0, null, (name) => name)).not.toContain("NaN");
  });
});
