// History: all stored runs.
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "../api";
import { moment, rate } from "../format";
import { about, address, hasRuns } from "../page";
import { CommandLine, Name } from "./parts";
import { Exports } from "./stored";

export function History() {
  const [search, seek] = useState("");
  const [list, set] = useState<api.RunList | null>(null);
  const [problem, say] = useState<string | null>(null);
  const [marked, mark] = useState<string[]>([]);
  const [leaving, leave] = useState<api.StoredRun | null>(null);
  const newest = useRef(0);

  const load = (before: string | null, known: api.StoredRun[]) => {
    const number = (newest.current += 1);
    api.runs(search, before).then(
      (found) => {
        if (number !== newest.current) return;
        set({ runs: [...known, ...found.runs], more: found.more });
        say(null);
        if (search === "" && before === null) hasRuns.value = found.runs.length > 0;
      },
      (error: unknown) => {
        if (number === newest.current && error instanceof Error && !(error instanceof api.Unreachable)) say(error.message);
      },
    );
  };
  useEffect(() => {
    const timer = setTimeout(
      () => {
        load(null, []);
      },
      search === "" ? 0 : 200,
    );
    const off = api.onBack(() => {
      load(null, []);
    });
    return () => {
      clearTimeout(timer);
      off();
    };
  }, [search]);

  const remove = async (run: api.StoredRun) => {
    leave(null);
    try {
      await api.remove(run.run);
      mark((all) => all.filter((one) => one !== run.run));
      set((known) => known && { ...known, runs: known.runs.filter((one) => one.run !== run.run) });
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
    }
  };
  const runs = list?.runs ?? [];
  return (
    <section class="panel" aria-labelledby="history">
      <div class="bar">
        <h2 id="history">History</h2>
        <label class="search">
          Search{" "}
          <input
            type="search"
            value={search}
            placeholder="host, label, id or command"
            onInput={(event) => {
              seek(event.currentTarget.value);
            }}
          />
        </label>
      </div>
      {problem !== null && (
        <p class="error" role="alert">
          {problem}
        </p>
      )}
      {about.value?.store === null && <p class="note">This page runs without a store (--store none): nothing is kept.</p>}
      {list && runs.length === 0 && search === "" && (
        <p>
          No runs yet: start one on the page <a href="#/run">Run</a>, or by <code>bdp measure HOST</code>.
        </p>
      )}
      {list && runs.length === 0 && search !== "" && <p>No run has "{search}" in its host, label, id or command.</p>}
      {marked.length === 1 && <p class="faint">Mark a second run to compare with {marked[0]}.</p>}
      {marked.length === 2 && (
        <>
          <p>
            <a href={address("compare", ...[...marked].reverse())}>Compare the marked runs</a>
          </p>
          <CommandLine command={`bdp compare ${[...marked].reverse().join(" ")}${about.value?.store_option ?? ""}`} label="Command that compares the marked runs" />
        </>
      )}
      <Hosts runs={runs} seek={seek} />
      {runs.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Runs">
          <table class="runs">
            <caption class="hidden">Runs, newest first</caption>
            <thead>
              <tr>
                <td>
                  <span class="hidden">Mark</span>
                </td>
                <th scope="col">run</th>
                <th scope="col" class="text">
                  host or scenario
                </th>
                <th scope="col">→ goodput</th>
                <th scope="col">← goodput</th>
                <th scope="col">started</th>
                <th scope="col" class="text">
                  kind
                </th>
                <th scope="col" class="text">
                  command
                </th>
                <th scope="col" class="text">
                  export
                </th>
                <td />
              </tr>
            </thead>
            <tbody>
              {runs.map((run) => (
                <tr key={run.run}>
                  <td>
                    <input
                      type="checkbox"
                      aria-label={`Mark run ${run.run} to compare`}
                      checked={marked.includes(run.run)}
                      onChange={(event) => {
                        const isOn = event.currentTarget.checked;
                        mark((all) => (isOn ? [...all, run.run].slice(-2) : all.filter((one) => one !== run.run)));
                      }}
                    />
                  </td>
                  <td>
                    <a href={`#/run/${encodeURIComponent(run.run)}`} title={run.command}>
                      {run.run}
                    </a>
                  </td>
                  <td class="text">
                    <Name>{run.scenario}</Name>
                    {run.label !== null && (
                      <>
                        {" "}
                        <span class="faint">
                          <Name>{run.label}</Name>
                        </span>
                      </>
                    )}
                    {run.state !== "finished" && <span class="faint"> {run.state}</span>}
                  </td>
                  <td>{run.goodput_bps?.to == null ? "-" : rate(run.goodput_bps.to)}</td>
                  <td>{run.goodput_bps?.from == null ? "-" : rate(run.goodput_bps.from)}</td>
                  <td>{moment(run.started_unix_ms)}</td>
                  <td class="text">{run.kind}</td>
                  <td class="text">
                    <code>
                      <Name>{run.command}</Name>
                    </code>
                  </td>
                  <td class="text">
                    <Exports run={run.run} />
                  </td>
                  <td>
                    <button
                      type="button"
                      class="quiet"
                      aria-label={`Delete run ${run.run}`}
                      onClick={() => {
                        leave(run);
                      }}
                    >
                      Delete
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {list?.more === true && (
        <button
          type="button"
          onClick={() => {
            load(runs.at(-1)?.run ?? null, runs);
          }}
        >
          Load more
        </button>
      )}
      {leaving && (
        <Confirm
          run={leaving}
          onNo={() => {
            leave(null);
          }}
          onYes={() => void remove(leaving)}
        />
      )}
    </section>
  );
}

function Confirm({ run, onYes, onNo }: { run: api.StoredRun; onYes: () => void; onNo: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby="delete" onClose={onNo}>
      <h2 id="delete">Delete run {run.run}?</h2>
      <p>
        {run.kind} <Name>{run.scenario}</Name> of {moment(run.started_unix_ms)}. It is removed from the store; this cannot be undone.
      </p>
      <div class="actions">
        <button type="button" onClick={onNo} autofocus>
          Keep it
        </button>
        <button type="button" class="danger" onClick={onYes}>
          Delete
        </button>
      </div>
    </dialog>
  );
}

interface HostRow {
  host: string;
  runs: api.StoredRun[];
}

/** Hosts with several measurements among the runs that are listed. */
function Hosts({ runs, seek }: { runs: api.StoredRun[]; seek: (text: string) => void }) {
  const hosts = new Map<string, HostRow>();
  for (const run of [...runs].reverse()) {
    if (run.kind !== "measure" || run.goodput_bps === null) continue;
    const row = hosts.get(run.scenario) ?? { host: run.scenario, runs: [] };
    row.runs.push(run);
    hosts.set(run.scenario, row);
  }
  const rows = [...hosts.values()].filter((row) => row.runs.length > 1).slice(0, 12);
  if (rows.length === 0) return null;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Hosts">
      <table class="hosts-table">
        <caption>Hosts, goodput of the listed runs from the oldest to the newest</caption>
        <thead>
          <tr>
            <th scope="col" class="text">
              host
            </th>
            <th scope="col">runs</th>
            <th scope="col">→</th>
            <th scope="col">last</th>
            <th scope="col">←</th>
            <th scope="col">last</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const of = (way: "to" | "from") =>
              row.runs.map((run) => run.goodput_bps?.[way]).filter((value): value is number => value != null);
            const [to, from] = [of("to"), of("from")];
            return (
              <tr key={row.host}>
                <th scope="row" class="text">
                  <button
                    type="button"
                    class="quiet"
                    onClick={() => {
                      seek(row.host);
                    }}
                  >
                    <Name>{row.host}</Name>
                  </button>
                </th>
                <td>{row.runs.length}</td>
                <td>
                  <Sparkline values={to} colour="--to" name={`to ${row.host}`} />
                </td>
                <td>{rate(to.at(-1))}</td>
                <td>
                  <Sparkline values={from} colour="--from" name={`from ${row.host}`} />
                </td>
                <td>{rate(from.at(-1))}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function Sparkline({ values, colour, name }: { values: number[]; colour: string; name: string }) {
  if (values.length < 2) return null;
  const most = Math.max(...values);
  const x = (index: number) => 2 + (index / (values.length - 1)) * 96;
  const y = (value: number) => 18 - (most > 0 ? value / most : 0) * 16;
  const path = values.map((value, index) => `${index === 0 ? "M" : "L"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const last = values.at(-1) ?? 0;
  return (
    <svg class="spark" viewBox="0 0 100 20" role="img" aria-label={`Goodput ${name}: from ${rate(values[0])} to ${rate(last)}, highest ${rate(most)}`}>
      <path d={path} fill="none" stroke={`var(${colour})`} stroke-width="1.5" />
      <circle cx={x(values.length - 1)} cy={y(last)} r="2" fill={`var(${colour})`} />
    </svg>
  );
}
