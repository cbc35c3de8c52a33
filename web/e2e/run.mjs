// Runs all tests in a browser, one after the other: page.mjs, those of the panels, then
// the visitor's page. Names limit it to these files.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL(".", import.meta.url));
const panels = readdirSync(folder).filter((name) => /^panels-.*\.mjs$/.test(name)).sort();
const all = ["page.mjs", ...panels, "visitor.mjs"];
const wanted = process.argv.slice(2);
let failed = false;
for (const name of all.filter((one) => wanted.length === 0 || wanted.includes(one))) {
  console.log(`== ${name}`);
  failed = spawnSync(process.execPath, [folder + name], { stdio: "inherit" }).status !== 0 || failed;
}
process.exit(failed ? 1 : 0);
