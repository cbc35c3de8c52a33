// Numbers and units as bdp prints them.

/** Three significant digits, or four from 100 on if there is a fraction. */
export function significant(value: number): string {
  if (!Number.isFinite(value)) return "-";
  const size = Math.abs(value);
  const text = value.toFixed(size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 3);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** Three significant digits, zeros kept, so that a column is even: 94.1, 64.0, 0.0811. */
export function threeDigits(value: number): string {
  if (!Number.isFinite(value)) return "-";
  const size = Math.abs(value);
  if (size === 0) return "0";
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(size)));
  const text = value.toFixed(Math.min(decimals, 12));
  // 9.996 has become 10.00: one digit fewer.
  return Math.abs(Number(text)) >= 10 ** (Math.floor(Math.log10(size)) + 1) && decimals > 0
    ? value.toFixed(decimals - 1)
    : text;
}

type Units = readonly (readonly [factor: number, name: string])[];

const RATES: Units = [
  [1, "bit/s"],
  [1e3, "kbit/s"],
  [1e6, "Mbit/s"],
  [1e9, "Gbit/s"],
  [1e12, "Tbit/s"],
];
const SIZES: Units = [
  [1, "B"],
  [2 ** 10, "KiB"],
  [2 ** 20, "MiB"],
  [2 ** 30, "GiB"],
  [2 ** 40, "TiB"],
];
const TIMES: Units = [
  [1, "ns"],
  [1e3, "µs"],
  [1e6, "ms"],
  [1e9, "s"],
];

/** The first of the ascending units that holds the value after rounding. */
function unitOf(value: number, units: Units): readonly [number, string] {
  for (const [index, unit] of units.entries()) {
    const next = units[index + 1];
    if (!next || Number(threeDigits(Math.abs(value) / unit[0])) * unit[0] < next[0]) return unit;
  }
  return [1, ""];
}

function inUnit(value: number | null | undefined, units: Units): string {
  if (value == null || !Number.isFinite(value)) return "-";
  const [factor, name] = unitOf(value, units);
  const text = factor === 1 ? String(Math.round(value)) : threeDigits(value / factor);
  return `${text} ${name}`;
}

/** `94.1 Mbit/s` */
export const rate = (bps: number | null | undefined): string => inUnit(bps, RATES);

/** `64.0 KiB` */
export const size = (bytes: number | null | undefined): string => inUnit(bytes, SIZES);

/** `24.2 ms` */
export const time = (ns: number | null | undefined): string => inUnit(ns, TIMES);

/** The unit for a chart or column whose largest value this is. */
export const rateUnit = (largest: number): readonly [number, string] => unitOf(largest, RATES);

/** `24.2`, for columns in milliseconds. */
export function milliseconds(ns: number | null | undefined): string {
  return ns == null ? "-" : threeDigits(ns / 1e6);
}

/** `100 %`, `9.3 %`, `0.05 %` */
export function percent(share: number | null | undefined): string {
  if (share == null || !Number.isFinite(share)) return "-";
  const value = share * 100;
  const size = Math.abs(value);
  if (size === 0) return "0 %";
  if (size >= 9.95) return `${value.toFixed(0)} %`;
  if (size >= 0.95) return `${value.toFixed(1)} %`;
  const decimals = Math.min(17, 1 - Math.floor(Math.log10(size)));
  return `${value.toFixed(decimals).replace(/0+$/, "")} %`;
}

/** `1.2 s` with one decimal, for time left. */
export const seconds = (ns: number): string => `${(Math.max(0, ns) / 1e9).toFixed(1)} s`;

export const count = (value: number | null | undefined): string => (value == null ? "-" : String(value));

/** `2026-11-28 05:10:41`, of the reader's clock. */
export function moment(unixMs: number): string {
  const date = new Date(unixMs);
  const two = (n: number) => String(n).padStart(2, "0");
  return (
    `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ` +
    `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
  );
}
