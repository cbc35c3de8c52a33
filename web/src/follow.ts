// The job that the page shows, and its events.
import { batch, signal } from "@preact/signals";
import * as api from "./api";
import { newLive, take, type Live } from "./events";
import type { Event, Outcome } from "./generated/job";
import { isMeasurements, type Measurement } from "./documents";

export const job = signal<api.JobState | null>(null);
/** The job's state; the number rises with every change of it. */
export const live = signal<{ live: Live; version: number } | null>(null);

/** The measurement of the job that ended, with its sentences. */
export const result = signal<{ id: string; measurement: Measurement } | null>(null);

let source: EventSource | null = null;
let following: string | null = null;
let scheduled = 0;

/** Readings of many streams are drawn less often on dense screens. */
const RARE_MS = 200;
let drawnAt = 0;

function changed(now = false): void {
  const state = live.value?.live;
  if (!state) return;
  const rare = state.streams > 32 && devicePixelRatio > 1 ? RARE_MS : 0;
  const wait = Math.max(0, drawnAt + rare - performance.now());
  if (now || wait === 0) draw();
  else if (scheduled === 0) scheduled = window.setTimeout(draw, wait);
}

function draw(): void {
  clearTimeout(scheduled);
  scheduled = 0;
  drawnAt = performance.now();
  const current = live.value;
  if (current) live.value = { live: current.live, version: current.version + 1 };
}

/** Shows this job from its beginning. */
export function follow(state: api.JobState): void {
  if (following === state.id) return;
  close();
  following = state.id;
  batch(() => {
    job.value = state;
    live.value = { live: newLive(), version: 0 };
  });
  open();
}

function close(): void {
  source?.close();
  source = null;
}

function open(): void {
  const id = following;
  const state = live.value?.live;
  if (id === null || !state || state.outcome) return;
  close();
  const events = new EventSource(`/api/jobs/${encodeURIComponent(id)}/events?after=${String(state.lastId)}`);
  source = events;
  const receive = (message: MessageEvent<string>) => {
    if (following !== id) return;
    const number = Number(message.lastEventId);
    let document: Event | Outcome;
    try {
      document = JSON.parse(message.data) as Event | Outcome;
    } catch {
      return;
    }
    if (!take(state, number, document)) return;
    if (state.outcome) {
      events.close();
      batch(() => {
        if (job.value) job.value = { ...job.value, state: "ended", outcome: state.outcome };
        changed(true);
      });
      void conclude(id, state);
    } else changed();
  };
  events.addEventListener("message", receive);
  events.addEventListener("outcome", receive);
  events.addEventListener("error", () => {
    if (source !== events) return;
    close();
    // A broken connection; the job goes on without a reader.
    void refresh();
  });
}

/** The stored document has what the events lack: the findings in words. */
async function conclude(id: string, state: Live): Promise<void> {
  let measurement = state.measurements.at(-1) ?? null;
  if (state.run !== null) {
    try {
      const document = await api.document_(state.run);
      if (isMeasurements(document)) measurement = document.runs.at(-1) ?? measurement;
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
    else if (source === null) open();
  } catch {
    // The banner says so, and comes back here.
  }
}

/** Starts a job; several calls with the same key start one. */
export async function start(words: string[], key: string): Promise<void> {
  follow(await api.start(words, key));
}

export async function stop(): Promise<void> {
  const current = job.value;
  if (current?.state === "running") await api.cancel(current.id);
}
