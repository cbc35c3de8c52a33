// The form as a command line.

export interface Form {
  host: string;
  direction: "turn" | "to" | "from" | "both";
  time: string;
  streams: string;
  window: string;
  length: string;
  mss: string;
  protocol: "tcp" | "udp";
  rate: string;
  congestion: string;
  more: More;
}

/** Other options by long name: true for a flag, else the value; several values one a line. */
export type More = Record<string, string | true>;

export type Field = Exclude<keyof Form, "more">;

export const EMPTY: Form = {
  host: "",
  direction: "turn",
  time: "",
  streams: "",
  window: "",
  length: "",
  mss: "",
  protocol: "tcp",
  rate: "",
  congestion: "",
  more: {},
};

const DIRECTIONS: Record<Form["direction"], string[]> = {
  turn: [],
  to: ["--forward"],
  from: ["-R"],
  both: ["--bidir"],
};

/** Options of the form's own fields. */
export const OPTIONS: OptionNames<Field> = [
  ["-t", "--time", "time"],
  ["-P", "--parallel", "streams"],
  ["-w", "--window", "window"],
  ["-l", "--length", "length"],
  ["-M", "--set-mss", "mss"],
  ["-b", "--bitrate", "rate"],
  ["-C", "--congestion", "congestion"],
  ["-R", "--reverse", "direction"],
  ["", "--forward", "direction"],
  ["", "--bidir", "direction"],
  ["-u", "--udp", "protocol"],
];

export interface Preset {
  name: string;
  title: string;
  values: Partial<Form>;
}

export const PRESETS: readonly Preset[] = [
  { name: "Quick", title: "3 s each way", values: { time: "3" } },
  { name: "Default", title: "10 s each way, one stream", values: {} },
  { name: "8 streams", title: "-P 8", values: { streams: "8" } },
  { name: "UDP 50M", title: "-u -b 50M", values: { protocol: "udp", rate: "50M" } },
  { name: "Reverse", title: "only from the host to here", values: { direction: "from" } },
];

/** The words after `bdp`. */
export function words(form: Form): string[] {
  const line = ["measure"];
  const host = form.host.trim();
  if (host !== "") line.push(host);
  line.push(...DIRECTIONS[form.direction]);
  if (form.protocol === "udp") line.push("-u");
  for (const [short, , field] of OPTIONS) {
    if (field === "direction" || field === "protocol") continue;
    const value = form[field].trim();
    if (value !== "") line.push(short, value);
  }
  return withMore(line, form.more);
}

/** Adds other options to a command line. */
export function withMore(line: readonly string[], more: More): string[] {
  const all = [...line];
  for (const [name, value] of Object.entries(more)) {
    if (value === true) all.push(`--${name}`);
    else for (const one of lines(value)) all.push(`--${name}=${one}`);
  }
  return all;
}

function lines(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** A word as a POSIX shell reads it. */
export function quoted(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** `bdp measure ams1 -t 3` */
export const commandLine = (line: readonly string[]): string => ["bdp", ...line].map(quoted).join(" ");

/** Options with fields: short name, long name, field. */
export type OptionNames<F extends string = string> = readonly (readonly [short: string, long: string, field: F])[];

/** The field of the first option that an error names. */
export function namedIn<F extends string>(error: string, options: OptionNames<F>): F | null {
  const isNamed = (name: string) => name !== "" && new RegExp(`(^|[\\s'"(])${name}(?![\\w-])`).test(error);
  return options.find(([short, long]) => isNamed(long) || isNamed(short))?.[2] ?? null;
}

/** The field that an error is about, if it can be told. */
export function fieldOf(error: string, form: Form): Field | null {
  const option = namedIn(error, OPTIONS);
  if (option !== null) return option === "direction" && form.direction === "turn" ? null : option;
  const fields = OPTIONS.map(([, , field]) => field).filter((f) => f !== "direction" && f !== "protocol");
  const named = fields.find((field) => form[field].trim() !== "" && error.includes(`'${form[field].trim()}'`));
  if (named) return named;
  const host = form.host.trim();
  return host === "" ? (/host/i.test(error) ? "host" : null) : error.includes(host) ? "host" : null;
}
