import { describe, expect, it } from "vitest";
import { newLive } from "../src/events";
import { csv, ofLive, sampled, type Chart } from "../src/model";
import { marks, svgOf } from "../src/svg";

const chart: Chart = {
  xs: [0.1, 0.2, 0.3],
  series: [{ label: "→ <sum>", colour: "--to", bold: true, values: [1e6, null, 3e6] }],
  ticks: [{ t: 0.2, count: 4 }],
};

describe("chart", () => {
  it("is written as CSV", () => {
    expect(csv(chart, "bps")).toBe("time_s,to_<sum>_bps\n0.100,1000000\n0.300,3000000\n\ntime_s,retransmits\n0.200,4\n");
  });
  it("is written as SVG, with names as data", () => {
    const svg = svgOf(chart, { until: 1, spans: [{ start: 0, label: `"idle" & <b>` }] }, "a < b", String, () => "#123");
    expect(svg).toContain("&quot;idle&quot; &amp; &lt;b&gt;");
    expect(svg).toContain("<title>a &lt; b</title>");
    expect(svg.match(/stroke-width="2"/g)).toHaveLength(1);
  });
  it("has round marks", () => {
    expect(marks(113, 5)).toEqual([0, 25, 50, 75, 100]);
    expect(marks(0)).toEqual([0]);
  });
  it("leaves gaps out of its table", () => {
    expect(sampled(chart).map((row) => row.t)).toEqual([0.1, 0.3]);
  });
  it("draws nothing of nothing", () => {
    const timeline = ofLive(newLive());
    expect(timeline.goodput.series).toEqual([]);
    expect(timeline.until).toBe(1);
  });
});
