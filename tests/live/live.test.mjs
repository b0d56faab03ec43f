// live.test.mjs: the engine of live pages in Node, against the native one on the same weights.
// usage: live.test.mjs QKV OUT SENTENCES PAGE...; the first page is that of a translator.
import fs from "node:fs";
import path from "node:path";
import { check, difference, finish, nativeEngine, pageEngine, partsOf, sameAnswers } from "./engines.mjs";

const [, , qkv, out, sentencesFile, ...pages] = process.argv;
const sentences = fs.readFileSync(sentencesFile, "utf8").split("\n").filter(Boolean);

const asked = text => [
  { do: "run", text },
  { do: "head", text, kind: "KIND", layer: 0, head: 1 },
  { do: "head", text, kind: "KIND", layer: "mean", head: "mean" },
];
async function testPage(file) {
  const parts = partsOf(file), name = path.basename(file, ".html"), ask = await pageEngine(parts), native = await nativeEngine(qkv, parts, path.join(out, name + "-model"));
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
  if (file === pages[0]) await testLearning(name, ask, native);
  native.end();
}

async function testLearning(name, ask, native) {
  const steps = [{ do: "learn", start: {} }, { do: "learn", steps: 50 }, { do: "learn", weights: true }];
  let ours, theirs;
  for (const step of steps) [ours, theirs] = [await ask(step), await native.ask(step)];
  const d = difference(ours, theirs);
  console.log(`# ${name}: weights after 50 steps differ by ${d.toExponential(1)}`);
  check(`${name}: the same weights after 50 steps`, d < 1e-4, d);
}

for (const file of pages) await testPage(file);
finish();
