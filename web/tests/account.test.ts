import { describe, expect, it } from "vitest";
import { bands, shares } from "../src/account";
import type { TimeShares, TimeSpent } from "../src/generated/measurement";
import { STATES, type State } from "../src/words";

const account = (values: Partial<Record<State, number>>): TimeShares =>
  Object.fromEntries(STATES.map((state) => [state, values[state] ?? 0])) as unknown as TimeShares;

describe("account", () => {
  it("adds up to the whole, largest first", () => {
    const { states, other } = shares(account({ receive_window: 0.9, slow_start: 0.06, recovery: 0.035, timeout: 0.005 }));
    expect(states.map((one) => one.state)).toEqual(["receive_window", "slow_start", "recovery"]);
    expect(states.reduce((sum, one) => sum + one.share, 0) + other).toBeCloseTo(1);
    expect(other).toBeCloseTo(0.005);
  });
  it("is empty without any time", () => {
    expect(shares(account({}))).toEqual({ states: [], other: 0 });
  });
  const spent = (intervals: number): TimeSpent =>
    ({
      counted: null,
      whole: account({ probing: 0.5, recovery: 0.5 }),
      at_ns: Array.from({ length: intervals + 1 }, (_, index) => 5 + index * 1000),
      states: [
        { state: "recovery", ns: Array.from({ length: intervals }, (_, index) => (index % 2) * 1000) },
        { state: "probing", ns: Array.from({ length: intervals }, (_, index) => ((index + 1) % 2) * 1000) },
      ],
    }) as unknown as TimeSpent;
  it("fills every interval", () => {
    for (const [intervals, most] of [
      [4, 240],
      [1000, 240],
      [7, 3],
      [1, 1],
    ] as const) {
      const over = bands(spent(intervals), most);
      expect(over.at.length - 1).toBeLessThanOrEqual(most);
      for (let index = 0; index < over.at.length - 1; index += 1) {
        const sum = over.bands.reduce((total, band) => total + (band.share[index] ?? 0), 0);
        expect(sum).toBeCloseTo(1);
      }
    }
  });
  it("stacks states in one order, whatever order they come in", () => {
    expect(bands(spent(2)).bands.map((band) => band.state)).toEqual(["probing", "recovery"]);
  });
});
