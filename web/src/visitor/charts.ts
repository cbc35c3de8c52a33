// What the charts draw: from a test of this page, or from a stored result.
import type { Series, Timeline } from "../model";
import type { Sample } from "./counts";
import type { VisitDocument } from "./documents";
import { samplesOf, type Live } from "./engine";

export const NAMES = { down: "↓ down", up: "↑ up" } as const;
const COLOURS = { down: "--from", up: "--to" } as const;

interface Point {
  t: number;
  bps: number;
}

const pointsOf = (start: number, samples: readonly Sample[]): Point[] =>
  samples.map(([ns, bps]) => ({ t: start + ns / 1e9, bps }));

/** One direction after the other, with a gap between them. */
function goodput(curves: readonly { way: "down" | "up"; points: readonly Point[] }[]): Timeline["goodput"] {
  const kept = curves.filter((curve) => curve.points.length > 0);
  const xs = kept.flatMap((curve) => curve.points.map((point) => point.t));
  const series: Series[] = kept.map((one) => ({
    label: one.way,
    colour: COLOURS[one.way],
    bold: true,
    values: kept.flatMap((curve) => curve.points.map((point) => (curve === one ? point.bps : null))),
  }));
  return { xs, series, ticks: [] };
}

/** The upload as the server receives it; as the browser sends it where the server's count is not known. */
function uploaded(live: Live, until: number): Point[] {
  const start = (at: number) => (at - live.began) / 1000;
  const received = live.received?.points ?? [];
  if (received.length > 2) {
    const first = start(live.received?.firstAt ?? 0);
    return received.flatMap((point, index) => {
      const before = received[index - 1];
      if (!before || point.t > until) return [];
      return [{ t: first + point.t / 1000, bps: ((point.bytes - before.bytes) * 8000) / (point.t - before.t) }];
    });
  }
  const stage = live.stage("up");
  return stage ? pointsOf(start(stage.began), samplesOf(live, "up", until)) : [];
}

export function ofLive(live: Live): Timeline {
  const start = (at: number) => (at - live.began) / 1000;
  const lasted = (name: "down" | "up") => {
    const stage = live.stage(name);
    return stage ? (stage.ended ?? live.now) - stage.began : 0;
  };
  const down = live.stage("down");
  const answered = live.pings.all.filter((ping) => ping.took !== null);
  return {
    goodput: goodput([
      { way: "down", points: down ? pointsOf(start(down.began), samplesOf(live, "down", lasted("down"))) : [] },
      { way: "up", points: uploaded(live, lasted("up")) },
    ]),
    rtt: {
      xs: answered.map((ping) => start(ping.sent)),
      series: [{ label: "round trip", colour: "--rtt", bold: true, values: answered.map((ping) => (ping.took ?? 0) * 1e6) }],
      ticks: [],
    },
    spans: live.stages.map(({ stage, began }) => ({ start: start(began), label: stage === "idle" ? "idle" : NAMES[stage] })),
    until: Math.max(live.whole, ...live.stages.map(({ ended }) => (ended ?? 0) - live.began)) / 1000,
  };
}

export function ofDocument(document: VisitDocument): Timeline {
  let until = 0;
  const spans: Timeline["spans"] = [];
  const curves = document.directions.map(({ direction, series }) => {
    spans.push({ start: until, label: NAMES[direction] });
    const points = pointsOf(until, series);
    until = points.at(-1)?.t ?? until;
    return { way: direction, points };
  });
  return {
    goodput: goodput(curves),
    rtt: { xs: [], series: [], ticks: [] },
    spans,
    until: Math.max(until, 0.1),
  };
}

export interface Now {
  down: number | null;
  up: number | null;
  tripNs: number | null;
  /** The page's round trip less the kernel's. */
  ownNs: number | null;
}

/** Figures of the last half second. */
export function nowOf(live: Live, timeline: Timeline): Now {
  const mean = (label: string) => {
    const values = timeline.goodput.series.find((one) => one.label === label)?.values ?? [];
    const last = values.filter((value): value is number => value != null).slice(-5);
    return last.length === 0 ? null : last.reduce((sum, value) => sum + value, 0) / last.length;
  };
  const ping = live.pings.all.findLast((one) => one.took !== null);
  const trip = ping?.took == null ? null : ping.took * 1e6;
  return {
    down: mean("down"),
    up: mean("up"),
    tripNs: trip,
    ownNs: trip === null || ping?.tcpNs == null ? null : trip - ping.tcpNs,
  };
}
