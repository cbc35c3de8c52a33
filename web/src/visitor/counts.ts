// What a test counts. Times are milliseconds of the page's clock; nothing here reads a clock.

/** Goodput over time: nanoseconds since the stage began, and bit/s up to then. */
export type Sample = [ns: number, bps: number];

/** Bytes that arrived, by the step of a stage in which they did. */
export class Arrivals {
  private readonly steps: number[] = [];
  sum = 0;

  constructor(
    readonly began: number,
    readonly step: number,
  ) {}

  add(now: number, bytes: number): void {
    const index = Math.floor((now - this.began) / this.step);
    if (index < 0) return;
    while (this.steps.length <= index) this.steps.push(0);
    this.steps[index] = (this.steps[index] ?? 0) + bytes;
    this.sum += bytes;
  }

  /** Bytes that arrived between two ends of steps, milliseconds since the stage began. */
  between(from: number, until: number): number {
    let sum = 0;
    const last = Math.round(until / this.step);
    for (let index = Math.round(from / this.step); index < last; index += 1) sum += this.steps[index] ?? 0;
    return sum;
  }

  /** One sample for each step that is over. */
  samples(until: number): Sample[] {
    const count = Math.max(0, Math.floor(until / this.step + 1e-6));
    return Array.from({ length: count }, (_, index) => [
      Math.round((index + 1) * this.step * 1e6),
      ((this.steps[index] ?? 0) * 8000) / this.step,
    ]);
  }
}

/** A count that is known at some times only; between two of them it grows evenly. */
export class Growth {
  private readonly points: { t: number; bytes: number }[];

  constructor(readonly began: number) {
    this.points = [{ t: began, bytes: 0 }];
  }

  get sum(): number {
    return this.points.at(-1)?.bytes ?? 0;
  }

  /** When it last grew, milliseconds since the stage began. */
  get last(): number {
    return (this.points.at(-1)?.t ?? this.began) - this.began;
  }

  add(now: number, bytes: number): void {
    this.points.push({ t: now, bytes: this.sum + bytes });
  }

  /** The count at a time, milliseconds since the stage began. */
  at(since: number): number {
    const t = this.began + since;
    let [low, high] = [0, this.points.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.points[middle]?.t ?? 0) <= t) low = middle;
      else high = middle - 1;
    }
    const [before, after] = [this.points[low], this.points[low + 1]];
    if (!before) return 0;
    if (!after || after.t <= before.t) return before.bytes;
    return before.bytes + ((after.bytes - before.bytes) * (t - before.t)) / (after.t - before.t);
  }

  between(from: number, until: number): number {
    return this.at(until) - this.at(from);
  }

  samples(until: number, step: number): Sample[] {
    const count = Math.max(0, Math.floor(until / step + 1e-6));
    return Array.from({ length: count }, (_, index) => [
      Math.round((index + 1) * step * 1e6),
      (this.between(index * step, (index + 1) * step) * 8000) / step,
    ]);
  }
}

/** Sum of the times within a window that several connections spent in one state. */
export class Share {
  private sum = 0;

  constructor(
    private readonly from: number,
    readonly until: number,
    private readonly connections: number,
  ) {}

  add(start: number, end: number): void {
    this.sum += Math.max(0, Math.min(end, this.until) - Math.max(start, this.from));
  }

  /** Of the time until then, or of the whole window. */
  value(until = this.until): number {
    const whole = (Math.min(until, this.until) - this.from) * this.connections;
    return whole > 0 ? Math.min(1, this.sum / whole) : 0;
  }
}

export interface Ping {
  sent: number;
  /** The page's round trip, milliseconds; null without an answer. */
  took: number | null;
  /** TCP's smoothed round trip of the same connection, as the server's kernel has it. */
  tcpNs: number | null;
}

/** Round trips by their numbers. A ping belongs to the time at which it was sent, whenever its answer comes. */
export class Pings {
  readonly all: Ping[] = [];

  /** The text of the next ping. */
  send(now: number): string {
    this.all.push({ sent: now, took: null, tcpNs: null });
    return String(this.all.length - 1);
  }

  /** Whether the answer was to a ping that had none. */
  answer(echo: string, now: number, tcpNs: number | null): boolean {
    const ping = this.all[Number(echo)];
    if (!ping || ping.took !== null) return false;
    ping.took = now - ping.sent;
    ping.tcpNs = tcpNs;
    return true;
  }

  private in(from: number, until: number): Ping[] {
    return this.all.filter((one) => one.sent >= from && one.sent < until);
  }

  /** Round trips of the pings sent in this time, nanoseconds. */
  between(from: number, until: number): number[] {
    return this.in(from, until).flatMap((one) => (one.took === null ? [] : [Math.round(one.took * 1e6)]));
  }

  unanswered(from: number, until: number): number {
    return this.in(from, until).filter((one) => one.took === null).length;
  }
}

/** What the server's events say of how they came. */
export interface Lateness {
  /** How much later than the quickest event the latest one came, milliseconds. */
  late: number;
  /** The longest time without growth of what the server received, milliseconds of its clock. */
  flat: number;
}

/** The server's count of what it received in one stage, from its events. */
export class Received {
  /** Milliseconds of the server's clock since the stage's first event, and the count since then. */
  readonly points: { t: number; bytes: number }[] = [];
  /** When the page had the first one. */
  firstAt = 0;
  private start = { elapsed: 0, bytes: 0 };
  private quickest = Infinity;
  private grown = 0;
  readonly lateness: Lateness = { late: 0, flat: 0 };

  take(now: number, elapsedNs: number, bytes: number): void {
    const elapsed = elapsedNs / 1e6;
    if (this.points.length === 0) {
      this.firstAt = now;
      this.start = { elapsed, bytes };
    }
    const t = elapsed - this.start.elapsed;
    const last = this.points.at(-1);
    // An event that was read before, or one of the next stage.
    if (last && t <= last.t) return;
    const since = bytes - this.start.bytes;
    if (last && since > last.bytes) this.grown = t;
    else this.lateness.flat = Math.max(this.lateness.flat, t - this.grown);
    this.quickest = Math.min(this.quickest, now - t);
    this.lateness.late = Math.max(this.lateness.late, now - t - this.quickest);
    this.points.push({ t, bytes: since });
  }
}

export function quantile(values: readonly number[], share: number): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null;
}

/** The step of a clock, milliseconds: the smallest difference between readings that differ. */
export function resolution(now: () => number, wanted = 10, most = 200_000): number {
  let smallest = Infinity;
  let last = now();
  for (let read = 0, seen = 0; read < most && seen < wanted; read += 1) {
    const next = now();
    if (next <= last) continue;
    smallest = Math.min(smallest, next - last);
    last = next;
    seen += 1;
  }
  return smallest;
}
