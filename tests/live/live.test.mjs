// live.test.mjs: a live page in Node and, where it is there, in Chromium: its engine against the native one on the same weights.
// usage: live.test.mjs QKV OUT FOLDER_OF_PLAYWRIGHT|none SENTENCES PAGE...; the first page is that of a translator.
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";
import { gunzipSync } from "node:zlib";

const [, , qkv, out, playwright, sentencesFile, ...pages] = process.argv;
const sentences = fs.readFileSync(sentencesFile, "utf8").split("\n").filter(Boolean);
let failures = 0, checks = 0;
function check(name, ok, detail = "") {
  checks++;
  if (!ok) failures++, console.log(`not ok: ${name} ${detail}`);
}

// ---- the page's parts ----

const element = (html, id) => html.match(new RegExp(`<script[^>]* id="${id}">([^]*?)</script>`))[1];
function unpack(base64, isSplit) {
  const bytes = gunzipSync(Buffer.from(base64, "base64"));
  if (!isSplit) return bytes;
  const half = bytes.length >> 1, joined = Buffer.from(bytes);
  for (let i = 0; i < half; i++) joined[2 * i] = bytes[i], joined[2 * i + 1] = bytes[half + i];
  return joined;
}
function partsOf(file) {
  const html = fs.readFileSync(file, "utf8"), model = JSON.parse(element(html, "qkv-model")), files = {};
  for (const name of Object.keys(model.files)) files[name] = unpack(model.files[name], model.split && name.endsWith(model.split));
  return { html, files, code: unpack(JSON.parse(element(html, "qkv-engine"))), worker: element(html, "qkv-worker") };
}

async function pageEngine(parts) {
  const world = vm.createContext({ WebAssembly, TextEncoder, TextDecoder, performance, console });
  vm.runInContext(parts.worker + ";globalThis.start = startEngine", world);
  const answer = await world.start(WebAssembly.compile(parts.code), parts.files, "test");
  return async request => JSON.parse(answer(JSON.stringify(request)));
}

// ---- the native engine, over HTTP ----

async function nativeEngine(parts, name) {
  const folder = path.join(out, name + "-model");
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(folder, { recursive: true });
  for (const file of Object.keys(parts.files)) fs.writeFileSync(path.join(folder, file), parts.files[file]);
  const server = spawn(qkv, ["serve", "-m", folder, "--port", "0"], { env: { ...process.env, QKV_ISA: "baseline", QKV_THREADS: "1" } });
  const address = await new Promise((found, failed) => {
    let said = "";
    const look = text => {
      said += text;
      const at = said.match(/http:\/\/[0-9.]+:\d+/);
      if (at) found(at[0]);
    };
    server.stdout.on("data", look);
    server.stderr.on("data", look);
    server.on("exit", () => failed(new Error("qkv serve ended: " + said)));
  });
  const headers = { "Content-Type": "application/json" };
  return {
    address, folder,
    ask: async request => (await fetch(address + "/engine", { method: "POST", headers, body: JSON.stringify(request) })).json(),
    end: () => server.kill("SIGTERM"),
  };
}

// ---- comparing ----

const floats = x => new Float32Array(new Uint8Array(Buffer.from(x.f32, "base64")).buffer);
// The largest difference of numbers, or Infinity where anything else differs. Times are left out.
function difference(a, b, key = "") {
  if (["milliseconds", "seconds", "isa", "name"].includes(key)) return 0;
  if (typeof a === "number" && typeof b === "number") return Math.abs(a - b) / Math.max(1, Math.abs(a));
  if (typeof a !== typeof b || a === null || b === null || typeof a !== "object") return a === b ? 0 : Infinity;
  if (a.f32 && b.f32) {
    const x = floats(a), y = floats(b);
    return x.length !== y.length ? Infinity : x.reduce((most, value, i) => Math.max(most, Math.abs(value - y[i])), 0);
  }
  const names = Object.keys(a);
  if (names.length !== Object.keys(b).length) return Infinity;
  return names.reduce((most, name) => Math.max(most, difference(a[name], b[name], name)), 0);
}

async function sameAnswers(title, ask, native, requests, tolerance) {
  let most = 0;
  for (const request of requests) {
    const [ours, theirs] = [await ask(request), await native.ask(request)];
    const d = difference(ours, theirs);
    most = Math.max(most, d);
    check(`${title}: ${request.do} ${request.text ?? ""}`, !ours.error && d <= tolerance, `differ by ${d} ${JSON.stringify(ours.error ?? "")}`);
  }
  return most;
}

// ---- all requests, in Node ----

const asked = text => [
  { do: "run", text },
  { do: "head", text, kind: "KIND", layer: 0, head: 1 },
  { do: "head", text, kind: "KIND", layer: "mean", head: "mean" },
];
async function testPage(file) {
  const parts = partsOf(file), name = path.basename(file, ".html"), ask = await pageEngine(parts), native = await nativeEngine(parts, name);
  const info = await ask({ do: "info" }), kind = info.encoder_layers ? "encoder" : "decoder";
  check(`${name}: info`, difference(info, await native.ask({ do: "info" })) === 0);
  const texts = info.task === "translate" ? sentences : [info.example, ...sentences.slice(0, 5)];
  const requests = texts.flatMap((text, i) => (i < 5 ? asked(text) : [{ do: "run", text }]));
  for (const request of requests) if (request.kind) request.kind = kind;
  for (const extra of ["next", "surprise", "beam"]) if (info.can.includes(extra)) requests.push({ do: extra, text: info.example, temperature: 0.7, top_k: 20, top_p: 0.9 });
  for (const extra of ["lens", "why"]) if (info.can.includes(extra)) requests.push({ do: extra, text: info.example });
  for (let i = 0; i < 6; i++) requests.push({ do: "walk", text: info.example, kind, layer: i % 2, head: i % info.heads, query: i % 3 });
  for (const one of ["without-head=0.1", "without-layer=1", "hide-key=1", "move=0=2", "swap-values=0=1", "zero-value=1", "edit-row=0.0.1=0.5,0.5"])
    requests.push({ do: "run", text: info.example, switches: [one] });
  requests.push({ do: "tokenize", text: info.example });
  const begin = performance.now();
  const most = await sameAnswers(name, ask, native, requests, 1e-4);
  console.log(`# ${name}: ${requests.length} answers, the largest difference ${most.toExponential(1)}, ${(performance.now() - begin).toFixed(0)} ms`);
  for (const bad of [{ do: "fly" }, {}, { do: "run" }, { do: "run", text: "a", beam: 99 }, { do: "head", text: "a", kind: "x" }]) {
    const [ours, theirs] = [await ask(bad), await native.ask(bad)];
    check(`${name}: refused alike: ${JSON.stringify(bad)}`, ours.error && ours.error.status && difference(ours, theirs) === 0, JSON.stringify([ours, theirs]));
  }
  if (info.task === "translate") await testLearning(name, ask, native);
  native.end();
  return native.folder;
}

async function testLearning(name, ask, native) {
  const steps = [{ do: "learn", start: {} }, { do: "learn", steps: 50 }, { do: "learn", weights: true }];
  let ours, theirs;
  for (const step of steps) [ours, theirs] = [await ask(step), await native.ask(step)];
  const d = difference(ours, theirs);
  console.log(`# ${name}: weights after 50 steps differ by ${d.toExponential(1)}`);
  check(`${name}: the same weights after 50 steps`, d < 1e-4, d);
  let now = { accuracy: 0 };
  while (now.accuracy < 0.9 && !(now.step > 1000)) now = await ask({ do: "learn", steps: 50 });
  console.log(`# ${name}: ${(100 * now.accuracy).toFixed(0)}% right after ${now.step} steps, ${now.seconds.toFixed(1)} s`);
  check(`${name}: it learns`, now.accuracy >= 0.9 && now.seconds < 60, JSON.stringify(now.accuracy));
}

// ---- in a browser ----

async function testBrowser(file, folder) {
  const { chromium } = await import(path.join(playwright, "node_modules/playwright-core/index.mjs"));
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } }), asks = [], problems = [];
  page.on("request", r => /^(file|blob|data):/.test(r.url()) || asks.push(r.url()));
  page.on("console", m => m.type() === "error" && problems.push(m.text()));
  page.on("pageerror", e => problems.push(e.message));
  const begin = Date.now();
  await page.goto("file://" + path.resolve(file));
  await page.waitForFunction(() => document.querySelector("#answer-body")?.textContent.trim());
  const first = Date.now() - begin, times = [];
  await page.screenshot({ path: path.join(out, "live.png") });
  const texts = sentences.slice(0, 20), found = [];
  for (const text of texts) {
    const [answer, ms] = await page.evaluate(async text => {
      const begin = performance.now(), answer = await engine.ask({ do: "run", text });
      return [answer.output.translations[0].text, performance.now() - begin];
    }, text);
    found.push(answer);
    times.push(ms);
  }
  const native = execFileSync(qkv, ["translate", "-m", folder, "-t", "1"], { input: texts.join("\n") + "\n", encoding: "utf8" });
  check("texts in Chromium are those of qkv translate", found.join("\n") === native.trimEnd(), `\n${found}\n${native}`);
  times.sort((a, b) => a - b);
  console.log(`# Chromium: the first answer after ${first} ms, then ${times[times.length >> 1].toFixed(0)} (median) to ${times.at(-1).toFixed(0)} ms`);
  check("no request leaves the page", !asks.length, asks.join(" "));
  check("nothing is wrong in the page", !problems.length, problems.join(" | "));
  const outside = await page.evaluate(() => fetch("http://127.0.0.1:9/").then(() => "sent", e => e.message));
  check("its policy lets none out", outside !== "sent" && problems.some(p => /Content Security Policy/.test(p)), outside);
  await browser.close();
}

const folders = [];
for (const file of pages) folders.push(await testPage(file));
if (playwright !== "none") await testBrowser(pages[0], folders[0]);
console.log(`# ${checks - failures} of ${checks} checks`);
process.exit(failures ? 1 : 0);
