// engines.mjs: the engine of a live page in Node, the native one on the same weights, and how their answers are compared.
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";
import { gunzipSync } from "node:zlib";

const counts = { failed: 0, all: 0 };
export function check(name, ok, detail = "") {
  counts.all++;
  if (!ok) counts.failed++, console.log(`not ok: ${name} ${detail}`);
}

export function finish() {
  console.log(`# ${counts.all - counts.failed} of ${counts.all} checks`);
  process.exit(counts.failed ? 1 : 0);
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
export function partsOf(file) {
  const html = fs.readFileSync(file, "utf8"), model = JSON.parse(element(html, "qkv-model")), files = {};
  for (const name of Object.keys(model.files)) files[name] = unpack(model.files[name], model.split && name.endsWith(model.split));
  return { html, files, code: unpack(JSON.parse(element(html, "qkv-engine"))), worker: element(html, "qkv-worker") };
}

export async function pageEngine(parts) {
  const world = vm.createContext({ WebAssembly, TextEncoder, TextDecoder, performance, console });
  vm.runInContext(parts.worker + ";globalThis.start = startEngine", world);
  const answer = await world.start(WebAssembly.compile(parts.code), parts.files, "test");
  return async request => JSON.parse(answer(JSON.stringify(request)));
}

// ---- the native engine, over HTTP ----

export async function nativeEngine(qkv, parts, folder) {
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
  const headers = { "Content-Type": "application/json", Connection: "close" }; // between requests the page may compute for long
  return {
    address, folder,
    ask: async request => (await fetch(address + "/engine", { method: "POST", headers, body: JSON.stringify(request) })).json(),
    end: () => server.kill("SIGTERM"),
  };
}

// ---- comparing ----

const floats = x => new Float32Array(new Uint8Array(Buffer.from(x.f32, "base64")).buffer);
// The largest difference of numbers, or Infinity where anything else differs. Times are left out.
export function difference(a, b, key = "") {
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

export async function sameAnswers(title, ask, native, requests, tolerance) {
  let most = 0;
  for (const request of requests) {
    const [ours, theirs] = [await ask(request), await native.ask(request)];
    const d = difference(ours, theirs);
    most = Math.max(most, d);
    check(`${title}: ${request.do} ${request.text ?? ""}`, !ours.error && d <= tolerance, `differ by ${d} ${JSON.stringify(ours.error ?? "")}`);
  }
  return most;
}
