// A stored run.
import { useEffect, useMemo, useState } from "preact/hooks";
import * as api from "../api";
import { isMeasurements, ofSchema, type Measurement } from "../documents";
import { moment } from "../format";
import type { LabRunDocument } from "../generated/lab-run";
import { ofMeasurement } from "../model";
import { saveBlob } from "../svg";
import { isSweep } from "../sweep";
import { Cases } from "./lab";
import { Name } from "./parts";
import { SweepResult } from "./sweep";
import { TimelineCharts } from "./timeline";
import { Why } from "./why";

interface Loaded {
  document: unknown;
  listed: api.StoredRun | null;
}

export function Stored({ run }: { run: string }) {
  const [loaded, set] = useState<Loaded | null>(null);
  const [problem, say] = useState<string | null>(null);
  useEffect(() => {
    let isCurrent = true;
    set(null);
    say(null);
    const load = () => {
      Promise.all([api.document_(run), api.runs(run, null)]).then(
        ([document, list]) => {
          if (isCurrent) set({ document, listed: list.runs.find((one) => one.run === run) ?? null });
        },
        (error: unknown) => {
          if (isCurrent && error instanceof api.Refusal) say(error.message);
        },
      );
    };
    load();
    const off = api.onBack(load);
    return () => {
      isCurrent = false;
      off();
    };
  }, [run]);
  if (problem !== null) {
    return (
      <section class="panel">
        <h2>Run {run}</h2>
        <p class="error">{problem}</p>
        <p>
          <a href="#/history">All runs</a>
        </p>
      </section>
    );
  }
  if (!loaded) return <section class="panel">Reading run {run}.</section>;
  return <Show run={run} loaded={loaded} />;
}

function Show({ run, loaded }: { run: string; loaded: Loaded }) {
  const { document, listed } = loaded;
  const all = isMeasurements(document) ? document.runs : [];
  const [chosen, choose] = useState(0);
  const measurement = all[chosen];
  const command = listed?.command ?? null;
  const cases = ofSchema<LabRunDocument>(document, "bdp.cases/1")?.cases;
  return (
    <>
      <section class="panel">
        <div class="bar">
          <h2>
            Run {run} <Name>{listed?.label ?? measurement?.request.host ?? listed?.scenario ?? ""}</Name>
          </h2>
          <span class="faint">{moment(measurement?.started_unix_ms ?? listed?.started_unix_ms ?? 0)}</span>
          <Exports run={run} />
        </div>
        {all.length > 1 && (
          <p>
            <label>
              Repetition{" "}
              <select
                value={String(chosen)}
                onChange={(event) => {
                  choose(Number(event.currentTarget.value));
                }}
              >
                {all.map((one, index) => (
                  <option key={one.repetition} value={String(index)}>
                    {one.repetition} of {all.length}
                  </option>
                ))}
              </select>
            </label>
          </p>
        )}
        {measurement ? (
          <Charts measurement={measurement} command={command} />
        ) : isSweep(document) ? (
          <SweepResult sweep={document} command={command} />
        ) : cases ? (
          <Cases records={cases} command={command} />
        ) : (
          <p>
            This page shows measurements, sweeps and lab runs; <code>bdp show {run}</code> prints this run, and the report shows it with its charts.
          </p>
        )}
      </section>
      {measurement && (
        <div class="panel">
          <Why measurement={measurement} run={run} command={command} />
        </div>
      )}
    </>
  );
}

function Charts({ measurement, command }: { measurement: Measurement; command: string | null }) {
  const timeline = useMemo(() => ofMeasurement(measurement), [measurement]);
  if (timeline.goodput.xs.length === 0 && timeline.rtt.xs.length === 0) return null;
  return <TimelineCharts timeline={timeline} command={command} isLive={false} />;
}

/** A run as a file: fetched, since a link carries no header. */
function Export(of: { run: string; kind: "report" | "csv" | ""; ending: string; label: string; children: string }) {
  const [failed, fail] = useState("");
  const save = () => {
    fail("");
    api.file(of.run, of.kind).then(
      (blob) => {
        saveBlob(`bdp-${of.run}.${of.ending}`, blob);
      },
      (error: unknown) => {
        fail(error instanceof Error ? error.message : String(error));
      },
    );
  };
  return (
    <>
      <button type="button" class="quiet" onClick={save} aria-label={of.label}>
        {of.children}
      </button>
      {failed !== "" && <span role="alert">{failed}</span>}
    </>
  );
}

export const Exports = ({ run }: { run: string }) => (
  <span class="tools">
    <Export run={run} kind="" ending="json" label={`Run ${run} as JSON`}>
      JSON
    </Export>
    <Export run={run} kind="csv" ending="csv" label={`Run ${run} as CSV`}>
      CSV
    </Export>
    <Export run={run} kind="report" ending="html" label={`Report of run ${run} as HTML`}>
      HTML report
    </Export>
  </span>
);
