import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Arrivals, Growth, Pings, quantile, Received, resolution, Share } from "../src/visitor/counts";
import type { BrowserResult } from "../src/visitor/documents";
import { Failure, measure, PLAN, type Env, type Live, type Measured } from "../src/visitor/engine";

describe("bytes at arrival", () => {
  it("belong to the step in which they arrived", () => {
    const down = new Arrivals(1000, 100);
    down.add(1000, 1);
    down.add(1099.9, 2);
    down.add(1100, 4);
    down.add(999.9, 64);
    down.add(1250, 8);
    expect(down.samples(300)).toEqual([
      [100e6, 240],
      [200e6, 320],
      [300e6, 640],
    ]);
    expect(down.between(100, 300)).toBe(12);
    expect(down.between(0, 100)).toBe(3);
    expect(down.sum).toBe(15);
  });
  it("count as nothing where nothing came", () => {
    expect(new Arrivals(0, 100).samples(250)).toEqual([
      [100e6, 0],
      [200e6, 0],
    ]);
  });
});

describe("a count known at some times", () => {
  it("grows evenly between them, and not after the last", () => {
    const up = new Growth(500);
    up.add(1500, 1000);
    up.add(2500, 3000);
    expect(up.at(0)).toBe(0);
    expect(up.at(500)).toBe(500);
    expect(up.at(1000)).toBe(1000);
    expect(up.at(1500)).toBe(2500);
    expect(up.at(9000)).toBe(4000);
    expect(up.between(500, 1500)).toBe(2000);
    expect(up.samples(2000, 1000)).toEqual([
      [1e9, 8000],
      [2e9, 24000],
    ]);
  });
  it("may have several reports at one time", () => {
    const up = new Growth(0);
    up.add(100, 10);
    up.add(100, 20);
    expect(up.at(100)).toBe(30);
    expect(up.at(50)).toBe(5);
  });
});

describe("a share of time", () => {
  it("is of all connections, and of the window only", () => {
    const share = new Share(100, 200, 2);
    share.add(0, 150);
    share.add(190, 400);
    expect(share.value()).toBeCloseTo(60 / 200);
    expect(share.value(150)).toBeCloseTo(60 / 100);
    expect(new Share(100, 100, 2).value()).toBe(0);
  });
});

describe("pings", () => {
  it("belong to the time at which they were sent", () => {
    const pings = new Pings();
    const first = pings.send(10);
    const second = pings.send(90);
    const third = pings.send(110);
    expect(pings.answer(second, 140, 3e6)).toBe(true);
    expect(pings.answer(first, 35.5, null)).toBe(true);
    expect(pings.answer(first, 50, null)).toBe(false);
    expect(pings.answer("17", 50, null)).toBe(false);
    expect(pings.answer("no number", 50, null)).toBe(false);
    expect(pings.between(0, 100)).toEqual([25_500_000, 50_000_000]);
    expect(pings.between(100, 200)).toEqual([]);
    expect(pings.unanswered(100, 200)).toBe(1);
    expect(third).toBe("2");
  });
});

describe("the server's count", () => {
  it("is of one stage, and takes an event once", () => {
    const received = new Received();
    received.take(5000, 70e9, 1000);
    received.take(5100, 70.1e9, 3000);
    received.take(5100, 70.1e9, 3000);
    received.take(5105, 70.05e9, 2000);
    received.take(5200, 70.2e9, 4000);
    expect(received.points.map(({ t, bytes }) => [Math.round(t), bytes])).toEqual([
      [0, 0],
      [100, 2000],
      [200, 3000],
    ]);
  });
  it("shows events that come late, and a count that stands", () => {
    const received = new Received();
    for (let n = 0; n <= 20; n += 1) received.take(n < 10 ? n * 100 : 3000, n * 1e8, n < 18 ? 0 : n);
    expect(received.lateness.late).toBeCloseTo(2000);
    expect(received.lateness.flat).toBeCloseTo(1700);
  });
});

it("the step of a clock is its smallest difference", () => {
  let t = 0;
  expect(resolution(() => Math.floor((t += 0.013) * 10) / 10)).toBeCloseTo(0.1);
  expect(resolution(() => 5)).toBe(Infinity);
});

it("a quantile of nothing is null", () => {
  expect(quantile([], 0.5)).toBeNull();
  expect(quantile([3, 1, 2], 0.5)).toBe(2);
  expect(quantile([3, 1, 2], 1)).toBe(3);
});

/** A server at a distance, on a clock that the test moves. */
class Server {
  stage = "idle";
  requests: string[] = [];
  result: BrowserResult | null = null;
  received = 0;
  uploading = 0;
  isGone = false;
  /** Bytes that a connection carries in 10 ms. */
  bytes = 12_500;
  trip = 20;
  busy: { status: number; message: string } | null = null;
  headers: Record<string, string> = {};
  downEndsAfter = Infinity;
  hasSocket = true;
  ended: string | null = null;

  env(): Env {
    return {
      now: () => Date.now(),
      clockStep: 0.1,
      agent: "test",
      after: (ms, call) => {
        const timer = setTimeout(call, ms);
        return () => {
          clearTimeout(timer);
        };
      },
      fetch: (path, init) => this.fetch(path, init),
      socket: (_, events) => {
        if (!this.hasSocket) {
          setTimeout(events.close, 1);
          return { send: () => undefined, close: () => undefined };
        }
        setTimeout(events.open, this.trip);
        return {
          send: (text) => {
            const queue = this.stage === "idle" ? 0 : 30;
            if (!this.isGone) {
              setTimeout(() => {
                events.message(JSON.stringify({ echo: text, tcp_rtt_ns: (this.trip + queue) * 1e6 - 1e6, tcp_min_rtt_ns: 1 }));
              }, this.trip + queue);
            }
          },
          close: () => undefined,
        };
      },
      upload: (_, bytes, progress, signal) =>
        new Promise((done, fail) => {
          let loaded = 0;
          this.uploading += 1;
          const timer = setInterval(() => {
            if (this.isGone) return;
            loaded = Math.min(bytes, loaded + this.bytes * 10);
            this.received += this.bytes * 10;
            progress(loaded);
            if (loaded < bytes) return;
            clearInterval(timer);
            signal.removeEventListener("abort", abort);
            done({ status: 204, text: "" });
          }, 100);
          const abort = () => {
            clearInterval(timer);
            fail(new Error("aborted"));
          };
          signal.addEventListener("abort", abort);
        }),
    };
  }

  private async fetch(path: string, init: RequestInit): Promise<Response> {
    this.requests.push(`${init.method ?? "GET"} ${path}`);
    await new Promise((done) => setTimeout(done, this.trip));
    if (this.isGone) throw new TypeError("Failed to fetch");
    const json = (status: number, body: unknown) => new Response(JSON.stringify(body), { status, headers: this.headers });
    if (path === "/api/visit") {
      return this.busy ? json(this.busy.status, { error: { message: this.busy.message } }) : json(201, { id: "a/b" });
    }
    if (path.endsWith("/stage")) {
      this.stage = (JSON.parse(init.body as string) as { stage: string }).stage;
      return new Response(null, { status: 204 });
    }
    if (path.endsWith("/result")) {
      this.result = JSON.parse(init.body as string) as BrowserResult;
      return json(200, { key: "k" });
    }
    if (path.includes("/down")) {
      const began = Date.now();
      return new Response(
        this.stream(init.signal, 10, () => (Date.now() - began > this.downEndsAfter ? null : new Uint8Array(this.bytes)), "bytes"),
      );
    }
    const began = Date.now();
    let id = 0;
    return new Response(
      this.stream(init.signal, 100, () => {
        id += 1;
        const event = { stage: this.stage, elapsed_ns: (Date.now() - began) * 1e6, received_bytes: this.received, ended: this.ended };
        return new TextEncoder().encode(`id: ${id}\ndata: ${JSON.stringify(event)}\n\n`);
      }),
    );
  }

  private stream(
    signal: AbortSignal | null | undefined,
    each: number,
    next: () => Uint8Array<ArrayBuffer> | null,
    type?: "bytes",
  ): ReadableStream<Uint8Array<ArrayBuffer>> {
    const source = {
      start: (controller: ReadableByteStreamController | ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>) => {
        const timer = setInterval(() => {
          if (this.isGone) return;
          const data = next();
          if (data) controller.enqueue(data);
          else {
            clearInterval(timer);
            controller.close();
            (controller as ReadableByteStreamController).byobRequest?.respond(0);
          }
        }, each);
        signal?.addEventListener("abort", () => {
          clearInterval(timer);
          controller.error(new Error("aborted"));
        });
      },
    };
    return type ? new ReadableStream({ ...source, type }) : new ReadableStream<Uint8Array<ArrayBuffer>>(source);
  }
}

describe("a test", () => {
  let server: Server;
  let stop: AbortController;
  beforeEach(() => {
    vi.useFakeTimers();
    server = new Server();
    stop = new AbortController();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const run = (env = server.env(), change: (live: Live) => void = () => undefined): Promise<Measured | Failure> =>
    measure(env, change, stop.signal, { ...PLAN, down: 3000, up: 3000 }).catch((error: unknown) => error as Failure);
  const finish = async (result: Promise<Measured | Failure>): Promise<Measured | Failure> => {
    await vi.advanceTimersByTimeAsync(40_000);
    return result;
  };

  it("counts both directions without their ramp", async () => {
    const measured = (await finish(run())) as Measured;
    expect(measured.document.key).toBe("k");
    const { down, up, ping } = server.result ?? ({} as BrowserResult);
    // Four connections of 10 Mbit/s.
    expect(down.interval_ns).toBe(2.5e9);
    expect(down.goodput_bps / 40e6).toBeCloseTo(1, 2);
    expect(down.bytes * 8).toBeCloseTo(down.goodput_bps * 2.5, -1);
    expect(down.samples).toHaveLength(30);
    expect(down.waited).toBeGreaterThan(0.98);
    expect(up.goodput_bps / 40e6).toBeCloseTo(1, 2);
    expect(up.waited).toBeCloseTo(1, 2);
    expect(up.interval_ns).toBeLessThanOrEqual(2.5e9);
    expect(up.bytes * 8).toBeCloseTo((up.goodput_bps * up.interval_ns) / 1e9, -1);
    expect(ping.idle_ns.every((ns) => ns === 20e6)).toBe(true);
    expect(ping.idle_ns.length).toBeGreaterThanOrEqual(19);
    expect(ping.down_ns.every((ns) => ns === 50e6)).toBe(true);
    expect(ping.up_ns.length).toBeGreaterThanOrEqual(24);
    expect(ping.up_ns.length).toBeLessThanOrEqual(26);
    expect(measured.live.notes).toEqual([]);
  });

  it("keeps the order of stages, and four connections each way", async () => {
    await finish(run());
    expect(server.requests.filter((one) => one.startsWith("POST"))).toEqual([
      "POST /api/visit",
      "POST /api/visit/a%2Fb/stage",
      "POST /api/visit/a%2Fb/stage",
      "POST /api/visit/a%2Fb/stage",
      "POST /api/visit/a%2Fb/stage",
      "POST /api/visit/a%2Fb/result",
    ]);
    expect(server.requests.filter((one) => one.includes("/down"))).toHaveLength(4);
    expect(server.uploading).toBe(4);
  });

  it("sends bodies again until the stage is over", async () => {
    server.bytes = 12_500 * 40;
    await finish(run());
    // 24 MiB take each of four connections 0.6 s.
    expect(server.uploading).toBeGreaterThanOrEqual(16);
    const expected = (4 * PLAN.body * 8) / 0.6;
    expect((server.result?.up.goodput_bps ?? 0) / expected).toBeCloseTo(1, 1);
  });

  it("does not call it waiting for data if reads fill their buffers", async () => {
    server.bytes = PLAN.buffer * 2;
    await finish(run());
    expect(server.result?.down.waited).toBeLessThan(0.02);
  });

  it("reads without a buffer of its own where the browser has none", async () => {
    const env = server.env();
    const { fetch } = env;
    env.fetch = async (path, init) => {
      const response = await fetch(path, init);
      if (!path.includes("/down") || !response.body) return response;
      return new Response(response.body.pipeThrough(new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>()));
    };
    const measured = (await finish(run(env))) as Measured;
    expect((server.result?.down.goodput_bps ?? 0) / 40e6).toBeCloseTo(1, 2);
    expect(measured.live.notes.join()).toContain("no BYOB reader");
  });

  it("goes on without a WebSocket, and says so", async () => {
    const measured = (await finish(run({ ...server.env(), socket: null }))) as Measured;
    expect(server.result?.ping).toEqual({ idle_ns: [], down_ns: [], up_ns: [] });
    expect(measured.live.notes).toEqual(["This browser has no WebSocket: the round trip is not measured."]);
    server.hasSocket = false;
    const blocked = (await finish(run())) as Measured;
    expect(blocked.live.notes.join()).toContain("No WebSocket passes");
  });

  it("names a proxy by its header", async () => {
    server.headers = { via: "1.1 squid" };
    const measured = (await finish(run())) as Measured;
    expect(measured.live.notes.join()).toContain("Via: 1.1 squid");
  });

  it("passes on why the server has no place", async () => {
    server.busy = { status: 503, message: "all places are taken" };
    const failure = (await finish(run())) as Failure;
    expect([failure.kind, failure.message]).toEqual(["busy", "all places are taken"]);
    server.busy = { status: 429, message: "no data is left for today" };
    expect(((await finish(run())) as Failure).message).toBe("no data is left for today");
  });

  it("ends a stage with the server, and says so", async () => {
    server.downEndsAfter = 2000;
    const measured = (await finish(run())) as Measured;
    expect(measured.live.notes.join()).toMatch(/ended the stage "down" after 2\.0 s/);
    expect(server.result?.down.interval_ns).toBe(1.5e9);
    expect((server.result?.down.goodput_bps ?? 0) / 40e6).toBeCloseTo(1, 1);
  });

  it("passes on why the server ends it", async () => {
    const result = run();
    await vi.advanceTimersByTimeAsync(4000);
    server.ended = "its data of the day is used up";
    const failure = (await finish(result)) as Failure;
    expect([failure.kind, failure.message]).toEqual(["ended", "the server has ended this test: its data of the day is used up"]);
  });

  it("says that the server is silent instead of counting zeros", async () => {
    const result = run();
    await vi.advanceTimersByTimeAsync(4000);
    server.isGone = true;
    const failure = (await finish(result)) as Failure;
    expect(failure.kind).toBe("lost");
    expect(server.result).toBeNull();
  });

  it("tells a sleep of the computer from a lost network", async () => {
    const env = server.env();
    let slept = 0;
    const result = run({ ...env, now: () => env.now() + slept });
    await vi.advanceTimersByTimeAsync(4000);
    slept = 60_000;
    expect(((await finish(result)) as Failure).message).toContain("was paused");
  });

  it("stops at once, and leaves no request behind", async () => {
    const phases = new Set<string>();
    const result = run(server.env(), (live) => phases.add(live.phase));
    await vi.advanceTimersByTimeAsync(3000);
    stop.abort();
    await vi.advanceTimersByTimeAsync(1);
    expect(((await result) as Failure).kind).toBe("stopped");
    const before = server.requests.length;
    await vi.advanceTimersByTimeAsync(20_000);
    expect(server.requests.length).toBe(before);
    expect([...phases]).toEqual(["idle", "down"]);
  });
});
