// Runs all tests in a browser: page.mjs, those of the panels, and the visitor's page. Names limit it to these files.
// Two files at a time, as each mostly waits for a measurement to end; LANES=1 runs one after the other.
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL(".", import.meta.url));
// The longest first.
const all = ["panels-fix.mjs", "page.mjs"];
all.push(...readdirSync(folder).filter((name) => /^panels-.*\.mjs$/.test(name) && !all.includes(name)).sort(), "visitor.mjs");
const wanted = process.argv.slice(2);
const left = all.filter((one) => wanted.length === 0 || wanted.includes(one));
let failed = wanted.some((name) => !all.includes(name));

/** Runs a file, and prints what it printed once it has ended. */
const run = (name) =>
  new Promise((done) => {
    const began = performance.now();
    let text = "";
    const child = spawn(process.execPath, [folder + name], { stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (part) => (text += part));
    child.on("close", (code) => {
      failed ||= code !== 0;
      console.log(`== ${name}, ${((performance.now() - began) / 1000).toFixed(0)} s${code === 0 ? "" : ", FAILED"}\n${text}`);
      done();
    });
  });

async function lane() {
  for (let name = left.shift(); name; name = left.shift()) await run(name);
}
await Promise.all(Array.from({ length: Number(process.env.LANES ?? 2) }, lane));
process.exit(failed ? 1 : 0);
