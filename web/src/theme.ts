// Light or dark, by the reader's setting.
import { signal } from "@preact/signals";

const dark = matchMedia("(prefers-color-scheme: dark)");

export const theme = signal(dark.matches ? "dark" : "light");

dark.addEventListener("change", () => {
  theme.value = dark.matches ? "dark" : "light";
});
