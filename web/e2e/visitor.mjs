// The visitor's page in a real browser: from Start to the result, its link, and what goes wrong.
//   BDP=target/debug/bdp npm --prefix web run e2e:visitor
// VISIT=http://HOST:PORT tests a server that runs already, as far as that is possible. Pictures go to target/page/.
import assert from "node:assert/strict";
import { join } from "node:path";
import { end, endAll, launch, pictures, shoot, start, step } from "./visitor-lib.mjs";

const WAIT = 40_000;
const ADDRESS = /listening on \S*?:(\d+)/;
const serve = async (...words) => {
  const server = await start(["serve", "--page", "--open", "--listen", "127.0.0.1:0", ...words], ADDRESS);
  return { ...server, base: `http://127.0.0.1:${server.found[1]}` };
};

let failed = false;
const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
const page = await context.newPage();
const complaints = [];
const listen = (one) => {
  one.on("pageerror", (error) => complaints.push(error.message));
  one.on("console", (message) => {
    // Refusals, aborted transfers and a killed server are part of the test.
    if (message.type() === "error" && !/Failed to load resource|ERR_|WebSocket/.test(message.text())) complaints.push(message.text());
  });
};
listen(page);
const button = (name, of = page) => of.getByRole("button", { name, exact: true });
const verdict = (of = page) => of.locator(".verdict").first().waitFor({ timeout: WAIT });
const error = (of = page) => of.locator("main .error").first();

try {
  const own = process.env.VISIT ? null : await serve();
  const base = process.env.VISIT?.replace(/\/$/, "") ?? own.base;

  await step("the page needs nothing but Start", async () => {
    const response = await page.goto(base);
    assert.equal(response.status(), 200);
    await page.getByText("bdp measure").waitFor({ timeout: WAIT });
    assert.equal(await page.getByRole("textbox").count(), 1, "only the command, which is read-only");
    assert.deepEqual(await context.cookies(), []);
    await shoot(page, "visitor-start");
  });

  await step("the keyboard starts, and Escape stops", async () => {
    for (let press = 0; press < 10; press += 1) {
      await page.keyboard.press("Tab");
      if ((await page.evaluate(() => document.activeElement?.textContent)) === "Start") break;
    }
    await page.keyboard.press("Enter");
    await button("Stop").waitFor({ timeout: WAIT });
    await page.keyboard.press("Escape");
    await button("Start").waitFor({ timeout: WAIT });
  });

  let key = "";
  await step("from Start to the result, with one session for a double click", async () => {
    const asked = [];
    page.on("request", (request) => asked.push(`${request.method()} ${new URL(request.url()).pathname}`));
    await page.evaluate(() => {
      addEventListener("click", () => (globalThis.began ??= performance.now()), true);
      new MutationObserver(() => {
        const trip = [...document.querySelectorAll(".now div")].find((one) => one.textContent.startsWith("round trip"));
        if (/ (ms|µs)$/.test(trip?.textContent ?? "")) globalThis.first ??= performance.now();
      }).observe(document.body, { childList: true, subtree: true, characterData: true });
    });
    await button("Start").dblclick();
    await page.getByRole("heading", { name: "Download" }).waitFor({ timeout: WAIT });
    const took = await page.evaluate(() => globalThis.first - globalThis.began);
    console.log(`     first live point after ${took.toFixed(0)} ms`);
    // The bar is for a quiet machine: BARS=1.
    assert.ok(took <= (process.env.BARS ? 300 : 5000), `first live point after ${took} ms`);
    await page.getByRole("heading", { name: "Upload" }).waitFor({ timeout: WAIT });
    await page.waitForTimeout(2500);
    await shoot(page, "visitor-running");
    await verdict();
    assert.equal(asked.filter((one) => one === "POST /api/visit").length, 1);
    assert.equal(asked.filter((one) => one.endsWith("/down")).length, 4, "four downloads");
    const text = await page.locator("main").innerText();
    assert.match(text, /↓ down\s+[0-9.]+ [kMGT]bit\/s/);
    assert.match(text, /↑ up\s+[0-9.]+ [kMGT]bit\/s/);
    assert.match(text, /bdp measure 127\.0\.0\.1:\d+/);
    assert.match(text, /clock has steps of/);
    for (const said of await page.locator(".said").allInnerTexts()) assert.ok(said.length > 10, said);
    key = new URL(page.url()).pathname;
    assert.match(key, /^\/r\/[\w-]{8,}$/);
    await shoot(page, "visitor-result");
  });

  await step("both counts agree, and the document says what each is", async () => {
    const document = await (await fetch(`${base}/api/visit/results${key.slice(2)}`, { headers: { "sec-fetch-site": "same-origin" } })).json();
    assert.equal(document.schema, "bdp.visit/1");
    for (const one of document.directions) {
      const ratio = one.browser_goodput_bps / one.goodput_bps;
      console.log(`     ${one.direction} ${(one.goodput_bps / 1e6).toFixed(0)} Mbit/s, the browser's count is ${ratio.toFixed(3)} of it`);
      assert.ok(ratio > 0.8 && ratio < 1.25, `${one.direction}: the browser counted ${ratio} of the server's bytes`);
    }
  });

  await step("the link shows the result in another browser, and after a reload", async () => {
    const other = await browser.newContext();
    const tab = await other.newPage();
    listen(tab);
    const shown = await page.locator(".big").allInnerTexts();
    await tab.goto(base + key);
    await verdict(tab);
    assert.deepEqual(await tab.locator(".big").allInnerTexts(), shown);
    await shoot(tab, "visitor-shared");
    await button("Test the path from here", tab).waitFor();
    await other.close();
    await page.reload();
    await verdict();
    assert.deepEqual(await page.locator(".big").allInnerTexts(), shown);
    await page.goBack();
    await button("Start").waitFor({ timeout: WAIT });
  });

  await step("a link to nothing says so", async () => {
    await page.goto(`${base}/r/nosuchresult`);
    await error().waitFor({ timeout: WAIT });
    await shoot(page, "visitor-no-result");
  });

  await step("a second tab waits for the first", async () => {
    await page.goto(base);
    await button("Start").click();
    await page.getByRole("heading", { name: "Download" }).waitFor({ timeout: WAIT });
    const second = await context.newPage();
    await second.goto(base);
    await button("Start", second).click();
    await second.getByText("another tab", { exact: false }).waitFor({ timeout: WAIT });
    await second.close();
    await button("Stop").click();
    await page.getByRole("heading", { name: "Stopped" }).waitFor({ timeout: WAIT });
    await button("Start again").click();
    await button("Stop").click();
  });

  if (own) {
    await step("a server without a place says why", async () => {
      const small = await serve("--max-sessions", "1");
      const first = await browser.newContext();
      const holder = await first.newPage();
      await holder.goto(small.base);
      await button("Start", holder).click();
      await holder.getByRole("heading", { name: "Download" }).waitFor({ timeout: WAIT });
      await page.goto(small.base);
      await button("Start").click();
      await page.getByRole("heading", { name: "Busy" }).waitFor({ timeout: WAIT });
      assert.ok((await error().innerText()).length > 20);
      await shoot(page, "visitor-busy");
      await first.close();
      end(small);
    });
  }

  await step("a lost network ends the test, and says so", async () => {
    await page.goto(base);
    await button("Start").click();
    await page.getByRole("heading", { name: "Download" }).waitFor({ timeout: WAIT });
    await page.waitForTimeout(1500);
    await context.setOffline(true);
    await page.evaluate(() => dispatchEvent(new Event("offline")));
    await page.getByRole("heading", { name: "No connection" }).waitFor({ timeout: WAIT });
    await page.getByText("What was measured until then").waitFor();
    await shoot(page, "visitor-lost");
    await button("Start again").click();
    await error().waitFor({ timeout: WAIT });
    await context.setOffline(false);
    await button("Start again").click();
    await page.getByRole("heading", { name: "Download" }).waitFor({ timeout: WAIT });
    await button("Stop").click();
    await page.getByRole("heading", { name: "Stopped" }).waitFor({ timeout: WAIT });
  });

  await step("an old browser measures what it can, and says what is missing", async () => {
    const old = await browser.newContext();
    const tab = await old.newPage();
    listen(tab);
    await tab.addInitScript(() => {
      delete globalThis.WebSocket;
      const { getReader } = ReadableStream.prototype;
      ReadableStream.prototype.getReader = function (options) {
        if (options?.mode === "byob") throw new TypeError("no such mode");
        return getReader.call(this);
      };
    });
    // On a server of its own: the visits before may still hold the places of this address.
    const server = own ? await serve() : null;
    await tab.goto(server?.base ?? base);
    await button("Start", tab).click();
    await verdict(tab);
    const text = await tab.locator("main").innerText();
    assert.match(text, /no WebSocket/);
    assert.match(text, /no BYOB reader/);
    await tab.screenshot({ path: join(pictures, "visitor-old.png"), fullPage: true });
    await old.close();
  });

  if (own) {
    await step("a killed server ends the test, and says so", async () => {
      await page.goto(base);
      await button("Start").click();
      await page.getByRole("heading", { name: "Download" }).waitFor({ timeout: WAIT });
      await page.waitForTimeout(1000);
      end(own);
      await page.getByRole("heading", { name: "No connection" }).waitFor({ timeout: WAIT });
      await page.screenshot({ path: join(pictures, "visitor-killed.png"), fullPage: true });
    });
  }

  await step("without JavaScript the page has the command", async () => {
    const plain = await browser.newContext({ javaScriptEnabled: false });
    const tab = await plain.newPage();
    const server = own ? await serve() : null;
    await tab.goto(server?.base ?? base);
    assert.match(await tab.locator("body").innerText(), /needs JavaScript[^]*bdp measure/);
    await tab.screenshot({ path: join(pictures, "visitor-no-script.png") });
    await plain.close();
  });
  assert.deepEqual(complaints, []);
} catch (problem) {
  failed = true;
  console.error(problem);
  await page.screenshot({ path: join(pictures, "visitor-failed.png"), fullPage: true }).catch(() => undefined);
} finally {
  await browser.close();
  endAll();
}
process.exit(failed ? 1 : 0);
