// What tests of the visitor's page need: a server, a browser, pictures and accessibility checks.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../../", import.meta.url));
const bdp = resolve(process.env.BDP ?? join(root, "target/debug/bdp"));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const STANDARDS = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"];
const WIDTHS = [1280, 768, 360];
export const pictures = join(root, "target/page");
mkdirSync(pictures, { recursive: true });
const children = new Set();

/** Starts bdp, and resolves with the first match in what it prints. */
export function start(words, pattern) {
  const child = spawn(bdp, words, { stdio: ["ignore", "pipe", "pipe"] });
  children.add(child);
  return new Promise((done, fail) => {
    let text = "";
    const read = (chunk) => {
      text += chunk;
      const found = pattern.exec(text);
      if (found) done({ child, found });
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.on("error", fail);
    child.on("exit", (code) => fail(new Error(`bdp ${words.join(" ")} ended with ${code}: ${text}`)));
  });
}

/** Ends a server at once. */
export function end({ child }) {
  child.removeAllListeners("exit");
  child.kill("SIGKILL");
}

export function endAll() {
  for (const child of children) end({ child });
}

export const launch = () =>
  chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });

export async function step(name, run) {
  const began = performance.now();
  await run();
  console.log(`ok   ${name} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
}

export async function accessible(page, name) {
  // Through the debugger: the page's policy allows no script of others.
  await page.evaluate(axe);
  const found = await page.evaluate((tags) => globalThis.axe.run(document, { runOnly: tags }), STANDARDS);
  const lines = found.violations.map(
    (one) => `${one.id}: ${one.help}; ${one.nodes.map((node) => `${node.target.join(" ")} (${node.failureSummary})`).join("; ")}`,
  );
  assert.deepEqual(lines, [], `accessibility of ${name}`);
}

/** Pictures at three widths in both themes, each checked. */
export async function shoot(page, name) {
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      await page.waitForTimeout(80);
      await page.screenshot({ path: join(pictures, `${name}-${width}-${colorScheme}.png`), fullPage: true });
      await accessible(page, `${name} at ${width} px, ${colorScheme}`);
    }
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 0, `${name} at ${width} px is ${wide} px too wide`);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.emulateMedia({ colorScheme: "light" });
}
