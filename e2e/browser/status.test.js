// The status page as people meet it, in a real browser.
import assert from "node:assert/strict";
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import axe from "axe-core";
import { chromium } from "playwright-core";
import { chromiumPath } from "./chromium.js";
import { Gateway, root } from "./gateway.js";

const canary = "xylophone";
const figures = join(root, "docs/figures");
let gateway, browser;

before(async () => {
  const executablePath = chromiumPath();
  gateway = await Gateway.start(64);
  // A container has no user namespaces for the sandbox, and root may not use it.
  browser = await chromium.launch({ executablePath, args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] });
});

after(async () => {
  await browser?.close();
  await gateway?.stop();
});

// open shows the page, and collects what should not happen on it.
async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.faults = [];
  page.on("console", (m) => m.type() === "error" || m.type() === "warning" ? page.faults.push(m.text()) : 0);
  page.on("pageerror", (e) => page.faults.push(e.message));
  page.on("request", (r) => new URL(r.url()).origin === gateway.url ? 0 : page.faults.push(`a request to ${r.url()}`));
  await page.goto(gateway.url + "/llm/");
  await page.locator("body.live").waitFor();
  await page.locator("#upstreams tbody tr").first().waitFor();
  return page;
}

const close = (page) => page.context().close();
const rows = (page) => page.locator("#upstreams tbody tr:has(th)");

// overflow is by how much something is wider than what holds it, pixels.
const overflow = (page, selector) => page.evaluate((s) => {
  const e = document.querySelector(s);
  return e.scrollWidth - e.clientWidth;
}, selector);

test("the page loads, with one row for each upstream and nothing from elsewhere", async () => {
  const page = await open();
  assert.equal(await rows(page).count(), 3);
  for (const address of gateway.addresses.slice(0, 3)) {
    await page.getByRole("rowheader", { name: address }).waitFor();
  }
  await page.getByRole("table", { name: /five minutes/ }).waitFor();
  assert.deepEqual(page.faults, []);
  await close(page);
});

test("it updates live, and shows no word of a prompt", async () => {
  const page = await open();
  const before = await page.locator("#decisions tbody tr").count();
  await gateway.chat(`${canary} `.repeat(300));
  await gateway.chat(`${canary} `.repeat(300) + "And more.");
  await page.waitForFunction((n) => document.querySelectorAll("#decisions tbody tr").length === n, before + 2);
  assert.match(await page.locator("#decisions tbody tr").first().innerText(), /prefix/);
  assert.ok(!(await page.content()).includes(canary));
  const clock = page.locator("#clock"), then = await clock.innerText();
  await page.waitForFunction((t) => document.querySelector("#clock").textContent !== t, then);
  assert.deepEqual(page.faults, []);
  await close(page);
});

test("keys sort and filter, and a paused page stands still", async () => {
  const page = await open();
  await page.getByRole("button", { name: "Address" }).focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("th[aria-sort]").getAttribute("aria-sort"), "descending");
  const shown = await page.locator("#upstreams tbody th").allInnerTexts();
  assert.deepEqual(shown, gateway.addresses.slice(0, 3).sort().reverse());
  await page.getByRole("searchbox").fill(gateway.addresses[1]);
  assert.equal(await rows(page).count(), 1);
  const outline = await page.getByRole("searchbox").evaluate((e) => getComputedStyle(e).outlineStyle);
  assert.notEqual(outline, "none", "the focus can be seen");
  await page.getByRole("button", { name: "Pause" }).press("Space");
  const clock = await page.locator("#clock").innerText();
  await page.evaluate(() => new Promise((done) => {
    let reports = 0;
    const other = new EventSource("events");
    other.onmessage = () => { if (++reports === 3) { other.close(); done(); } };
  }));
  assert.equal(await page.locator("#clock").innerText(), clock);
  await close(page);
});

for (const colorScheme of ["light", "dark"]) {
  test(`axe finds no serious fault in ${colorScheme}, and the figure is made`, async () => {
    if (colorScheme === "light") await gateway.replay("--speed", "10", "--conversations", "32");
    const page = await open({ colorScheme });
    await page.locator("summary").click();
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    const faults = violations.filter((v) => v.impact === "serious" || v.impact === "critical");
    assert.deepEqual(faults.map((v) => `${v.id}: ${v.help}; ${v.nodes.map((n) => n.target).join(", ")}`), []);
    await page.locator("summary").click();
    mkdirSync(figures, { recursive: true });
    const path = join(figures, `status-${colorScheme}.png`);
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path, clip: { x: 0, y: 0, width: 1280, height: 720 } });
    assert.ok(statSync(path).size < 200_000, "a figure of docs has less than 200 KB");
    await close(page);
  });
}

test("it survives a reload of Caddy, and 64 upstreams are readable", async () => {
  const page = await open();
  let again = 0;
  page.on("request", (r) => { if (r.url().endsWith("/events")) again++; });
  await gateway.reload(64);
  await page.waitForFunction(() => document.querySelectorAll("#upstreams tbody th").length === 64, null, { timeout: 15_000 });
  await page.locator("body.live").waitFor();
  assert.ok(again > 0, "the stream was opened anew");
  assert.equal(await overflow(page, "html"), 0, "the page is no wider than the window");
  assert.equal(await overflow(page, "#upstreams"), 0);
  assert.equal(await overflow(page, ".scroll"), 0, "the table is no wider than its place");
  const cut = await page.$$eval("#upstreams td, #upstreams th", (cells) => cells.filter((c) => c.scrollWidth > c.clientWidth + 1).map((c) => c.innerText));
  assert.deepEqual(cut, [], "no cell is cut off");
  const height = await rows(page).first().evaluate((r) => r.getBoundingClientRect().height);
  assert.ok(height >= 20 && height < 70, `rows are ${height} px high`);
  assert.deepEqual(page.faults, []);
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  assert.deepEqual(violations.filter((v) => v.impact === "serious" || v.impact === "critical").map((v) => v.id), []);
  await close(page);
});

test("a narrow window scrolls the tables, not the page, and motion can be switched off", async () => {
  const page = await open({ viewport: { width: 400, height: 800 }, reducedMotion: "reduce" });
  assert.equal(await overflow(page, "html"), 0);
  const moving = await page.evaluate(() => [...document.querySelectorAll("*")].filter((e) => {
    const s = getComputedStyle(e);
    return s.transitionDuration !== "0s" || s.animationName !== "none";
  }).length);
  assert.equal(moving, 0);
  await close(page);
});

test("Caddy stops at once while pages are open, and the page says that it is alone", async () => {
  const page = await open();
  const took = await gateway.stopCaddy();
  assert.ok(took < 5000, `stopping took ${took} ms`);
  await page.locator("body.lost").waitFor();
  assert.match(await page.getByRole("status").first().innerText(), /reconnecting|no connection/);
  await close(page);
});
