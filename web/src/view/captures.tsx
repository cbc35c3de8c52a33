// Captures: files that are dropped here, read by bdp; each connection with its cause and its time.
import { computed, signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import * as api from "../api";
import { attempts, connections, facts, filterOf, goodputOf, matching, MOST_ROWS, number, refusal, remarks, summary, timelineOf, type Connection } from "../captures";
import { commandLine } from "../command";
import { ofSchema } from "../documents";
import { Follower, newKey, useFollower } from "../follow";
import { milliseconds, moment, percent, size, time } from "../format";
import type { Capture, CapturedFlow, CapturePair, PcapDocument } from "../generated/pcap";
import type { DirectionResult, Finding } from "../generated/measurement";
import { about } from "../page";
import { arrow, stateName } from "../words";
import { Problem, Text, useEscape, withoutHelp } from "./fields";
import { CommandLine, Heads } from "./parts";
import { Scroll, TimelineCharts } from "./timeline";
import { Account, EvidenceTable, Verdict } from "./why";
import "../style/captures.css";

const reading = new Follower((job) => job.kind === "pcap");
const { job, live, trouble, isRunning } = reading;

interface Held {
  key: string;
  name: string;
  bytes: number;
  /** The part that is sent. */
  share: number;
  /** The server's name of it, once it is there. */
  id: string | null;
  cancel: AbortController;
}

const files = signal<readonly Held[]>([]);
const filter = signal("");
const problem = signal<string | null>(null);
const isStarting = signal(false);
const isReady = computed(() => files.value.length > 0 && files.value.every((one) => one.id !== null));

const message = (error: unknown): string => withoutHelp(error instanceof Error ? error.message : String(error));
const line = (name: (one: Held) => string): string[] => ["pcap", ...files.value.map(name), ...(filter.value.trim() === "" ? [] : ["--filter", filter.value.trim()])];

function change(key: string, values: Partial<Held>): void {
  files.value = files.value.map((one) => (one.key === key ? { ...one, ...values } : one));
}

/** Sends files to bdp, and explains all that are there. */
async function add(list: Iterable<File>): Promise<void> {
  const fitting: [Held, File][] = [];
  const refused: string[] = [];
  for (const file of list) {
    const why = refusal(file);
    if (why !== null) refused.push(why);
    else fitting.push([{ key: newKey(), name: file.name, bytes: file.size, share: 0, id: null, cancel: new AbortController() }, file]);
  }
  problem.value = refused.length > 0 ? refused.join("; ") : null;
  if (fitting.length === 0) return;
  files.value = [...files.value, ...fitting.map(([one]) => one)];
  for (const [{ key, name, cancel }, file] of fitting) {
    const isWanted = () => files.value.some((one) => one.key === key);
    if (!isWanted()) continue;
    try {
      const { id } = await api.upload(name, file, (share) => { change(key, { share }); }, cancel.signal);
      change(key, { id });
    } catch (error) {
      if (isWanted()) problem.value = `${name}: ${message(error)}`;
      files.value = files.value.filter((one) => one.key !== key);
    }
  }
  await explain();
}

async function explain(): Promise<void> {
  if (!isReady.value || isStarting.value || isRunning.value) return;
  isStarting.value = true;
  try {
    await reading.start(line((one) => `capture:${one.id ?? ""}`), newKey());
  } catch (error) {
    problem.value = message(error);
  } finally {
    isStarting.value = false;
  }
}

function take(away: Held): void {
  away.cancel.abort();
  files.value = files.value.filter((one) => one !== away);
  if (away.id !== null) void api.discard(away.id).catch(() => undefined);
}

function stop(): void {
  for (const one of files.value) if (one.id === null) take(one);
  void reading.stop().catch((error: unknown) => (problem.value = message(error)));
}

export function Captures() {
  useFollower(reading);
  useEscape(stop);
  const [isOver, over] = useState(false);
  const depth = useRef(0);
  useEffect(() => {
    const held = (one: api.Uploaded): Held => ({ ...one, key: one.id, share: 1, cancel: new AbortController() });
    // Those from before a reload.
    void api.captures().then(
      (all) => {
        if (files.peek().length === 0) files.value = all.map(held);
      },
      () => undefined,
    );
    const enter = (by: number) => (event: DragEvent) => {
      event.preventDefault();
      depth.current = Math.max(0, depth.current + by);
      over(depth.current > 0);
    };
    const [on, off, hold] = [enter(1), enter(-1), enter(0)];
    const drop = (event: DragEvent) => {
      depth.current = 0;
      hold(event);
      if (event.dataTransfer && event.dataTransfer.files.length > 0) void add(event.dataTransfer.files);
    };
    const all = [["dragenter", on], ["dragleave", off], ["dragover", hold], ["drop", drop]] as const;
    for (const [name, call] of all) addEventListener(name, call);
    return () => {
      for (const [name, call] of all) removeEventListener(name, call);
    };
  }, []);
  return (
    <div class="columns">
      <Files isOver={isOver} />
      <div class="results">
        <Current />
      </div>
    </div>
  );
}

function Files({ isOver }: { isOver: boolean }) {
  const choose = useRef<HTMLInputElement>(null);
  return (
    <form
      class="panel"
      aria-labelledby="captures"
      onSubmit={(event) => {
        event.preventDefault();
        problem.value = null;
        void explain();
      }}
    >
      <h2 id="captures">Captures</h2>
      <div class={isOver ? "drop over" : "drop"}>
        <p>{isOver ? "Drop the files" : "Drop pcap or pcapng files on the page, or"}</p>
        <button type="button" onClick={() => choose.current?.click()}>
          Choose files
        </button>
        <input
          ref={choose}
          type="file"
          multiple
          hidden
          aria-label="Capture files"
          onChange={(event) => {
            const { files: list } = event.currentTarget;
            if (list) void add([...list]);
            event.currentTarget.value = "";
          }}
        />
        <p class="faint">
          Read by the bdp of this page{about.value && `, on ${about.value.host}`}, sent nowhere else, and deleted when the page ends. Two captures of one path are
          compared.
        </p>
      </div>
      {files.value.length > 0 && (
        <ul class="held" aria-label="Files">
          {files.value.map((one) => (
            <li key={one.key}>
              <bdi class="name" title={one.name}>
                {one.name}
              </bdi>
              <span class="faint">{size(one.bytes)}</span>
              <button type="button" class="quiet" aria-label={`${one.id === null ? "Cancel" : "Remove"} ${one.name}`} onClick={() => { take(one); }}>
                {one.id === null ? "Cancel" : "Remove"}
              </button>
              {one.id === null && <progress max={1} value={one.share} aria-label={`Upload of ${one.name}`} />}
            </li>
          ))}
        </ul>
      )}
      <Text id="capture-filter" label="Filter" placeholder="host 10.0.0.7 and port 443" value={filter.value} onValue={(value) => (filter.value = value)} />
      <Problem text={problem.value} />
      <div class="actions">
        <button type="submit" class="main" disabled={!isReady.value || isRunning.value || isStarting.value}>
          Explain
        </button>
        <button type="button" disabled={!isRunning.value} onClick={stop}>
          Stop
        </button>
      </div>
      {files.value.length > 0 && <CommandLine command={commandLine(line((one) => one.name))} label="The same on the command line" />}
    </form>
  );
}

function Current() {
  const current = job.value;
  const shown = live.value?.live;
  if (!current || !shown) {
    return (
      <section class="panel empty">
        <h2>No capture yet</h2>
        <p>
          Capture at the sender, with the handshake; 96 bytes of each packet are enough: <code>tcpdump -s 96 -w slow.pcap host ams1</code>. bdp says of each TCP
          connection where its time went, and what limited it.
        </p>
      </section>
    );
  }
  const document = ofSchema<PcapDocument>(shown.result, "bdp.pcap/1");
  const { outcome } = shown;
  const isTold = document?.captures.some((one) => one.broke !== null) ?? false;
  return (
    <>
      {(outcome === null || document === null || trouble.value !== null) && (
        <section class="panel">
          {outcome?.error == null ? (
            <p role="status">{outcome === null ? "Reading the capture." : outcome.ending === "cancelled" ? "Stopped." : "No result."}</p>
          ) : (
            !isTold && <Problem text={outcome.error} />
          )}
          {outcome === null && <progress aria-label="Reading" />}
          {trouble.value !== null && <p class="error">{trouble.value}</p>}
        </section>
      )}
      {document?.captures.map((capture, index) => (
        <OneCapture key={`${current.id} ${String(index)}`} capture={capture} />
      ))}
      {document?.pairs.map((pair, index) => <Pair key={index} pair={pair} document={document} />)}
    </>
  );
}

function OneCapture({ capture }: { capture: Capture }) {
  const [search, seek] = useState("");
  const [open, show] = useState<Connection | null>(null);
  const all = useMemo(() => connections(capture), [capture]);
  const found = matching(all, search);
  const rest = found.length - MOST_ROWS;
  return (
    <section class="panel capture" aria-label={`Capture ${capture.name}`}>
      <div class="bar">
        <h2>
          <bdi class="name" title={capture.name}>
            {capture.name}
          </bdi>
        </h2>
        <span>{summary(capture)}</span>
        {capture.began_at_ns !== null && <span class="faint">{moment(capture.began_at_ns / 1e6)}</span>}
        {all.length > 1 && (
          <label class="search">
            Search <input type="search" value={search} placeholder="address, port, limit" onInput={(event) => { seek(event.currentTarget.value); }} />
          </label>
        )}
      </div>
      {capture.attempts.length > 0 && (
        <ul class="plain">
          {capture.attempts.map((one, at) => (
            <li key={at}>{attempts(one)}</li>
          ))}
        </ul>
      )}
      {remarks(capture).map((text) => (
        <p key={text} class="note">
          {text}
        </p>
      ))}
      {found.length > 0 && (
        <Scroll label={`Connections of ${capture.name}`}>
          <table class="cases">
            <Heads names={["connection", "bytes", "time", "goodput", "RTT ms", "limited by"]} />
            <tbody>
              {found.slice(0, MOST_ROWS).map((one, at) => (
                <ConnectionRow key={at} one={one} isOpen={open === one} onOpen={() => { show(open === one ? null : one); }} />
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
      {search !== "" && found.length === 0 && <p>No connection has “{search}”.</p>}
      {rest > 0 && <p class="faint">{`${number(rest)} more, with fewer bytes: search for an address or a port.`}</p>}
      {open && <Detail key={filterOf(open.flow)} of={open} name={capture.name} />}
    </section>
  );
}

const ends = (flow: CapturedFlow): string => `${flow.a} → ${flow.b}${flow.protocol === "tcp" ? "" : ` ${flow.protocol}`}`;

function ConnectionRow({ one, isOpen, onOpen }: { one: Connection; isOpen: boolean; onOpen: () => void }) {
  const { flow, main } = one;
  return (
    <tr>
      <th scope="row">
        <button type="button" class="quiet" aria-expanded={isOpen} onClick={onOpen}>
          {ends(flow)}
        </button>
      </th>
      <td>{size(one.bytes)}</td>
      <td>{time(flow.to_ns - flow.from_ns)}</td>
      <td>
        {arrow(main === 0 ? "to" : "from")} {goodputOf(one)}
      </td>
      <td>{milliseconds(flow.directions[main].tcp?.rtt_min_ns)}</td>
      <td class="text">{one.limit}</td>
    </tr>
  );
}

function Detail({ of: { flow, main }, name }: { of: Connection; name: string }) {
  const command = commandLine(["pcap", name, "--filter", filterOf(flow)]);
  const place = useRef<HTMLElement>(null);
  useEffect(() => {
    place.current?.focus();
    place.current?.scrollIntoView({ block: "nearest" });
  }, []);
  const timeline = useMemo(() => timelineOf(flow), [flow]);
  return (
    <section class="why" ref={place} tabIndex={-1} aria-label={`Connection ${ends(flow)}`}>
      <h3>{ends(flow)}</h3>
      {[main, 1 - main].map((way) => {
        const direction = flow.directions[way];
        if (!direction) return null;
        // One vocabulary: findings of captures are those of measurements.
        const findings = direction.findings as unknown as Finding[];
        // Of a direction that waits for the other there is nothing to tell.
        if (findings.length === 0 && (direction.payload_bytes === 0 || (direction.time_spent?.whole.other_way ?? 1) > 0.5)) return null;
        const sign = arrow(way === 0 ? "to" : "from");
        return (
          <section class="detail" key={way}>
            <Verdict direction={{ ...direction, findings, direction: way === 0 ? "to" : "from" } as unknown as DirectionResult} host={way === 0 ? flow.b : flow.a} />
            {direction.time_spent && <Account spent={direction.time_spent} way={sign} command={command} />}
            {findings.map((finding, index) => (
              <EvidenceTable key={finding.subject} finding={finding} way={sign} isFirst={index === 0} />
            ))}
          </section>
        );
      })}
      {timeline && <TimelineCharts timeline={timeline} command={command} isLive={false} />}
      <Scroll label="Figures of the connection">
        <table class="figures">
          <tbody>
            {facts(flow).map(([fact, text]) => (
              <tr key={fact}>
                <th scope="row">{fact}</th>
                <td class="text">{text}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      <CommandLine command={command} label="Command for this connection" />
    </section>
  );
}

/** Two captures of one path: what happened between them. */
function Pair({ pair, document }: { pair: CapturePair; document: PcapDocument }) {
  const [first, second] = pair.captures.map((index) => document.captures[index]);
  if (!first || !second) return null;
  return (
    <section class="panel" aria-label="Between the captures">
      <h2>
        Between {first.name} and {second.name}
      </h2>
      <Scroll label="Connections in both captures">
        <table class="cases">
          <Heads names={["connection", "RTT ms between", "lost →", "lost ←", "queueing ms p95 →", "changed"]} />
          <tbody>
            {pair.connections.slice(0, MOST_ROWS).map((one, at) => {
              const flow = first.flows[one.flows[0] - 1];
              const [there, back] = one.directions;
              const changed = [...new Set(one.changes.map((each) => stateName(each.what)))];
              return (
                <tr key={at}>
                  <th scope="row">{flow ? ends(flow) : "-"}</th>
                  <td>{milliseconds(one.rtt_between_ns)}</td>
                  <td>{there.segments > 0 ? percent(there.lost_segments / there.segments) : "-"}</td>
                  <td>{back.segments > 0 ? percent(back.lost_segments / back.segments) : "-"}</td>
                  <td>{milliseconds(there.queueing?.p95_ns)}</td>
                  <td class="text">{one.terminated ? "a proxy ends TCP between them" : changed.join(", ") || "nothing"}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </Scroll>
    </section>
  );
}
