"use strict";
/* worker.js: the engine as WebAssembly in a worker. It is given the code, then the files of a model, both as base64 of gzip, and
 * then requests as text, which it answers in order. The files lie in memory; of a system's calls the engine needs those of
 * reading. start.js puts bytesOfBase64 before this text. */

const encoder = new TextEncoder(), decoder = new TextDecoder();

/* The system that the engine sees: files under /model that can be read, a clock, and nothing else. Numbers are those of
 * wasi_snapshot_preview1. */
function makeSystem(files, memory) {
  const OK = 0, BADF = 8, INVAL = 28, NOENT = 44, NOSYS = 52, READ_ONLY = 69;
  const FOLDER = 3, REGULAR = 4, ROOT = 3;
  const open = new Map(); // number: {bytes, at}; a folder has no bytes
  const view = () => new DataView(memory().buffer);
  const bytesAt = (at, n) => new Uint8Array(memory().buffer, at, n);
  const textAt = (at, n) => decoder.decode(bytesAt(at, n));
  const set64 = (at, x) => view().setBigUint64(at, BigInt(Math.round(x)), true);
  open.set(ROOT, {});

  function read(file, vectors, n, from) {
    let done = 0;
    for (let i = 0; i < n; i++) {
      const to = view().getUint32(vectors + 8 * i, true), room = view().getUint32(vectors + 8 * i + 4, true);
      const piece = file.bytes.subarray(from + done, Math.min(from + done + room, file.bytes.length));
      bytesAt(to, piece.length).set(piece);
      done += piece.length;
    }
    return done;
  }
  function describe(file, number, to) { // a file's device, number, kind, links, size and three times
    bytesAt(to, 64).fill(0);
    set64(to + 8, number);
    view().setUint8(to + 16, file.bytes ? REGULAR : FOLDER);
    set64(to + 24, 1);
    set64(to + 32, file.bytes ? file.bytes.length : 0);
    return OK;
  }
  function find(path) {
    const name = path.replace(/^\.?\/*/, "").replace(/\/+$/, "");
    if (name === "" || name === ".") return {};
    return Object.hasOwn(files, name) ? { bytes: files[name], at: 0 } : null;
  }
  const refuse = () => READ_ONLY, nothing = () => OK;
  return {
    args_get: nothing,
    args_sizes_get: (n, size) => (view().setUint32(n, 0, true), view().setUint32(size, 0, true), OK),
    environ_get: nothing,
    environ_sizes_get: (n, size) => (view().setUint32(n, 0, true), view().setUint32(size, 0, true), OK),
    clock_res_get: (clock, to) => (set64(to, 1000), OK),
    clock_time_get: (clock, precision, to) => (set64(to, (clock === 0 ? Date.now() : performance.now()) * 1e6), OK),
    random_get: (to, n) => (bytesAt(to, n).fill(7), OK), // nothing that is asked for here may depend on chance
    proc_exit: status => { throw new Error("the engine ended with status " + status); },
    sched_yield: nothing,
    poll_oneoff: () => NOSYS,
    fd_prestat_get(fd, to) {
      if (fd !== ROOT) return BADF;
      view().setUint32(to, 0, true);
      view().setUint32(to + 4, "/model".length, true);
      return OK;
    },
    fd_prestat_dir_name: (fd, to, n) => (bytesAt(to, n).set(encoder.encode("/model").subarray(0, n)), OK),
    fd_fdstat_get(fd, to) {
      const file = open.get(fd);
      if (!file && fd > 2) return BADF;
      bytesAt(to, 24).fill(0);
      view().setUint8(to, !file ? 2 : file.bytes ? REGULAR : FOLDER);
      view().setBigUint64(to + 8, 0x1fffffffn, true);
      view().setBigUint64(to + 16, 0x1fffffffn, true);
      return OK;
    },
    fd_fdstat_set_flags: nothing,
    fd_advise: nothing,
    fd_filestat_get: (fd, to) => (open.has(fd) ? describe(open.get(fd), fd, to) : BADF),
    path_filestat_get(fd, flags, path, n, to) {
      const file = find(textAt(path, n));
      return file ? describe(file, 100, to) : NOENT;
    },
    path_open(fd, follow, path, n, how, rights, inherited, flags, to) {
      const file = find(textAt(path, n));
      if (!file) return how & 1 ? READ_ONLY : NOENT;
      let number = ROOT + 1;
      while (open.has(number)) number++;
      open.set(number, file);
      view().setUint32(to, number, true);
      return OK;
    },
    fd_close: fd => (fd > ROOT && open.delete(fd) ? OK : BADF),
    fd_read(fd, vectors, n, to) {
      const file = open.get(fd);
      if (!file || !file.bytes) return BADF;
      const done = read(file, vectors, n, file.at);
      file.at += done;
      view().setUint32(to, done, true);
      return OK;
    },
    fd_pread(fd, vectors, n, from, to) {
      const file = open.get(fd);
      if (!file || !file.bytes) return BADF;
      view().setUint32(to, read(file, vectors, n, Number(from)), true);
      return OK;
    },
    fd_seek(fd, by, whence, to) {
      const file = open.get(fd);
      if (!file || !file.bytes) return BADF;
      const at = Number(by) + (whence === 1 ? file.at : whence === 2 ? file.bytes.length : 0);
      if (at < 0) return INVAL;
      file.at = at;
      set64(to, at);
      return OK;
    },
    fd_write(fd, vectors, n, to) { // what the library says on stderr goes to the console
      let done = 0, text = "";
      for (let i = 0; i < n; i++) {
        const length = view().getUint32(vectors + 8 * i + 4, true);
        text += textAt(view().getUint32(vectors + 8 * i, true), length);
        done += length;
      }
      if (fd > 2) return BADF;
      if (text.trim()) console.warn(text);
      view().setUint32(to, done, true);
      return OK;
    },
    fd_readdir(fd, to, room, cookie, used) {
      const names = Object.keys(files).slice(Number(cookie));
      let at = 0;
      for (let i = 0; i < names.length && at < room; i++) {
        const name = encoder.encode(names[i]), entry = new Uint8Array(24 + name.length), head = new DataView(entry.buffer);
        head.setBigUint64(0, cookie + BigInt(i + 1), true);
        head.setBigUint64(8, BigInt(100 + i), true);
        head.setUint32(16, name.length, true);
        head.setUint8(20, REGULAR);
        entry.set(name, 24);
        const piece = entry.subarray(0, room - at);
        bytesAt(to + at, piece.length).set(piece);
        at += piece.length;
      }
      view().setUint32(used, at, true);
      return OK;
    },
    fd_sync: nothing, fd_datasync: nothing, fd_tell: () => NOSYS, fd_renumber: () => NOSYS,
    fd_pwrite: refuse, fd_allocate: refuse, fd_filestat_set_size: refuse, fd_filestat_set_times: refuse,
    path_create_directory: refuse, path_filestat_set_times: refuse, path_link: refuse, path_readlink: () => INVAL,
    path_remove_directory: refuse, path_rename: refuse, path_symlink: refuse, path_unlink_file: refuse,
  };
}

/* Loads the model; the result answers requests: text in, text out. */
async function startEngine(code, files, name) {
  let engine = null;
  const memory = () => engine.memory;
  const instance = await WebAssembly.instantiate(await code, { wasi_snapshot_preview1: makeSystem(files, memory) });
  engine = instance.exports;
  const textFrom = at => {
    const bytes = new Uint8Array(engine.memory.buffer, at);
    return decoder.decode(bytes.slice(0, bytes.indexOf(0)));
  };
  function put(text) { // bytes with a NUL behind them
    const bytes = encoder.encode(text), at = engine.room(bytes.length + 1);
    if (!at) throw new Error("out of memory");
    const to = new Uint8Array(engine.memory.buffer, at, bytes.length + 1);
    to.set(bytes);
    to[bytes.length] = 0;
    return { at, length: bytes.length };
  }
  engine._initialize();
  const named = put(name);
  const status = engine.load(named.at);
  engine.give_back(named.at);
  if (status) throw new Error(textFrom(engine.error()));
  return request => {
    const asked = put(request);
    engine.ask(asked.at, asked.length);
    engine.give_back(asked.at);
    return decoder.decode(new Uint8Array(engine.memory.buffer, engine.answer_text(), engine.answer_length()).slice());
  };
}

// ---- what the page holds ----
const gunzipped = (base64, headers) =>
  new Response(new Blob([bytesOfBase64(base64)]).stream().pipeThrough(new DecompressionStream("gzip")), { headers });

// Numbers of 16 bits are packed with their first bytes before all second ones.
function joinPairs(split) {
  const half = split.length >> 1, bytes = new Uint8Array(split.length);
  for (let i = 0; i < half; i++) bytes[2 * i] = split[i], bytes[2 * i + 1] = split[half + i];
  if (split.length & 1) bytes[split.length - 1] = split[split.length - 1];
  return bytes;
}
async function unpackFiles({ files, split }) {
  const unpacked = {};
  await Promise.all(Object.keys(files).map(async name => {
    const bytes = new Uint8Array(await gunzipped(files[name]).arrayBuffer());
    unpacked[name] = split && name.endsWith(split) ? joinPairs(bytes) : bytes;
  }));
  return unpacked;
}

if (typeof WorkerGlobalScope !== "undefined") {
  let code = null, answer = null;
  self.onmessage = async event => {
    const { engine, model, request } = event.data;
    try {
      if (engine) await (code = WebAssembly.compileStreaming(gunzipped(engine, { "Content-Type": "application/wasm" })));
      if (model) answer = await startEngine(code, await unpackFiles(model), model.name);
      self.postMessage({ answer: request && answer(request) });
    } catch (error) {
      self.postMessage({ failed: error.message });
    }
  };
}
