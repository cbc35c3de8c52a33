// The job that the page shows, and its events.
import { batch, signal } from "@preact/signals";
import * as api from "./api";
import { newLive, take, type Live } from "./events";
import type { Event, Outcome } from "./generated/job";
import { isMeasurements, type Measurement } from "./documents";
import { receiveAll, type Message } from "./stream";

export const job = signal<api.JobState | null>(null);
/** The job's state; the number rises with every change of it. */
export const live = signal<{ live: Live; version: number } | null>(null);

/** The measurement of the job that ended, with its sentences. */
export const result = signal<{ id: string; measurement: Measurement } | null>(null);

/** Why the events of a running job can't be read. */
export const trouble = signal<string | null>(null);

let source: AbortController | null = null;
let failures = 0;
let reopening = 0;
let following: string | null = null;

function changed(): void {
  const current = live.value;
  if (current) live.value = { live: current.live, version: current.version + 1 };
}

/** Broken connections in a row before the reader is told. */
const TOLERATED = 4;

/** Shows this job from its beginning. */
export function follow(state: api.JobState): void {
  if (following === state.id) return;
  close();
  failures = 0;
  following = state.id;
  batch(() => {
    job.value = state;
    trouble.value = null;
    live.value = { live: newLive(), version: 0 };
  });
  open();
}

function close(): void {
  clearTimeout(reopening);
  reopening = 0;
  source?.abort();
  source = null;
}

function open(): void {
  const id = following;
  const state = live.value?.live;
  if (id === null || !state || state.outcome || document.hidden) return;
  close();
  const reading = new AbortController();
  source = reading;
  const receive = (message: Message) => {
    if (following !== id || source !== reading) return;
    failures = 0;
    trouble.value = null;
    let event: Event | Outcome;
    try {
      event = JSON.parse(message.data) as Event | Outcome;
    } catch {
      return;
    }
    if (!take(state, message.id, event)) return;
    if (state.outcome) {
      batch(() => {
        if (job.value) job.value = { ...job.value, state: "ended", outcome: state.outcome };
        changed();
      });
      void conclude(id, state);
    } else changed();
  };
  const broken = () => {
    if (source !== reading || state.outcome) return;
    close();
    // A broken connection; the job goes on without a reader.
    failures += 1;
    if (failures > TOLERATED) trouble.value = "the events of this job can't be read: too many tabs, or a proxy that buffers";
    reopening = window.setTimeout(() => {
      reopening = 0;
      void refresh();
    }, Math.min(100 * 2 ** failures, 15_000));
  };
  api
    .events(id, state.lastId, reading.signal)
    .then((stream) => receiveAll(stream, receive))
    .then(broken, broken);
}

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
  if (measurement && following === id) result.value = { id, measurement };
}

/** Follows the newest job, if there is one; resumes after the last event that is known. */
export async function refresh(): Promise<void> {
  try {
    const all = await api.jobs();
    const newest = all.find((one) => one.kind === "measure");
    if (following !== null && all.every((one) => one.id !== following || one.command !== job.value?.command)) {
      // The server was started again: this job is no more.
      close();
      following = null;
      if (job.value?.state === "running") {
        batch(() => {
          job.value = null;
          live.value = null;
        });
      }
    }
    if (newest && newest.id !== following) follow(newest);
    else if (source === null && reopening === 0) open();
  } catch {
    // The banner says so, and comes back here.
  }
}

/** A browser has six connections to a server for all its tabs: those that nobody sees leave theirs. */
document.addEventListener("visibilitychange", () => {
  if (document.hidden) close();
  else void refresh();
});

/** The network is gone: a stream would wait for it without a word. */
export function interrupt(): void {
  close();
  api.lost();
}

/** Starts a job; several calls with the same key start one. */
export async function start(words: string[], key: string): Promise<void> {
  follow(await api.start(words, key));
}

export async function stop(): Promise<void> {
  const current = job.value;
  if (current?.state === "running") await api.cancel(current.id);
}
