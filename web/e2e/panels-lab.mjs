// The panels Lab and Captures in a real browser, with a scenario that runs and captures of all sorts.
//   BDP=target/debug/bdp node web/e2e/panels-lab.mjs
// Screenshots go to target/page/.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { bdp, drive, pictures, place, shoot as shootPage, step, WAIT } from "./lib.mjs";

/** For the slowest scenario on a busy machine. */
const LAB = 180_000;

/** Packets without a link layer as a pcap file. */
function pcap(packets) {
  const header = Buffer.alloc(24);
  for (const [value, at] of [[0xa1b2c3d4, 0], [65535, 16], [101, 20]]) header.writeUInt32LE(value, at);
  header.writeUInt16LE(2, 4);
  header.writeUInt16LE(4, 6);
  const records = packets.map(({ ms, bytes }) => {
    const record = Buffer.alloc(16);
    record.writeUInt32LE(1_700_000_000 + Math.floor(ms / 1000), 0);
    record.writeUInt32LE(Math.floor((ms % 1000) * 1000), 4);
    record.writeUInt32LE(bytes.length, 8);
    record.writeUInt32LE(bytes.length, 12);
    return Buffer.concat([record, bytes]);
  });
  return Buffer.concat([header, ...records]);
}

function ip(protocol, from, to, rest) {
  const header = Buffer.alloc(20);
  header[0] = 0x45;
  header.writeUInt16BE(20 + rest.length, 2);
  header[8] = 64;
  header[9] = protocol;
  header.writeUInt32BE(from, 12);
  header.writeUInt32BE(to, 16);
  return Buffer.concat([header, rest]);
}

function syn(port) {
  const segment = Buffer.alloc(20);
  segment.writeUInt16BE(port, 0);
  segment.writeUInt16BE(80, 2);
  segment[12] = 0x50;
  segment[13] = 0x02;
  return segment;
}

function datagram(from, to) {
  const bytes = Buffer.alloc(20);
  bytes.writeUInt16BE(from, 0);
  bytes.writeUInt16BE(to, 2);
  bytes.writeUInt16BE(20, 4);
  return bytes;
}

const file = (name, bytes) => {
  writeFileSync(join(place, name), bytes);
  return join(place, name);
};
const flood = file("flood.pcap", pcap(Array.from({ length: 3000 }, (_, n) => ({ ms: n, bytes: ip(6, 0x14000000 + n * 7, 0x0a0000fe, syn(1024 + n)) }))));
const udp = file("udp.pcap", pcap(Array.from({ length: 20 }, (_, n) => ({ ms: n * 10, bytes: ip(17, 0x0a000001, 0x0a000002, datagram(4000, 5000)) }))));
const hosts = Array.from({ length: 500 }, (_, n) => [0, 5].map((ms) => ({ ms: n + ms, bytes: ip(17, 0x0a000001, 0x0a010000 + n, datagram(4000, 5000 + n)) })));
const many = file("many.pcap", pcap(hosts.flat().sort((a, b) => a.ms - b.ms)));
const text = file("<img src=x onerror=alert(1)> & a-very-long-name-".padEnd(120, "x") + ".pcap", "hello, this is no capture");

await drive(async ({ page, link }) => {
  page.on("dialog", (dialog) => assert.fail(`a dialog: ${dialog.message()}`));
  const shoot = (name) => shootPage(page, name);
  const results = page.locator(".results");
  const button = (name) => page.getByRole("button", { name, exact: true });
  const shown = (wanted) => results.getByText(wanted).first().waitFor({ timeout: WAIT });

  /** Gives these files alone to the panel. */
  async function drop(...paths) {
    const remove = page.getByRole("button", { name: /^Remove / });
    while ((await remove.count()) > 0) await remove.first().click();
    await page.locator("input[type=file]").setInputFiles(paths);
  }

  /** A file that is saved by a click. */
  async function saved(click, pattern) {
    const [download] = await Promise.all([page.waitForEvent("download"), click()]);
    assert.match(download.suggestedFilename(), pattern);
    return readFileSync(await download.path());
  }

  await page.goto(link);
  await page.getByText("No runs yet").waitFor({ timeout: WAIT });

  await step("Lab lists the scenarios with their published figures, and finds one", async () => {
    await page.getByRole("link", { name: "Lab" }).click();
    await page.getByRole("button", { name: /^s3-30k/ }).waitFor({ timeout: WAIT });
    await page.getByRole("button", { name: /^s3-30k.*published: 5\.57 Mbit\/s to 5\.60 Mbit\/s/ }).waitFor({ timeout: WAIT });
    assert.ok((await page.locator(".scenarios button").count()) > 30);
    await shoot("lab-empty");
    await page.getByPlaceholder("window, loss, queue").fill("middlebox window scale");
    assert.equal(await page.locator(".scenarios button").count(), 1);
    await page.getByPlaceholder("window, loss, queue").fill("no such scenario");
    await page.getByText("No scenario has").waitFor();
    await page.getByPlaceholder("window, loss, queue").fill("");
  });

  await step("an option that is wrong is refused while it is typed", async () => {
    await page.getByRole("button", { name: /^s1-scale/ }).click();
    await page.fill("#lab-jobs", "many");
    await page.locator("form .error").waitFor({ timeout: WAIT });
    await shoot("lab-error");
    await page.fill("#lab-jobs", "");
  });

  await step("cases arrive, the chart grows, and the run is stored", async () => {
    await page.fill("#lab-filter", "scale=4");
    assert.match(await page.locator("form .command code").innerText(), /^bdp lab run s1-scale --filter=scale=4$/);
    // Two of its six cases have it: keep and strip.
    await page.fill("#lab-filter", "p");
    await button("Run").click();
    await results.getByText(/running s1-scale link\.window_scale=/).first().waitFor({ timeout: LAB });
    await page.screenshot({ path: join(pictures, "lab-running.png"), fullPage: true });
    await results.locator(".cases tbody tr").first().waitFor({ timeout: LAB });
    await results.getByText("Stored as run").waitFor({ timeout: LAB });
    const table = await results.locator(".cases").innerText();
    assert.match(table, /link\.window_scale=strip/);
    assert.match(table, /VALID/);
    await shoot("lab-done");
  });

  await step("the chart by the arrow keys, and as files", async () => {
    await results.locator(".xy").focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    assert.match(await results.locator(".readout").innerText(), /: .*(goodput|model) [\d.]+ .bit\/s/);
    await page.keyboard.press("Escape");
    assert.equal(await results.locator(".readout").innerText(), "");
    const png = await saved(() => page.getByRole("button", { name: "Save lab-run as PNG" }).click(), /\.png$/);
    assert.equal(png.subarray(1, 4).toString(), "PNG");
    assert.match((await saved(() => page.getByRole("button", { name: "Save lab-run as SVG" }).click(), /\.svg$/)).toString(), /^<svg [^]*<\/svg>$/);
  });

  await step("the stored run has the same table", async () => {
    await results.getByText("Stored as run").locator("a").click();
    await page.getByText("HTML report").waitFor({ timeout: WAIT });
    await page.locator(".cases").waitFor({ timeout: WAIT });
    await page.goBack();
  });

  await step("Stop lets the cases that run end", async () => {
    await page.getByRole("button", { name: /^fast-lossy/ }).click();
    await button("Run").click();
    await button("Stop").click();
    await results.getByText(/stopped/).waitFor({ timeout: LAB });
  });

  await step("Captures: empty, and a file that is none", async () => {
    await page.getByRole("link", { name: "Captures" }).click();
    await shown("No capture yet");
    await shoot("captures-empty");
    await page.keyboard.press("Tab");
    await drop(text);
    await results.locator(".error").waitFor({ timeout: WAIT });
    assert.match(await results.locator(".error").innerText(), /not pcap/);
    assert.equal(await page.locator("img").count(), 0);
    await shoot("captures-text");
  });

  await step("a flood, datagrams alone, and more flows than are drawn", async () => {
    await drop(flood);
    await shown(/3,000 SYNs to 10\.0\.0\.254:80 unanswered/);
    await shoot("captures-flood");
    await drop(udp);
    await shown(/Nothing of TCP/);
    await drop(many);
    await shown(/300 more, with fewer bytes/);
    assert.equal(await results.locator(".cases tbody tr").count(), 200);
    await results.getByPlaceholder("address, port, limit").fill("10.1.1.200:");
    await page.waitForFunction(() => document.querySelectorAll(".cases tbody tr").length === 1);
  });

  await step("a real capture: table, connection, account of time, command", async () => {
    const captures = join(place, "captures");
    const made = spawnSync(bdp, ["lab", "run", "s3-30k", "--set", "flow.duration=4s", "--store", "none", "--capture", captures], { encoding: "utf8" });
    const found = readdirSync(captures).filter((name) => name.endsWith(".pcapng"));
    assert.ok(found.length >= 2, made.stderr);
    const [near, far] = ["near", "far"].map((end) => join(captures, found.find((name) => name.endsWith(`-1-link0-${end}.pcapng`))));
    await drop(near);
    await shown(basename(near));
    await results.locator(".capture table button").first().click();
    await results.locator(".verdict .said").first().waitFor({ timeout: WAIT });
    assert.match(await results.locator(".verdict .said").first().innerText(), /receive window/);
    await results.locator(".account").first().waitFor();
    await shoot("captures-detail");
    const cut = file("cut.pcapng", readFileSync(near).subarray(0, 100_000));
    await drop(cut);
    await shown(/truncated/);
    await drop(near, far);
    await shown(/^Between /);
    await page.fill("#capture-filter", "port 1");
    await button("Explain").click();
    await shown(/No packet matches the filter/);
    await page.fill("#capture-filter", "port and");
    await button("Explain").click();
    await page.locator("form .error").waitFor({ timeout: WAIT });
    await page.fill("#capture-filter", "");
  });

  await step("after a reload, the captures are there, and so is the file's name in the command", async () => {
    await drop(udp);
    await shown(/Nothing of TCP/);
    await page.reload();
    await page.locator(".held li", { hasText: "udp.pcap" }).waitFor({ timeout: WAIT });
    const jobs = await page.evaluate(async () => {
      const answer = await fetch("/api/jobs", { headers: { Authorization: `Bearer ${localStorage.getItem("bdp-secret")}` } });
      return answer.json();
    });
    assert.equal(jobs[0].command, "bdp pcap udp.pcap");
  });

  await step("an upload is cancelled", async () => {
    await page.route("**/api/captures", () => undefined);
    await drop(udp);
    await page.getByRole("button", { name: "Cancel udp.pcap" }).click();
    await page.unroute("**/api/captures");
    assert.equal(await page.locator(".held li").count(), 0);
  });

  await step("files that are dropped on the page", async () => {
    const data = await page.evaluateHandle((bytes) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([new Uint8Array(bytes)], "dropped.pcap"));
      return transfer;
    }, [...readFileSync(udp)]);
    await page.dispatchEvent("body", "dragenter", { dataTransfer: data });
    await page.getByText("Drop the files").waitFor();
    await page.dispatchEvent("body", "drop", { dataTransfer: data });
    await results.getByText("dropped.pcap").first().waitFor({ timeout: WAIT });
  });
});
