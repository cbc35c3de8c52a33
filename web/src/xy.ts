// Charts of one figure against another: scales, their marks, and the data as CSV.

export interface XySeries {
  label: string;
  /** A colour of the style sheet: `--s0`. */
  colour: string;
  /** A line with dots; a dashed line; dots, rings or crosses alone. */
  mark: "line" | "dashed" | "dots" | "hollow" | "crosses";
  points: XyPoint[];
}

export interface XyPoint {
  x: number;
  y: number;
  /** Bounds of `y`. */
  low?: number;
  high?: number;
}

/** A range of the horizontal axis, or a place on it. */
export interface XySpan {
  label: string;
  colour: string;
  from: number;
  to: number;
}

export interface Axis {
  label: string;
  /** The name of the column in CSV. */
  column: string;
  text: (value: number) => string;
  /** `names`: values are places in this list. */
  scale: "decades" | "doublings" | readonly string[];
}

export interface Xy {
  x: Axis;
  y: Axis;
  series: XySeries[];
  /** Ranges below the curves. */
  bands: XySpan[];
  /** Places as upright lines. */
  places: XySpan[];
}

const isList = (scale: Axis["scale"]): scale is readonly string[] => typeof scale !== "string";

/** The values that an axis spans. */
export function rangeOf(axis: Axis, values: readonly number[]): readonly [low: number, high: number] {
  if (isList(axis.scale)) return [-0.5, Math.max(0.5, axis.scale.length - 0.5)];
  const known = values.filter((value) => value > 0 && Number.isFinite(value));
  if (known.length === 0) return [1, 10];
  const [low, high] = [Math.min(...known), Math.max(...known)];
  // So that nothing lies on the edge, and a flat curve looks flat.
  const room = Math.max(1.2, (high / low) ** 0.06, (2.5 / (high / low)) ** 0.5);
  return [low / room, high * room];
}

/** Where a value lies between the ends of its axis, from 0 to 1. */
export function placeOf(axis: Axis, [low, high]: readonly [number, number], value: number): number {
  return isList(axis.scale) ? (value - low) / (high - low) : Math.log(value / low) / Math.log(high / low);
}

/** Round values of a logarithmic axis: 1, 2 and 5 of each power of ten, or powers of two; at most about so many. */
export function logMarks(low: number, high: number, scale: "decades" | "doublings", most: number): number[] {
  if (!(low > 0 && high > low)) return [];
  const all: number[] = [];
  if (scale === "doublings") {
    for (let power = Math.ceil(Math.log2(low) - 1e-9); power <= Math.log2(high) + 1e-9; power += 1) all.push(2 ** power);
  } else {
    // A short axis has all digits.
    const digits = high / low < 5 ? [1, 2, 3, 4, 5, 6, 7, 8, 9] : [1, 2, 5];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
      for (const digit of digits) if (digit * 10 ** power >= low && digit * 10 ** power <= high) all.push(digit * 10 ** power);
    }
    // Powers of ten alone, if the others are too many.
    if (all.length > most) {
      const tens = all.filter((value) => Math.abs(Math.log10(value) % 1) < 1e-9);
      if (tens.length >= 2) return thinned(tens, most);
    }
  }
  return thinned(all, most);
}

function thinned(values: readonly number[], most: number): number[] {
  const step = Math.max(1, Math.ceil(values.length / Math.max(2, most)));
  return values.filter((_, index) => index % step === 0);
}

/** The marks of an axis. */
export function marksOf(axis: Axis, [low, high]: readonly [number, number], most: number): number[] {
  return isList(axis.scale) ? axis.scale.map((_, index) => index) : logMarks(low, high, axis.scale, most);
}

/** A value of an axis in words. */
export const textOf = (axis: Axis, value: number): string => (isList(axis.scale) ? (axis.scale[value] ?? "") : axis.text(value));

const cell = (text: string): string => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** The points as CSV, one a row. */
export function xyCsv(chart: Xy): string {
  const rows = chart.series.flatMap((one) =>
    one.points.map(({ x, y, low, high }) => [
      cell(one.label),
      isList(chart.x.scale) ? cell(textOf(chart.x, x)) : String(x),
      String(y),
      low === undefined ? "" : String(low),
      high === undefined ? "" : String(high),
    ]),
  );
  return [["curve", chart.x.column, chart.y.column, "low", "high"], ...rows].map((row) => row.join(",")).join("\n") + "\n";
}
