// Light or dark, by the reader's setting.
import { signal } from "@preact/signals";

const dark = typeof matchMedia === "function" ? matchMedia("(prefers-color-scheme: dark)") : null;

export const theme = signal(dark?.matches === true ? "dark" : "light");

let known = new Map<string, string>();

dark?.addEventListener("change", () => {
  known = new Map();
  theme.value = dark.matches ? "dark" : "light";
});

/** A colour of the style sheet, as it is now. */
export function colour(name: string): string {
  let found = known.get(name);
  if (found === undefined) {
    found = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    known.set(name, found);
  }
  return found;
}
