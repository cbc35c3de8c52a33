// The page's frame.
import { useEffect, useState } from "preact/hooks";
import * as api from "../api";
import { job } from "../follow";
import { about, route } from "../page";
import { History } from "./history";
import { Name } from "./parts";
import { Run } from "./run";
import { Stored } from "./stored";

export function App() {
  const where = route.value;
  const isRun = where.panel === "run";
  return (
    <>
      <header>
        <h1>bdp</h1>
        <nav aria-label="Panels">
          <a href="#/run" aria-current={isRun ? "page" : undefined}>
            Run
          </a>
          <a href="#/history" aria-current={isRun ? undefined : "page"}>
            History
          </a>
        </nav>
        {job.value?.state === "running" && (where.panel !== "run" || where.run !== null) && (
          <a class="running" href="#/run">
            A test is running
          </a>
        )}
        {about.value && (
          <span class="faint of">
            <Name>{about.value.host}</Name> {about.value.bdp}
          </span>
        )}
      </header>
      <Banner />
      <main>
        {where.panel === "history" ? <History /> : where.run === null ? <Run /> : <Stored run={where.run} />}
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
