// The whole loop by clicks on an emulated path: measure, see why, what if, rehearse, apply, verify, undo.
//   BDP=target/debug/bdp node web/e2e/panels-fix.mjs
// makes the path itself by 'bdp lab exec': 50 Mbit/s, 40 ms, and hosts whose receive buffers are too small. With HOST it
// runs where it is, against a 'bdp serve' there whose token is in BDP_TOKEN; with TUNE_TOKEN, the far end is changed and
// put back, too. DIST is a folder of page files to use in place of those in the binary. Screenshots go to target/page/.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bdp, end, launch, newContext, openPage, pictures, place, shoot, step, WAIT } from "./lib.mjs";

const script = fileURLToPath(import.meta.url);

if (!process.env.HOST) {
  // The route's congestion control, as the kernel's default may be one that hides what a window does.
  const path = join(place, "path.toml");
  writeFileSync(
    path,
    `title = "A receive buffer of 128 KiB, 40 ms away"
[hosts.near]
receive_buffer = "128K"
[hosts.far]
receive_buffer = "128K"
[[link]]
between = ["near", "far"]
rate = "50M"
delay = "20ms"
limit = 200
`,
  );
  const [token, tune] = ["0123456789abcdef01234567", "76543210fedcba9876543210"];
  const cubic = (other) => `ip route replace $BDP_ADDRESS_${other} dev link0 congctl cubic`;
  const serve = `exec ${bdp} serve --token ${token} --allow-tune --tune-token ${tune} --journal ${join(place, "far")}`;
  const near = `${cubic("far")}; exec ${process.execPath} ${script}`;
  const words = ["lab", "exec", path, "--store", "none", "--serve", `far=${cubic("near")}; ${serve}`, "--host", "near", "--", "sh", "-c", near];
  const env = { ...process.env, BDP: bdp, HOST: "far", BDP_TOKEN: token, TUNE_TOKEN: tune };
  const done = spawnSync(bdp, words, { stdio: "inherit", env });
  rmSync(place, { recursive: true, force: true });
  process.exit(done.status ?? 1);
}

const host = process.env.HOST;
/** A rehearsal boots a guest for each variant. */
const LONG = 180_000;

/** The first rate in a text, Mbit/s. */
function mbits(text) {
  const [, value, unit] = /([\d.]+) ([kMG])bit\/s/.exec(text) ?? assert.fail(`no rate in '${text}'`);
  return Number(value) * { k: 1e-3, M: 1, G: 1e3 }[unit];
}

const setting = "net.ipv4.tcp_rmem";
const ofKernel = () => readFileSync("/proc/sys/net/ipv4/tcp_rmem", "utf8").trim().split(/\s+/).join(" ");
const before = ofKernel();
process.env.BDP_TUNE_JOURNAL = join(place, "journal");
const server = await openPage(join(place, "runs.sqlite"));
const link = server.found[0];
const browser = await launch("--disable-dev-shm-usage");
const context = await newContext(browser);
const page = await context.newPage();
const complaints = [];
page.on("pageerror", (error) => complaints.push(error.message));
const button = (name) => page.getByRole("button", { name, exact: true });
const figure = (name) => page.locator(".now div", { hasText: new RegExp(`^${name}`) }).locator("dd");
const stepOf = (name) => page.locator(".steps > li", { has: page.getByRole("heading", { name, exact: true }) });
let failed = false;

try {
  await step("measure about 15 Mbit/s, and see why", async () => {
    await page.goto(link);
    await page.fill("#host", host);
    await page.fill("#time", "3");
    await page.selectOption("#direction", "from");
    // A machine that is busy with something else is a path of its own.
    for (let tries = 1; ; tries += 1) {
      await button("Start").click();
      await page.locator(".progress", { hasText: "left" }).waitFor({ timeout: WAIT });
      await page.locator(".progress", { hasText: "done" }).waitFor({ timeout: WAIT });
      const verdict = await page.locator(".verdict").first().innerText();
      const goodput = mbits(verdict);
      if (goodput > 12 && goodput < 18 && verdict.includes("receive window")) break;
      assert.ok(tries < 4, verdict);
    }
    await shoot(page, "loop-1-why");
  });

  await step("what if the window were larger: by the model at once", async () => {
    await page.locator(".verdict").first().getByRole("link", { name: "What if" }).click();
    const model = figure("by the model");
    await model.filter({ hasText: "bit/s" }).waitFor({ timeout: WAIT });
    const now = mbits(await model.innerText());
    assert.ok(now < 20, `the model says ${now} Mbit/s of the path as measured`);
    const took = [];
    page.on("requestfinished", (request) => {
      if (request.url().endsWith("/api/what-if")) took.push(request.timing().responseEnd);
    });
    await page.locator("#what-window_bytes").fill("512K");
    await page.locator("#what-rate_bps").fill("50M");
    await page.waitForFunction(() => {
      const all = [...document.querySelectorAll(".now div")].find((one) => one.textContent.startsWith("by the model"));
      return Number.parseFloat(all.querySelector("dd").textContent) > 40;
    }, undefined, { timeout: WAIT });
    console.log(`     answers of the model after ${took.map((ms) => ms.toFixed(0)).join(", ")} ms`);
    await page.locator("#what-loss").fill("much");
    await page.locator("#what-loss-error").waitFor({ timeout: WAIT });
    await page.locator("#what-loss").fill("0");
    await shoot(page, "loop-2-what-if");
  });

  await step("and in the lab", async () => {
    await button("Try it in the lab").click();
    const reached = figure("in the lab");
    await reached.filter({ hasText: "bit/s" }).waitFor({ timeout: LONG });
    const text = await reached.innerText();
    console.log(`     ${text} in the lab`);
    assert.ok(mbits(text) > 40, text);
    await shoot(page, "loop-3-lab");
  });

  await step("fix: the plan of the stored run stands there before anything is measured", async () => {
    await page.goBack();
    await page.locator(".verdict").first().getByRole("link", { name: "Fix" }).click();
    await stepOf("Plan").getByRole("cell", { name: setting }).waitFor({ timeout: WAIT });
    assert.equal(await page.locator("#fix-host").inputValue(), host);
    assert.equal(await page.locator("#fix-direction").inputValue(), "from");
    await shoot(page, "loop-4-plan");
  });

  await step("measure again, plan and rehearse", async () => {
    await button("Measure and plan").click();
    await button("Apply…").waitFor({ timeout: LONG });
    const predicted = await stepOf("Rehearse").innerText();
    assert.ok(predicted.includes("->"), predicted);
    assert.ok(mbits(/-> (.*)/.exec(predicted)[1]) >= 40, predicted);
    assert.equal(ofKernel(), before, "nothing changes before it is confirmed");
    await shoot(page, "loop-5-rehearsed");
  });

  await step("the dialog names every setting; Not now and Escape change nothing", async () => {
    await button("Apply…").click();
    const text = await page.locator("dialog").innerText();
    for (const part of [setting, before, "10 min"]) assert.ok(text.includes(part), `'${part}' is not in: ${text}`);
    await shoot(page, "loop-6-confirm");
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached", timeout: WAIT });
    await button("Apply…").click();
    await button("Not now").click();
    await page.locator("dialog").waitFor({ state: "detached", timeout: WAIT });
    assert.equal(ofKernel(), before);
  });

  await step("a reload finds the question again; apply, and verify at least 40 Mbit/s", async () => {
    await page.reload();
    await button("Apply…").click();
    await button("Apply").click();
    await button("Keep").first().waitFor({ timeout: LONG });
    assert.notEqual(ofKernel(), before);
    const text = await stepOf("Verify").innerText();
    console.log(`     ${text.split("\n").find((line) => /HELD|EXCEEDED|MISSED|measured/.test(line))}`);
    assert.ok(mbits(/-> (.*)/.exec(text)[1]) >= 40, text);
    await page.getByLabel("Undo on this host").waitFor({ timeout: WAIT });
    await shoot(page, "loop-7-verified");
    await stepOf("Keep or put back").getByRole("button", { name: "Keep" }).click();
    await page.locator(".loop > .said", { hasText: "kept until the next boot" }).waitFor({ timeout: WAIT });
    await shoot(page, "loop-8-kept");
  });

  await step("undo by one click, after the browser was closed", async () => {
    await context.close();
    const again = await newContext(browser);
    const tab = await again.newPage();
    await tab.goto(link);
    await tab.getByRole("link", { name: "Fix", exact: true }).click();
    await tab.getByLabel("Undo on this host").click();
    await tab.getByText("reverted: 1 setting as before").waitFor({ timeout: WAIT });
    await tab.getByText("this host's changes were reverted since").waitFor({ timeout: WAIT });
    assert.equal(ofKernel(), before);
    await shoot(tab, "loop-9-undone");
    await again.close();
  });

  if (process.env.TUNE_TOKEN) {
    await step("the far end: its token is in no command, and 'Put back' restores it", async () => {
      const tab = await (await newContext(browser)).newPage();
      tab.on("pageerror", (error) => complaints.push(error.message));
      const press = (name) => tab.getByRole("button", { name, exact: true }).click({ timeout: LONG });
      await tab.goto(link);
      await tab.getByRole("link", { name: "Fix", exact: true }).click();
      await tab.locator(".loop > .said").waitFor({ timeout: WAIT });
      await tab.fill("#fix-host", host);
      await tab.selectOption("#fix-direction", "to");
      await tab.fill("#fix-time", "3");
      await tab.fill("#fix-tune_token", process.env.TUNE_TOKEN);
      await press("Measure and plan");
      await press("Apply…");
      await tab.locator("dialog td, dialog th").filter({ hasText: host }).first().waitFor({ timeout: WAIT });
      await press("Apply");
      const verified = tab.locator(".loop > .said", { hasText: "bit/s" });
      await verified.waitFor({ timeout: LONG });
      assert.ok(mbits(/-> (.*)/.exec(await verified.innerText())[1]) >= 40, await verified.innerText());
      await press("Put back");
      await tab.locator(".loop > .said", { hasText: "reverted: 1 setting as before" }).waitFor({ timeout: WAIT });
      const jobs = await (await fetch(new URL("/api/jobs", link), { headers: { Authorization: `Bearer ${link.split("=")[1]}` } })).text();
      const shown = await tab.evaluate(() => document.body.innerText + JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
      assert.ok(jobs.includes("--direction to") && !(jobs + shown).includes(process.env.TUNE_TOKEN), "the tune token is shown nowhere");
      await shoot(tab, "loop-10-far");
    });
  }

  assert.deepEqual(complaints, []);
} catch (error) {
  failed = true;
  console.error(error);
  await page.screenshot({ path: join(pictures, "loop-failed.png"), fullPage: true }).catch(() => undefined);
} finally {
  await browser.close();
  end(server.child);
  rmSync(place, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
