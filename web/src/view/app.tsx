// The page's frame.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import * as api from "../api";
import { running } from "../follow";
import { about, address, panelOf, route, type Panel, type Route } from "../page";
import { Name } from "./parts";
import { Run } from "./run";

const PANELS: readonly (readonly [Panel, string])[] = [
  ["run", "Run"],
  ["sweep", "Sweep"],
  ["compare", "Compare"],
  ["what-if", "What if"],
  ["fix", "Fix"],
  ["lab", "Lab"],
  ["captures", "Captures"],
  ["history", "History"],
];

/** The panels that are loaded after the first paint. */
const further = signal<typeof import("./panels") | null>(null);
const missing = signal(false);

export function loadPanels(): void {
  missing.value = false;
  import("./panels").then(
    (panels) => (further.value = panels),
    () => (missing.value = true),
  );
}

function Shown() {
  const where = route.value;
  return where.panel === "run" && where.run === null ? <Run /> : <Further where={where} />;
}

function Further({ where }: { where: Route }) {
  if (further.value === null) {
    if (!missing.value) return <div class="panel empty" />;
    return (
      <div class="panel empty">
        This panel did not load. <button type="button" class="quiet" onClick={loadPanels}>Load it again</button>
      </div>
    );
  }
  const { Captures, Compare, Fix, History, Lab, Stored, Sweep, WhatIf } = further.value;
  switch (where.panel) {
    case "run":
      return where.run === null ? <Run /> : <Stored run={where.run} />;
    case "sweep":
      return <Sweep />;
    case "compare":
      return <Compare a={where.a} b={where.b} />;
    case "what-if":
      return <WhatIf run={where.run} />;
    case "fix":
      return <Fix run={where.run} />;
    case "lab":
      return <Lab />;
    case "captures":
      return <Captures />;
    case "history":
      return <History />;
  }
}

/** The panel of the running job, unless it is shown. */
function Running() {
  const job = running.value;
  const where = route.value;
  if (!job) return null;
  const panel = panelOf(job.command);
  if (panel === where.panel && (panel !== "run" || ("run" in where && where.run === null))) return null;
  return (
    <a class="running" href={address(panel)}>
      A test is running
    </a>
  );
}

export function App() {
  return (
    <>
      <header>
        <h1>bdp</h1>
        <nav aria-label="Panels">
          {PANELS.map(([panel, name]) => (
            <a key={panel} href={address(panel)} aria-current={route.value.panel === panel ? "page" : undefined}>
              {name}
            </a>
          ))}
        </nav>
        <Running />
        {about.value && (
          <span class="faint of">
            <Name>{about.value.host}</Name> {about.value.bdp}
          </span>
        )}
      </header>
      <Banner />
      <main>
        <Shown />
      </main>
    </>
  );
}

function Banner() {
  const [, again] = useState(0);
  const until = api.lostUntil.value;
  useEffect(() => {
    if (until === null) return undefined;
    const timer = setInterval(() => {
      again((n) => n + 1);
    }, 500);
    return () => {
      clearInterval(timer);
    };
  }, [until]);
  if (api.access.value === "old") {
    return (
      <div class="banner" role="alert">
        This link is no longer valid: run <code>bdp page</code> again and open the link that it prints.
      </div>
    );
  }
  if (until === null) return null;
  const left = Math.max(0, Math.ceil((until - Date.now()) / 1000));
  return (
    <div class="banner" role="alert">
      <span>bdp page does not answer: it has ended, or the network is down. A test that it started ends with it.</span>
      <span aria-hidden="true"> Asking again in {left} s.</span>{" "}
      <button type="button" class="quiet" onClick={api.retry}>
        Ask now
      </button>
    </div>
  );
}
