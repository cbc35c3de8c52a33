// What the visitor's page shows, and what changes it.
import { browser } from "./browser";
import type { About, VisitDocument } from "./documents";
import { about as askAbout, Failure, Live, measure, PLAN, SILENT, stored, type Plan } from "./engine";
import { signal } from "./signals";

export type Shown =
  | { kind: "start" }
  | { kind: "loading"; key: string }
  | { kind: "running" }
  | { kind: "failed"; failure: Failure }
  | { kind: "result"; document: VisitDocument; isOwn: boolean };

export const about = signal<About | null>(null);
/** Why the server says nothing of itself. */
export const silence = signal<string | null>(null);
export const shown = signal<Shown>({ kind: "start" });
/** The test of this page, running or over; the number rises with every change that is drawn. */
export const live = signal<{ live: Live; version: number } | null>(null);

let stopping: AbortController | null = null;
/** Curves are drawn five times a second: drawing takes time from measuring. */
const DRAW_MS = 190;

const fetch_ = (path: string, init: RequestInit): Promise<Response> => fetch(path, { credentials: "omit", cache: "no-store", ...init });

export async function loadAbout(): Promise<void> {
  try {
    about.value = await askAbout(fetch_);
    silence.value = null;
  } catch (error) {
    silence.value = error instanceof Failure ? error.message : SILENT;
  }
}

/** The key of a result in the address. */
const keyOf = (path: string): string | null => /^\/r\/([^/]+)/.exec(path)?.[1] ?? null;

export function show(): void {
  if (shown.peek().kind === "running") return;
  const key = keyOf(location.pathname);
  if (key === null) {
    shown.value = { kind: "start" };
    return;
  }
  const now = shown.peek();
  if (now.kind === "result" && now.document.key === key) return;
  shown.value = { kind: "loading", key };
  live.value = null;
  stored(fetch_, decoded(key)).then(
    (document) => {
      if (keyOf(location.pathname) === key) shown.value = { kind: "result", document, isOwn: false };
    },
    (error: unknown) => {
      if (keyOf(location.pathname) === key) shown.value = { kind: "failed", failure: asFailure(error) };
    },
  );
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const asFailure = (error: unknown): Failure =>
  error instanceof Failure ? error : new Failure("unfit", `this page has a bug: ${error instanceof Error ? error.message : String(error)}`);

/** The server's limit of a test's time shortens the stages. */
export function planFor(limits: About["limits"] | undefined, plan: Plan = PLAN): Plan {
  const most = (limits?.duration_ns ?? Infinity) / 1e6;
  return { ...plan, down: Math.min(plan.down, most), up: Math.min(plan.up, most) };
}

const PLACE = "bdp-visit";
const STALE_MS = 5000;

/** Says to other tabs that this one tests, and since when the last one that said so. */
function testing(now: number): number {
  try {
    const last = Number(localStorage.getItem(PLACE) ?? 0);
    localStorage.setItem(PLACE, String(now));
    return now === 0 ? Infinity : now - last;
  } catch {
    // This browser keeps nothing: two tabs are two tests.
    return Infinity;
  }
}

export async function start(): Promise<void> {
  if (shown.peek().kind === "running") return;
  if (testing(Date.now()) < STALE_MS) {
    // A browser has six connections to a server for all its tabs.
    const message = "another tab of this browser tests the path to this server: wait until it has ended";
    shown.value = { kind: "failed", failure: new Failure("busy", message) };
    return;
  }
  const stop = new AbortController();
  stopping = stop;
  live.value = null;
  shown.value = { kind: "running" };
  if (location.pathname !== "/") history.pushState(null, "", "/");
  let drawn = 0;
  let phase = "";
  const change = (state: Live) => {
    const now = performance.now();
    if (state.phase === phase && now - drawn < DRAW_MS && now - state.began > 1000) return;
    drawn = now;
    phase = state.phase;
    testing(Date.now());
    live.value = { live: state, version: state.version };
  };
  const hidden = () => {
    const note = "This tab was in the background during the test: browsers slow such tabs down.";
    const state = live.peek()?.live;
    if (document.hidden && state && !state.notes.includes(note)) state.notes.push(note);
  };
  document.addEventListener("visibilitychange", hidden);
  try {
    const measured = await measure(browser(), change, stop.signal, planFor(about.peek()?.limits));
    history.pushState(null, "", `/r/${encodeURIComponent(measured.document.key)}`);
    live.value = { live: measured.live, version: measured.live.version + 1 };
    shown.value = { kind: "result", document: measured.document, isOwn: true };
  } catch (error) {
    const failure = asFailure(error);
    shown.value = failure.kind === "stopped" && !live.peek()?.live.down ? { kind: "start" } : { kind: "failed", failure };
  } finally {
    document.removeEventListener("visibilitychange", hidden);
    testing(0);
    stopping = null;
  }
}

export function stop(failure = new Failure("stopped", "stopped before its end: there is no result")): void {
  stopping?.abort(failure);
}

/** The page is about to go. */
export function leave(): void {
  if (stopping) testing(0);
}
