// browsers.mjs: Chromium and Firefox as a test drives them: by WebSocket, the one with DevTools' protocol, the other with WebDriver
// BiDi. A page is opened in a fresh profile, without anything being attached to it, as a person does, and asked afterwards.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";

// ---- messages over a WebSocket (RFC 6455): text in, text out ----
const FINAL = 0x80, MASKED = 0x80, CONTINUED = 0, TEXT = 1;

function frameOf(text) {
  const body = Buffer.from(text), mask = randomBytes(4), n = body.length;
  const head = Buffer.alloc(n < 126 ? 2 : n < 65536 ? 4 : 10);
  head[0] = FINAL | TEXT;
  head[1] = MASKED | (n < 126 ? n : n < 65536 ? 126 : 127);
  if (n >= 65536) head.writeBigUInt64BE(BigInt(n), 2);
  else if (n >= 126) head.writeUInt16BE(n, 2);
  for (let i = 0; i < n; i++) body[i] ^= mask[i & 3];
  return Buffer.concat([head, mask, body]);
}

// Calls `tell` with every whole message of a stream of frames; a server does not mask them.
function frameReader(tell) {
  let bytes = Buffer.alloc(0), parts = [];
  return piece => {
    bytes = Buffer.concat([bytes, piece]);
    while (bytes.length >= 2) {
      const short = bytes[1] & 127, at = short < 126 ? 2 : short === 126 ? 4 : 10;
      if (bytes.length < at) return;
      const n = short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
      if (bytes.length < at + n) return;
      const kind = bytes[0] & 15, isFinal = bytes[0] & FINAL;
      if (kind === TEXT || kind === CONTINUED) parts.push(bytes.subarray(at, at + n));
      bytes = bytes.subarray(at + n);
      if (isFinal && parts.length && (kind === TEXT || kind === CONTINUED)) tell(Buffer.concat(parts.splice(0)).toString());
    }
  };
}

// A browser that says nothing to a command for so long has come to a stand.
const PATIENCE = 120000;
export class Silence extends Error {}

// call(method, params, more) sends one command and gives its result.
function connect(address) {
  const headers = { Connection: "Upgrade", Upgrade: "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": randomBytes(16).toString("base64") };
  return new Promise((done, failed) => {
    const request = http.get(address.replace("ws:", "http:"), { headers });
    request.on("error", failed);
    request.on("response", answer => failed(new Error(`${address}: status ${answer.statusCode}`)));
    request.on("upgrade", (answer, socket, first) => {
      const waiting = new Map();
      let last = 0;
      const read = frameReader(text => {
        const { id, result, error, message } = JSON.parse(text);
        const asker = waiting.get(id);
        clearTimeout(asker?.late);
        waiting.delete(id);
        if (error) asker?.failed(new Error(error.message ?? message));
        else asker?.done(result);
      });
      socket.on("data", read);
      socket.on("error", () => {});
      read(first);
      done((method, params = {}, more = {}) => new Promise((done, failed) => {
        const late = setTimeout(() => failed(new Silence(`no answer to ${method} in ${PATIENCE / 1000} s`)), PATIENCE);
        waiting.set(++last, { done, failed, late });
        socket.write(frameOf(JSON.stringify({ id: last, method, params, ...more })));
      }));
    });
  });
}

// ---- starting ----
const running = new Set();
process.on("exit", () => { for (const end of running) end(); });
for (const [signal, code] of [["SIGHUP", 129], ["SIGINT", 130], ["SIGTERM", 143]]) process.on(signal, () => process.exit(code)); // no browser stays behind

// Starts a program with a folder and a group of processes of its own, and waits for the address that it tells.
async function start(program, args, prepare = () => {}) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "qkv-browser-"));
  prepare(folder);
  const child = spawn(program, args(folder), { stdio: ["ignore", "ignore", "pipe"], detached: true, env: { ...process.env, HOME: folder } });
  const end = () => {
    running.delete(end);
    try { process.kill(-child.pid, "SIGKILL"); } catch { /* it has ended */ }
    fs.rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  };
  running.add(end);
  const address = await new Promise((found, failed) => {
    let said = "";
    child.stderr.on("data", text => {
      said += text;
      const at = said.match(/ws:\/\/[^\s]+/);
      if (at) found(at[0]);
    });
    child.on("error", failed);
    child.on("exit", () => failed(new Error(`${program} ended: ${said.slice(-300)}`)));
  });
  return { address, end };
}
const isThere = program => (process.env.PATH ?? "").split(":").some(folder => fs.existsSync(path.join(folder, program)));

// A function of the page as an expression; its result comes back as JSON, which all protocols have.
const called = (work, given) => `(async () => JSON.stringify(await (${work})(...${JSON.stringify(given)})) ?? "null")()`;

async function openChromium() {
  const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--remote-debugging-port=0"];
  const { address, end } = await start("chromium", folder => [...flags, `--user-data-dir=${folder}`, "about:blank"]), call = await connect(address);
  return {
    name: "Chromium", end,
    async open(url) {
      const { browserContextId } = await call("Target.createBrowserContext"), { targetId } = await call("Target.createTarget", { url, browserContextId });
      let session = null;
      return {
        async evaluate(work, ...given) {
          session ??= (await call("Target.attachToTarget", { targetId, flatten: true })).sessionId;
          const asked = { expression: called(work, given), awaitPromise: true, returnByValue: true };
          const { result, exceptionDetails } = await call("Runtime.evaluate", asked, { sessionId: session });
          if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
          return JSON.parse(result.value);
        },
        close: () => call("Target.disposeBrowserContext", { browserContextId }),
      };
    },
  };
}

async function openFirefox() {
  const { address, end } = await start("firefox-esr", folder => ["--headless", "--no-remote", "--profile", folder, "--remote-debugging-port=0"]);
  const call = await connect(`${address}/session`);
  await call("session.new", { capabilities: {} });
  return {
    name: "Firefox", end,
    async open(url) {
      const { userContext } = await call("browser.createUserContext"), { context } = await call("browsingContext.create", { type: "tab", userContext });
      await call("browsingContext.navigate", { context, url, wait: "none" });
      return {
        async evaluate(work, ...given) {
          const asked = { expression: called(work, given), target: { context }, awaitPromise: true };
          const { result, exceptionDetails } = await call("script.evaluate", asked);
          if (exceptionDetails) throw new Error(exceptionDetails.text);
          return JSON.parse(result.value);
        },
        close: () => call("browser.removeUserContext", { userContext }),
      };
    },
  };
}

// Those that are installed, each started when it is called.
export const browsers = [["chromium", openChromium], ["firefox-esr", openFirefox]].map(([program, open]) => ({ program, open: isThere(program) && open }));
