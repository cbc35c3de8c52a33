// Made by 'npm run types' from docs/job.schema.json. Do not edit.

/**
 * What this version of bdp writes. A later minor version may add members: a reader ignores members that it does not know, and refuses a `schema` with a larger number. Explained in docs/jobs.md.
 */
export type JobDocument = Job | Event | Outcome;
export type Job = {
  schema: "bdp.job/1";
} & Job1;
export type Job1 =
  Measure | Ping | Path | Sweep | Lab | Compare | Watch | Pcap | Twin | Rehearse | Verify | Fix;
/**
 * What the user calls the run.
 */
export type Label = string | null;
export type Name = string;
/**
 * Expected results as typed: to.goodput>=900M, rtt.p95<=30ms.
 */
export type Expectations = Name[];
/**
 * The command that repeats it.
 */
export type Command = string;
export type Metric =
  "goodput_bps" | "rtt_idle_ns" | "rtt_loaded_p95_ns" | "retransmits" | "retransmit_ratio" | "loss_ratio";
/**
 * Id of the run in the store; null where nothing is stored.
 */
export type Run = string | null;
/**
 * Bottleneck rate on the wire, bit/s; null: what the measurements show.
 */
export type RateOrNull = number | null;
export type Way = "to" | "from";
/**
 * Repetitions of each variant.
 */
export type Repetitions = number;
export type Count = number;
/**
 * Whether the transfer has the path to itself, so that the effect on other traffic does not count.
 */
export type Alone = boolean;
export type Event = {
  schema: "bdp.event/1";
} & Event1;
export type Event1 =
  | {
      event?: "resumed" | "entered";
      run: Run;
      done: Count;
      planned: Count;
    }
  | {
      event?: "nothing_to_resume";
    }
  | {
      event?: "planned";
      cases: Count;
      time_ns: Nanoseconds;
    }
  | {
      event?: "case_started";
      key: Name;
      attempt: number;
    }
  | {
      event?: "case_ended";
      record: Record;
      settled: boolean;
      left_ns: Nanoseconds;
    }
  | {
      event?: "progress";
      repetition: number;
      progress: Progress;
    }
  | {
      event?: "measurement_ended";
      run: Run;
      measurement: Measurement;
    }
  | {
      event?: "point_ended";
      key: Name;
      done: Count;
      planned: Count;
      measurement: Measurement;
    }
  | {
      event?: "hops";
      phase: "discovery" | "idle" | "loaded" | "slow" | "sizes" | "branches";
      /**
       * Of the path, as far as is known.
       */
      hops: number;
    }
  | {
      event?: "probes";
      progress: Probes;
    }
  | {
      event?: "sockets";
      /**
       * `sockets` as the lines of kind `socket` of watch.schema.json have them.
       */
      interval: {};
    }
  | {
      event?: "capturing";
      interface: Name;
      time_ns: CountOrNull;
    }
  | {
      event?: "stage";
      stage: "measure" | "capacity" | "plan" | "rehearse" | "apply" | "verify";
      /**
       * Of stage `capacity`.
       */
      streams: number | null;
    }
  | {
      event?: "plan";
      plan: Plan;
    }
  | {
      event?: "not_rehearsed" | "not_put_back";
      why: Name;
    }
  | {
      event?: "rehearsed";
      rehearsal: Rehearsal;
    }
  | {
      event?: "left_to_owner";
      changes: Count;
    }
  | {
      event?: "question";
      question:
        | {
            about: "apply";
            /**
             * A change of plan.schema.json.
             */
            change: {};
          }
        | {
            about: "keep";
          };
    }
  | {
      event?: "applied";
      journals: {
        near: CountOrNull;
        far: CountOrNull;
      };
    }
  | {
      event?: "verified";
      verification: Verification;
    }
  | {
      event?: "put_back";
      settings: Count;
    }
  | {
      event?: "nothing_applied" | "kept";
    };
export type Nanoseconds = number;
/**
 * Of each direction that runs, as the near end sees it.
 */
export type OfWays = [unknown, unknown][];
/**
 * Of each stream of a direction.
 */
export type OfWays1 = [unknown, unknown][];
/**
 * TCP_INFO of each stream that the near end sends.
 */
export type OfWays2 = [unknown, unknown][];
/**
 * Datagrams of each stream that the near end receives: `sent`, `received`, `jitter_ns`.
 */
export type OfWays3 = [unknown, unknown][];
export type CountOrNull = number | null;

export interface Measure {
  job?: "measure";
  request: Request;
  label: Label;
  labels?: Labels;
  runs: number;
  /**
   * Whether datagrams keep to the asked rate, whatever is lost in the first second.
   */
  flood: boolean;
  expectations: Expectations;
  /**
   * The run to compare with.
   */
  baseline: {
    run: Name;
    measurements: Measurement[];
  } | null;
  command: Command;
}
/**
 * `request` of measurement.schema.json.
 */
export interface Request {}
/**
 * Labels that the user gave the run, by name; absent where there are none.
 */
export interface Labels {
  [k: string]: string;
}
/**
 * A measurement of measurement.schema.json.
 */
export interface Measurement {}
export interface Ping {
  job?: "ping";
  /**
   * `request` of ping.schema.json.
   */
  request: {};
  expectations: Expectations;
  /**
   * Whether each probe is kept.
   */
  keep: boolean;
}
export interface Path {
  job?: "path";
  /**
   * `request` of path.schema.json.
   */
  request: {};
  /**
   * Whether each probe is kept.
   */
  keep: boolean;
}
export interface Sweep {
  job?: "sweep";
  request: Request;
  varied: {
    parameter: "window" | "streams" | "length" | "mss" | "congestion";
    /**
     * @minItems 1
     */
    values: [
      {
        text: Name;
        /**
         * Bytes or a count; 0 of a word.
         */
        number: number;
      },
      ...{
        text: Name;
        /**
         * Bytes or a count; 0 of a word.
         */
        number: number;
      }[]
    ];
  }[];
  /**
   * Measurements at each point.
   */
  runs: number;
  /**
   * Whether points are added where a curve bends.
   */
  refine: boolean;
  /**
   * Of the order of the points.
   */
  seed: number;
  label: Label;
  labels?: Labels;
  command: Command;
}
export interface Lab {
  job?: "lab";
  kind: "lab" | "sweep";
  label: Label;
  labels?: Labels;
  scenarios: Name[];
  /**
   * The scenarios' files, one after the other.
   */
  text: string;
  /**
   * Tells this plan from others.
   */
  digest: string;
  /**
   * `case` of lab-run.schema.json, in the order in which they run.
   */
  cases: {}[];
  /**
   * Cases side by side; null: as many as stay faithful.
   */
  jobs: number | null;
  /**
   * Attempts at a case before it is INVALID; null: the default.
   */
  attempts: number | null;
  capture: {} | null;
  refine: {} | null;
  /**
   * Whether the newest unfinished run of the same cases is resumed.
   */
  resume: boolean;
  command: Command;
}
export interface Compare {
  job?: "compare";
  a: RunFigures;
  b: RunFigures;
  /**
   * What fails the comparison when it regresses.
   */
  judge: Metric[];
  /**
   * Changes up to this share of a are no regression.
   */
  threshold: number;
}
export interface RunFigures {
  run: Name;
  points: {
    point: Name;
    values: {
      [k: string]: number[];
    };
  }[];
}
export interface Watch {
  job?: "watch";
  /**
   * @minItems 1
   */
  targets: [
    (
      | "all"
      | {
          process: number;
        }
      | {
          port: number;
        }
      | {
          /**
           * @minItems 2
           * @maxItems 2
           */
          host: [unknown, unknown];
        }
    ),
    ...(
      | "all"
      | {
          process: number;
        }
      | {
          port: number;
        }
      | {
          /**
           * @minItems 2
           * @maxItems 2
           */
          host: [unknown, unknown];
        }
    )[]
  ];
  /**
   * From one report to the next.
   */
  interval_ns: number;
  samples_per_second: number;
  /**
   * Null: until it is cancelled, or nothing is left to watch.
   */
  duration_ns: number | null;
}
export interface Pcap {
  job?: "pcap";
  /**
   * @minItems 1
   */
  sources: [
    (
      | {
          /**
           * '-' is standard input.
           */
          file: string;
        }
      | {
          live: {
            /**
             * 'any' is all of them.
             */
            interface: string;
            /**
             * Null: until it is cancelled.
             */
            time_ns: number | null;
            /**
             * Bytes to keep of each packet.
             */
            snap: number;
            /**
             * File to write the packets to.
             */
            write: string | null;
          };
        }
    ),
    ...(
      | {
          /**
           * '-' is standard input.
           */
          file: string;
        }
      | {
          live: {
            /**
             * 'any' is all of them.
             */
            interface: string;
            /**
             * Null: until it is cancelled.
             */
            time_ns: number | null;
            /**
             * Bytes to keep of each packet.
             */
            snap: number;
            /**
             * File to write the packets to.
             */
            write: string | null;
          };
        }
    )[]
  ];
  /**
   * Packets to look at, in the language of --filter; empty for all.
   */
  filter: string;
  /**
   * Limit for the flows of each source.
   */
  memory_bytes: number;
  /**
   * Whether captures of the same connections are not compared.
   */
  separate: boolean;
}
export interface Twin {
  job?: "twin";
  path: MeasuredPath;
  /**
   * @minItems 1
   */
  directions: [Way, ...Way[]];
  /**
   * Whether no twin is run.
   */
  derive_only: boolean;
  runs: Repetitions;
  seed: Count;
  command: Command;
}
export interface MeasuredPath {
  run: Run;
  /**
   * Whether the run is in the store, which then also keeps the results.
   */
  is_stored: boolean;
  measurement: Measurement;
  /**
   * Other measurements of the same path.
   */
  others: Measurement[];
  rate_bps: RateOrNull;
}
export interface Rehearse {
  job?: "rehearse";
  path: MeasuredPath;
  plan: Plan;
  runs: Repetitions;
  seed: Count;
  alone: Alone;
  command: Command;
}
/**
 * A plan of plan.schema.json.
 */
export interface Plan {}
export interface Verify {
  job?: "verify";
  path: MeasuredPath;
  /**
   * The prediction, if there is one.
   */
  rehearsal: null | Rehearsal;
  command: Command;
}
/**
 * A rehearsal of rehearsal.schema.json.
 */
export interface Rehearsal {}
export interface Fix {
  job?: "fix";
  request: Request;
  /**
   * Null for both.
   */
  direction: null | Way;
  rate_bps: RateOrNull;
  runs: Repetitions;
  alone: Alone;
  /**
   * Time after which changes revert unless they were kept.
   */
  keep_for_ns: number;
  /**
   * Whether the rehearsal's choice is applied without a question, and kept if it does as predicted.
   */
  asks_nothing: boolean;
  command: Command;
}
/**
 * A record of lab-run.schema.json.
 */
export interface Record {}
export interface Progress {
  stage:
    | ("connecting" | "idle" | "both")
    | {
        direction?: Way;
        trial?: Way;
      };
  /**
   * Since the stage began.
   */
  elapsed_ns: number;
  /**
   * Time that the stage takes; 0 where that is not known.
   */
  total_ns: number;
  /**
   * Time that the goodput is of; null: since the progress before.
   */
  span_ns: number | null;
  goodput_bps: OfWays;
  stream_goodput_bps: OfWays1;
  sender_infos: OfWays2;
  arrivals: OfWays3;
  /**
   * Payload of the datagrams that the near end sends.
   */
  datagram_bytes: number | null;
  /**
   * Whether the stage is over.
   */
  is_last: boolean;
  /**
   * Last round trip of the probe flow.
   */
  rtt_ns: number | null;
}
export interface Probes {
  sent: Count;
  received: Count;
  /**
   * The last round trip.
   */
  rtt_ns: number | null;
  elapsed_ns: Nanoseconds;
  settled: {
    outcome:
      | ("lost" | "refused" | "unreachable")
      | {
          answered_ns: Nanoseconds;
        };
  }[];
}
/**
 * A verification of verification.schema.json.
 */
export interface Verification {}
export interface Outcome {
  schema: "bdp.outcome/1";
  run: Run;
  ending: "done" | "missed" | "invalid" | "failed" | "cancelled";
  /**
   * Number of results: records, measurements, hops, compared rows, sockets, captures, twins, variants or verdicts.
   */
  kept: number;
  expectations: {}[];
  baseline: {}[];
  /**
   * Why it did not go to its end.
   */
  error: string | null;
}
