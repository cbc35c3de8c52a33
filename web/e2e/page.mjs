// The page in a real browser: a measurement by clicks, its answer, its history, and what goes wrong.
//   BDP=target/debug/bdp npm --prefix web run e2e page.mjs
// Screenshots go to target/page/.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { accessible, drive, end, launch, openPage, pictures, shoot, start, step, WAIT } from "./lib.mjs";

await drive(async (given) => {
  const { browser, context, page, store, host, link, base, port, token } = given;
  let { server } = given;
  const shown = (text) => page.getByText(text, { exact: false }).first().waitFor({ timeout: WAIT });
  const fill = async (values) => {
    for (const [id, value] of Object.entries(values)) await page.fill(`#${id}`, value);
  };

  await step("the token leaves the address, and an empty store says what to type", async () => {
    await page.goto(link);
    await shown("No runs yet");
    assert.equal(page.url(), `${base}#/run`);
    const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
    assert.ok(!stored.includes(token), "the token is kept nowhere");
    assert.deepEqual(await context.cookies(), []);
    await shoot(page, "empty");
  });

  await step("the command follows the form, and an error stands below its field", async () => {
    await fill({ host, time: "3q" });
    await page.locator("#time-error").waitFor({ timeout: WAIT });
    assert.match(await page.locator("#time-error").innerText(), /not a time/);
    await page.getByRole("button", { name: "8 streams" }).click();
    assert.match(await page.locator(".form .command code").innerText(), /-P 8$/);
    await fill({ host: `${"a-very-long-name.".repeat(8)}example`, window: "64Q" });
    await page.locator("#window-error").waitFor({ timeout: WAIT });
    await page.getByText("All options").click();
    await page.getByText("--no-experiments").waitFor({ timeout: WAIT });
    await shoot(page, "error");
    await page.getByText("All options").click();
  });

  await step("Enter starts, points come at once, Escape stops", async () => {
    await page.getByRole("button", { name: "Quick" }).click();
    await fill({ host });
    await page.evaluate(() => {
      const place = document.querySelector(".results");
      new MutationObserver(() => {
        const trip = [...document.querySelectorAll(".now div")].find((one) => one.textContent.startsWith("round trip"));
        globalThis.first ??= trip?.textContent.endsWith(" ms") ? performance.now() : undefined;
      }).observe(place, { childList: true, subtree: true, characterData: true });
      addEventListener("submit", () => (globalThis.began = performance.now()), true);
    });
    await page.press("#host", "Enter");
    await page.locator(".now div", { hasText: /round trip.* ms/ }).waitFor({ timeout: WAIT });
    const took = await page.evaluate(() => globalThis.first - globalThis.began);
    console.log(`     first point after ${took.toFixed(0)} ms`);
    // The bar is for a quiet machine: BARS=1.
    assert.ok(took <= (process.env.BARS ? 300 : 5000), `first point after ${took} ms`);
    await page.keyboard.press("Escape");
    await page.locator(".progress", { hasText: "stopped" }).waitFor({ timeout: WAIT });
  });

  let run = "";
  await step("a run survives a reload, and a second tab follows it", async () => {
    await fill({ time: "3", streams: "4" });
    await page.getByRole("button", { name: "Start" }).dblclick();
    await page.locator(".progress", { hasText: "to 127.0.0.1" }).waitFor({ timeout: WAIT });
    await page.reload();
    await page.locator(".progress", { hasText: "left" }).waitFor({ timeout: WAIT });
    const other = await context.newPage();
    await other.goto(`${base}#/run`);
    await other.locator(".progress", { hasText: "left" }).waitFor({ timeout: WAIT });
    await page.screenshot({ path: join(pictures, "running.png"), fullPage: true });
    await page.locator(".verdict").first().waitFor({ timeout: WAIT });
    await other.locator(".verdict").first().waitFor({ timeout: WAIT });
    await other.close();
    const verdict = await page.locator(".verdict").first().innerText();
    assert.match(verdict, /[0-9.]+ [MGT]bit\/s/);
    const said = await page.locator(".verdict .said").first().innerText();
    assert.ok(said.length > 20, said);
    run = /run (\w+):/.exec(await page.locator(".why").innerText())[1];
    const headers = { Authorization: `Bearer ${token}` };
    const jobs = await (await fetch(`${base}api/jobs`, { headers })).json();
    assert.equal((await fetch(`${base}api/jobs`)).status, 401);
    assert.equal(jobs.length, 2, "a double click starts one job");
    await shoot(page, "why");
  });

  await step("a lost network: the page says so, goes on after the last event", async () => {
    const asked = [];
    page.on("request", (request) => request.url().includes("/events") && asked.push(request.url()));
    await fill({ host, time: "3", streams: "1" });
    await page.getByRole("button", { name: "Start" }).click();
    await page.locator(".now div", { hasText: /round trip.* ms/ }).waitFor({ timeout: WAIT });
    await page.waitForTimeout(500);
    await context.setOffline(true);
    await page.evaluate(() => dispatchEvent(new Event("offline")));
    await shown("does not answer");
    await context.setOffline(false);
    await page.getByText("does not answer").waitFor({ state: "detached", timeout: WAIT });
    await page.locator(".verdict").first().waitFor({ timeout: WAIT });
    const after = asked.map((url) => Number(new URL(url).searchParams.get("after")));
    assert.equal(after[0], 0);
    assert.ok(after.length > 1 && after.at(-1) > 0, `the stream was resumed: ${asked.join(" ")}`);
  });

  await step("a hundred streams", async () => {
    await fill({ host, time: "2", streams: "100" });
    await page.getByRole("button", { name: "Start" }).click();
    await page.locator(".progress", { hasText: "to 127.0.0.1" }).waitFor({ timeout: WAIT });
    await page.waitForTimeout(1000);
    await page.screenshot({ path: join(pictures, "hundred-running.png"), fullPage: true });
    await page.locator(".verdict").first().waitFor({ timeout: WAIT });
    await shoot(page, "hundred");
  });

  await step("datagrams", async () => {
    await page.getByRole("button", { name: "UDP 50M" }).click();
    await fill({ host, time: "2" });
    await page.getByRole("button", { name: "Start" }).click();
    await page.locator(".progress", { hasText: "from 127.0.0.1" }).waitFor({ timeout: WAIT });
    await page.locator(".now", { hasText: "jitter" }).waitFor({ timeout: WAIT });
    await page.locator(".verdict").first().waitFor({ timeout: WAIT });
    await shoot(page, "datagrams");
  });

  await step("a host that does not answer", async () => {
    await page.getByRole("button", { name: "Default" }).click();
    await fill({ host: "127.0.0.1:9" });
    await page.getByRole("button", { name: "Start" }).click();
    await page.locator(".results .error").first().waitFor({ timeout: WAIT });
    await shoot(page, "refused");
  });

  await step("a long name that does not resolve", async () => {
    await fill({ host: `${"a-very-long-name.".repeat(8)}invalid` });
    await page.getByRole("button", { name: "Start" }).click();
    await page.locator(".results .error", { hasText: "a-very-long-name" }).waitFor({ timeout: WAIT });
    await shoot(page, "long-name");
  });

  await step("a stored run, its exports and its command", async () => {
    await page.goto(`${base}#/run/${run}`);
    await page.locator(".verdict").first().waitFor({ timeout: WAIT });
    await page.getByRole("button", { name: "Show the command of goodput" }).click();
    const save = async (click, pattern) => {
      const [file] = await Promise.all([page.waitForEvent("download"), click()]);
      assert.match(file.suggestedFilename(), pattern);
      return readFileSync(await file.path(), "utf8");
    };
    const svg = await save(() => page.getByRole("button", { name: "Save goodput as SVG" }).click(), /goodput\.svg$/);
    assert.match(svg, /^<svg [^]*<\/svg>\s*$/);
    const json = await save(() => page.getByRole("button", { name: "as JSON" }).click(), /\.json$/);
    assert.equal(JSON.parse(json).run, run);
    assert.match(await save(() => page.getByRole("button", { name: "as CSV" }).click(), /\.csv$/), /goodput/);
    assert.match(await save(() => page.getByRole("button", { name: "HTML" }).click(), /\.html$/), /<html/i);
    await page.getByText("Goodput, ", { exact: false }).last().click();
    await shoot(page, "stored");
  });

  await step("the history: search, compare, delete", async () => {
    await page.getByRole("link", { name: "History" }).click();
    const rows = page.locator(".runs tbody tr");
    await rows.first().waitFor({ timeout: WAIT });
    const before = await rows.count();
    for (const index of [0, 1]) await rows.nth(index).getByRole("checkbox").check();
    assert.match(await page.locator(".command code").innerText(), /^bdp compare \w+ \w+ --store \S+$/);
    await shoot(page, "history");
    await page.getByPlaceholder("host, label").fill("no such run");
    await shown("No run has");
    await page.getByPlaceholder("host, label").fill("");
    await rows.first().waitFor({ timeout: WAIT });
    await rows.first().getByRole("button", { name: "Delete" }).click();
    await shown("cannot be undone");
    await accessible(page, "the question before a run is deleted");
    await page.getByRole("button", { name: "Delete", exact: true }).last().click();
    await page.waitForFunction((n) => document.querySelectorAll(".runs tbody tr").length === n, before - 1, { timeout: WAIT });
  });

  await step("everything by keyboard", async () => {
    await page.goto(`${base}#/run`);
    await page.reload();
    await page.locator("#host").waitFor();
    const seen = new Set();
    for (let press = 0; press < 30; press += 1) {
      await page.keyboard.press("Tab");
      seen.add(await page.evaluate(() => document.activeElement?.id || document.activeElement?.textContent?.trim()));
    }
    for (const wanted of ["History", "Quick", "host", "direction", "time", "streams", "protocol", "Start"]) {
      assert.ok(seen.has(wanted), `${wanted} has no place in the tab order: ${[...seen].join(", ")}`);
    }
  });

  await step("a killed server, and its return with another token", async () => {
    end(server.child, "SIGKILL");
    await shown("does not answer");
    await shoot(page, "gone");
    server = await start(
      ["page", "--no-browser", "--listen", `127.0.0.1:${port}`, "--store", store],
      /(http:\/\/127\.0\.0\.1:(\d+)\/)#token=(\S+)/,
    );
    // The page may have asked by itself by now.
    await page.getByRole("button", { name: "Ask now" }).click({ timeout: 3000 }).catch(() => undefined);
    await shown("no longer valid");
    await shoot(page, "old-token");
    // In the same tab, only the address changes.
    await page.goto(`${base}#token=${token}`);
    await shown("no longer valid");
    await page.goto(server.found[0]);
    await page.getByRole("link", { name: "History" }).click();
    await page.locator(".runs tbody tr").first().waitFor({ timeout: WAIT });
  });

  await step("a run whose server ends and comes back with the same token", async () => {
    const secret = "0123456789abcdef0123456789abcdef";
    const first = await openPage(store, secret);
    const tab = await context.newPage();
    await tab.goto(first.found[0]);
    await tab.fill("#host", host);
    await tab.press("#host", "Enter");
    await tab.locator(".now div", { hasText: /round trip.* ms/ }).waitFor({ timeout: WAIT });
    end(first.child, "SIGKILL");
    await tab.getByText("does not answer").waitFor({ timeout: WAIT });
    await start(
      ["page", "--no-browser", "--listen", `127.0.0.1:${first.found[2]}`, "--store", store, "--token", secret],
      /#token=/,
    );
    await tab.getByText("does not answer").waitFor({ state: "detached", timeout: WAIT });
    // The session of the first server is no more; its link is, as its token is the same.
    await tab.goto(first.found[0]);
    await tab.getByText("Nothing is running").waitFor({ timeout: WAIT });
    await tab.close();
  });

  await step("by a host name without TLS, and not by a foreign one", async () => {
    const named = await start(
      ["page", "--no-browser", "--listen", "127.0.0.1:0", "--name", "lab.example", "--store", store],
      /(http:\/\/127\.0\.0\.1:(\d+)\/)#token=(\S+)/,
    );
    const [, , at, secret] = named.found;
    // Such an origin is not trustworthy to a browser, which leaves out much there.
    const elsewhere = await launch("--host-resolver-rules=MAP *.example 127.0.0.1");
    const tab = await elsewhere.newPage();
    await tab.goto(`http://lab.example:${at}/#token=${secret}`);
    await tab.fill("#host", host);
    await tab.press("#host", "Enter");
    await tab.locator(".now div", { hasText: /round trip.* ms/ }).waitFor({ timeout: WAIT });
    assert.equal((await tab.goto(`http://evil.example:${at}/`)).status(), 401);
    await elsewhere.close();
    end(named.child);
  });

  await step("without JavaScript", async () => {
    const plain = await browser.newContext({ javaScriptEnabled: false });
    const tab = await plain.newPage();
    await tab.goto(base);
    assert.match(await tab.locator("noscript, .banner").first().innerText(), /bdp measure HOST/);
    await tab.screenshot({ path: join(pictures, "no-script.png") });
    await plain.close();
  });

  await step("first paint", async () => {
    const times = [];
    for (let index = 0; index < 3; index += 1) {
      await page.goto("about:blank");
      await page.goto(`${base}#/run`);
      await page.waitForTimeout(300);
      times.push(
        await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN),
      );
    }
    times.sort((a, b) => a - b);
    console.log(`     first paint, median of 3: ${times[1].toFixed(0)} ms`);
  });
});
