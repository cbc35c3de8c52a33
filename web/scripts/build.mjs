// Writes web/dist: three files, the same bytes from the same sources.
import { copyFile, mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const web = new URL("../", import.meta.url);
const path = (name) => fileURLToPath(new URL(name, web));

await mkdir(path("dist"), { recursive: true });
await build({
  entryPoints: { app: path("src/main.tsx") },
  outdir: path("dist"),
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome111", "firefox113", "safari16.4"],
  charset: "utf8",
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  define: { "process.env.NODE_ENV": '"production"' },
  absWorkingDir: path("."),
});
await copyFile(path("src/index.html"), path("dist/index.html"));
