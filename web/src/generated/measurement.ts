// Made by 'npm run types' from docs/measurement.schema.json. Do not edit.

/**
 * What this version of bdp writes, exactly: the measurements and a summary; $defs/measurement is one of them, as --json-stream prints it too. Every member is always present but those that are not required; what is not known is null. A later minor version may add members: a reader ignores members that it does not know, and refuses a `schema` with a larger number. Explained in docs/measurement.md.
 */
export type MeasurementDocument = Measurement | Measurements;
/**
 * IP version.
 */
export type Family = "ipv4" | "ipv6";
/**
 * A direction across the path, as the measuring machine sees it.
 */
export type Direction = "to" | "from";
/**
 * A receive window on the wire: from 1 byte to the maximum that TCP can advertise (RFC 7323, section 2.3).
 */
export type WindowBytes = number;
/**
 * Processors that threads are pinned to, in the order of assignment.
 */
export type CpuList = number[];
/**
 * How the near end authenticates.
 */
export type Access =
  | {
      kind: "token";
    }
  | {
      kind: "token_file";
      /**
       * Path of the file, as given.
       */
      path: string;
    }
  | {
      kind: "login";
      /**
       * User name.
       */
      user: string;
      /**
       * File of the server's public key, as given.
       */
      public_key: string;
      /**
       * Whether it uses the padding of servers before 3.17.
       */
      pkcs1: boolean;
    };
/**
 * Why a window was not the one requested.
 */
export type WindowNote =
  | {
      kind: "unreported";
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "scale_rounding";
      /**
       * Window on the wire, bytes.
       */
      seen_bytes: number;
      /**
       * The unit, bytes.
       */
      unit_bytes: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "not_shrunk";
      /**
       * Window on the wire.
       */
      seen_bytes: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "not_offered";
      /**
       * Window on the wire.
       */
      seen_bytes: number;
      /**
       * `SO_RCVBUF`.
       */
      buffer_bytes: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "buffer_too_small";
      /**
       * Window on the wire.
       */
      seen_bytes: number;
      /**
       * `SO_RCVBUF`, if known.
       */
      buffer_bytes: number | null;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "none_seen";
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "not_calibrated";
      /**
       * Window on the wire.
       */
      seen_bytes: number;
      /**
       * Closest window that calibration reached, bytes.
       */
      best_bytes: number;
      /**
       * Buffer that produced it, bytes.
       */
      buffer_bytes: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "below_twin";
      /**
       * Window on the wire.
       */
      seen_bytes: number;
      /**
       * Window in the calibration twin, which has no delay.
       */
      twin_bytes: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "beside_clamp";
      /**
       * Window that the sender saw, bytes.
       */
      seen_bytes: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "text";
      /**
       * The same in words.
       */
      text: string;
    };
/**
 * What limits a flow.
 */
export type Limit =
  | "receive_window"
  | "send_buffer"
  | "ceiling"
  | "path_rate"
  | "shallow_queue"
  | "half_duplex"
  | "cross_traffic"
  | "ecn_marks"
  | "congestion_loss"
  | "random_loss"
  | "sack_missing"
  | "timestamps_missing"
  | "policer"
  | "reordering"
  | "reverse_path"
  | "mtu_black_hole"
  | "path_changed"
  | "slow_start"
  | "asked_rate"
  | "slow_writer"
  | "slow_reader"
  | "client_idle"
  | "round_trips"
  | "program_window"
  | "peer_gone"
  | "not_established"
  | "nagle"
  | "cpu"
  | "host_drops"
  | "path_loss"
  | "receiving_host"
  | "sending_host"
  | "unknown";
/**
 * Why a limit has its value.
 */
export type Cause =
  | "rmem_maximum"
  | "wmem_maximum"
  | "window_asked"
  | "socket_buffer_asked"
  | "autotuning_off"
  | "below_maximum"
  | "scaling_off"
  | "scaling_stripped"
  | "scaling_half_stripped"
  | "scaling_missing"
  | "buffer_runs_dry"
  | "thread_full"
  | "throttled"
  | "stolen"
  | "processor_shared"
  | "paused"
  | "device_drops"
  | "backlog_drops"
  | "socket_drops"
  | "kept_by_host"
  | "response_time"
  | "tls_setup"
  | "handshake"
  | "no_answer"
  | "refused"
  | "unreachable"
  | "tunnel";
/**
 * The unit of a number.
 */
export type Unit = "bytes" | "ns" | "bps" | "share" | "count" | "flag";
/**
 * How a rate search ended.
 */
export type SearchEnd = "held" | "not_held" | "loss_at_any_rate" | "cut_short";
/**
 * The result of an experiment.
 */
export type Experiment = {
  /**
   * A direction across the path, as the measuring machine sees it.
   */
  direction: "to" | "from";
  /**
   * Limits that it was meant to decide between.
   */
  between: Limit[];
  /**
   * From the first byte to the last.
   */
  duration_ns: number;
  /**
   * Initial part of the duration that is not counted.
   */
  omit_ns: number;
  /**
   * Bytes received, omit included.
   */
  bytes: number;
  /**
   * Goodput after omit, bit/s.
   */
  goodput_bps: number;
  /**
   * Segments retransmitted, all streams, omit included.
   */
  retransmits: number | null;
  /**
   * Window reductions of the first stream after a loss, omit included.
   */
  loss_events: number;
  /**
   * Increase of the median round trip of probes under load.
   */
  rtt_added_ns: number | null;
  /**
   * Increase of the connections' own smoothed round trips (median minus minimum): probes are not delayed if each flow has its own queue.
   */
  own_rtt_added_ns: number | null;
  /**
   * Length of a host's pause during the experiment, which makes the result no evidence; absent if there was none.
   */
  host_paused_ns?: number;
  burst?: Burst;
} & Experiment1 & {
    /**
     * A direction across the path, as the measuring machine sees it.
     */
    direction: "to" | "from";
    /**
     * Limits that it was meant to decide between.
     */
    between: Limit[];
    /**
     * From the first byte to the last.
     */
    duration_ns: number;
    /**
     * Initial part of the duration that is not counted.
     */
    omit_ns: number;
    /**
     * Bytes received, omit included.
     */
    bytes: number;
    /**
     * Goodput after omit, bit/s.
     */
    goodput_bps: number;
    /**
     * Segments retransmitted, all streams, omit included.
     */
    retransmits: number | null;
    /**
     * Window reductions of the first stream after a loss, omit included.
     */
    loss_events: number;
    /**
     * Increase of the median round trip of probes under load.
     */
    rtt_added_ns: number | null;
    /**
     * Increase of the connections' own smoothed round trips (median minus minimum): probes are not delayed if each flow has its own queue.
     */
    own_rtt_added_ns: number | null;
    /**
     * Length of a host's pause during the experiment, which makes the result no evidence; absent if there was none.
     */
    host_paused_ns?: number;
    burst?: Burst;
  } & Experiment1;
export type Experiment1 =
  | {
      change: "paced";
      /**
       * Payload rate of all streams, bit/s.
       */
      rate_bps: number;
    }
  | {
      change: "streams";
      /**
       * Number of connections.
       */
      streams: number;
    }
  | {
      change: "burst";
      /**
       * Number of datagrams.
       */
      datagrams: number;
      /**
       * Rate of the burst, bit/s.
       */
      rate_bps: number;
    };
/**
 * A reason for caution: its `kind`, its evidence, and `text`, the same in words.
 */
export type Caveat =
  | {
      kind: "hypervisor_steal";
      /**
       * End that lost the time.
       */
      end: "near" | "far";
      /**
       * Share of the time of all its processors, from 5 % on.
       */
      share: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "half_duplex";
      /**
       * End with the device.
       */
      end: "near" | "far";
      /**
       * Device name.
       */
      device: string | null;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "device_drops";
      /**
       * End with the device.
       */
      end: "near" | "far";
      /**
       * Device name.
       */
      device: string | null;
      /**
       * Received packets that it dropped: from 10 and one in 10,000 on. Here and in the next members, 0 if they are too few to matter.
       */
      rx_dropped: number;
      /**
       * Received packets for which it had no buffer.
       */
      rx_missed: number;
      /**
       * Received packets lost by its FIFO.
       */
      rx_fifo: number;
      /**
       * Outgoing packets that it dropped.
       */
      tx_dropped: number;
      /**
       * Outgoing packets lost by its FIFO.
       */
      tx_fifo: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "cross_traffic";
      /**
       * End with the device.
       */
      end: "near" | "far";
      /**
       * Device name.
       */
      device: string | null;
      /**
       * Whether the other traffic was sent or received.
       */
      task: "sending" | "receiving";
      /**
       * Mean rate of the other traffic, from 1 Mbit/s on.
       */
      rate_bps: number;
      /**
       * Share of the device's bytes, from 3 % on.
       */
      share: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "backlog_drops";
      /**
       * End that dropped them.
       */
      end: "near" | "far";
      /**
       * Packets dropped.
       */
      packets: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "cpu_quota";
      /**
       * End with the quota.
       */
      end: "near" | "far";
      /**
       * Periods in which the quota was used up.
       */
      periods: number;
      /**
       * Throttled time, all processors added up.
       */
      throttled_ns: number | null;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "host_latency";
      /**
       * A direction across the path, as the measuring machine sees it.
       */
      direction: "to" | "from";
      /**
       * Time in the hosts at the 95th percentile, or the median of few probes.
       */
      host_ns: number;
      /**
       * Whole round trip of the same probes at the same percentile; older versions wrote their median.
       */
      rtt_ns: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "socket_buffer_cut";
      /**
       * A direction across the path, as the measuring machine sees it.
       */
      direction: "to" | "from";
      /**
       * Whether it is the socket of the sending or of the receiving end.
       */
      task: "sending" | "receiving";
      /**
       * Size requested (`--sockbuf`); `net.core.rmem_max` or `wmem_max` limits it.
       */
      asked_bytes: number;
      /**
       * Size granted by the kernel: half of what `SO_RCVBUF` or `SO_SNDBUF` reads.
       */
      granted_bytes: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "busy_thread";
      /**
       * A direction across the path, as the measuring machine sees it.
       */
      direction: "to" | "from";
      /**
       * Whether it was sending or receiving.
       */
      task: "sending" | "receiving";
      /**
       * Share of a processor that it used.
       */
      share: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "time_ran_out";
      /**
       * A direction across the path, as the measuring machine sees it.
       */
      direction: "to" | "from";
      /**
       * Bytes transferred.
       */
      bytes: number;
      /**
       * Bytes requested.
       */
      asked_bytes: number;
      /**
       * Time limit.
       */
      after_ns: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "ended_early";
      /**
       * A direction across the path, as the measuring machine sees it.
       */
      direction: "to" | "from";
      /**
       * Why it ended.
       */
      reason: "duration" | "bytes" | "settled" | "closed" | "reset" | "stopped" | "silence" | string;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "window_not_reached";
      /**
       * A direction across the path, as the measuring machine sees it.
       */
      direction: "to" | "from";
      /**
       * Why it was not reached.
       */
      reason:
        | {
            kind: "unreported";
          }
        | {
            kind: "scale_rounding";
            /**
             * Window on the wire, bytes.
             */
            seen_bytes: number;
            /**
             * The unit, bytes.
             */
            unit_bytes: number;
          }
        | {
            kind: "not_shrunk";
            /**
             * Window on the wire.
             */
            seen_bytes: number;
          }
        | {
            kind: "not_offered";
            /**
             * Window on the wire.
             */
            seen_bytes: number;
            /**
             * `SO_RCVBUF`.
             */
            buffer_bytes: number;
          }
        | {
            kind: "buffer_too_small";
            /**
             * Window on the wire.
             */
            seen_bytes: number;
            /**
             * `SO_RCVBUF`, if known.
             */
            buffer_bytes: number | null;
          }
        | {
            kind: "none_seen";
          }
        | {
            kind: "not_calibrated";
            /**
             * Window on the wire.
             */
            seen_bytes: number;
            /**
             * Closest window that calibration reached, bytes.
             */
            best_bytes: number;
            /**
             * Buffer that produced it, bytes.
             */
            buffer_bytes: number;
          }
        | {
            kind: "below_twin";
            /**
             * Window on the wire.
             */
            seen_bytes: number;
            /**
             * Window in the calibration twin, which has no delay.
             */
            twin_bytes: number;
          }
        | {
            kind: "beside_clamp";
            /**
             * Window that the sender saw, bytes.
             */
            seen_bytes: number;
          }
        | string;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "rate_not_reached";
      /**
       * A direction across the path, as the measuring machine sees it.
       */
      direction: "to" | "from";
      /**
       * Payload rate sent, bit/s.
       */
      sent_bps: number;
      /**
       * Payload rate requested, bit/s.
       */
      asked_bps: number;
      /**
       * Datagrams skipped because they were too late.
       */
      left_out: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "backed_off";
      /**
       * A direction across the path, as the measuring machine sees it.
       */
      direction: "to" | "from";
      /**
       * Payload rate requested, bit/s; null for as fast as possible.
       */
      asked_bps: number | null;
      /**
       * Share of datagrams lost in the first second.
       */
      loss_ratio: number;
      /**
       * Payload rate sent from then on, bit/s.
       */
      rate_bps: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "search_not_held";
      /**
       * A direction across the path, as the measuring machine sees it.
       */
      direction: "to" | "from";
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "loss_at_any_rate";
      /**
       * A direction across the path, as the measuring machine sees it.
       */
      direction: "to" | "from";
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "search_cut_short";
      /**
       * A direction across the path, as the measuring machine sees it.
       */
      direction: "to" | "from";
      /**
       * Trials made.
       */
      trials: number;
      /**
       * Trials passed.
       */
      passed: number;
      /**
       * Rate whose figures are reported, bit/s.
       */
      rate_bps: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "receiver_drops";
      /**
       * A direction across the path, as the measuring machine sees it.
       */
      direction: "to" | "from";
      /**
       * Datagrams dropped because the socket was full.
       */
      dropped: number;
      /**
       * All datagrams lost.
       */
      lost: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "fragmented";
      /**
       * A direction across the path, as the measuring machine sees it.
       */
      direction: "to" | "from";
      /**
       * Payload of a datagram, bytes.
       */
      datagram_bytes: number;
      /**
       * Path MTU, bytes.
       */
      path_mtu: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "last_uncounted";
      /**
       * A direction across the path, as the measuring machine sees it.
       */
      direction: "to" | "from";
      /**
       * Datagrams not counted.
       */
      datagrams: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "server_rate_limit";
      /**
       * Highest payload rate that it sends, bit/s.
       */
      rate_bps: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "not_measured";
      /**
       * The directions.
       */
      directions: Direction[];
      /**
       * Why.
       */
      reason:
        | {
            kind: "no_second_test";
            /**
             * Address of the server.
             */
            address: string;
          }
        | {
            kind: "no_answer";
            /**
             * Address that the datagrams were sent to.
             */
            address: string;
            /**
             * How long the client waited.
             */
            waited_ns: number;
          }
        | {
            kind: "no_datagrams";
            /**
             * Address of the server.
             */
            address: string;
            /**
             * How long the client waited.
             */
            waited_ns: number;
          };
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "no_experiment";
      /**
       * A direction across the path, as the measuring machine sees it.
       */
      direction: "to" | "from";
      /**
       * Why.
       */
      reason:
        | {
            kind: "other_protocol";
          }
        | {
            kind: "host_paused";
            /**
             * Length of the pause.
             */
            pause_ns: number;
          }
        | {
            kind: "failed";
            /**
             * The error.
             */
            error: string;
          };
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "interrupted";
      /**
       * Directions that had not started.
       */
      not_measured: Direction[];
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "recognised_iperf3";
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "foreign_server";
      /**
       * The protocol.
       */
      protocol: "iperf3" | "iperf2";
      /**
       * Whether datagrams were measured.
       */
      datagrams: boolean;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "web_server";
      /**
       * Host name.
       */
      host: string;
      /**
       * Interval between the handshakes that measure round trips.
       */
      handshake_interval_ns: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "file_too_short";
      /**
       * Duration of the download.
       */
      after_ns: number;
      /**
       * Smallest file size that is downloaded repeatedly, bytes.
       */
      repeated_from_bytes: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "probes_over_tcp";
      /**
       * UDP port of the server.
       */
      port: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "mtu_black_hole";
      /**
       * Largest IP packet that passed, bytes.
       */
      mtu: number;
      /**
       * Path MTU according to the near kernel, bytes.
       */
      known_mtu: number;
      /**
       * Whether a packet one byte longer is known to be lost.
       */
      exact: boolean;
      /**
       * Whether the path is IPv6.
       */
      ipv6: boolean;
      /**
       * Payload of the largest datagram that fits, bytes.
       */
      fits_bytes: number;
      /**
       * Requested payload of a datagram, bytes; null if none was requested.
       */
      asked_bytes: number | null;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "mtu_unconfirmed";
      /**
       * Payload of the datagrams, bytes.
       */
      datagram_bytes: number;
      /**
       * Path MTU according to the near kernel, bytes.
       */
      known_mtu: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "option_stripped";
      /**
       * `SACK` or `timestamps`.
       */
      option: string;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "mss_clamped";
      /**
       * Payload of a full segment, bytes.
       */
      mss_bytes: number;
      /**
       * Payload that the smallest MTU allows, bytes.
       */
      fits_bytes: number;
      /**
       * The smallest MTU, bytes.
       */
      mtu: number;
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "ssh_tunnel";
      /**
       * The same in words.
       */
      text: string;
    }
  | {
      kind: "text";
      /**
       * The same in words.
       */
      text: string;
    };

/**
 * One measurement of a path.
 */
export interface Measurement {
  /**
   * Schema name and version.
   */
  schema: "bdp.measurement/1";
  /**
   * Name given by the user.
   */
  label: string | null;
  labels?: Labels;
  request: MeasureRequest;
  /**
   * Number of the run, from 1.
   */
  repetition: number;
  /**
   * Start, milliseconds since 1970.
   */
  started_unix_ms: number;
  /**
   * Duration of the whole measurement, milliseconds.
   */
  took_ms: number;
  near: HostFacts;
  far: HostFacts1;
  path: PathFacts;
  /**
   * The most that the path can carry, as far as known.
   */
  ceiling: Ceiling | null;
  /**
   * Round trips before any load.
   */
  rtt_idle_ns: RttSummary | null;
  /**
   * Individual idle probes, timed from when the first was due; null if none were sent, and in older measurements.
   */
  idle_probes: ProbeSeries | null;
  /**
   * Results of each direction, in the order in which they ran.
   */
  directions: DirectionResult[];
  /**
   * Results of the experiments after the test, in order.
   *
   * @minItems 1
   */
  experiments?: [Experiment, ...Experiment[]];
  /**
   * Reasons for caution before relying on the figures. A real path has caveats, never INVALID.
   */
  caveats: Caveat[];
  /**
   * Why the measurement failed; null if it did not.
   */
  error: string | null;
  /**
   * Output of an iperf3 server for each of its tests, in order, if requested: text, or its JSON document.
   *
   * @minItems 1
   */
  server_output?: [unknown, ...unknown[]];
}
/**
 * Labels given by the user, by name.
 */
export interface Labels {
  [k: string]: string;
}
/**
 * The complete request, enough to repeat the measurement.
 */
export interface MeasureRequest {
  /**
   * The host as given.
   */
  host: string;
  /**
   * Port of the server.
   */
  port: number;
  /**
   * The server's protocol, if it is not bdp's own.
   */
  peer?: "iperf3" | "iperf2";
  /**
   * IP version, if only one is acceptable.
   */
  family: Family | null;
  /**
   * The directions, in order; both at once if `bidirectional` is set.
   */
  directions: Direction[];
  /**
   * Whether both directions run at the same time.
   */
  bidirectional: boolean;
  /**
   * Parallel connections, or datagram senders.
   */
  streams: number;
  /**
   * How long to send, omit included.
   */
  duration_ns: number;
  /**
   * Stop after this many bytes in total, if sooner.
   */
  bytes: number | null;
  /**
   * Initial part that is not counted.
   */
  omit_ns: number;
  /**
   * Sampling interval.
   */
  interval_ns: number;
  /**
   * Bytes per write.
   */
  length: number;
  /**
   * Requested window on the wire of each stream; null leaves it to autotuning.
   */
  window: WindowBytes | null;
  /**
   * `SO_SNDBUF` and `SO_RCVBUF` at both ends.
   */
  socket_buffer: number | null;
  /**
   * `TCP_MAXSEG`.
   */
  mss: number | null;
  /**
   * Congestion control of the sender; null for the host's default.
   */
  congestion: string | null;
  /**
   * `TCP_NODELAY`.
   */
  nodelay: boolean;
  /**
   * Differentiated services code point, 0 to 63.
   */
  dscp: number | null;
  /**
   * `TCP_NOTSENT_LOWAT` of the sender: the limit of unsent bytes in its socket.
   */
  unsent_limit?: number;
  /**
   * How the sender passes its bytes to the kernel.
   */
  zerocopy: "off" | "auto" | "sendfile" | "splice" | "msg";
  /**
   * Whether a known pattern is sent and the receiver verifies every byte.
   */
  check_payload: boolean;
  /**
   * Pacing rate of connections: payload of each stream, bit/s; for datagrams see `udp`.
   */
  pacing_bps: number | null;
  /**
   * Datagrams instead of connections.
   */
  udp: UdpRequest | null;
  application?: Application;
  /**
   * How long the idle round trip is measured before the load.
   */
  idle_ns: number;
  /**
   * Address that the near end sends from.
   */
  bind_address: string | null;
  /**
   * Device that the near end sends through.
   */
  bind_device: string | null;
  /**
   * First local port of the data connections.
   */
  client_port: number | null;
  /**
   * Processors that the near end's threads are pinned to.
   */
  near_cpus: CpuList | null;
  /**
   * Processors that the far end's threads are pinned to.
   */
  far_cpus: CpuList | null;
  /**
   * URL that was downloaded, if a web server was measured.
   */
  url: string | null;
  /**
   * How the far end was started, if over `ssh`.
   */
  ssh: SshRequest | null;
  /**
   * Whether connections are added until goodput and responsiveness are steady (draft-ietf-ippm-responsiveness).
   */
  responsiveness: boolean;
  /**
   * Whether an iperf3 server is asked for its output.
   */
  server_output?: true;
  /**
   * How the near end authenticated, without secrets, if options specified it.
   */
  access: Access | null;
  ordered?: OrderedRates;
  /**
   * Whether a direction ends as soon as its goodput is steady.
   */
  until_settled?: true;
  /**
   * Whether experiments after the test are disabled, even if its limit is unclear.
   */
  no_experiments?: true;
}
/**
 * A UDP flow request.
 */
export interface UdpRequest {
  /**
   * Payload rate of each stream, bit/s; null for as fast as the sender can.
   */
  rate_bps: number | null;
  /**
   * Search for the highest rate that arrives, used instead of a fixed rate.
   */
  search: RateSearch | null;
  /**
   * Payload of a datagram, bytes; null for as much as the path MTU allows.
   */
  datagram_bytes: number | null;
  /**
   * Whether fragmentation is forbidden (`IP_MTU_DISCOVER`).
   */
  dont_fragment: boolean;
}
/**
 * Settings of the search for the highest rate without loss (`-u -b auto`).
 */
export interface RateSearch {
  /**
   * Largest acceptable share of a trial's datagrams lost.
   */
  loss_ratio: number;
  /**
   * Duration of each trial.
   */
  trial_ns: number;
}
/**
 * Behaviour of the programs at both ends if they do not run as fast as they can; flows of the lab only.
 */
export interface Application {
  /**
   * How the receiving program reads each stream.
   */
  reader?:
    | {
        kind: "rate";
        /**
         * Payload rate, bit/s.
         */
        rate_bps: number;
      }
    | {
        kind: "pauses";
        /**
         * Length of the pause.
         */
        pause_ns: number;
        /**
         * Length of the period, longer than the pause.
         */
        every_ns: number;
      };
  /**
   * How the sending program writes each stream.
   */
  writer?:
    | {
        kind: "rate";
        /**
         * Payload rate, bit/s.
         */
        rate_bps: number;
      }
    | {
        kind: "pauses";
        /**
         * Length of the pause.
         */
        pause_ns: number;
        /**
         * Length of the period, longer than the pause.
         */
        every_ns: number;
      };
  messages?: Messages;
}
/**
 * Messages, each sent after the answer to the previous one.
 */
export interface Messages {
  /**
   * Bytes of each message.
   */
  size_bytes: number;
  /**
   * Writes per message: all but the last are short, like headers.
   */
  writes: number;
}
/**
 * A far end that was started over `ssh`.
 */
export interface SshRequest {
  /**
   * Destination as `ssh` takes it: `user@host`, or a name from its configuration.
   */
  destination: string;
  /**
   * Whether data went through the `ssh` connection instead of directly to the host.
   */
  through: boolean;
  /**
   * Options for `ssh -o`.
   */
  options: string[];
  /**
   * Host for the data, if given.
   */
  data_host: string | null;
  /**
   * Port for the data, if given.
   */
  data_port: number | null;
}
/**
 * The contracted rates of this path, if the user states them.
 */
export interface OrderedRates {
  /**
   * From the near end to the far one: the line's upload.
   */
  to_bps: number;
  /**
   * From the far end to the near one: its download.
   */
  from_bps: number;
}
/**
 * The client's machine.
 */
export interface HostFacts {
  /**
   * Its host name.
   */
  name: string;
  /**
   * Its address on this path.
   */
  address: string;
  /**
   * bdp's version.
   */
  bdp: string;
  /**
   * Operating system, `Linux`.
   */
  system: string;
  /**
   * `uname -r`.
   */
  kernel: string;
  /**
   * Machine architecture.
   */
  arch: string;
  /**
   * Online processors.
   */
  cpus: number;
  /**
   * Device that carries the path.
   */
  device: DeviceFacts | null;
  /**
   * Default congestion control.
   */
  congestion_control: string | null;
  /**
   * Sysctls that affect TCP, by dotted name.
   */
  sysctls: {
    [k: string]: string;
  };
  /**
   * Fraction of all its processors that was busy during the measurement.
   */
  cpu_busy: number | null;
  /**
   * Fraction of processor time stolen by a hypervisor.
   */
  cpu_steal: number | null;
  /**
   * Counters during the measurement; null if its bdp did not read them.
   */
  counters: HostCounters | null;
}
/**
 * A network device.
 */
export interface DeviceFacts {
  /**
   * Its name.
   */
  name: string;
  /**
   * Speed reported by the driver; null if it reports none, as for virtual devices.
   */
  speed_bps: number | null;
  /**
   * Its MTU.
   */
  mtu: number | null;
  /**
   * Packets that it dropped during the measurement, both ways.
   */
  drops: number | null;
  /**
   * Whether it is full duplex, as reported by the driver.
   */
  full_duplex: boolean | null;
  /**
   * Queueing discipline, for example `fq`; on a device with several queues, that of the queues.
   */
  qdisc: string | null;
}
/**
 * Counters of what disturbs a measurement at one of its ends; null if the machine does not report them. In the lab by the real clock, `softnet_*` and `throttled_*` cover the whole machine.
 */
export interface HostCounters {
  /**
   * Time between the two readings.
   */
  over_ns: number;
  /**
   * Counters of the device that carries the path; null in the lab, whose links count.
   */
  device: DeviceCounters | null;
  /**
   * Received packets dropped because the kernel's backlog was full (`/proc/net/softnet_stat`).
   */
  softnet_dropped: number | null;
  /**
   * Times that a processor used up its receive budget (`net.core.netdev_budget`).
   */
  softnet_squeezed?: number;
  /**
   * Periods in which the control group's quota of processor time was used up.
   */
  throttled_periods: number | null;
  /**
   * Throttled time in those periods, all processors added up.
   */
  throttled_ns: number | null;
  stack?: StackCounters;
}
/**
 * Counters of a network device.
 */
export interface DeviceCounters {
  /**
   * Bytes received, link headers included.
   */
  rx_bytes: number;
  /**
   * Bytes sent, link headers included.
   */
  tx_bytes: number;
  /**
   * Packets received; a super-packet of a virtual device counts as one.
   */
  rx_packets: number;
  /**
   * Packets sent.
   */
  tx_packets: number;
  /**
   * Received packets that it dropped.
   */
  rx_dropped: number;
  /**
   * Outgoing packets that it dropped.
   */
  tx_dropped: number;
  /**
   * Received packets for which it had no buffer: the host was too slow.
   */
  rx_missed: number;
  /**
   * Received packets lost by its FIFO.
   */
  rx_fifo: number;
  /**
   * Outgoing packets lost by its FIFO.
   */
  tx_fifo: number;
  /**
   * Bytes received beyond what the measurement can have caused: payload, retransmits, 118 bytes of header and an acknowledgement for each packet. Null if unknown.
   */
  rx_cross_bytes: number | null;
  /**
   * Bytes sent beyond what the measurement can have caused; null if unknown.
   */
  tx_cross_bytes: number | null;
}
/**
 * Counters of the network namespace's stack, all connections.
 */
export interface StackCounters {
  /**
   * `TcpExt` `PruneCalled`: a receive buffer was full, and the kernel looked for memory to free.
   */
  prune_called?: number;
  /**
   * `RcvPruned`: segments dropped for that reason.
   */
  rcv_pruned?: number;
  /**
   * `OfoPruned`: out-of-order segments dropped for that reason.
   */
  ofo_pruned?: number;
  /**
   * `TCPBacklogDrop`: segments dropped because the socket was in use by a call and its backlog was full.
   */
  backlog_drop?: number;
  /**
   * `TCPRcvQDrop`: segments dropped for lack of memory.
   */
  rcvq_drop?: number;
  /**
   * `TCPZeroWindowDrop`: segments that arrived while the window was closed.
   */
  zero_window_drop?: number;
  /**
   * `TCPOFODrop`: out-of-order segments dropped for lack of room.
   */
  ofo_drop?: number;
  /**
   * `TCPToZeroWindowAdv`: times that the receive window was closed.
   */
  to_zero_window?: number;
  /**
   * `TCPRcvCollapsed`: segments merged in memory because the buffer was full.
   */
  rcv_collapsed?: number;
  /**
   * `TCPMemoryPressures`: times that TCP came under memory pressure, `net.ipv4.tcp_mem`.
   */
  memory_pressures?: number;
  /**
   * `TCPTimeouts`: retransmission timeouts.
   */
  timeouts?: number;
  /**
   * `TCPSpuriousRTOs`: retransmission timeouts that proved spurious.
   */
  spurious_timeouts?: number;
  /**
   * `TCPLossProbes`: tail loss probes sent.
   */
  loss_probes?: number;
  /**
   * `TCPSACKReneging`: times that a receiver discarded data that it had acknowledged selectively.
   */
  sack_reneging?: number;
  /**
   * `TCPDSACKRecv`: reports of segments received twice.
   */
  dsack_received?: number;
  /**
   * `Tcp` `InCsumErrors`: segments whose checksum was wrong.
   */
  tcp_checksum_errors?: number;
  /**
   * `Udp` `RcvbufErrors`: datagrams dropped because the socket's receive buffer was full.
   */
  udp_receive_buffer_errors?: number;
  /**
   * `Udp` `SndbufErrors`: datagrams that did not fit the send buffer.
   */
  udp_send_buffer_errors?: number;
  /**
   * `Udp` `InCsumErrors`: datagrams whose checksum was wrong.
   */
  udp_checksum_errors?: number;
}
/**
 * The server's machine.
 */
export interface HostFacts1 {
  /**
   * Its host name.
   */
  name: string;
  /**
   * Its address on this path.
   */
  address: string;
  /**
   * bdp's version.
   */
  bdp: string;
  /**
   * Operating system, `Linux`.
   */
  system: string;
  /**
   * `uname -r`.
   */
  kernel: string;
  /**
   * Machine architecture.
   */
  arch: string;
  /**
   * Online processors.
   */
  cpus: number;
  /**
   * Device that carries the path.
   */
  device: DeviceFacts | null;
  /**
   * Default congestion control.
   */
  congestion_control: string | null;
  /**
   * Sysctls that affect TCP, by dotted name.
   */
  sysctls: {
    [k: string]: string;
  };
  /**
   * Fraction of all its processors that was busy during the measurement.
   */
  cpu_busy: number | null;
  /**
   * Fraction of processor time stolen by a hypervisor.
   */
  cpu_steal: number | null;
  /**
   * Counters during the measurement; null if its bdp did not read them.
   */
  counters: HostCounters | null;
}
/**
 * What is known about the path.
 */
export interface PathFacts {
  /**
   * Smallest round trip.
   */
  rtt_min_ns: number | null;
  /**
   * Path MTU from near to far according to the near kernel, or the smaller one that was found.
   */
  mtu_to: number | null;
  /**
   * Path MTU from far to near according to the far kernel, or the smaller one that was found.
   */
  mtu_from: number | null;
  /**
   * Payload bytes of a full segment.
   */
  mss_bytes: number | null;
  /**
   * An MTU black hole on the path; null if none was found.
   */
  mtu_black_hole: MtuBlackHole | null;
}
/**
 * A path that silently drops packets that are too long for it (RFC 2923, section 2.1).
 */
export interface MtuBlackHole {
  /**
   * Largest IP packet that made the round trip, bytes (RFC 8899).
   */
  mtu: number;
  /**
   * Path MTU according to the near kernel, bytes.
   */
  known_mtu: number;
  /**
   * Whether a packet one byte longer is known to be lost.
   */
  exact: boolean;
}
/**
 * The most that the path can carry.
 */
export interface Ceiling {
  /**
   * As TCP goodput, bit/s.
   */
  goodput_bps: number;
  /**
   * Source of the figure: `the near NIC, eth0, 1 Gbit/s`.
   */
  by: string;
}
/**
 * A distribution of round trips, in nanoseconds.
 */
export interface RttSummary {
  /**
   * Probes sent.
   */
  sent: number;
  /**
   * Probes answered.
   */
  received: number;
  /**
   * Probes still waiting for an answer at the end: neither answered nor lost.
   */
  in_flight: number;
  /**
   * Smallest round trip.
   */
  min: number;
  /**
   * Median of all probes sent, as the text prints it; an unanswered probe counts as slower than the time it was waited for.
   */
  p50: number;
  /**
   * 95th percentile of all probes; null with fewer than 20.
   */
  p95: number | null;
  /**
   * 99th percentile of all probes; null with fewer than 100.
   */
  p99: number | null;
  /**
   * Largest round trip.
   */
  max: number;
  /**
   * The same percentiles with whether each is exact, if some probes have no answer; null if all have, and in older summaries.
   */
  of_all: OfAll | null;
  of_answers?: OfAnswers;
}
/**
 * Percentiles of all probes; an unanswered probe counts as slower than the time it was waited for.
 */
export interface OfAll {
  p50: Bound;
  /**
   * 95th percentile; null with fewer than 20 probes.
   */
  p95: Bound1 | null;
  /**
   * 99th percentile; null with fewer than 100.
   */
  p99: Bound1 | null;
}
/**
 * Median.
 */
export interface Bound {
  /**
   * Nanoseconds.
   */
  ns: number;
  /**
   * Whether the percentile is exactly that; otherwise it is larger.
   */
  exact: boolean;
}
/**
 * A percentile, or its lower bound.
 */
export interface Bound1 {
  /**
   * Nanoseconds.
   */
  ns: number;
  /**
   * Whether the percentile is exactly that; otherwise it is larger.
   */
  exact: boolean;
}
/**
 * Percentiles of the answered probes, if some have no answer. Older summaries have these in the members above.
 */
export interface OfAnswers {
  /**
   * Median.
   */
  p50: number;
  /**
   * 95th percentile; null with fewer than 20 answers.
   */
  p95: number | null;
  /**
   * 99th percentile; null with fewer than 100.
   */
  p99: number | null;
}
/**
 * Probes in the order in which they were due. Each array has an element for each probe.
 */
export interface ProbeSeries {
  /**
   * Time range of the probes that count in the figures, from after omit to the end of the flow; null if all count.
   *
   * @minItems 2
   * @maxItems 2
   */
  counted_ns: [unknown, unknown] | null;
  /**
   * When each was due, negative before the first byte of the flow.
   */
  due_ns: number[];
  /**
   * When each was sent.
   */
  sent_ns: number[];
  /**
   * Round trips, from when it was sent, or due if it was sent more than 1 ms late; null if no answer arrived: the reason is in `unanswered`.
   */
  rtt_ns: (number | null)[];
  /**
   * Probes without an answer.
   */
  unanswered: Unanswered[];
  /**
   * Delays from the near end to the far one, by compared clocks; null if the far end reported no times.
   */
  there_ns: (number | null)[];
  /**
   * Delays from the far end to the near one, by compared clocks; null if the far end reported no times.
   */
  back_ns: (number | null)[];
  /**
   * Parts of the round trips spent in the two hosts; null if no kernel stamped them.
   */
  host_ns: (number | null)[];
  /**
   * Probes that had reached the far end when it answered, modulo 256; absent if it does not count them.
   *
   * @minItems 1
   */
  echoed?: [number | null, ...(number | null)[]];
}
export interface Unanswered {
  /**
   * Index in the arrays.
   */
  index: number;
  /**
   * Why it has no answer.
   */
  outcome: "lost" | "in_flight" | "unsent";
  /**
   * How long an answer was awaited.
   */
  waited_ns: number | null;
}
/**
 * Results of one direction.
 */
export interface DirectionResult {
  /**
   * A direction across the path, as the measuring machine sees it.
   */
  direction: "to" | "from";
  /**
   * Bytes read by the receiver, omit included.
   */
  bytes: number;
  settled?: Settled;
  /**
   * Distribution of the goodput of intervals after omit.
   */
  spread: IntervalSpread | null;
  /**
   * Round trips per minute under load: 60 s / mean of the probes without the slowest 5 %. The probes are datagrams, without the handshakes of draft-ietf-ippm-responsiveness and without its probes on loaded connections.
   */
  responsiveness_rpm: number | null;
  /**
   * Responsiveness under working conditions; null if not requested.
   */
  responsiveness: Responsiveness | null;
  /**
   * One-way delays of the same probes, `there` from the client to the server; null if the server reported no times.
   */
  each_way_ns: EachWayReport | null;
  /**
   * Host and path shares of the round trips of those probes under load; null if no kernel stamped them.
   */
  latency_parts_ns: LatencyParts | null;
  /**
   * Individual probes, timed from the first byte of the flow, those during omit included; null if none were sent, and in older measurements.
   */
  probes: ProbeSeries | null;
  /**
   * How the sender passed bytes to its kernel: `write` (copies them), `splice`, `sendfile`, `MSG_ZEROCOPY` (`MSG_ZEROCOPY, copied by the kernel`, as over loopback); of datagrams `sendmmsg`, with `+gso` if the kernel cuts them from larger buffers. Empty if unknown.
   */
  send_method: string;
  /**
   * Methods that the sender tried at the start, of which it kept the fastest; absent if there was only one, or if the path was slower than all of them.
   *
   * @minItems 1
   */
  send_methods_tried?: [TriedWay, ...TriedWay[]];
  /**
   * How the receiver read.
   */
  receive_method:
    | ""
    | "MSG_TRUNC"
    | "read"
    | "read, TLS"
    | "recvmmsg"
    | "recvmmsg+gro"
    | "acknowledged"
    | "reported"
    | string;
  /**
   * Sending threads: one for each stream, at most one for each processor.
   */
  sender_threads: number | null;
  /**
   * Receiving threads: one for each stream, at most one for each processor.
   */
  receiver_threads: number | null;
  /**
   * Result of verifying every byte; null if not requested.
   */
  payload_check: PayloadCheck | null;
  /**
   * Why the direction ended.
   */
  ended: "duration" | "bytes" | "settled" | "closed" | "reset" | "stopped" | "silence" | string;
  /**
   * How the sender was paced; null if no rate was requested.
   */
  pacing: Pacing | null;
  /**
   * Bytes read by the receiver x 8 / time, after omit.
   */
  goodput_bps: number;
  /**
   * From the first byte read to the last sample.
   */
  duration_ns: number;
  /**
   * Part of the duration skipped at the beginning and excluded from the goodput.
   */
  omit_ns: number;
  /**
   * Goodput after omit of each stream, in order of connection.
   */
  stream_goodput_bps: number[];
  window: WindowReport;
  rtt_ns: RttReport;
  /**
   * Segments retransmitted, all streams; null if the sender's kernel does not report it.
   */
  retransmits: number | null;
  /**
   * Segments that the receiver already had, as it reported to the sender (DSACK, RFC 2883), all streams: retransmitted without being lost, on a path that reorders. Null if the sender's kernel does not report it.
   */
  needless_retransmits: number | null;
  /**
   * Congestion control, read back from the sending socket.
   */
  congestion_control: string;
  /**
   * Payload bytes of a full segment.
   */
  mss_bytes: number | null;
  /**
   * `SO_SNDBUF` of the first stream at the sender.
   */
  send_buffer_bytes: number | null;
  /**
   * CPU time of the sending process / wall clock.
   */
  sender_cpu: number;
  /**
   * CPU time of the receiving process / wall clock.
   */
  receiver_cpu: number;
  /**
   * CPU time of the busiest sending thread / wall clock; null if the sender does not report it.
   */
  sender_thread_cpu: number | null;
  /**
   * CPU time of the busiest receiving thread / wall clock; null if the receiver does not report it.
   */
  receiver_thread_cpu: number | null;
  /**
   * Whether the first connection uses window scaling (RFC 7323), according to the sender's kernel; null if not reported.
   */
  sender_window_scaling: boolean | null;
  /**
   * Whether the first connection uses window scaling (RFC 7323), according to the receiver's kernel; null if not reported.
   */
  receiver_window_scaling: boolean | null;
  connection?: Connection;
  /**
   * Samples at the receiver.
   */
  received: ReceiverSample[];
  /**
   * Samples at the sender; of the first stream unless a member is a sum.
   */
  sent: SenderSample[];
  /**
   * Congestion events of the first stream at the sender: losses and marks, each with the last state before it.
   *
   * @minItems 1
   */
  loss_episodes?: [LossEpisode, ...LossEpisode[]];
  /**
   * Kernel counters of each of several streams at the sender, in order of connection.
   *
   * @minItems 1
   */
  streams?: [StreamReport, ...StreamReport[]];
  /**
   * What limits the transfer, with evidence; empty if the record of a flow is not valid.
   */
  findings: Finding[];
  /**
   * Datagram statistics of a UDP flow; null for TCP. For UDP the members about TCP are null, empty or 0.
   */
  udp: UdpReport | null;
  /**
   * Retransmitted segments / segments sent, omit included; null for datagrams, and if it is not known.
   */
  retransmit_ratio: number | null;
  /**
   * Segments retransmitted but not needlessly / segments sent, an upper bound of the loss; of datagrams, lost / sent. Null if it is not known.
   */
  loss_ratio: number | null;
  /**
   * Where the time of the first stream went; null for datagrams, and if the sender's kernel does not count it.
   */
  time_spent: TimeSpent | null;
}
/**
 * Estimate for the whole test, if it ended early because its goodput was steady.
 */
export interface Settled {
  /**
   * Time at which it was steady, from the start of the flow.
   */
  after_ns: number;
  /**
   * Planned duration of the test.
   */
  of_ns: number;
  /**
   * Goodput of the whole planned test if it continues as in the last blocks, bit/s.
   */
  goodput_bps: number;
  /**
   * Twice the standard error of the last blocks' mean / that mean.
   */
  error: number;
}
/**
 * Distribution of the goodput of intervals, bit/s.
 */
export interface IntervalSpread {
  /**
   * Number of intervals.
   */
  intervals: number;
  /**
   * Smallest; null if it was not kept.
   */
  min: number | null;
  /**
   * 5th percentile; null with fewer than 20 intervals.
   */
  p5: number | null;
  /**
   * Median.
   */
  p50: number;
  /**
   * 95th percentile; null with fewer than 20 intervals.
   */
  p95: number | null;
  /**
   * Largest; null if it was not kept.
   */
  max: number | null;
}
/**
 * Results of one direction.
 */
export interface Responsiveness {
  working: WorkingLatency;
  /**
   * Confidence in the responsiveness.
   */
  confidence: "low" | "medium" | "high";
  idle: WorkingLatency1;
  /**
   * Goodput over the last intervals, bit/s.
   */
  goodput_bps: number;
  /**
   * Confidence in the goodput.
   */
  goodput_confidence: "low" | "medium" | "high";
  /**
   * Connections at the end of the load.
   */
  connections: number;
  /**
   * Samples of TCP's round trip that were used.
   */
  self_readings: number;
  /**
   * The intervals.
   */
  intervals: LoadInterval[];
  /**
   * The foreign probes.
   */
  foreign: ForeignProbe[];
}
/**
 * Latency over the last intervals of the load.
 */
export interface WorkingLatency {
  /**
   * Handshakes of foreign probes (`tcp_f`).
   */
  tcp_ns: number | null;
  /**
   * Requests of foreign probes (`http_f`).
   */
  exchange_ns: number | null;
  /**
   * TCP's round trips on loaded connections (`http_l`).
   */
  self_ns: number | null;
  /**
   * Round trips per minute of new connections.
   */
  foreign_rpm: number | null;
  /**
   * Round trips per minute of loaded connections.
   */
  self_rpm: number | null;
  /**
   * Responsiveness, the mean of both; null if one is unknown.
   */
  rpm: number | null;
}
/**
 * Latency of foreign probes before the load.
 */
export interface WorkingLatency1 {
  /**
   * Handshakes of foreign probes (`tcp_f`).
   */
  tcp_ns: number | null;
  /**
   * Requests of foreign probes (`http_f`).
   */
  exchange_ns: number | null;
  /**
   * TCP's round trips on loaded connections (`http_l`).
   */
  self_ns: number | null;
  /**
   * Round trips per minute of new connections.
   */
  foreign_rpm: number | null;
  /**
   * Round trips per minute of loaded connections.
   */
  self_rpm: number | null;
  /**
   * Responsiveness, the mean of both; null if one is unknown.
   */
  rpm: number | null;
}
/**
 * One interval of the load.
 */
export interface LoadInterval {
  /**
   * End of the interval, from the start of the load.
   */
  at_ns: number;
  /**
   * Length of the interval.
   */
  length_ns: number;
  /**
   * Connections in the interval.
   */
  connections: number;
  /**
   * Bytes transferred.
   */
  bytes: number;
  /**
   * Goodput averaged over this interval and those before it.
   */
  average_bps: number;
  /**
   * Responsiveness over the same intervals, as far as known under load; null before goodput was steady.
   */
  rpm: number | null;
}
/**
 * A foreign probe: a new connection with one request and its response.
 */
export interface ForeignProbe {
  /**
   * Start of the probe, from the start of the load; negative before it.
   */
  at_ns: number;
  /**
   * Duration of its TCP handshake; null if it failed.
   */
  tcp_ns: number | null;
  /**
   * Time from the request to the response; null if it failed.
   */
  exchange_ns: number | null;
}
/**
 * One-way delays before the load and under it.
 */
export interface EachWayReport {
  /**
   * Delays before the load.
   */
  idle: EachWay | null;
  /**
   * Delays under load.
   */
  loaded: EachWay | null;
  /**
   * Skew of the two clocks, which the delays are corrected for; null if unknown.
   */
  skew: ClockSkew | null;
}
/**
 * One-way delays of the same messages, there and back.
 */
export interface EachWay {
  there: OneWayDelay;
  back: OneWayDelay1;
}
/**
 * From the near end to the far one.
 */
export interface OneWayDelay {
  /**
   * Smallest.
   */
  min: number;
  /**
   * Median.
   */
  p50: number;
  /**
   * 95th percentile; null with fewer than 20 values.
   */
  p95: number | null;
  /**
   * 99th percentile; null with fewer than 100 values.
   */
  p99: number | null;
  /**
   * Largest.
   */
  max: number;
  /**
   * Largest common error of all of them: half of the round trip by which the clocks were compared, plus the drift since.
   */
  clock_error: number;
}
/**
 * From the far end to the near one.
 */
export interface OneWayDelay1 {
  /**
   * Smallest.
   */
  min: number;
  /**
   * Median.
   */
  p50: number;
  /**
   * 95th percentile; null with fewer than 20 values.
   */
  p95: number | null;
  /**
   * 99th percentile; null with fewer than 100 values.
   */
  p99: number | null;
  /**
   * Largest.
   */
  max: number;
  /**
   * Largest common error of all of them: half of the round trip by which the clocks were compared, plus the drift since.
   */
  clock_error: number;
}
/**
 * How much faster the far clock runs than the near one.  Slope of the line below all one-way delays of a direction that minimises the sum of distances: delay above the smallest is never negative, so the line follows the clocks and not the queue (Moon, Skelly and Towsley, "Estimation and removal of clock skew from network delay measurements", INFOCOM 1999, the linear program of section IV). Both directions see the same skew with opposite signs.
 */
export interface ClockSkew {
  /**
   * Far clock minus near clock, parts per million.
   */
  ppm: number;
  /**
   * Half of the difference between the two directions: a steadily growing queue looks like a skew in its own direction.
   */
  error_ppm: number;
}
/**
 * Host and path shares of the round trips of probes, from the timestamps of both kernels.
 */
export interface LatencyParts {
  host: RttSummary1;
  path: RttSummary2;
}
/**
 * A distribution of round trips, in nanoseconds.
 */
export interface RttSummary1 {
  /**
   * Probes sent.
   */
  sent: number;
  /**
   * Probes answered.
   */
  received: number;
  /**
   * Probes still waiting for an answer at the end: neither answered nor lost.
   */
  in_flight: number;
  /**
   * Smallest round trip.
   */
  min: number;
  /**
   * Median of all probes sent, as the text prints it; an unanswered probe counts as slower than the time it was waited for.
   */
  p50: number;
  /**
   * 95th percentile of all probes; null with fewer than 20.
   */
  p95: number | null;
  /**
   * 99th percentile of all probes; null with fewer than 100.
   */
  p99: number | null;
  /**
   * Largest round trip.
   */
  max: number;
  /**
   * The same percentiles with whether each is exact, if some probes have no answer; null if all have, and in older summaries.
   */
  of_all: OfAll | null;
  of_answers?: OfAnswers;
}
/**
 * A distribution of round trips, in nanoseconds.
 */
export interface RttSummary2 {
  /**
   * Probes sent.
   */
  sent: number;
  /**
   * Probes answered.
   */
  received: number;
  /**
   * Probes still waiting for an answer at the end: neither answered nor lost.
   */
  in_flight: number;
  /**
   * Smallest round trip.
   */
  min: number;
  /**
   * Median of all probes sent, as the text prints it; an unanswered probe counts as slower than the time it was waited for.
   */
  p50: number;
  /**
   * 95th percentile of all probes; null with fewer than 20.
   */
  p95: number | null;
  /**
   * 99th percentile of all probes; null with fewer than 100.
   */
  p99: number | null;
  /**
   * Largest round trip.
   */
  max: number;
  /**
   * The same percentiles with whether each is exact, if some probes have no answer; null if all have, and in older summaries.
   */
  of_all: OfAll | null;
  of_answers?: OfAnswers;
}
/**
 * A method of passing bytes to the kernel that a sender tried at the start.
 */
export interface TriedWay {
  /**
   * The method.
   */
  method: string;
  /**
   * Most bytes per call.
   */
  write_bytes: number;
  /**
   * Rate that the kernel accepted during the trial, bit/s.
   */
  sent_bps: number;
}
/**
 * Results of a receiver that verifies every byte.
 */
export interface PayloadCheck {
  /**
   * Bytes verified.
   */
  checked_bytes: number;
  /**
   * Bytes that were wrong.
   */
  wrong_bytes: number;
  /**
   * The first wrong byte, in the first stream with one.
   */
  first_wrong: WrongByte | null;
}
/**
 * Position of a wrong byte.
 */
export interface WrongByte {
  /**
   * The stream, in order of connection, from 0.
   */
  stream: number;
  /**
   * Offset in that stream, bytes.
   */
  offset: number;
}
/**
 * How a sender was paced.
 */
export interface Pacing {
  /**
   * Rate at which each stream is paced, counting payload only, bit/s.
   */
  rate_bps: number;
  /**
   * What spaced the packets.
   */
  by: "fq" | "tcp" | "bdp" | "bdp_and_fq";
}
/**
 * The window of the first stream: requested, granted and on the wire.
 */
export interface WindowReport {
  /**
   * Requested by the scenario; null if left to the kernel's autotuning.
   */
  asked_bytes: number | null;
  /**
   * `SO_RCVBUF` of the receiver, as the kernel reports it.
   */
  socket_buffer_bytes: number | null;
  /**
   * Receive window as the sender saw it (`tcpi_snd_wnd`, or the clamp on the path), median after omit.
   */
  on_the_wire_bytes: number | null;
  /**
   * Largest receive window that the sender saw after omit.
   */
  on_the_wire_max_bytes: number | null;
  /**
   * How the window was set.
   */
  method: "" | "autotuned" | "socket clamp" | "SO_RCVBUF" | "tcp_rmem" | "path clamp" | "none";
  /**
   * Whether the window on the wire held as many whole segments as requested; null if none was requested.
   */
  reached: boolean | null;
  /**
   * Why the requested window was not reached.
   */
  note: WindowNote | null;
}
/**
 * Round trips of probes between the hosts, before the load and under it.
 */
export interface RttReport {
  /**
   * Before the load.
   */
  idle: RttSummary | null;
  /**
   * Under load: probes sent from the end of omit to the end.
   */
  loaded: RttSummary | null;
  percentiles?: RttPercentiles;
}
/**
 * The full distributions of both.
 */
export interface RttPercentiles {
  /**
   * Before the load.
   */
  idle: number[];
  /**
   * Under load: probes sent from the end of omit to the end.
   */
  loaded: number[];
}
/**
 * Options of the first connection, according to the sender's kernel or else the receiver's; absent if neither reports them.
 */
export interface Connection {
  /**
   * Selective acknowledgements (RFC 2018).
   */
  sack?: boolean;
  /**
   * Timestamps (RFC 7323).
   */
  timestamps?: boolean;
  /**
   * Explicit congestion notification (RFC 3168).
   */
  ecn?: boolean;
  /**
   * Window scale of the sender's own windows, bits; 0 if it announced none.
   */
  sender_window_shift?: number;
  /**
   * Window scale of the receiver, whose windows limit the data, bits.
   */
  receiver_window_shift?: number;
}
/**
 * A sample at the receiver. Fields that the kernel did not return are absent.
 */
export interface ReceiverSample {
  /**
   * Time since the flow's first byte was read, or since its connections were established if none arrived.
   */
  at_ns: number;
  /**
   * Bytes read so far, all streams.
   */
  bytes: number;
  /**
   * Receive window that the receiver's kernel intends to advertise, first stream; not the one on the wire.
   */
  rcv_wnd_bytes: number | null;
  /**
   * Segments received out of order so far, all streams.
   */
  out_of_order: number | null;
  /**
   * Bytes received but not read by the program, first stream.
   */
  unread_bytes?: number;
  /**
   * Time that the program reading the first stream has waited for data so far.
   */
  read_waited_ns?: number;
  /**
   * Time that it has deliberately not read so far, to limit its rate.
   */
  read_paused_ns?: number;
  /**
   * Processor time of all receiving threads so far.
   */
  cpu_ns?: number;
  /**
   * Processor time of the busiest receiving thread so far.
   */
  thread_cpu_ns?: number;
  /**
   * Longest time so far that a receiving thread was runnable while others had its processor.
   */
  run_wait_ns?: number;
  /**
   * Round trip estimated by the receiver's kernel, for a socket that is watched.
   */
  rtt_ns?: number;
}
/**
 * A sample of `TCP_INFO` at the sender. Fields that the kernel did not return are absent.
 */
export interface SenderSample {
  /**
   * Time since all connections were established.
   */
  at_ns: number;
  /**
   * Bytes acknowledged so far, all streams.
   */
  acked_bytes: number | null;
  /**
   * Segments in flight, first stream.
   */
  unacked: number | null;
  /**
   * Congestion window in segments, first stream.
   */
  cwnd: number | null;
  /**
   * Receive window as the sender sees it, first stream.
   */
  snd_wnd_bytes: number | null;
  /**
   * Smoothed round trip, first stream.
   */
  srtt_ns: number | null;
  /**
   * Retransmitted segments so far, all streams.
   */
  retransmits: number | null;
  /**
   * Time so far with data to send or in flight, first stream.
   */
  busy_ns: number | null;
  /**
   * Busy time limited by the receive window so far, first stream; the kernel is known to under-report it.
   */
  rwnd_limited_ns: number | null;
  /**
   * Busy time limited by the send buffer so far, first stream.
   */
  sndbuf_limited_ns: number | null;
  /**
   * Congestion control state, first stream.
   */
  congestion_state?: "open" | "disorder" | "reduced" | "recovery" | "loss";
  /**
   * Slow start threshold in segments, first stream; absent before the first congestion event.
   */
  ssthresh?: number;
  /**
   * Segments considered lost and not yet retransmitted, first stream.
   */
  lost?: number;
  /**
   * Segments that may arrive out of order before a gap counts as a loss, first stream.
   */
  reordering?: number;
  /**
   * Reordering events so far, all streams.
   */
  reorder_seen?: number;
  /**
   * Retransmitted segments so far that the receiver already had (DSACK, RFC 2883), all streams.
   */
  needless_retransmits?: number;
  /**
   * Segments delivered so far, all streams.
   */
  delivered?: number;
  /**
   * Delivered segments so far with a Congestion Experienced mark, all streams.
   */
  delivered_ce?: number;
  /**
   * Retransmission timeouts so far, all streams (Linux 6.7).
   */
  timeouts?: number;
  /**
   * Smallest round trip of the last minutes, first stream.
   */
  min_rtt_ns?: number;
  /**
   * Latest delivery rate sample, first stream.
   */
  delivery_rate_bps?: number;
  /**
   * Whether that sample was limited by too little data to send, first stream.
   */
  app_limited?: boolean;
  /**
   * Pacing rate of the kernel, first stream.
   */
  pacing_bps?: number;
  /**
   * Unsent bytes in the send buffer, first stream.
   */
  not_sent_bytes?: number;
  /**
   * Time that the program writing the first stream has had data and waited for its socket so far.
   */
  write_blocked_ns?: number;
  /**
   * Time that it has had nothing to write, or was to write later, so far.
   */
  write_idle_ns?: number;
  /**
   * Processor time of all sending threads so far.
   */
  cpu_ns?: number;
  /**
   * Processor time of the busiest sending thread so far.
   */
  thread_cpu_ns?: number;
  /**
   * Longest time so far that a sending thread was runnable while others had its processor.
   */
  run_wait_ns?: number;
}
/**
 * A congestion event of a connection: from the first loss or mark that the sender's kernel noticed until recovery.
 */
export interface LossEpisode {
  /**
   * Start, since all connections were established.
   */
  at_ns: number;
  /**
   * Duration; 0 if it began and ended between two samples, or had not ended by the end of the flow.
   */
  took_ns: number;
  /**
   * The sender's reaction.
   */
  kind: "reduced" | "recovery" | "timeout";
  /**
   * Congestion window just before the event, in segments.
   */
  cwnd: number;
  /**
   * Segments in flight just before the event.
   */
  unacked: number;
  /**
   * Smoothed round trip just before the event.
   */
  srtt_ns: number;
  /**
   * Segments delivered so far.
   */
  delivered: number;
  /**
   * Latest delivery rate sample before the event.
   */
  delivery_rate_bps?: number;
  /**
   * Whether the sender was in slow start.
   */
  slow_start: boolean;
  /**
   * Segments retransmitted during the event.
   */
  retransmits: number;
}
/**
 * Counters of a stream from the sender's kernel, from the start to the end of the flow. Fields that it did not return are absent.
 */
export interface StreamReport {
  /**
   * Duration of the flow up to the reading.
   */
  took_ns: number;
  /**
   * Bytes acknowledged.
   */
  acked_bytes: number | null;
  /**
   * Retransmitted segments.
   */
  retransmits: number | null;
  /**
   * Smoothed round trip at the end.
   */
  srtt_ns: number | null;
  /**
   * Congestion window at the end, in segments.
   */
  cwnd: number | null;
  /**
   * Busy time: data to send or in flight.
   */
  busy_ns: number | null;
  /**
   * Busy time limited by the receive window.
   */
  rwnd_limited_ns: number | null;
  /**
   * Busy time limited by the send buffer.
   */
  sndbuf_limited_ns: number | null;
  /**
   * The program or window of this stream that held it back for at least half of the time. Null if there is none: the finding of the whole flow then applies to the stream too.
   */
  limit: Limit | null;
}
/**
 * A conclusion with its confidence, its evidence and a remedy.
 */
export interface Finding {
  /**
   * What limits a flow.
   */
  limit:
    | "receive_window"
    | "send_buffer"
    | "ceiling"
    | "path_rate"
    | "shallow_queue"
    | "half_duplex"
    | "cross_traffic"
    | "ecn_marks"
    | "congestion_loss"
    | "random_loss"
    | "sack_missing"
    | "timestamps_missing"
    | "policer"
    | "reordering"
    | "reverse_path"
    | "mtu_black_hole"
    | "path_changed"
    | "slow_start"
    | "asked_rate"
    | "slow_writer"
    | "slow_reader"
    | "client_idle"
    | "round_trips"
    | "program_window"
    | "peer_gone"
    | "not_established"
    | "nagle"
    | "cpu"
    | "host_drops"
    | "path_loss"
    | "receiving_host"
    | "sending_host"
    | "unknown";
  /**
   * Why the limit has its value; null if unknown.
   */
  cause: Cause | null;
  place: Place;
  /**
   * How certain the finding is.
   */
  confidence: "low" | "medium" | "high";
  /**
   * Its probability, calibrated on transfers whose limit is known; null if it was not calibrated: of datagrams, captures, watched sockets, and limits without such transfers, as the ceiling.
   */
  probability: number | null;
  /**
   * Up to three limits that it may be if it is unknown, most probable first.
   */
  candidates: Likely[];
  /**
   * The observations, strongest first.
   */
  evidence: Evidence[];
  /**
   * The limit that applies once this one is removed; null if unknown.
   */
  next: Next | null;
  /**
   * What to change; null if there is nothing to change.
   */
  remedy: Remedy | null;
  /**
   * Data that is missing, if the answer is unknown or could be more certain.
   */
  missing: Missing[];
  /**
   * What limits it, as a noun.
   */
  subject: string;
  /**
   * The finding in a sentence.
   */
  summary: string;
}
/**
 * Where the limit is.
 */
export interface Place {
  /**
   * The part of the connection.
   */
  at: "sender" | "receiver" | "path" | "way_back" | "request";
  /**
   * The name of the host, hop or device.
   */
  name: string | null;
}
/**
 * A possible limit and its probability.
 */
export interface Likely {
  /**
   * What limits a flow.
   */
  limit:
    | "receive_window"
    | "send_buffer"
    | "ceiling"
    | "path_rate"
    | "shallow_queue"
    | "half_duplex"
    | "cross_traffic"
    | "ecn_marks"
    | "congestion_loss"
    | "random_loss"
    | "sack_missing"
    | "timestamps_missing"
    | "policer"
    | "reordering"
    | "reverse_path"
    | "mtu_black_hole"
    | "path_changed"
    | "slow_start"
    | "asked_rate"
    | "slow_writer"
    | "slow_reader"
    | "client_idle"
    | "round_trips"
    | "program_window"
    | "peer_gone"
    | "not_established"
    | "nagle"
    | "cpu"
    | "host_drops"
    | "path_loss"
    | "receiving_host"
    | "sending_host"
    | "unknown";
  /**
   * Its probability.
   */
  probability: number;
}
/**
 * An observation.
 */
export interface Evidence {
  /**
   * The fact that was observed.
   */
  fact:
    | "of_window_rate"
    | "of_flight_rate"
    | "window_full"
    | "window_shrunk"
    | "unread"
    | "congestion_window_full"
    | "windows_have_room"
    | "starved"
    | "kernel_counts_window"
    | "kernel_counts_send_buffer"
    | "buffer_payload"
    | "buffer_below_need"
    | "delayed_ack_rate"
    | "no_whole_segment"
    | "other_way_queue"
    | "setting_maximum"
    | "buffer_below_maximum"
    | "autotuning_setting"
    | "scaling_setting"
    | "scaling_removed"
    | "scaling_agreed"
    | "scaling_used"
    | "window_as_read"
    | "of_ceiling"
    | "of_ceiling_in_datagrams"
    | "above_ceiling"
    | "of_asked_rate"
    | "steady"
    | "load_adds"
    | "no_queue"
    | "queue_one_way"
    | "queue_round_trip"
    | "queue_way_back"
    | "queue_way_back_p95"
    | "retransmitted"
    | "needless_retransmits"
    | "retransmitted_share"
    | "retransmitted_meanwhile"
    | "losses_at_one_rate"
    | "losses_at_any_rate"
    | "lost_each"
    | "overshoot"
    | "queue_before_losses"
    | "marked"
    | "window_reductions"
    | "rate_step"
    | "round_trip_step"
    | "of_peak_rate"
    | "waited_for_program"
    | "turns_took"
    | "stopped_at_amount"
    | "sent_in_vain"
    | "syns_sent"
    | "left_open"
    | "capture_lacks"
    | "time_share"
    | "nothing_to_send"
    | "reading_paused"
    | "small_write_held"
    | "queued_mostly"
    | "probes_queued"
    | "probes_silent"
    | "repairing"
    | "sack_used"
    | "timestamps_used"
    | "mathis_rate"
    | "cubic_rate"
    | "reordered"
    | "probes_lost"
    | "full_segments_lost"
    | "probes_answered"
    | "segment_size_kept"
    | "larger_than_passed"
    | "gap"
    | "gap_share"
    | "probes_meanwhile"
    | "took_round_trips"
    | "window_asked"
    | "still_in_slow_start"
    | "window_grew"
    | "sending_thread"
    | "receiving_thread"
    | "busiest_thread"
    | "sending_thread_ready"
    | "receiving_thread_ready"
    | "throttled"
    | "stolen"
    | "receiver_paused"
    | "host_paused"
    | "through_tunnel"
    | "rate_held"
    | "lost_at_rate"
    | "all_arrived"
    | "datagrams_lost"
    | "lost_as_allowed"
    | "dropped_by_socket"
    | "dropped_by_device"
    | "dropped_by_backlog"
    | "dropped_by_stack"
    | "skipped"
    | "received"
    | "sent_of_asked"
    | "sent_unbounded"
    | "datagram_queue"
    | "datagram_delay"
    | "unread_data"
    | "reader_keeps_up"
    | "round_trip_above_least"
    | "window_has_room"
    | "came_out_of_order"
    | "losses_while_paced"
    | "more_streams"
    | "burst_delay";
  /**
   * The number that the threshold applies to.
   */
  value: number;
  /**
   * The unit of the value.
   */
  unit: "bytes" | "ns" | "bps" | "share" | "count" | "flag";
  /**
   * Further numbers, in the order of the fact's description.
   */
  with: Quantity[];
  /**
   * The rule's lower threshold: the value is at least this.
   */
  at_least: number | null;
  /**
   * The rule's upper threshold: the value is at most this.
   */
  at_most: number | null;
  /**
   * The samples that meet it, if the value is a share of samples.
   */
  samples: Samples | null;
  /**
   * The setting, device or congestion control that it belongs to.
   */
  name: string | null;
  /**
   * The host that it belongs to.
   */
  host: string | null;
  /**
   * The same in words.
   */
  text: string;
}
/**
 * A number with its unit.
 */
export interface Quantity {
  /**
   * The number.
   */
  value: number;
  /**
   * Its unit.
   */
  unit: "bytes" | "ns" | "bps" | "share" | "count" | "flag";
}
/**
 * The number of samples that meet a condition.
 */
export interface Samples {
  /**
   * Samples that meet it.
   */
  met: number;
  /**
   * All samples.
   */
  of: number;
}
/**
 * The limit that applies once another is removed.
 */
export interface Next {
  /**
   * What limits a flow.
   */
  limit:
    | "receive_window"
    | "send_buffer"
    | "ceiling"
    | "path_rate"
    | "shallow_queue"
    | "half_duplex"
    | "cross_traffic"
    | "ecn_marks"
    | "congestion_loss"
    | "random_loss"
    | "sack_missing"
    | "timestamps_missing"
    | "policer"
    | "reordering"
    | "reverse_path"
    | "mtu_black_hole"
    | "path_changed"
    | "slow_start"
    | "asked_rate"
    | "slow_writer"
    | "slow_reader"
    | "client_idle"
    | "round_trips"
    | "program_window"
    | "peer_gone"
    | "not_established"
    | "nagle"
    | "cpu"
    | "host_drops"
    | "path_loss"
    | "receiving_host"
    | "sending_host"
    | "unknown";
  /**
   * The goodput that it allows, bit/s.
   */
  goodput_bps: number;
  /**
   * Bytes in flight that each stream needs to reach it.
   */
  needed_bytes: number | null;
  /**
   * The same in words.
   */
  text: string;
}
/**
 * A change that may help.
 */
export interface Remedy {
  /**
   * The action.
   */
  action:
    | "raise_maximum"
    | "set"
    | "ask_window"
    | "ask_socket_buffer"
    | "larger_socket_buffer"
    | "smaller_window"
    | "smaller_window_one_way"
    | "pass_window_scaling"
    | "find_window_scaling"
    | "leave_out"
    | "search_rate"
    | "lower_rate"
    | "bound_rate"
    | "more_streams"
    | "larger_datagrams"
    | "quieter_host"
    | "free_reader"
    | "free_writer"
    | "free_server"
    | "ask_more"
    | "larger_program_window"
    | "open_port"
    | "find_host"
    | "disable_nagle"
    | "raise_quota"
    | "move_machine"
    | "raise_ring"
    | "raise_backlog"
    | "probe_mtu"
    | "find_outage"
    | "shape_to_rate"
    | "find_errors"
    | "find_spreading"
    | "fix_way_back"
    | "deepen_queue"
    | "fix_duplex"
    | "find_traffic"
    | "add_capacity"
    | "raise_marking"
    | "enable_sack"
    | "enable_timestamps"
    | "keep_connection"
    | "reuse_connection";
  /**
   * The setting: a sysctl, an option, a key of a scenario, or a device.
   */
  setting: string | null;
  /**
   * The value of the setting.
   */
  value: number | null;
  /**
   * The unit of the value.
   */
  unit: Unit | null;
  /**
   * The host.
   */
  host: string | null;
  /**
   * A further change that helps, or is needed as well.
   */
  also: Remedy | null;
  /**
   * The same in words.
   */
  text: string;
}
/**
 * Data that is missing.
 */
export interface Missing {
  /**
   * The data.
   */
  what:
    | "tcp_info"
    | "tcp_info_windows"
    | "longer_measurement"
    | "longer_after_omit"
    | "segment_size"
    | "idle_round_trip"
    | "loaded_round_trip"
    | "queue_direction"
    | "nic_speed"
    | "window_bound"
    | "send_buffer_count"
    | "socket_drops"
    | "direct_connection"
    | "sender_figures"
    | "probe_beside";
  /**
   * The host that it is missing from.
   */
  host: string | null;
  /**
   * The number of samples there are.
   */
  samples: number | null;
  /**
   * The same in words.
   */
  text: string;
}
/**
 * Results of a UDP flow, all its streams together.
 */
export interface UdpReport {
  /**
   * Payload rate requested, all streams, bit/s; null for as fast as the sender could.
   */
  asked_bps: number | null;
  /**
   * Payload rate that the sender passed to its kernel, bit/s.
   */
  sent_bps: number;
  /**
   * Payload of a datagram, bytes.
   */
  datagram_bytes: number;
  /**
   * Datagrams that the sender passed to its kernel.
   */
  sent: number;
  /**
   * Datagrams skipped because they were more than 20 ms late.
   */
  left_out: number;
  /**
   * Distinct datagrams received.
   */
  received: number;
  /**
   * Datagrams sent but never received, omit included.
   */
  lost: number;
  /**
   * Lost / sent.
   */
  loss_ratio: number;
  /**
   * Lost datagrams that the receiving host dropped because its socket was full; null if its kernel does not report it.
   */
  dropped_by_receiver: number | null;
  /**
   * Duplicate datagrams; null if received by a server of another protocol, which does not report them.
   */
  duplicated: number | null;
  /**
   * Datagrams received after one with a higher number (RFC 4737, section 3.3); includes duplicates if `duplicated` is null. Null if the receiver does not report it.
   */
  reordered: number | null;
  /**
   * Largest distance of a reordered datagram's number behind the highest received; null if the receiver does not report it.
   */
  reorder_displacement_max: number | null;
  /**
   * Interarrival jitter at the end of the flow (RFC 3550, section 6.4.1), the largest of the streams. Datagrams of one call have one departure time.
   */
  jitter_ns: number | null;
  /**
   * Delay above the smallest (RFC 5481, section 4.2).
   */
  delay_variation_ns: Distribution | null;
  /**
   * Delay from the sender's call to the receiving kernel; in the lab, where both ends have one clock, the clock error is 0.
   */
  one_way_delay_ns: OneWayDelay2 | null;
  /**
   * Time from one call of the sender to the next.
   */
  send_gap_ns: Distribution | null;
  /**
   * Most datagrams passed to the kernel by one call: those due within 100 us, or one.
   */
  burst_max: number;
  /**
   * Source of the receiver's timestamps.
   */
  timestamps: "" | "kernel" | "read";
  /**
   * `SO_RCVBUF` of the receiving socket.
   */
  receive_buffer_bytes: number | null;
  /**
   * Trials of a search, in order; empty if none was requested.
   */
  trials: Trial[];
  /**
   * How the search ended; null if none was requested.
   */
  search: SearchEnd | null;
}
/**
 * A distribution of times, nanoseconds.
 */
export interface Distribution {
  /**
   * Number of values.
   */
  count: number;
  /**
   * Median.
   */
  p50: number;
  /**
   * 95th percentile; null with fewer than 20 values.
   */
  p95: number | null;
  /**
   * 99th percentile; null with fewer than 100 values.
   */
  p99: number | null;
  /**
   * Largest.
   */
  max: number;
}
/**
 * One-way delays, nanoseconds; may be negative within the clock error.
 */
export interface OneWayDelay2 {
  /**
   * Smallest.
   */
  min: number;
  /**
   * Median.
   */
  p50: number;
  /**
   * 95th percentile; null with fewer than 20 values.
   */
  p95: number | null;
  /**
   * 99th percentile; null with fewer than 100 values.
   */
  p99: number | null;
  /**
   * Largest.
   */
  max: number;
  /**
   * Largest common error of all of them: half of the round trip by which the clocks were compared, plus the drift since.
   */
  clock_error: number;
}
/**
 * A trial of a rate search.
 */
export interface Trial {
  /**
   * Payload rate requested, all streams, bit/s; null for as fast as the sender could.
   */
  rate_bps: number | null;
  /**
   * Payload rate sent, bit/s.
   */
  sent_bps: number;
  /**
   * Payload rate received, bit/s.
   */
  received_bps: number;
  /**
   * Datagrams sent.
   */
  sent: number;
  /**
   * Datagrams lost.
   */
  lost: number;
  /**
   * Lost / sent.
   */
  loss_ratio: number;
  /**
   * Lost datagrams that the receiving host dropped; null if its kernel does not report it.
   */
  dropped_by_receiver: number | null;
  /**
   * Whether it held the rate found for the whole duration.
   */
  held: boolean;
  /**
   * Whether no more than the acceptable share was lost, and as much was sent as requested.
   */
  passed: boolean;
}
/**
 * Time spent by a transfer in each state; the states are described in `docs/time.md`.
 */
export interface TimeSpent {
  /**
   * Share of each state in the intervals that begin after omit; null if there are none.
   */
  counted: TimeShares | null;
  whole: TimeShares1;
  /**
   * Interval boundaries, one more than intervals, nanoseconds since all connections were established.
   *
   * @minItems 2
   */
  at_ns: [number, number, ...number[]];
  /**
   * States with a non-zero time.
   *
   * @minItems 1
   */
  states: [StateTimes, ...StateTimes[]];
}
/**
 * The share of each state; they add up to 1.
 */
export interface TimeShares {
  /**
   * A SYN was not answered, and was retransmitted.
   */
  unanswered: number;
  /**
   * The connection was being made: a SYN and its answer.
   */
  handshake: number;
  /**
   * TLS agreed on its keys.
   */
  tls_setup: number;
  /**
   * The client had not asked: its program, or a person, paused.
   */
  not_asked: number;
  /**
   * The server had been asked and had not yet begun to answer.
   */
  answering: number;
  /**
   * A question or an answer was on its way: a round trip of a conversation.
   */
  round_trips: number;
  /**
   * It was the other end's turn, whose data was coming.
   */
  other_way: number;
  /**
   * The path carried all that it can: a queue stood, or the ceiling was reached.
   */
  full_path: number;
  /**
   * The congestion window doubled each round trip and was below the slow start threshold.
   */
  slow_start: number;
  /**
   * The congestion window was full and below what the path holds, and grew in congestion avoidance.
   */
  congestion_avoidance: number;
  /**
   * The congestion control probed by its own model of the path, as BBR does.
   */
  probing: number;
  /**
   * The congestion window was reduced after ECN marks, or drops in the sending host.
   */
  ecn_reduction: number;
  /**
   * A loss was repaired by fast retransmit.
   */
  recovery: number;
  /**
   * A retransmission timeout had expired, and its losses were repaired.
   */
  timeout: number;
  /**
   * The receive window was full.
   */
  receive_window: number;
  /**
   * The send buffer was full of data in flight.
   */
  send_buffer: number;
  /**
   * What the sending program's own protocol allows was in flight, until the other program gave room.
   */
  program_window: number;
  /**
   * Segments were paced to a rate that the test, the server or the sending host sets.
   */
  pacing: number;
  /**
   * A small write waited for the acknowledgement of the one before it.
   */
  nagle: number;
  /**
   * The sending program had nothing to write, or less than a segment.
   */
  sender_application: number;
  /**
   * The receiving program left data in its socket, and the receive window was full.
   */
  receiver_application: number;
  /**
   * The thread that sends used up a processor, or waited for one.
   */
  sender_processor: number;
  /**
   * The thread that receives used up a processor, or waited for one.
   */
  receiver_processor: number;
  /**
   * Both ends had sent everything, or the connection was closing.
   */
  finished: number;
  /**
   * The capture lacks the packets of this time.
   */
  not_captured: number;
  /**
   * None of these fits what is known.
   */
  unknown: number;
}
/**
 * The share of each state; they add up to 1.
 */
export interface TimeShares1 {
  /**
   * A SYN was not answered, and was retransmitted.
   */
  unanswered: number;
  /**
   * The connection was being made: a SYN and its answer.
   */
  handshake: number;
  /**
   * TLS agreed on its keys.
   */
  tls_setup: number;
  /**
   * The client had not asked: its program, or a person, paused.
   */
  not_asked: number;
  /**
   * The server had been asked and had not yet begun to answer.
   */
  answering: number;
  /**
   * A question or an answer was on its way: a round trip of a conversation.
   */
  round_trips: number;
  /**
   * It was the other end's turn, whose data was coming.
   */
  other_way: number;
  /**
   * The path carried all that it can: a queue stood, or the ceiling was reached.
   */
  full_path: number;
  /**
   * The congestion window doubled each round trip and was below the slow start threshold.
   */
  slow_start: number;
  /**
   * The congestion window was full and below what the path holds, and grew in congestion avoidance.
   */
  congestion_avoidance: number;
  /**
   * The congestion control probed by its own model of the path, as BBR does.
   */
  probing: number;
  /**
   * The congestion window was reduced after ECN marks, or drops in the sending host.
   */
  ecn_reduction: number;
  /**
   * A loss was repaired by fast retransmit.
   */
  recovery: number;
  /**
   * A retransmission timeout had expired, and its losses were repaired.
   */
  timeout: number;
  /**
   * The receive window was full.
   */
  receive_window: number;
  /**
   * The send buffer was full of data in flight.
   */
  send_buffer: number;
  /**
   * What the sending program's own protocol allows was in flight, until the other program gave room.
   */
  program_window: number;
  /**
   * Segments were paced to a rate that the test, the server or the sending host sets.
   */
  pacing: number;
  /**
   * A small write waited for the acknowledgement of the one before it.
   */
  nagle: number;
  /**
   * The sending program had nothing to write, or less than a segment.
   */
  sender_application: number;
  /**
   * The receiving program left data in its socket, and the receive window was full.
   */
  receiver_application: number;
  /**
   * The thread that sends used up a processor, or waited for one.
   */
  sender_processor: number;
  /**
   * The thread that receives used up a processor, or waited for one.
   */
  receiver_processor: number;
  /**
   * Both ends had sent everything, or the connection was closing.
   */
  finished: number;
  /**
   * The capture lacks the packets of this time.
   */
  not_captured: number;
  /**
   * None of these fits what is known.
   */
  unknown: number;
}
/**
 * Time spent in one state.
 */
export interface StateTimes {
  /**
   * State.
   */
  state:
    | "unanswered"
    | "handshake"
    | "tls_setup"
    | "not_asked"
    | "answering"
    | "round_trips"
    | "other_way"
    | "full_path"
    | "slow_start"
    | "congestion_avoidance"
    | "probing"
    | "ecn_reduction"
    | "recovery"
    | "timeout"
    | "receive_window"
    | "send_buffer"
    | "program_window"
    | "pacing"
    | "nagle"
    | "sender_application"
    | "receiver_application"
    | "sender_processor"
    | "receiver_processor"
    | "finished"
    | "not_captured"
    | "unknown";
  /**
   * Time in each interval, nanoseconds; over all states, these add up to the interval.
   *
   * @minItems 1
   */
  ns: [number, ...number[]];
}
/**
 * Datagram statistics of a burst; absent otherwise.
 */
export interface Burst {
  /**
   * Datagrams sent.
   */
  sent: number;
  /**
   * Datagrams that did not arrive.
   */
  lost: number;
  /**
   * Rate at which they were sent, bit/s.
   */
  sent_bps: number;
  /**
   * One-way delay of the slowest datagram minus that of the fastest: the queue that the burst built.
   */
  delay_added_ns: number;
}
/**
 * One or more runs of a measurement.
 */
export interface Measurements {
  /**
   * Name and version of the schema.
   */
  schema: "bdp.measurements/1";
  /**
   * Version of bdp that wrote the document.
   */
  bdp: string;
  /**
   * The run's id in the store; null if it is not stored.
   */
  run: string | null;
  /**
   * Every measurement, in the order run.
   */
  runs: Measurement[];
  /**
   * Result of each `--expect`, in order; empty if none was given or the run comes from the store.
   */
  expectations: Judgement[];
  summary: Summary;
}
/**
 * Outcome of an expectation.
 */
export interface Judgement {
  /**
   * The expectation as typed.
   */
  expectation: string;
  /**
   * Name of the figure.
   */
  figure: string;
  /**
   * Unit of the values.
   */
  unit: "bps" | "bytes" | "ns" | "ratio" | "segments" | "rpm";
  /**
   * Comparison operator.
   */
  operator: "at_least" | "at_most" | "above" | "below";
  /**
   * Required value, in that unit.
   */
  wanted: number;
  /**
   * Median over the runs; null if none measured it.
   */
  found: number | null;
  /**
   * Whether it was met; false if the figure was not measured, or if it depends on a load that was not reached.
   */
  met: boolean;
  /**
   * The datagram load that was requested but not reached, if the figure depends on it.
   */
  not_offered: NotOffered | null;
}
/**
 * A datagram load that the sender did not reach.
 */
export interface NotOffered {
  /**
   * Payload rate requested, all streams, bit/s.
   */
  asked_bps: number;
  /**
   * Payload rate sent, bit/s.
   */
  sent_bps: number;
}
/**
 * Summary of the runs that did not fail.
 */
export interface Summary {
  /**
   * Number of runs that did not fail.
   */
  n: number;
  /**
   * Number of failed runs; excluded from all statistics.
   */
  n_failed: number;
  /**
   * Idle round-trip time: median over the runs of each quantile, nanoseconds; null if not measured.
   */
  rtt_idle_ns: Quantiles | null;
  /**
   * Summary of each direction.
   */
  directions: DirectionSummary[];
}
/**
 * Quantiles of round-trip times.
 */
export interface Quantiles {
  /**
   * Smallest.
   */
  min: number;
  /**
   * Median.
   */
  p50: number;
  /**
   * 95th percentile; null if no run had 20 replies.
   */
  p95: number | null;
  /**
   * 99th percentile; null if no run had 100 replies.
   */
  p99: number | null;
  /**
   * Largest.
   */
  max: number;
}
/**
 * One direction, summarised over the runs.
 */
export interface DirectionSummary {
  /**
   * A direction across the path, as the measuring machine sees it.
   */
  direction: "to" | "from";
  /**
   * Number of runs that measured the direction.
   */
  n: number;
  /**
   * Median goodput, bit/s; null if no run measured it.
   */
  goodput_median_bps: number | null;
  /**
   * Confidence interval of the median goodput by order statistics, bit/s; null for fewer than 3 runs.
   */
  goodput_interval_bps: Bounds | null;
  /**
   * Smallest goodput, bit/s.
   */
  goodput_min_bps: number | null;
  /**
   * Largest goodput, bit/s.
   */
  goodput_max_bps: number | null;
  /**
   * Median number of retransmitted segments.
   */
  retransmits_median: number | null;
  /**
   * Median share of the sent segments that were retransmissions.
   */
  retransmit_ratio_median: number | null;
  /**
   * Median share of the sent segments or datagrams that were lost.
   */
  loss_ratio_median: number | null;
  /**
   * Median window on the wire.
   */
  on_the_wire_median_bytes: number | null;
  /**
   * Round-trip time under load: median over the runs of each quantile, nanoseconds; null if not measured.
   */
  rtt_loaded_ns: Quantiles | null;
  /**
   * Limits that the runs found.
   */
  limits: LimitCount[];
}
/**
 * Confidence interval of a median.
 */
export interface Bounds {
  /**
   * Lower bound.
   */
  low: number;
  /**
   * Upper bound.
   */
  high: number;
  /**
   * Confidence level, 0 to 1: 0.75 for 3 runs, at least 0.95 from 6 runs on.
   */
  confidence: number;
}
/**
 * A limit and the number of runs that found it.
 */
export interface LimitCount {
  /**
   * What limits a flow.
   */
  limit:
    | "receive_window"
    | "send_buffer"
    | "ceiling"
    | "path_rate"
    | "shallow_queue"
    | "half_duplex"
    | "cross_traffic"
    | "ecn_marks"
    | "congestion_loss"
    | "random_loss"
    | "sack_missing"
    | "timestamps_missing"
    | "policer"
    | "reordering"
    | "reverse_path"
    | "mtu_black_hole"
    | "path_changed"
    | "slow_start"
    | "asked_rate"
    | "slow_writer"
    | "slow_reader"
    | "client_idle"
    | "round_trips"
    | "program_window"
    | "peer_gone"
    | "not_established"
    | "nagle"
    | "cpu"
    | "host_drops"
    | "path_loss"
    | "receiving_host"
    | "sending_host"
    | "unknown";
  /**
   * Number of runs.
   */
  n: number;
}
