/* engine.js: the engine, wherever it is: in this file, as WebAssembly in a worker, or behind HTTP. docs/engine.md */

/* Arrays of numbers, {shape, f32}, become {shape, data}. */
function decodeArrays(x) {
  if (!x || typeof x !== "object") return x;
  if (typeof x.f32 === "string" && x.shape) return { shape: x.shape, data: new Float32Array(bytesOfBase64(x.f32).buffer) };
  for (const key of Object.keys(x)) x[key] = decodeArrays(x[key]);
  return x;
}

function bytesOfBase64(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

async function unpacked(base64) {
  const stream = new Blob([bytesOfBase64(base64)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Numbers of 16 bits are packed with their first bytes before all second ones.
function joinPairs(split) {
  const half = split.length >> 1, bytes = new Uint8Array(split.length);
  for (let i = 0; i < half; i++) bytes[2 * i] = split[i], bytes[2 * i + 1] = split[half + i];
  if (split.length & 1) bytes[split.length - 1] = split[split.length - 1];
  return bytes;
}

const embedded = id => JSON.parse(document.getElementById(id).textContent);

/* Text in, text out, by the worker; one request at a time. */
async function workerTransport(model, code) {
  const files = {};
  for (const name of Object.keys(model.files)) {
    files[name] = await unpacked(model.files[name]);
    if (model.split && name.endsWith(model.split)) files[name] = joinPairs(files[name]);
  }
  const address = URL.createObjectURL(new Blob([document.getElementById("qkv-worker").textContent], { type: "text/javascript" }));
  const worker = new Worker(address);
  let waiting = null;
  worker.onmessage = event => {
    const { done, failed } = waiting;
    if (event.data.failed) failed(new Error(event.data.failed));
    else done(event.data.answer);
  };
  worker.onerror = event => waiting && waiting.failed(new Error(event.message || "the worker does not start"));
  const send = (message, moved) => new Promise((done, failed) => {
    waiting = { done, failed };
    worker.postMessage(message, moved || []);
  });
  const bytes = await unpacked(code);
  await send({ code: bytes, files, name: model.name }, [bytes.buffer]);
  return request => send({ request });
}

function httpTransport() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  const headers = { "Content-Type": "application/json" };
  if (token) headers.Authorization = "Bearer " + token;
  return async request => (await fetch("engine", { method: "POST", headers, body: request })).text();
}

/* The engine of this page. `ask` gives an answer or throws the engine's sentence; `latest` is for what is asked at every
 * keystroke: of the waiting requests with one key the newest alone is asked, the others give null. */
async function openEngine() {
  const model = embedded("qkv-model"), code = embedded("qkv-engine");
  const transport = model && code ? await workerTransport(model, code) : httpTransport();
  const newest = new Map();
  let last = Promise.resolve();

  function ask(request, isStale = () => false) {
    const answered = last.then(async () => {
      if (isStale()) return null;
      const answer = JSON.parse(await transport(JSON.stringify(request)));
      if (!answer.error) return decodeArrays(answer);
      const error = new Error(answer.error.message);
      error.status = answer.error.status;
      throw error;
    });
    last = answered.catch(() => {});
    return answered;
  }
  function latest(key, request) {
    const mine = {};
    newest.set(key, mine);
    return ask(request, () => newest.get(key) !== mine).then(answer => (newest.get(key) === mine ? answer : null));
  }
  return { ask, latest, isLocal: Boolean(model && code) };
}
