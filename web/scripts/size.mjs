// Fails if a page is larger than its bar.
import { readFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";

const pages = [
  { most: 45_000, files: ["index.html", "app.js", "chunk.js", "app.css"] },
  // Loaded after it.
  { most: 40_000, files: ["panels.js"] },
  { most: 24_000, files: ["visitor.html", "visitor.js", "visitor.css"] },
];
for (const { most, files } of pages) {
  let sum = 0;
  for (const name of files) {
    const bytes = await readFile(new URL(`../dist/${name}`, import.meta.url));
    const size = gzipSync(bytes, { level: 9 }).length;
    sum += size;
    console.log(`${name.padEnd(13)}${String(bytes.length).padStart(7)} B ${String(size).padStart(7)} B gzip`);
  }
  console.log(`all of it${String(sum).padStart(20)} B gzip, ${most} B at most`);
  if (sum > most) process.exitCode = 1;
}
