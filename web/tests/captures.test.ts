import { describe, expect, it } from "vitest";
import { attempts, connections, facts, filterOf, matching, MOST_BYTES, place, refusal, remarks, summary, timelineOf } from "../src/captures";
import type { Capture, CapturedAttempts, CapturedFlow } from "../src/generated/pcap";

function flow(values: Record<string, unknown> = {}, bytes: readonly [number, number] = [1000, 10]): CapturedFlow {
  const direction = (count: number) => ({ packets: 1, bytes: count + 40, payload_bytes: count, goodput_bps: 8e6, tcp: null, datagrams: null, findings: [{ subject: "receive window of b" }], time_spent: null });
  return {
    protocol: "tcp",
    a: "10.0.0.1:40000",
    b: "[2001:db8::2]:443",
    from_ns: 0,
    to_ns: 2e9,
    directions: bytes.map(direction),
    tcp: null,
    quic: null,
    ...values,
  } as unknown as CapturedFlow;
}

const capture = (values: Partial<Capture>): Capture =>
  ({ packets: 3, bytes: 3000, duration_ns: 1e9, filtered: 0, attempts: [], flows: [], caveats: [], ...values }) as Capture;

const flood: CapturedAttempts = {
  protocol: "tcp",
  outcome: "unanswered",
  from: null,
  to: "10.0.0.254",
  port: 80,
  flows: 50_000,
  packets: 50_000,
  bytes: 2e6,
  sources: 49_999,
  destinations: 1,
  ports: 1,
  further_packets: 0,
  from_ns: 0,
  to_ns: 5e9,
};

describe("a file", () => {
  it("is refused if it is empty or too large", () => {
    expect(refusal({ name: "a.pcap", size: 1 })).toBeNull();
    expect(refusal({ name: "a.pcap", size: 0 })).toBe("a.pcap is empty");
    expect(refusal({ name: "a.pcap", size: MOST_BYTES + 1 })).toMatch(/^a\.pcap has 4\.00 GiB, and the page takes/);
  });
});

describe("connections", () => {
  it("stand by their bytes, and are found by words", () => {
    const all = connections({ flows: [flow({}, [10, 20]), flow({ a: "192.0.2.9:1" }), flow({ protocol: "udp" }, [5, 5])] });
    expect(all.map((one) => [one.bytes, one.main])).toEqual([
      [1090, 0],
      [110, 1],
      [90, 0],
    ]);
    expect(matching(all, "192.0.2.9 window")).toHaveLength(1);
    expect(matching(all, "UDP")).toHaveLength(1);
    expect(matching(all, " ")).toHaveLength(3);
    expect(matching(all, "nothing")).toHaveLength(0);
  });
  it("have a filter that leaves them alone", () => {
    expect(filterOf(flow())).toBe("host 10.0.0.1 and port 40000 and host 2001:db8::2 and port 443");
    expect(filterOf(flow({ a: "10.0.0.1:0", b: "10.0.0.2:0" }))).toBe("host 10.0.0.1 and host 10.0.0.2");
  });
  it("say where the capture was taken", () => {
    const tcp = { offers: [null, null], handshake_rtt_ns: null, to_ends_ns: [72_000, 173e6], vantage: "near_a", ended: "half_closed" };
    expect(place(flow({ tcp }))).toBe("at or near 10.0.0.1:40000: 72.0 µs to 10.0.0.1:40000 and back, 173 ms to [2001:db8::2]:443");
    expect(facts(flow({ tcp })).map(([name, text]) => `${name}: ${text}`)).toContain("ended: half closed");
    expect(place(flow({ tcp: { ...tcp, vantage: null, to_ends_ns: [null, null] } }))).toBe("unknown");
  });
  it("have a curve of the data that was acknowledged", () => {
    const trace = [0, 1, 2].map((s) => ({ at_ns: s * 1e9, sent_bytes: s * 1e6, acked_bytes: s * 1e6, window_edge_bytes: null, in_flight_bytes: 0 }));
    const one = flow();
    Object.assign(one.directions[0], { tcp: { trace, retransmitted_at: [[5e8, 0]] } });
    const timeline = timelineOf(one);
    expect(timeline?.until).toBe(2);
    expect(timeline?.goodput.series).toHaveLength(1);
    expect(timeline?.goodput.series[0]?.values[60]).toBeCloseTo(8e6, 0);
    expect(timeline?.goodput.ticks).toEqual([{ t: 0.5, count: 1 }]);
    expect(timelineOf(flow())).toBeNull();
  });
});

describe("a capture", () => {
  it("is summed up", () => {
    expect(summary(capture({ flows: [flow()], attempts: [flood] }))).toBe("3 packets, 2.93 KiB in 1.00 s, 50,001 flows");
  });
  it("of a flood has a line of it", () => {
    expect(attempts(flood)).toBe("50,000 SYNs to 10.0.0.254:80 unanswered, from 49,999 addresses in 5.00 s (10,000/s)");
    const scan = { ...flood, outcome: "refused" as const, from: "10.0.0.9", port: null, ports: 900, flows: 1, to_ns: 0 };
    expect(attempts(scan)).toBe("1 SYN to 10.0.0.254, 900 ports refused, from 10.0.0.9 in 0 ns");
  });
  it("says what it lacks", () => {
    expect(remarks(capture({ packets: 0 }))).toEqual(["The capture holds no packets."]);
    expect(remarks(capture({ packets: 9, filtered: 9, caveats: ["9 packets left out by the filter"] }))).toEqual(["No packet matches the filter.", "9 packets left out by the filter"]);
    expect(remarks(capture({ flows: [flow({ protocol: "udp" })] }))[0]).toMatch(/^Nothing of TCP/);
    expect(remarks(capture({ attempts: [flood] }))).toEqual([]);
  });
});
