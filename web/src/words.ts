// Names of states and stages, as the terminal and docs/time.md have them.
import type { StateTimes } from "./generated/measurement";
import type { Direction as Way } from "./generated/job";

export type State = StateTimes["state"];

export const STATES: readonly State[] = [
  "full_path",
  "slow_start",
  "congestion_avoidance",
  "probing",
  "ecn_reduction",
  "recovery",
  "timeout",
  "receive_window",
  "send_buffer",
  "program_window",
  "pacing",
  "nagle",
  "sender_application",
  "receiver_application",
  "sender_processor",
  "receiver_processor",
  "answering",
  "not_asked",
  "round_trips",
  "other_way",
  "unanswered",
  "handshake",
  "tls_setup",
  "finished",
  "not_captured",
  "unknown",
];

/** Colour of each state, by its number in the style sheet. States of one kind are alike. */
const COLOURS: Partial<Record<State, number>> = {
  full_path: 0,
  slow_start: 1,
  congestion_avoidance: 2,
  probing: 3,
  ecn_reduction: 4,
  recovery: 5,
  timeout: 6,
  receive_window: 7,
  send_buffer: 8,
  program_window: 9,
  pacing: 10,
  nagle: 11,
  sender_application: 4,
  receiver_application: 9,
  sender_processor: 6,
  receiver_processor: 11,
};

export const stateColour = (state: State): string => {
  const number = COLOURS[state];
  return number === undefined ? "var(--other)" : `var(--s${number})`;
};

export const stateName = (state: string): string => state.replaceAll("_", " ");

export const arrow = (way: Way): string => (way === "to" ? "→" : "←");

/** `to ams1`, `from ams1` */
export const towards = (way: Way, host: string): string => `${way} ${host}`;
