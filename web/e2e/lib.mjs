// Helpers of the tests in a browser.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../../", import.meta.url));
export const bdp = resolve(process.env.BDP ?? join(root, "target/debug/bdp"));
export const pictures = join(root, "target/page");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const STANDARDS = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"];
const WIDTHS = [1280, 768, 360];
/** Each width and each colour scheme once, as pictures and axe take most of the time; all of both with PICTURES=all. */
const SCHEMES = process.env.PICTURES === "all" ? () => ["light", "dark"] : (width) => [width === 360 ? "dark" : "light"];
export const WAIT = 30_000;

/** A folder of this test's own. */
export const place = mkdtempSync(join(tmpdir(), "bdp-page-"));
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

export const openPage = (store, token) =>
  start(
    ["page", "--no-browser", "--listen", "127.0.0.1:0", "--store", store, ...(token ? ["--token", token] : [])],
    /(http:\/\/127\.0\.0\.1:(\d+)\/)#token=(\S+)/,
  );

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

export async function shoot(page, name) {
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    for (const colorScheme of SCHEMES(width)) {
      await page.emulateMedia({ colorScheme });
      await page.waitForTimeout(80);
      await page.screenshot({ path: join(pictures, `${name}-${width}-${colorScheme}.png`), fullPage: true });
      if (width !== 768) await accessible(page, `${name} at ${width} px, ${colorScheme}`);
    }
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 0, `${name} at ${width} px is ${wide} px too wide`);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.emulateMedia({ colorScheme: "light" });
}

/** A browser of Debian's, with more arguments. */
export const launch = (...args) =>
  chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", ...args] });

/** A context that takes the page's files from the folder DIST, if given, in place of those in the binary. */
export async function newContext(browser) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  if (process.env.DIST) {
    await context.route(/\/((app|chunk|panels)\.(js|css))?$/, (route) =>
      route.fulfill({ path: join(process.env.DIST, new URL(route.request().url()).pathname.slice(1) || "index.html") }),
    );
  }
  return context;
}

/** Ends a child without an error. */
export function end(child, signal) {
  child.removeAllListeners("exit");
  child.kill(signal);
}

/** Runs the steps with a page of a store of its own and a server to measure to; a picture shows where they failed. */
export async function drive(run) {
  let failed = false;
  const browser = await launch();
  const context = await newContext(browser);
  const page = await context.newPage();
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    // Refusals and a killed server are part of the tests.
    if (message.type() === "error" && !/Failed to load resource|ERR_|EventSource/.test(message.text())) complaints.push(message.text());
  });
  try {
    const store = join(place, "runs.sqlite");
    const serve = await start(["serve", "--listen", "127.0.0.1:0"], /listening on \S*?:(\d+)/);
    const host = `127.0.0.1:${serve.found[1]}`;
    const server = await openPage(store);
    const [link, base, port, token] = server.found;
    await run({ browser, context, page, store, host, server, link, base, port, token });
    assert.deepEqual(complaints, []);
  } catch (error) {
    failed = true;
    console.error(error);
    const name = basename(process.argv[1], ".mjs");
    await page.screenshot({ path: join(pictures, `${name}-failed.png`), fullPage: true }).catch(() => undefined);
  } finally {
    await browser.close();
    for (const child of children) end(child);
    rmSync(place, { recursive: true, force: true });
  }
  process.exit(failed ? 1 : 0);
}
