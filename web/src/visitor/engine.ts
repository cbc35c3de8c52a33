// Measures the path between a browser and `bdp serve --page`. No part of the page's view: clock, requests and
// sockets are arguments.
//
// Down counts bytes as a read returns them, in steps of 100 ms of the page's clock. Up counts what the browser says
// it has passed to its network stack, between two reports evenly; the server's own count of received bytes is the
// result. A stage begins when the server has confirmed it. Its figures leave out the first `ramp`, and so do the
// loaded round trips: a ping belongs to the moment at which it was sent.
import { receiveAll } from "../stream";
import { Arrivals, Growth, Pings, quantile, Received, Share, type Sample } from "./counts";
import type { About, BrowserFigures, BrowserResult, VisitDocument } from "./documents";

export interface Socket {
  send: (text: string) => void;
  close: () => void;
}

export interface SocketEvents {
  open: () => void;
  message: (text: string) => void;
  close: () => void;
}

export interface Answer {
  status: number;
  text: string;
}

/** What measuring needs of a browser. */
export interface Env {
  /** Milliseconds, never backwards. */
  now: () => number;
  /** Its step, milliseconds. */
  clockStep: number;
  agent: string;
  /** Calls once after so many milliseconds; the result cancels. */
  after: (ms: number, call: () => void) => () => void;
  fetch: (path: string, init: RequestInit) => Promise<Response>;
  /** Null if the browser has no WebSocket. */
  socket: ((path: string, events: SocketEvents) => Socket) | null;
  /** Sends a body of this size, and says how much of it the browser's network stack has; resolves with the answer. */
  upload: (path: string, bytes: number, progress: (bytes: number) => void, signal: AbortSignal) => Promise<Answer>;
}

export interface Plan {
  idle: number;
  down: number;
  up: number;
  /** Left out at the beginning of down and up. */
  ramp: number;
  step: number;
  ping: number;
  connections: number;
  /** Bytes of a reader's buffer. */
  buffer: number;
  /** Bytes of an upload's body. */
  body: number;
  /** Without any sign of the server for this long, the network is lost. */
  silence: number;
}

export const PLAN: Plan = {
  idle: 2000,
  down: 8000,
  up: 8000,
  ramp: 500,
  step: 100,
  ping: 100,
  connections: 4,
  buffer: 256 * 1024,
  body: 24 * 1024 * 1024,
  silence: 5000,
};

export type Kind = "busy" | "refused" | "lost" | "ended" | "stopped" | "unfit";

/** Why there is no result. */
export class Failure extends Error {
  constructor(
    readonly kind: Kind,
    message: string,
  ) {
    super(message);
  }
}

export type Phase = "opening" | "idle" | "down" | "draining" | "up" | "saving";
type Loaded = "down" | "up";

/** A test as it runs; `version` rises with every change. */
export class Live {
  version = 0;
  phase: Phase = "opening";
  began = 0;
  now = 0;
  stages: { stage: "idle" | Loaded; began: number; ended: number | null }[] = [];
  readonly pings = new Pings();
  down: Arrivals | null = null;
  up: Growth | null = null;
  received: Received | null = null;
  notes: string[] = [];

  constructor(
    readonly plan: Plan,
    readonly clockStep: number,
  ) {}

  stage(name: "idle" | Loaded): { began: number; ended: number | null } | undefined {
    return this.stages.find((one) => one.stage === name);
  }

  /** About how long it takes, milliseconds. */
  get whole(): number {
    return this.plan.idle + this.plan.down + this.plan.up + DRAINING;
  }
}

export interface Measured {
  document: VisitDocument;
  live: Live;
}

const DRAINING = 500;
const LONGEST_DRAINING = 3000;
const SETTLING = 1000;
const RETRY = 250;
const RETRIES = 4;
/** Events may come so much later than a ping before a proxy is suspected. */
const LATE = 1000;
const FLAT = 1500;

export const SILENT = "the server does not answer: it has ended, or the network is down";

/** Signals change while a function waits, which the compiler does not see. */
const isOver = (signal: AbortSignal): boolean => signal.aborted;

function refusal(response: Answer): Failure {
  let message = `the server answered ${String(response.status)}`;
  try {
    const document = JSON.parse(response.text) as { error?: { message?: unknown } };
    if (typeof document.error?.message === "string") message = document.error.message;
  } catch {
    // Not from bdp; the status has to do.
  }
  const isBusy = response.status === 429 || response.status === 503;
  return new Failure(isBusy ? "busy" : response.status === 404 ? "ended" : "refused", message);
}

const refused = async (response: Response): Promise<Failure> =>
  refusal({ status: response.status, text: await response.text().catch(() => "") });

/** What the server says of itself. */
export async function about(fetch: Env["fetch"]): Promise<About & { via: string | null }> {
  const response = await fetch("/api/visit/about", {});
  if (!response.ok) throw await refused(response);
  return { ...((await response.json()) as About), via: response.headers.get("via") };
}

/** A stored result. */
export async function stored(fetch: Env["fetch"], key: string): Promise<VisitDocument> {
  let response: Response;
  try {
    response = await fetch(`/api/visit/results/${encodeURIComponent(key)}`, {});
  } catch {
    throw new Failure("lost", SILENT);
  }
  if (!response.ok) throw await refused(response);
  return (await response.json()) as VisitDocument;
}

/** One test from its beginning to the stored result; fails with a `Failure`. */
export function measure(env: Env, change: (live: Live) => void, stop: AbortSignal, plan: Plan = PLAN): Promise<Measured> {
  return new Test(env, change, stop, plan).run();
}

class Test {
  private readonly live: Live;
  private readonly over = new AbortController();
  private readonly failed: Promise<never>;
  private fail: (failure: Failure) => void = () => undefined;
  private path = "";
  private heard = 0;
  private ticked = 0;
  private lastEvent = 0;
  private socket: Socket | null = null;
  private hasAnswer = false;
  private readonly waited: Record<Loaded, number | null> = { down: null, up: null };

  constructor(
    private readonly env: Env,
    private readonly change: (live: Live) => void,
    stop: AbortSignal,
    private readonly plan: Plan,
  ) {
    this.live = new Live(plan, env.clockStep);
    this.failed = new Promise((_, reject) => {
      this.fail = reject;
    });
    this.failed.catch(() => undefined);
    const stopped = () => {
      this.fail(stop.reason instanceof Failure ? stop.reason : new Failure("stopped", "stopped"));
    };
    if (stop.aborted) stopped();
    else stop.addEventListener("abort", stopped, { once: true });
  }

  async run(): Promise<Measured> {
    const { env, live, plan } = this;
    live.began = live.now = this.heard = this.ticked = env.now();
    try {
      await this.open();
      const cancelTick = this.tick();
      try {
        void this.follow();
        this.ping();
        await this.stage("idle", plan.idle, () => []);
        await this.stage("down", plan.down, (began, until, signal) => this.downloads(began, until, signal));
        if (live.down?.sum === 0) throw new Failure("lost", "no data of the download arrived");
        await this.drain();
        await this.stage("up", plan.up, (began, until, signal) => this.uploads(began, until, signal));
        this.enter("saving");
        await this.answers(SETTLING);
        return { document: await this.save(), live };
      } finally {
        cancelTick();
      }
    } finally {
      this.over.abort();
      this.socket?.close();
    }
  }

  private note(text: string): void {
    if (!this.live.notes.includes(text)) this.live.notes.push(text);
  }

  private enter(phase: Phase): void {
    this.live.phase = phase;
    this.changed();
  }

  private changed(): void {
    this.live.now = this.env.now();
    this.live.version += 1;
    this.change(this.live);
  }

  /** Waits, unless the test fails meanwhile. */
  private sleep(ms: number): Promise<void> {
    return Promise.race([
      new Promise<void>((done) => {
        this.env.after(ms, done);
      }),
      this.failed,
    ]);
  }

  private tick(): () => void {
    let cancel: () => void = () => undefined;
    const again = () => {
      cancel = this.env.after(this.plan.step, () => {
        const now = this.env.now();
        const { silence } = this.plan;
        if (now - this.ticked > silence) {
          this.fail(new Failure("lost", "this page was paused: the computer slept, or the browser froze the tab"));
        } else if (now - this.heard > silence) this.fail(new Failure("lost", SILENT));
        this.ticked = now;
        this.changed();
        again();
      });
    };
    again();
    return () => {
      cancel();
    };
  }

  private async open(): Promise<void> {
    const response = await this.request("POST", "/api/visit", {});
    const { id } = (await response.json()) as { id: string };
    this.path = `/api/visit/${encodeURIComponent(id)}`;
    const via = response.headers.get("via");
    if (via !== null) {
      this.note(`A proxy is on the path (Via: ${via}). The server sees the proxy's connection, not this browser's.`);
    }
  }

  private async request(method: string, path: string, body: unknown): Promise<Response> {
    let response: Response;
    try {
      response = await Promise.race([
        this.env.fetch(path, {
          method,
          cache: "no-store",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
          signal: this.over.signal,
        }),
        this.failed,
      ]);
    } catch (error) {
      throw error instanceof Failure ? error : new Failure("lost", SILENT);
    }
    this.heard = this.env.now();
    if (!response.ok) throw await refused(response);
    return response;
  }

  /** One stage: confirmed by the server, then work until its time is over or the work has ended. */
  private async stage(
    name: "idle" | Loaded,
    ms: number,
    work: (began: number, until: number, signal: AbortSignal) => Promise<void>[],
  ): Promise<void> {
    await this.request("POST", `${this.path}/stage`, { stage: name });
    const began = this.env.now();
    const until = began + ms;
    const stage: Live["stages"][number] = { stage: name, began, ended: null };
    this.live.stages.push(stage);
    if (name !== "down") this.live.received = name === "up" ? new Received() : null;
    this.enter(name);
    const ending = new AbortController();
    const stop = () => {
      ending.abort();
    };
    this.over.signal.addEventListener("abort", stop, { once: true });
    try {
      const jobs = work(began, until, ending.signal);
      const all = jobs.length === 0 ? [] : [Promise.all(jobs)];
      await Promise.race([this.sleep(ms), ...all]);
    } finally {
      stage.ended = Math.min(this.env.now(), until);
      ending.abort();
      this.over.signal.removeEventListener("abort", stop);
    }
    if (name !== "idle" && stage.ended - began <= this.plan.ramp) {
      throw new Failure("ended", `the server ended the stage "${name}" after ${((stage.ended - began) / 1000).toFixed(1)} s`);
    }
    if (stage.ended < until - this.plan.step) {
      this.note(`The server ended the stage "${name}" after ${((stage.ended - began) / 1000).toFixed(1)} s.`);
    }
  }

  private downloads(began: number, until: number, signal: AbortSignal): Promise<void>[] {
    const { plan, env, live } = this;
    live.down = new Arrivals(began, plan.step);
    const share = new Share(began + plan.ramp, until, plan.connections);
    signal.addEventListener("abort", () => {
      this.waited.down = share.value(env.now());
    });
    return Array.from({ length: plan.connections }, () => this.download(share, until, signal));
  }

  /** Does the work again after a broken connection, but not without end. */
  private async insist(signal: AbortSignal, work: () => Promise<"over" | "again">): Promise<void> {
    for (let failures = 0; !signal.aborted; ) {
      try {
        if ((await work()) === "over") return;
        failures = 0;
      } catch (error) {
        if (isOver(signal)) return;
        if (error instanceof Failure) throw error;
        failures += 1;
        if (failures > RETRIES) throw new Failure("lost", SILENT);
        await this.sleep(RETRY);
      }
    }
  }

  private download(share: Share, until: number, signal: AbortSignal): Promise<void> {
    return this.insist(signal, async () => {
      const response = await this.env.fetch(`${this.path}/down?stage=down`, { cache: "no-store", signal });
      if (!response.ok) throw await refused(response);
      if (response.body === null) throw new Failure("unfit", "this browser can't read an answer while it arrives");
      await this.read(response.body, share, until, signal);
      return "over";
    });
  }

  private async read(body: ReadableStream<Uint8Array>, share: Share, until: number, signal: AbortSignal): Promise<void> {
    const { env, plan } = this;
    const next = this.reader(body);
    for (;;) {
      const asked = env.now();
      const got = await next();
      const now = env.now();
      // A read that fills its buffer found more than it could take: the data waited for the page.
      if (got === null || got < plan.buffer) share.add(asked, now);
      if (signal.aborted || now >= until || got === null) return;
      this.live.down?.add(now, got);
      this.heard = now;
    }
  }

  /** Reads once, and gives the number of bytes; null at the end. */
  private reader(body: ReadableStream<Uint8Array>): () => Promise<number | null> {
    let byob: ReadableStreamBYOBReader | null = null;
    try {
      byob = body.getReader({ mode: "byob" });
    } catch {
      this.note("This browser reads without buffers of its own (no BYOB reader): above 5 Gbit/s it is slower than the path.");
    }
    if (byob) {
      const own = byob;
      let buffer = new ArrayBuffer(this.plan.buffer);
      return async () => {
        const { done, value } = await own.read(new Uint8Array(buffer));
        if (value) buffer = value.buffer;
        return done ? null : value.byteLength;
      };
    }
    const plain = body.getReader();
    return async () => {
      const { done, value } = await plain.read();
      return done ? null : value.byteLength;
    };
  }

  private uploads(began: number, until: number, signal: AbortSignal): Promise<void>[] {
    const { plan, env, live } = this;
    live.up = new Growth(began);
    const share = new Share(began + plan.ramp, until, plan.connections);
    const open = new Set<{ since: number }>();
    signal.addEventListener("abort", () => {
      for (const one of open) share.add(one.since, env.now());
      open.clear();
      this.waited.up = share.value(env.now());
    });
    return Array.from({ length: plan.connections }, () => this.upload(share, open, until, signal));
  }

  private upload(share: Share, open: Set<{ since: number }>, until: number, signal: AbortSignal): Promise<void> {
    const { env, plan, live } = this;
    return this.insist(signal, async () => {
      // Until the answer comes, something of the body waits: in the browser, or in the socket's buffer.
      const body = { since: env.now() };
      let counted = 0;
      open.add(body);
      try {
        const answer = await env.upload(
          `${this.path}/up?stage=up`,
          plan.body,
          (bytes) => {
            const now = env.now();
            if (signal.aborted || now >= until || bytes <= counted) return;
            live.up?.add(now, bytes - counted);
            counted = bytes;
            this.heard = now;
          },
          signal,
        );
        if (answer.status < 200 || answer.status >= 300) throw refusal(answer);
        // An answer before the body's end: the stage's limit is reached.
        return counted < plan.body ? "over" : "again";
      } finally {
        if (open.delete(body)) share.add(body.since, env.now());
      }
    });
  }

  /** Waits until what the downloads left in the path's queue is gone. */
  private async drain(): Promise<void> {
    this.enter("draining");
    const since = this.env.now();
    const idle = this.live.stage("idle");
    const before = quantile(this.live.pings.between(idle?.began ?? 0, idle?.ended ?? 0), 0.5);
    const calm = before === null ? Infinity : Math.max(2 * before, before + 20e6);
    await this.request("POST", `${this.path}/stage`, { stage: "idle" });
    for (;;) {
      await this.sleep(this.plan.step);
      const took = this.env.now() - since;
      const last = this.live.pings.between(since, Infinity).at(-1);
      if (took >= LONGEST_DRAINING || (took >= DRAINING && (!this.hasAnswer || (last ?? Infinity) <= calm))) return;
    }
  }

  /** Waits for the answers to the last pings. */
  private async answers(most: number): Promise<void> {
    const until = this.env.now() + most;
    const last = this.live.stages.at(-1);
    while (this.hasAnswer && this.env.now() < until && this.live.pings.unanswered(last?.began ?? 0, last?.ended ?? 0) > 0) {
      await this.sleep(this.plan.step / 2);
    }
  }

  /** The server's events, from the one after the last that is known. */
  private async follow(): Promise<void> {
    const { env, over } = this;
    for (let failures = 0; !over.signal.aborted; failures += 1) {
      try {
        const response = await env.fetch(`${this.path}/events?after=${String(this.lastEvent)}`, {
          cache: "no-store",
          signal: over.signal,
        });
        if (!response.ok) throw await refused(response);
        if (response.body) {
          await receiveAll(response.body, ({ id, data }) => {
            failures = 0;
            this.lastEvent = Math.max(this.lastEvent, id);
            this.take(data);
          });
        }
      } catch (error) {
        if (isOver(over.signal)) return;
        if (error instanceof Failure) {
          this.fail(error.kind === "ended" ? new Failure("ended", "the server has ended this test") : error);
          return;
        }
      }
      if (failures > RETRIES) this.note("The server's events do not arrive: a proxy or an extension may hold them back.");
      await this.sleep(RETRY * 2 ** Math.min(failures, 4)).catch(() => undefined);
    }
  }

  private take(data: string): void {
    const now = this.env.now();
    this.heard = now;
    let event: { stage?: unknown; elapsed_ns?: unknown; received_bytes?: unknown; ended?: unknown };
    try {
      event = JSON.parse(data) as typeof event;
    } catch {
      return;
    }
    const { stage, elapsed_ns: elapsed, received_bytes: received, ended } = event;
    if (typeof ended === "string") this.fail(new Failure("ended", `the server has ended this test: ${ended}`));
    if (stage === "up" && this.live.phase === "up" && typeof elapsed === "number" && typeof received === "number") {
      this.live.received?.take(now, elapsed, received);
    }
  }

  private ping(): void {
    const { env, live } = this;
    if (env.socket === null) {
      this.note("This browser has no WebSocket: the round trip is not measured.");
      return;
    }
    let tries = 0;
    const connect = (make: NonNullable<Env["socket"]>) => {
      let cancel: () => void = () => undefined;
      const socket = make(`${this.path}/ping`, {
        open: () => {
          const next = () => {
            if (this.over.signal.aborted) return;
            cancel = env.after(this.plan.ping, next);
            socket.send(live.pings.send(env.now()));
          };
          next();
        },
        message: (text) => {
          const now = env.now();
          this.heard = now;
          try {
            const answer = JSON.parse(text) as { echo?: unknown; tcp_rtt_ns?: unknown };
            const tcp = typeof answer.tcp_rtt_ns === "number" ? answer.tcp_rtt_ns : null;
            if (!live.pings.answer(String(answer.echo), now, tcp) || this.hasAnswer) return;
            this.hasAnswer = true;
            this.changed();
          } catch {
            // Not an answer.
          }
        },
        close: () => {
          cancel();
          if (this.over.signal.aborted) return;
          tries += 1;
          if (tries <= RETRIES) env.after(RETRY, () => {
            if (!this.over.signal.aborted) connect(make);
          });
          else if (!this.hasAnswer) {
            this.note("No WebSocket passes to the server, perhaps because of a proxy: the round trip is not measured.");
          }
        },
      });
      this.socket = socket;
    };
    connect(env.socket);
  }

  private figures(name: Loaded): BrowserFigures {
    const { live, plan } = this;
    const stage = live.stage(name);
    const counts = name === "down" ? live.down : live.up;
    let until = (stage?.ended ?? 0) - (stage?.began ?? 0);
    // Down in whole steps, so that each byte has its place; up until the last report, if one came of late.
    if (name === "down") until = Math.floor(until / plan.step + 1e-6) * plan.step;
    else if (live.up && until - live.up.last < FLAT) until = Math.min(until, live.up.last);
    const bytes = Math.round(counts?.between(plan.ramp, until) ?? 0);
    const interval = Math.max(0, until - plan.ramp);
    return {
      goodput_bps: interval > 0 ? (bytes * 8000) / interval : 0,
      bytes,
      interval_ns: Math.round(interval * 1e6),
      samples: samplesOf(live, name, until),
      waited: this.waited[name] ?? 0,
    };
  }

  private trips(name: "idle" | Loaded): number[] {
    const stage = this.live.stage(name);
    if (!stage) return [];
    return this.live.pings.between(stage.began + (name === "idle" ? 0 : this.plan.ramp), stage.ended ?? Infinity);
  }

  private async save(): Promise<VisitDocument> {
    const down = this.trips("down");
    const up = this.trips("up");
    this.suspect(up);
    const result: BrowserResult = {
      agent: this.env.agent,
      down: this.figures("down"),
      up: this.figures("up"),
      ping: { idle_ns: this.trips("idle"), down_ns: down, up_ns: up },
    };
    const response = await this.request("POST", `${this.path}/result`, result);
    return (await response.json()) as VisitDocument;
  }

  /** Signs of a proxy that keeps data back. */
  private suspect(up: number[]): void {
    const { received, up: sent, pings } = this.live;
    const lateness = received?.lateness;
    const trip = (quantile(up, 1) ?? 0) / 1e6;
    if (lateness && lateness.late > trip + LATE) {
      this.note(
        `The server's events came up to ${(lateness.late / 1000).toFixed(1)} s late, pings did not: a proxy on the path keeps data back.`,
      );
    }
    if (lateness && lateness.flat > FLAT && (sent?.sum ?? 0) > 0) {
      this.note(
        `The upload reached the server in lumps, with ${(lateness.flat / 1000).toFixed(1)} s between them: a proxy on the path keeps data back, or the network paused.`,
      );
    }
    const first = this.live.stages[0]?.began ?? 0;
    const lost = pings.unanswered(first, this.live.stages.at(-1)?.ended ?? Infinity);
    if (this.hasAnswer && lost > 0) this.note(`${String(lost)} of ${String(pings.all.length)} pings had no answer within ${SETTLING / 1000} s of the end.`);
  }
}

/** The curve of a direction as the browser counted it. */
export function samplesOf(live: Live, name: Loaded, until: number): Sample[] {
  return name === "down" ? (live.down?.samples(until) ?? []) : (live.up?.samples(until, live.plan.step) ?? []);
}
