// What all panels share: where the page is, and what it knows of the server.
import { signal } from "@preact/signals";
import * as api from "./api";

export type Route = { panel: "run"; run: string | null } | { panel: "history" };

const read = (): Route => {
  const hash = location.hash;
  if (hash.startsWith("#/history")) return { panel: "history" };
  const run = /^#\/run\/([^/]+)/.exec(hash)?.[1];
  return { panel: "run", run: run === undefined ? null : decode(run) };
};

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const route = signal<Route>(read());
addEventListener("hashchange", () => {
  route.value = read();
});

/** Shows a stored run, or the running one. */
export function showRun(run: string | null): void {
  const hash = run === null ? "#/run" : `#/run/${encodeURIComponent(run)}`;
  if (location.hash !== hash) location.hash = hash;
}

export const about = signal<api.About | null>(null);
/** Whether the store has runs; null while that is not known. */
export const hasRuns = signal<boolean | null>(null);

export async function loadAbout(): Promise<void> {
  try {
    about.value = await api.about();
    hasRuns.value = (await api.runs("", null)).runs.length > 0;
  } catch {
    // The banner says so.
  }
}

/** The host of a command line. */
export function hostOf(command: string): string {
  const word = (/^bdp \w+ (\S+)/.exec(command)?.[1] ?? "").replaceAll("'", "");
  return word.startsWith("-") ? "" : word;
}
