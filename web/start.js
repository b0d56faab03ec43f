/* start.js: the first script of the page. Where the page has an engine in it, a worker compiles that while the browser still reads
 * the rest of the file. */

function bytesOfBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

const embedded = id => JSON.parse(document.getElementById(id)?.textContent ?? "null");

/* The worker answers everything that it is sent, in that order. */
const waiting = [];
function startWorker() {
  const text = [`${bytesOfBase64}\n`, document.getElementById("qkv-worker").textContent];
  const started = new Worker(URL.createObjectURL(new Blob(text, { type: "text/javascript" })));
  started.onmessage = ({ data }) => {
    const { done, failed } = waiting.shift();
    if (data.failed) failed(new Error(data.failed));
    else done(data.answer);
  };
  started.onerror = event => {
    for (const { failed } of waiting.splice(0)) failed(new Error(event.message || "the worker does not start"));
  };
  return started;
}
function send(message) {
  const answered = new Promise((done, failed) => {
    waiting.push({ done, failed });
    worker.postMessage(message);
  });
  answered.catch(() => {}); // whoever waits for it later is told
  return answered;
}

const code = embedded("qkv-engine"), worker = code && startWorker(), codeSent = code && send({ engine: code });
