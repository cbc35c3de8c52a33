// The panels Sweep and Compare in a real browser.
//   BDP=target/debug/bdp npm --prefix web run e2e panels-sweep.mjs
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { bdp, drive, shoot, step, WAIT } from "./lib.mjs";

await drive(async ({ page, store, host, link, base }) => {
  const shown = (text) => page.getByText(text, { exact: false }).first().waitFor({ timeout: WAIT });
  const command = () => page.locator(".form .command code").innerText();
  const save = async (name) => {
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).first().click()]);
    return readFileSync(await file.path());
  };

  await step("an empty panel says what a sweep is, and the command follows the form", async () => {
    await page.goto(link);
    await shown("No runs yet");
    await page.getByRole("link", { name: "Sweep" }).click();
    await shown("No sweep yet");
    await shoot(page, "sweep-empty");
    await page.fill("#sweep-host", host);
    await page.fill("#sweep-values", "64Q");
    await page.locator("#sweep-values-error").waitFor({ timeout: WAIT });
    assert.match(await page.locator("#sweep-values-error").innerText(), /64Q/);
    await page.selectOption("#sweep-parameter", "streams");
    await page.fill("#sweep-values", "1,2,3");
    await page.fill("#sweep-time", "1s");
    await page.locator(".error").first().waitFor({ state: "detached", timeout: WAIT });
    assert.equal(await command(), `bdp sweep ${host} -P 1,2,3 --forward -t 1s`);
    await page.selectOption("#sweep-place", "scenario");
    await page.fill("#sweep-scenario", `${"a-very-long-name-".repeat(8)}toml`);
    await shown("a-very-long-name");
    await page.locator(".form .error").first().waitFor({ timeout: WAIT });
    await shoot(page, "sweep-error");
    assert.ok((await page.locator("#sweep-list option").count()) > 20, "the shipped scenarios are listed");
    await page.selectOption("#sweep-place", "host");
  });

  await step("points come one by one, survive a reload, and Escape stops", async () => {
    await page.fill("#sweep-values", "1..16");
    await page.press("#sweep-host", "Enter");
    await page.locator(".progress", { hasText: /[1-9] of \d+ points/ }).waitFor({ timeout: WAIT });
    await page.locator(".xy circle").first().waitFor({ timeout: WAIT });
    await shoot(page, "sweep-running");
    await page.reload();
    await page.locator(".xy circle").first().waitFor({ timeout: WAIT });
    assert.equal(await page.inputValue("#sweep-host"), host);
    await page.locator("h1").click();
    await page.keyboard.press("Escape");
    await page.locator(".progress", { hasText: "cancelled" }).waitFor({ timeout: WAIT });
    await shown("Stopped");
  });

  let sweep = "";
  await step("a sweep ends with its knee, curve, table and next commands", async () => {
    await page.selectOption("#sweep-parameter", "streams");
    await page.fill("#sweep-values", "1,2");
    await page.fill("#sweep-time", "1s");
    await page.getByRole("button", { name: "Start" }).dblclick();
    await page.locator(".found").first().waitFor({ timeout: WAIT });
    assert.match(await page.locator(".found").first().innerText(), /knee\s+unknown: too few points/);
    assert.equal(await page.locator(".results tbody tr").count(), 2);
    await page.getByRole("button", { name: "Show the command" }).first().click();
    assert.match(String(await save("as SVG")), /^<svg [^]*<\/svg>\s*$/);
    assert.equal((await save("as PNG")).subarray(1, 4).toString(), "PNG");
    sweep = /bdp report (\w+)/.exec(await page.locator(".results").innerText())[1];
    await shoot(page, "sweep");
    await page.goto(`${base}#/run/${sweep}`);
    await page.locator(".found").first().waitFor({ timeout: WAIT });
    await shoot(page, "sweep-stored");
  });

  await step("a host that does not answer", async () => {
    await page.goto(`${base}#/sweep`);
    await page.fill("#sweep-host", "127.0.0.1:9");
    await page.getByRole("button", { name: "Start" }).click();
    await page.locator(".results .error").first().waitFor({ timeout: WAIT });
    await shoot(page, "sweep-refused");
  });

  await step("two runs: too few, and the command that makes enough", async () => {
    const measure = (label, runs, window) =>
      execFileSync(bdp, ["measure", host, "-t", "1", "-w", window, "--runs", runs, "--idle", "0.2s", "--no-experiments", "-T", label, "--store", store], { stdio: "ignore" });
    measure("before", "1", "16K");
    measure("after", "1", "1M");
    await page.getByRole("link", { name: "Compare" }).click();
    await shown("Choose run A");
    await shoot(page, "compare-empty");
    await page.getByPlaceholder("host, label").fill("before");
    await page.locator(".picker tbody tr").nth(1).waitFor({ state: "detached", timeout: WAIT });
    await page.getByRole("radio", { name: "as A" }).first().check();
    await page.getByPlaceholder("host, label").fill("");
    await page.locator(".picker tbody tr", { hasText: "after" }).first().waitFor({ timeout: WAIT });
    await page.locator(".picker tbody tr", { hasText: "after" }).first().getByRole("radio", { name: "as B" }).check();
    await page.locator("#compared", { hasText: "too few runs" }).waitFor({ timeout: WAIT });
    await page.locator(".plot").first().waitFor({ timeout: WAIT });
    await shown("--runs 6");
    assert.match(page.url(), /#\/compare\/\w+\/\w+$/);
    await shoot(page, "compare-few");
    await page.reload();
    await page.locator("#compared", { hasText: "too few runs" }).waitFor({ timeout: WAIT });
  });

  await step("two groups of runs, overlaid, with intervals", async () => {
    const ids = ["before", "after"].map((label, index) => {
      const name = `${label}-six`;
      execFileSync(bdp, ["measure", host, "--forward", "-t", "0.5", "-w", index === 0 ? "16K" : "1M", "--runs", "6", "--idle", "0.2s", "--no-experiments", "-T", name, "--store", store], { stdio: "ignore" });
      return JSON.parse(execFileSync(bdp, ["show", name, "--json", "--store", store], { maxBuffer: 1 << 28 })).run;
    });
    await page.goto(`${base}#/compare/${ids.join("/")}`);
    await page.locator("#compared").waitFor({ timeout: WAIT });
    await page.locator(".plot").first().waitFor({ timeout: WAIT });
    assert.match(await page.locator("figcaption").first().innerText(), /6 of A, 6 of B/);
    assert.match(await page.getByRole("region", { name: "Figures" }).innerText(), /6\/6\s+[+-][\d.]+ % \(/);
    await shoot(page, "compare");
  });

  await step("two settings within a sweep, and runs that can't be compared", async () => {
    await page.goto(`${base}#/compare/${sweep}`);
    await page.fill("#compare-by", "streams=1,2");
    await page.locator("#compared").waitFor({ timeout: WAIT });
    assert.match(await page.locator(".panel .command code").first().innerText(), /^bdp compare \w+ --by streams=1,2/);
    await page.fill("#compare-by", "");
    await page.goto(`${base}#/compare/${sweep}/nothing`);
    await page.locator(".error", { hasText: "nothing" }).waitFor({ timeout: WAIT });
    await shoot(page, "compare-error");
  });

  await step("marks of the history lead to a comparison", async () => {
    await page.getByRole("link", { name: "History" }).click();
    const rows = page.locator(".runs tbody tr");
    await rows.first().waitFor({ timeout: WAIT });
    for (const index of [0, 1]) await rows.nth(index).getByRole("checkbox").check();
    await page.getByRole("link", { name: "Compare the marked runs" }).click();
    await page.locator("#compared").waitFor({ timeout: WAIT });
  });

  await step("everything by keyboard", async () => {
    await page.goto(`${base}#/sweep`);
    await page.reload();
    await page.locator("#sweep-host").waitFor();
    const seen = new Set();
    for (let press = 0; press < 40; press += 1) {
      await page.keyboard.press("Tab");
      seen.add(await page.evaluate(() => document.activeElement?.id || document.activeElement?.textContent?.trim()));
    }
    for (const wanted of ["Compare", "sweep-place", "sweep-host", "sweep-parameter", "sweep-values", "sweep-second", "sweep-direction", "Start"]) {
      assert.ok(seen.has(wanted), `${wanted} has no place in the tab order: ${[...seen].join(", ")}`);
    }
  });
});
