// The jobs of the server, and the events of those that a panel shows.
import { batch, computed, signal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import * as api from "./api";
import { newLive, take, type Live } from "./events";
import type { Event, JobOutcome as Outcome } from "./generated/job";
import { isMeasurements, type Measurement } from "./documents";
import { receiveAll, type Message } from "./stream";

/** The jobs of this server, newest first. */
export const jobs = signal<api.JobState[]>([]);

/** The job that runs: one at a time. */
export const running = computed(() => jobs.value.find((one) => one.state === "running") ?? null);

/** Broken connections in a row before the reader is told. */
const TOLERATED = 4;

/** Followers of panels that are shown: a browser has six connections to a server for all its tabs. */
const shown = new Set<Follower>();

/** Follows the newest job of a panel: its state survives reloads, lost connections, and a change of panel. */
export class Follower {
  readonly job: Signal<api.JobState | null> = signal(null);
  /** The job's state; the number rises with every change of it. */
  readonly live: Signal<{ live: Live; version: number } | null> = signal(null);
  /** Why the events of a running job can't be read. */
  readonly trouble: Signal<string | null> = signal(null);
  readonly isRunning = computed(() => this.job.value?.state === "running");
  /** The question that the job waits for. */
  readonly question = computed(() => (this.isRunning.value ? (this.live.value?.live.question ?? null) : null));

  private source: AbortController | null = null;
  private failures = 0;
  private reopening = 0;

  constructor(
    /** The jobs of this panel. */
    private readonly isOurs: (job: api.JobState) => boolean,
    private readonly onEnd: (id: string, live: Live) => void = () => undefined,
  ) {}

  /** Shows this job from its beginning. */
  follow(state: api.JobState): void {
    if (this.job.peek()?.id === state.id) return;
    this.close();
    this.failures = 0;
    batch(() => {
      this.job.value = state;
      this.trouble.value = null;
      this.live.value = { live: newLive(), version: 0 };
    });
    this.open();
  }

  /** Starts a job; several calls with the same key start one. */
  async start(words: string[], key: string, secrets?: api.Secrets): Promise<void> {
    const state = await api.start(words, key, secrets);
    if (jobs.peek().every((one) => one.id !== state.id)) jobs.value = [state, ...jobs.peek()];
    this.follow(state);
  }

  async stop(): Promise<void> {
    if (this.isRunning.peek()) await api.cancel(this.job.peek()?.id ?? "");
  }

  /** Answers the question of the job. */
  async answer(yes: boolean): Promise<void> {
    const current = this.job.peek();
    if (current) await api.answerJob(current.id, this.question.peek()?.number ?? 0, yes);
  }

  close(): void {
    clearTimeout(this.reopening);
    this.reopening = 0;
    this.source?.abort();
    this.source = null;
  }

  /** Follows the newest job, if there is one; resumes after the last event that is known. */
  look(all: readonly api.JobState[]): void {
    const current = this.job.peek();
    if (current && all.every((one) => one.id !== current.id || one.command !== current.command)) {
      // The server was started again: this job is no more. What it showed stays if it had ended.
      this.close();
      if (current.state === "running") {
        batch(() => {
          this.job.value = null;
          this.live.value = null;
        });
      }
    }
    const newest = all.find(this.isOurs);
    if (newest && (newest.id !== current?.id || newest.command !== current.command)) {
      this.job.value = null;
      this.follow(newest);
    } else if (this.source === null && this.reopening === 0) this.open();
  }

  private open(): void {
    const id = this.job.peek()?.id;
    const state = this.live.peek()?.live;
    if (id === undefined || !state || state.outcome || document.hidden || !shown.has(this)) return;
    this.close();
    const reading = new AbortController();
    this.source = reading;
    const receive = (message: Message) => {
      if (this.source !== reading) return;
      this.failures = 0;
      this.trouble.value = null;
      let event: Event | Outcome;
      try {
        event = JSON.parse(message.data) as Event | Outcome;
      } catch {
        return;
      }
      if (!take(state, message.id, event)) return;
      batch(() => {
        this.live.value = { live: state, version: (this.live.peek()?.version ?? 0) + 1 };
        if (state.outcome) this.ended(id, state);
      });
    };
    const broken = () => {
      if (this.source !== reading || state.outcome) return;
      this.close();
      // A broken connection; the job goes on without a reader.
      this.failures += 1;
      if (this.failures > TOLERATED) this.trouble.value = "the events of this job can't be read: too many tabs, or a proxy that buffers";
      this.reopening = window.setTimeout(
        () => {
          this.reopening = 0;
          void refresh();
        },
        Math.min(100 * 2 ** this.failures, 15_000),
      );
    };
    api
      .events(id, state.lastId, reading.signal)
      .then((stream) => receiveAll(stream, receive))
      .then(broken, broken);
  }

  private ended(id: string, state: Live): void {
    const over = (one: api.JobState): api.JobState => ({ ...one, state: "ended", outcome: state.outcome });
    const current = this.job.peek();
    if (current) this.job.value = over(current);
    jobs.value = jobs.peek().map((one) => (one.id === id ? over(one) : one));
    this.onEnd(id, state);
  }
}

/** Follows while the panel is shown. */
export function useFollower(follower: Follower): void {
  useEffect(() => {
    shown.add(follower);
    // Before the token of the link is traded, and the jobs are known, there is nothing to ask.
    if (api.access.peek() === "given") void refresh();
    else follower.look(jobs.peek());
    return () => {
      shown.delete(follower);
      follower.close();
    };
  }, [follower]);
}

/** What the panel Run shows. */
export const run = new Follower(
  (job) => job.kind === "measure",
  (id, live) => void conclude(id, live),
);

/** The measurement of the job that ended, with its sentences. */
export const result = signal<{ id: string; measurement: Measurement } | null>(null);

/** The stored document has what the events lack: the findings in words. */
async function conclude(id: string, state: Live): Promise<void> {
  let measurement = state.measurements.at(-1) ?? null;
  if (state.run !== null) {
    try {
      const stored = await api.document_(state.run);
      if (isMeasurements(stored)) measurement = stored.runs.at(-1) ?? measurement;
    } catch {
      // The event's own measurement has the figures.
    }
  }
  if (measurement && run.job.peek()?.id === id) result.value = { id, measurement };
}

/** Asks for the jobs; the shown panel follows its newest. */
export async function refresh(): Promise<void> {
  if (api.access.peek() === "old") return;
  try {
    const all = await api.jobs();
    jobs.value = all;
    for (const follower of shown) follower.look(all);
  } catch {
    // The banner says so, and comes back here.
  }
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) void refresh();
  else for (const follower of shown) follower.close();
});

/** The network is gone: a stream would wait for it without a word. */
export function interrupt(): void {
  for (const follower of shown) follower.close();
  api.lost();
}

/** Names a start, so that a double click starts one job. */
export const newKey = (): string => Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(16)).join("-");
