// Where the time went: the account of a direction as a bar and over time.
import type { TimeShares, TimeSpent } from "./generated/measurement";
import { STATES, type State } from "./words";

export interface Share {
  state: State;
  share: number;
}

/** The states of at least this share have a segment of their own; the rest is "other". */
const LEAST = 0.01;

/** The states of an account, largest first, and what the smaller ones add up to. Together they are 1. */
export function shares(account: TimeShares): { states: Share[]; other: number } {
  const all = STATES.map((state) => ({ state, share: Math.max(0, account[state]) }));
  const sum = all.reduce((total, one) => total + one.share, 0);
  if (sum <= 0) return { states: [], other: 0 };
  const states = all
    .map(({ state, share }) => ({ state, share: share / sum }))
    .filter((one) => one.share >= LEAST)
    .sort((a, b) => b.share - a.share);
  const shown = states.reduce((total, one) => total + one.share, 0);
  return { states, other: Math.max(0, 1 - shown) };
}

export interface Bands {
  /** Ends of the intervals, seconds; one more than there are intervals. */
  at: number[];
  /** The share of each interval for each state; the states of an interval add up to at most 1. */
  bands: { state: State; share: number[] }[];
}

/** The account over time, in at most so many intervals. */
export function bands(spent: TimeSpent, most = 240): Bands {
  const ends = spent.at_ns as number[];
  const intervals = Math.max(0, ends.length - 1);
  const each = Math.max(1, Math.ceil(intervals / most));
  const at: number[] = [];
  for (let index = 0; index < ends.length; index += each) at.push((ends[index] ?? 0) / 1e9);
  const last = (ends.at(-1) ?? 0) / 1e9;
  if (intervals % each !== 0) at.push(last);
  const order = (state: State) => STATES.indexOf(state);
  const states = [...spent.states].sort((a, b) => order(a.state) - order(b.state));
  const of = (ns: readonly number[]) => {
    const out: number[] = [];
    for (let index = 0; index < at.length - 1; index += 1) {
      let sum = 0;
      for (let k = index * each; k < Math.min((index + 1) * each, intervals); k += 1) sum += ns[k] ?? 0;
      const width = ((at[index + 1] ?? 0) - (at[index] ?? 0)) * 1e9;
      out.push(width > 0 ? Math.min(1, sum / width) : 0);
    }
    return out;
  };
  return { at, bands: states.map(({ state, ns }) => ({ state, share: of(ns) })) };
}
