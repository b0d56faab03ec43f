/* engine.js: the engine, wherever it is: in this file, as WebAssembly in a worker, or behind HTTP. docs/engine.md */

/* Arrays of numbers, {shape, f32}, become {shape, data}. */
function decodeArrays(x) {
  if (!x || typeof x !== "object") return x;
  if (typeof x.f32 === "string" && x.shape) return { shape: x.shape, data: new Float32Array(bytesOfBase64(x.f32).buffer) };
  for (const key of Object.keys(x)) x[key] = decodeArrays(x[key]);
  return x;
}

// A page with a model in it sends that at once.
const heldModel = worker && embedded("qkv-model"), modelSent = heldModel && send({ model: heldModel });

/* Text in, text out, by the worker. */
async function workerTransport() {
  await codeSent;
  await modelSent;
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
  const transport = modelSent ? await workerTransport() : httpTransport();
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
  return { ask, latest, isLocal: Boolean(modelSent) };
}
