// What all panels share: where the page is, and what it knows of the server.
import { signal } from "@preact/signals";
import * as api from "./api";

export type Route =
  | { panel: "run" | "what-if" | "fix"; run: string | null }
  | { panel: "compare"; a: string | null; b: string | null }
  | { panel: "sweep" | "lab" | "captures" | "history" };
export type Panel = Route["panel"];

/** The route of an address: `#/compare/A/B`. */
export function routeOf(hash: string): Route {
  const [, panel, first, second] = hash.split("/");
  const part = (text: string | undefined) => (text === undefined || text === "" ? null : decode(text));
  switch (panel) {
    case "what-if":
    case "fix":
      return { panel, run: part(first) };
    case "compare":
      return { panel, a: part(first), b: part(second) };
    case "sweep":
    case "lab":
    case "captures":
    case "history":
      return { panel };
    default:
      return { panel: "run", run: part(first) };
  }
}

/** The address of a panel, with runs if it takes them. */
export const address = (panel: Panel, ...runs: string[]): string => `#/${[panel, ...runs.map(encodeURIComponent)].join("/")}`;

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const route = signal<Route>(routeOf(location.hash));
addEventListener("hashchange", () => {
  route.value = routeOf(location.hash);
});

/** Shows a stored run, or the running one. */
export function showRun(run: string | null): void {
  const hash = run === null ? address("run") : address("run", run);
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

/** The command of a line without `bdp`: `sweep`, `lab run`. */
export const nameOf = (command: string): string => /^bdp ((?:lab |tune )?[\w-]+)/.exec(command)?.[1] ?? "";

/** The panel that shows jobs of this command. */
export function panelOf(command: string): Panel {
  switch (nameOf(command)) {
    case "sweep":
      return "sweep";
    case "compare":
      return "compare";
    case "twin":
    case "rehearse":
    case "verify":
    case "fix":
      return "fix";
    case "lab run":
      return command.includes("what-if:") ? "what-if" : "lab";
    case "demo":
      return "lab";
    case "pcap":
      return "captures";
    default:
      return "run";
  }
}
