// A chart as an SVG file of its own, with the colours of now.
import { largest, type Chart, type Timeline } from "./model";
import { colour } from "./theme";

const WIDTH = 900;
const HEIGHT = 300;
const LEFT = 70;
const RIGHT = 10;
const TOP = 30;
const FOOT = 30;


const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

/** Round values from 0 to the largest. */
export function marks(most: number, wanted = 5): number[] {
  if (!(most > 0)) return [0];
  const rough = most / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? power * 10;
  const all: number[] = [];
  for (let index = 0; index * step <= most * 1.001; index += 1) all.push(index * step);
  return all;
}

export function svgOf(
  chart: Chart,
  timeline: Pick<Timeline, "until" | "spans">,
  title: string,
  label: (value: number) => string,
  colourOf: (name: string) => string = colour,
): string {
  const most = largest(chart) * 1.05 || 1;
  const x = (t: number) => (LEFT + (t / timeline.until) * (WIDTH - LEFT - RIGHT)).toFixed(1);
  const y = (value: number) => (HEIGHT - FOOT - (value / most) * (HEIGHT - TOP - FOOT)).toFixed(1);
  const text = colourOf("--text");
  const line = colourOf("--line");
  const out: string[] = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<title>${escaped(title)}</title><rect width="100%" height="100%" fill="${colourOf("--back")}"/>`,
    `<text x="${LEFT}" y="18" fill="${text}" font-weight="bold">${escaped(title)}</text>`,
  ];
  for (const value of marks(most)) {
    out.push(`<path d="M${LEFT} ${y(value)}H${WIDTH - RIGHT}" stroke="${line}"/>`);
    out.push(`<text x="${LEFT - 6}" y="${y(value)}" dy="4" text-anchor="end" fill="${text}">${escaped(label(value))}</text>`);
  }
  for (const value of marks(timeline.until, 8)) {
    out.push(`<text x="${x(value)}" y="${HEIGHT - 10}" text-anchor="middle" fill="${text}">${value} s</text>`);
  }
  for (const span of timeline.spans) {
    out.push(`<path d="M${x(span.start)} ${TOP}V${HEIGHT - FOOT}" stroke="${line}"/>`);
    out.push(`<text x="${x(span.start)}" dx="3" y="${TOP + 10}" fill="${text}">${escaped(span.label)}</text>`);
  }
  for (const series of chart.series) {
    let path = "";
    let isDown = false;
    for (const [index, value] of series.values.entries()) {
      // Curves of two directions at once skip each other's times.
      if (value === undefined) continue;
      if (value === null) isDown = false;
      else {
        path += `${isDown ? "L" : "M"}${x(chart.xs[index] ?? 0)} ${y(value)}`;
        isDown = true;
      }
    }
    if (path === "") continue;
    out.push(`<path d="${path}" fill="none" stroke="${colourOf(series.colour)}" stroke-width="${series.bold ? 2 : 1}"/>`);
  }
  for (const tick of chart.ticks) {
    out.push(`<path d="M${x(tick.t)} ${HEIGHT - FOOT}v-8" stroke="${colourOf("--bad")}"/>`);
  }
  return out.join("\n") + "\n</svg>\n";
}

/** Draws an SVG file as PNG, twice as large. */
export async function pngOf(svg: string): Promise<Blob> {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width * 2, image.height * 2];
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done, fail) => {
      canvas.toBlob((blob) => {
        if (blob) done(blob);
        else fail(new Error("this browser can't write PNG"));
      });
    });
  } finally {
    URL.revokeObjectURL(image.src);
  }
}

/** Lets the browser save a text as a file. */
export function save(name: string, type: string, text: string): void {
  saveBlob(name, new Blob([text], { type }));
}

/** Lets the browser save a file. */
export function saveBlob(name: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => {
    URL.revokeObjectURL(link.href);
  }, 10_000);
}
