// Requests to the server.
import { signal } from "@preact/signals";
import type { Job, JobOutcome as Outcome } from "./generated/job";
import type { ErrorDocument } from "./generated/error";

/** A refusal, with the server's sentence. */
export class Refusal extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

/** The server does not answer. */
export class Unreachable extends Error {}

export interface About {
  bdp: string;
  host: string;
  store: string | null;
  /** ` --store PATH` for commands to paste; empty for the default store. */
  store_option: string;
  hosts: string[];
}

export interface Argument {
  name: string;
  long: string | null;
  short: string | null;
  value: string | null;
  help: string;
  heading: string | null;
  default: string | null;
  choices: string[];
  many: boolean;
  positional: boolean;
}

export interface Command {
  name: string;
  about: string;
  arguments: Argument[];
}

export interface JobState {
  id: string;
  command: string;
  kind: string;
  started_unix_ms: number;
  state: "running" | "ended";
  outcome: Outcome | null;
}

/** Never part of a command, stored or logged. */
export interface Secrets {
  token?: string;
  tune_token?: string;
}

/** A path, and what is changed on it; an absent member is as measured. */
export interface WhatIfRequest {
  run: string | null;
  direction?: "to" | "from";
  rate_bps?: number;
  rtt_ns?: number;
  loss?: number;
  queue_bytes?: number;
  window_bytes?: number;
  streams?: number;
  congestion_control?: string;
}

export interface WhatIfAnswer {
  measured: Record<string, unknown> | null;
  /** Each parameter as used. */
  given: Record<string, unknown>;
  /** Lowest first. */
  limits: { limit: string; goodput_bps: number; sentence: string }[];
  /** Null if nothing that is known limits it. */
  goodput_bps: number | null;
  loaded_rtt_ns: number | null;
  sentence: string;
}

export interface Uploaded {
  id: string;
  name: string;
  bytes: number;
}

export interface Checked {
  command: string;
  job: Job;
}

export interface StoredRun {
  run: string;
  kind: string;
  label: string | null;
  scenario: string;
  state: string;
  started_unix_ms: number;
  command: string;
  goodput_bps: { to: number | null; from: number | null } | null;
}

export interface RunList {
  runs: StoredRun[];
  more: boolean;
}

/** Whether the server takes this page's requests. */
export const access = signal<"asking" | "given" | "old">("asking");

/** When the server is asked again, milliseconds since 1970; null while it answers. */
export const lostUntil = signal<number | null>(null);

const PLACE = "bdp-secret";
/** Where the browser keeps nothing, the secret lasts as long as the tab. */
let kept: string | null = null;

/** The secret of the server: kept by origin, port included, and so for all tabs; no other server gets it. */
function secret(): string {
  try {
    return localStorage.getItem(PLACE) ?? kept ?? "";
  } catch {
    return kept ?? "";
  }
}

function keep(value: string): void {
  kept = value;
  try {
    localStorage.setItem(PLACE, value);
  } catch {
    // The tab has it.
  }
}

/** Headers of every request. */
const authority = () => ({ Authorization: `Bearer ${secret()}` });

/** What a proxy answers if the server does not. */
const isGone = (status: number): boolean => status >= 502 && status <= 504;

async function send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      credentials: "omit",
      headers: { ...authority(), ...(method === "GET" ? {} : { "Content-Type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch {
    lost();
    throw new Unreachable("bdp page does not answer");
  }
  if (isGone(response.status)) {
    lost();
    throw new Unreachable("bdp page does not answer");
  }
  if (response.ok) return response;
  const message = await response.json().then(
    (document: ErrorDocument) => document.error.message,
    () => `the server answered ${String(response.status)}`,
  );
  if (response.status === 401) access.value = "old";
  throw new Refusal(message, response.status);
}

async function read<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await send(method, path, body);
  try {
    return (await response.json()) as T;
  } catch {
    lost();
    throw new Unreachable("the answer of bdp page broke off");
  }
}

/** Whether the address is a link that `bdp page` printed. */
export const hasToken = (): boolean => location.hash.startsWith("#token=");

/** Trades the token of the link for the server's secret, and takes it out of the address. */
export async function enter(): Promise<void> {
  if (!hasToken()) return;
  const token = location.hash.slice("#token=".length);
  history.replaceState(null, "", `${location.pathname}#/run`);
  const response = await send("POST", "/api/session", undefined, { Authorization: `Bearer ${token}` });
  keep(((await response.json()) as { secret: string }).secret);
}

const part = encodeURIComponent;

export const about = (): Promise<About> => read("GET", "/api/about");
export const commands = (): Promise<Command[]> => read("GET", "/api/commands");
export const check = (command: string[]): Promise<Checked> => read("POST", "/api/check", { command });
export const start = (command: string[], key: string, secrets?: Secrets): Promise<JobState> =>
  read("POST", "/api/jobs", { command, key, ...(secrets ? { secrets } : {}) });
export const jobs = (): Promise<JobState[]> => read("GET", "/api/jobs");
export const cancel = (id: string): Promise<Response> => send("POST", `/api/jobs/${part(id)}/cancel`, {});
/** Answers the question of a job that has this number. */
export const answerJob = (id: string, question: number, yes: boolean): Promise<Response> =>
  send("POST", `/api/jobs/${part(id)}/answer`, { question, yes });
/** What a command of the kind that answers at once prints with --json: `tune show`, `compare A B`, `lab list`. */
export const answer = <T>(command: string[], secrets?: Secrets): Promise<T> =>
  read("POST", "/api/answer", { command, ...(secrets ? { secrets } : {}) });
export const whatIf = (request: WhatIfRequest): Promise<WhatIfAnswer> => read("POST", "/api/what-if", request);
/** The command of the job that tries it in the lab. */
export const whatIfLab = (request: WhatIfRequest): Promise<{ command: string[] }> => read("POST", "/api/what-if/lab", request);
/** Gives a capture to this bdp, which deletes it when the page ends. */
export const upload = (name: string, bytes: Blob, onShare: (share: number) => void, signal: AbortSignal): Promise<Uploaded> =>
  new Promise((done, fail) => {
    // A fetch tells nothing of its progress.
    const request = new XMLHttpRequest();
    request.open("POST", "/api/captures");
    for (const [key, value] of Object.entries({ ...authority(), "Content-Type": "application/octet-stream", "Bdp-Name": part(name) })) request.setRequestHeader(key, value);
    request.responseType = "json";
    request.upload.onprogress = (event) => {
      onShare(event.loaded / event.total);
    };
    request.onload = () => {
      const answer = request.response as (Uploaded & Partial<ErrorDocument>) | null;
      if (answer && request.status < 300) done(answer);
      else fail(new Refusal(answer?.error?.message ?? `the server answered ${request.status}`, request.status));
    };
    request.onerror = () => {
      fail(new Unreachable("the upload broke off: bdp page has ended, or refuses the file"));
    };
    request.onabort = () => {
      fail(new DOMException("cancelled", "AbortError"));
    };
    signal.addEventListener("abort", () => {
      request.abort();
    });
    request.send(bytes);
  });
/** The captures that this bdp has, for a page that was loaded again. */
export const captures = (): Promise<Uploaded[]> => read("GET", "/api/captures");
export const discard = (capture: string): Promise<Response> => send("DELETE", `/api/captures/${part(capture)}`);
export const runs = (search: string, before: string | null): Promise<RunList> =>
  read("GET", `/api/runs?search=${part(search)}&most=50${before === null ? "" : `&before=${part(before)}`}`);
export const document_ = (run: string): Promise<unknown> => read("GET", `/api/runs/${part(run)}`);
export const remove = (run: string): Promise<Response> => send("DELETE", `/api/runs/${part(run)}`);
/** A run as a file. */
export const file = async (run: string, kind: "report" | "csv" | ""): Promise<Blob> =>
  (await send("GET", `/api/runs/${part(run)}${kind === "" ? "" : `/${kind}`}`)).blob();
/** The events of a job after this one, as the server sends them. */
export const events = async (id: string, after: number, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> => {
  const response = await fetch(`/api/jobs/${part(id)}/events?after=${String(after)}`, {
    credentials: "omit",
    headers: authority(),
    signal,
  });
  if (!response.ok || response.body === null) throw new Refusal("no events", response.status);
  return response.body;
};

/** Called when the server answers again. */
const back = new Set<() => void>();
export function onBack(call: () => void): () => void {
  back.add(call);
  return () => back.delete(call);
}

let wait = 500;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Asks again and again, less and less often, until the server answers. */
export function lost(): void {
  if (timer !== undefined) return;
  lostUntil.value = Date.now() + wait;
  timer = setTimeout(() => {
    timer = undefined;
    fetch("/api/about", { credentials: "omit", headers: authority() }).then(
      (response) => {
        if (isGone(response.status)) {
          wait = Math.min(wait * 2, 15_000);
          lost();
          return;
        }
        wait = 500;
        lostUntil.value = null;
        if (response.status === 401) access.value = "old";
        else for (const call of back) call();
      },
      () => {
        wait = Math.min(wait * 2, 15_000);
        lost();
      },
    );
  }, wait);
}

/** Asks now. */
export function retry(): void {
  clearTimeout(timer);
  timer = undefined;
  wait = 1;
  lost();
  wait = 500;
}
