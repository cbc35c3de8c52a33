// Writes web/dist, the same bytes from the same sources: app.* is the page of `bdp page`, visitor.* that of
// `bdp serve --page`.
import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const web = new URL("../", import.meta.url);
const path = (name) => fileURLToPath(new URL(name, web));

await mkdir(path("dist"), { recursive: true });
const common = {
  outdir: path("dist"),
  bundle: true,
  minify: true,
  target: ["chrome111", "firefox113", "safari16.4"],
  charset: "utf8",
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  define: { "process.env.NODE_ENV": '"production"' },
  absWorkingDir: path("."),
};
// Run and its answer first; the other panels are a file that is loaded after it.
await build({
  ...common,
  entryPoints: { app: path("src/main.tsx") },
  format: "esm",
  splitting: true,
  chunkNames: "[name]",
});
// app.css has these rules, too.
await rm(path("dist/panels.css"), { force: true });
await copyFile(path("src/index.html"), path("dist/index.html"));

await build({
  ...common,
  entryPoints: { visitor: path("src/visitor/main.tsx") },
  format: "iife",
  alias: { "@preact/signals": path("src/visitor/signals.ts") },
  jsx: "transform",
  jsxFactory: "h",
  jsxFragment: "Fragment",
  inject: [path("src/visitor/jsx.ts")],
});
await copyFile(path("src/visitor.html"), path("dist/visitor.html"));
const css = await readFile(path("dist/visitor.css"), "utf8");
const used = await Promise.all(["dist/visitor.js", "dist/visitor.html"].map((name) => readFile(path(name), "utf8")));
await writeFile(path("dist/visitor.css"), withoutUnused(css, used.join()));

/** The rules of a minified style sheet whose elements and classes a page has: both pages share one sheet. */
function withoutUnused(css, text) {
  const names = new Set(["html", "body", "page"]);
  for (const [, tag] of text.matchAll(/(?:<|\b\w\(")([a-z]+\d?)\b/g)) names.add(tag);
  // Names of classes stand near the word: `class:a?"plot low":"plot"`.
  for (const [, near] of text.matchAll(/class(?:Name)?[:=](?=(.{0,60}))/g)) {
    for (const [quoted] of near.matchAll(/"[^"]*"/g)) for (const name of quoted.match(/[\w-]+/g) ?? []) names.add(name);
  }
  const rules = rulesOf(css, (selector) =>
    (selector.replaceAll(/::?[\w-]+(\([^)]*\))?|\[[^\]]*\]/g, "").match(/[\w-]+/g) ?? []).every((name) => names.has(name)),
  );
  // Colours that neither the rules nor the script take.
  const taken = new Set([...rules.matchAll(/var\((--[\w-]+)/g)].map(([, name]) => name));
  return rules.replaceAll(/(--[\w-]+):\s*([^;}]+);?/g, (_, name, value) =>
    taken.has(name) || text.includes(name) ? `${name}:${value};` : "",
  );
}

function rulesOf(css, isUsed) {
  let out = "";
  for (let at = 0, open; (open = css.indexOf("{", at)) >= 0; ) {
    let close = open;
    for (let depth = 0; ; close += 1) {
      if (css[close] === "{") depth += 1;
      else if (css[close] === "}" && --depth === 0) break;
    }
    const head = css.slice(at, open).trim();
    const body = css.slice(open + 1, close);
    const inner = /^@(media|supports)/.test(head) ? rulesOf(body, isUsed) : body;
    const kept = head.startsWith("@") ? head : head.split(/,(?![^(]*\))/).filter(isUsed).join();
    if (kept !== "" && inner !== "") out += `${kept}{${inner}}`;
    at = close + 1;
  }
  return out;
}
