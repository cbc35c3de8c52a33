// Documents between the page and the server.
import type { Finding, TimeSpent } from "../generated/measurement";
import type { Sample } from "./counts";

export interface About {
  bdp: string;
  server: string;
  limits: { duration_ns: number | null; streams: number | null; rate_bps: number | null; bytes_per_day: number | null };
  /** How long a result is kept. */
  keep_ns: number;
  command: string;
}

/** One direction as the browser counted it. */
export interface BrowserFigures {
  goodput_bps: number;
  bytes: number;
  interval_ns: number;
  samples: Sample[];
  /** Down: share of the time in which no data was ready to be read. Up: in which data waited to be sent. */
  waited: number;
}

export interface BrowserResult {
  agent: string;
  down: BrowserFigures;
  up: BrowserFigures;
  ping: { idle_ns: number[]; down_ns: number[]; up_ns: number[] };
}

export interface Trips {
  p50: number | null;
  p95: number | null;
}

export interface VisitDirection {
  direction: "down" | "up";
  /** Null if it ended within its ramp. */
  goodput_bps: number | null;
  bytes: number;
  browser_goodput_bps: number | null;
  rtt_idle_ns: Trips | null;
  rtt_loaded_ns: Trips | null;
  /** Median round trip of the page less the kernel's. */
  browser_delay_ns: number | null;
  retransmits: number | null;
  /** As the browser says: `BrowserFigures.waited`. */
  waited?: number | null;
  finding: Partial<Finding> | null;
  time_spent?: TimeSpent | null;
  cannot_tell: string[];
  series: Sample[];
}

export interface VisitDocument {
  schema: string;
  key: string;
  at_unix_ms: number;
  /** When the server deletes it. */
  until_unix_ms?: number;
  server: string;
  /** The visitor's network. */
  visitor: string;
  congestion_control: string;
  directions: VisitDirection[];
  caveats: string[];
  command: string;
}
