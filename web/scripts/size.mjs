// Fails if the page is larger than its bar.
import { readFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";

const most = 45_000;
let sum = 0;
for (const name of ["index.html", "app.js", "app.css"]) {
  const bytes = await readFile(new URL(`../dist/${name}`, import.meta.url));
  const size = gzipSync(bytes, { level: 9 }).length;
  sum += size;
  console.log(`${name.padEnd(12)}${String(bytes.length).padStart(8)} B ${String(size).padStart(7)} B gzip`);
}
console.log(`all of it${String(sum).padStart(20)} B gzip, ${most} B at most`);
if (sum > most) process.exit(1);
