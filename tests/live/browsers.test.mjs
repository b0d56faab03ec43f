// browsers.test.mjs: live pages from disk in Chromium and Firefox: what they answer against the native engine and the command, on the
// same weights. usage: browsers.test.mjs [--timed] QKV OUT SENTENCES PAGE...; the first page is that of a translator.
// --timed: the first answer must come within a second, each later one within 150 ms: for a quiet machine.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { browsers, Silence } from "./browsers.mjs";
import { check, difference, finish, nativeEngine, partsOf } from "./engines.mjs";

const isTimed = process.argv[2] === "--timed", [qkv, out, sentencesFile, ...pages] = process.argv.slice(isTimed ? 3 : 2);
const sentences = fs.readFileSync(sentencesFile, "utf8").split("\n").filter(Boolean), cells = Math.min(50, sentences.length >> 1);
const command = (...words) => execFileSync(qkv, words, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], maxBuffer: 1 << 28 });
const remembered = new Map(); // what the command says, for the next browser
function once(work, ...words) {
  const key = words.join("\0");
  if (!remembered.has(key)) remembered.set(key, work(...words));
  return remembered.get(key);
}
const sleep = ms => new Promise(done => setTimeout(done, ms));
async function until(page, isSo, ...given) {
  for (let i = 0; i < 1200; i++) if (await page.evaluate(isSo, ...given)) return;
    else await sleep(50);
  throw new Error(`waited for ${isSo}`);
}
const isAnswered = () => document.readyState === "complete" && performance.getEntriesByName("first answer").length > 0 && !document.body.classList.contains("busy");
const asker = page => async request => JSON.parse(await page.evaluate(text => send({ request: text }), JSON.stringify(request)));
let random = 1;
const below = n => (random = (random * 48271) % 2147483647) % n; // the same cells every time

// ---- times, as somebody sees them who types ----
async function typed(page, text) {
  return page.evaluate(async text => {
    const begin = performance.now();
    await change({ text, ids: "", target: "", switches: "", touched: 0 }, { typing: true });
    return performance.getEntriesByName("answer seen").at(-1).startTime - begin;
  }, text);
}
async function testTimes(title, page, texts) {
  const [first, view] = await page.evaluate(() => ["answer seen", "first answer"].map(name => performance.getEntriesByName(name)[0].startTime));
  const times = [];
  for (const text of texts) times.push(await typed(page, text));
  times.sort((a, b) => a - b);
  const most = times.at(-1);
  console.log(`# ${title}: the first answer after ${first.toFixed(0)} ms, its view after ${view.toFixed(0)}; ${times.length} later ones ${times[times.length >> 1].toFixed(0)} (median) to ${most.toFixed(0)} ms`);
  if (isTimed) check(`${title}: a second and 150 ms`, first < 1000 && most < 150);
}

// ---- answers ----
async function testAnswers(title, ask, native, texts) {
  let most = 0;
  for (const text of texts) {
    const request = { do: "run", text }, ours = await ask(request), d = difference(ours, await once(() => native.ask(request), native.folder, text));
    most = Math.max(most, d);
    check(`${title}: ${text}`, !ours.error && d <= 1e-4, `differs by ${d} ${JSON.stringify(ours.error ?? "")}`);
  }
  console.log(`# ${title}: ${texts.length} answers like the native engine's, the largest difference of any number ${most.toExponential(1)}`);
}
async function testTranslations(title, ask, folder, texts) {
  const wanted = once(() => execFileSync(qkv, ["translate", "-m", folder], { input: texts.join("\n") + "\n", encoding: "utf8" }), "translate", folder);
  const found = [];
  for (const text of texts) found.push((await ask({ do: "run", text })).output.translations[0].text);
  const same = found.filter((text, i) => text === wanted.split("\n")[i]).length;
  console.log(`# ${title}: ${same} of ${texts.length} translations are those of qkv translate`);
  check(`${title}: translations`, same === texts.length);
}

// ---- every number of a cell, against "qkv explain" ----
const farthest = (a, b) => {
  const [x, y] = [a, b].map(values => values.flat(3).map(v => v ?? -Infinity));
  return x.length !== y.length ? Infinity : x.reduce((most, v, i) => (v === y[i] ? most : Math.max(most, Math.abs(v - y[i]))), 0);
};
async function testWalk(title, ask, folder, info) {
  let most = 0;
  for (let i = 0; i < cells; i++) {
    const text = sentences[below(sentences.length)], kind = ["encoder", "decoder", "cross"][below(3)], layer = below(2), head = below(info.heads);
    const told = JSON.parse(once(command, "explain", "-m", folder, "--text", text, "--kind", kind, "--layer", `${layer}`, "--head", `${head}`, "--json"));
    const query = below(told.queries.length), { target_ids } = await ask({ do: "run", text });
    const walk = await ask({ do: "walk", text, target_ids, kind, layer, head, query, special: true, pieces: true });
    const pairs = [[walk.x, told.x[query]], [walk.q, told.q[query]], [walk.k, told.k], [walk.v, told.v], [walk.weights, told.weights[0][query]],
      [walk.head, told.attended[0][query]], [walk.scores, told.scores[0][query]], [walk.scaled, (told.masked ?? told.scaled)[0][query]]];
    const d = Math.max(...pairs.map(([ours, theirs]) => farthest(ours, theirs)));
    most = Math.max(most, d);
    check(`${title}: the walk of ${kind} ${layer}.${head}.${query} of ${text}`, d <= 1e-4, d);
  }
  console.log(`# ${title}: ${cells} cells like those of qkv explain, the largest difference ${most.toExponential(1)}`);
}

// ---- switches, against "qkv attend" ----
const switches = ["without-head=cross:1.1", "without-layer=decoder:1", "hide-key=1", "move=encoder:0=2", "edit-row=cross:1.1.0=0.25,0.75", "swap-values=cross:0=1",
  "zero-value=encoder:1"];
async function testSwitches(title, ask, folder) {
  const floats = ({ f32 }) => Array.from(new Float32Array(new Uint8Array(Buffer.from(f32, "base64")).buffer)), text = sentences[0], plain = await ask({ do: "run", text });
  let most = 0;
  for (const one of switches) {
    const [, option, value] = one.match(/^([a-z-]+)=(.*)$/), run = await ask({ do: "run", text, switches: [one], special: true, pieces: true });
    const given = ["-m", folder, "--text", text, `--${option}`, value];
    const maps = JSON.parse(once(command, "attend", ...given, "--kind", "cross", "--layer", "all", "--head", "all", "--json", "--pieces"));
    const d = farthest(floats(run.weights.cross), maps.map(({ weights }) => weights));
    most = Math.max(most, d);
    check(`${title}: ${one}`, d <= 1e-4, d);
    check(`${title}: ${one} changes something`, difference(run, plain) > 1e-6);
    const said = once((...words) => execFileSync(qkv, ["translate", ...words], { input: text, encoding: "utf8" }), "-m", folder, `--${option}`, value).trimEnd();
    check(`${title}: ${one}: the translation`, run.output.translations[0].text === said, `${run.output.translations[0].text} ${said}`);
  }
  console.log(`# ${title}: ${switches.length} switches like those of qkv attend, the largest difference ${most.toExponential(1)}`);
}

// ---- a model that learns in the page ----
async function testLearning(title, ask, native) {
  let ours, theirs, now = { accuracy: 0 };
  for (const step of [{ do: "learn", start: {} }, { do: "learn", steps: 50 }, { do: "learn", weights: true }]) [ours, theirs] = [await ask(step), await native.ask(step)];
  const d = difference(ours, theirs);
  check(`${title}: the same weights after 50 steps`, d < 1e-4, d);
  while (now.accuracy < 0.9 && !(now.step > 1000)) now = await ask({ do: "learn", steps: 50 });
  console.log(`# ${title}: weights after 50 steps differ by ${d.toExponential(1)}; ${(100 * now.accuracy).toFixed(0)}% right after ${now.step} steps and ${now.seconds.toFixed(1)} s`);
  check(`${title}: it learns`, now.accuracy >= 0.9 && now.seconds < 60);
}

// ---- links, the way back, and what leaves the page ----
const seen = () => [location.hash, find("text").value, find("answer-body").textContent, find("panel").textContent];
async function testLinks(title, browser, page, file) {
  const go = changes => page.evaluate(changes => change(changes), changes), settled = view => until(page, view => state.view === view && !document.body.classList.contains("busy"), view);
  await go({ text: sentences[1], view: "head", kind: "encoder", layer: 0, head: 1, beam: 2 });
  await settled("head");
  const before = await page.evaluate(seen);
  await go({ view: "walk", query: 1 });
  await settled("walk");
  const after = await page.evaluate(seen);
  await page.evaluate(() => history.back());
  await settled("head");
  check(`${title}: back`, difference(await page.evaluate(seen), before) === 0);
  await page.evaluate(() => history.forward());
  await settled("walk");
  check(`${title}: forward`, difference(await page.evaluate(seen), after) === 0);
  for (const wanted of [before, after]) {
    const fresh = await browser.open(pathToFileURL(file).href + wanted[0]);
    await until(fresh, isAnswered);
    check(`${title}: a link in a fresh profile`, difference(await fresh.evaluate(seen), wanted) === 0, JSON.stringify([await fresh.evaluate(seen), wanted]));
    await fresh.close();
  }
}
async function testSilence(title, page) {
  const loaded = await page.evaluate(() => performance.getEntriesByType("resource").map(r => r.name).filter(name => !/^(blob|data):/.test(name)));
  check(`${title}: no request leaves the page`, !loaded.length, loaded.join(" "));
  const refused = await page.evaluate(() => new Promise(done => {
    document.addEventListener("securitypolicyviolation", event => done(event.effectiveDirective));
    fetch("http://127.0.0.1:9/").catch(() => {});
    setTimeout(done, 2000, "sent");
  }));
  check(`${title}: its policy lets none out`, refused === "connect-src", refused);
}

async function testPage(browser, file, native) {
  const name = path.basename(file, ".html"), title = `${name} in ${browser.name}`, page = await browser.open(pathToFileURL(path.resolve(file)).href);
  await sleep(isTimed ? 1500 : 0); // while it opens nobody asks
  await until(page, isAnswered);
  const ask = asker(page), info = await ask({ do: "info" }), isTranslator = info.task === "translate";
  const texts = isTranslator ? sentences : [info.example, ...sentences];
  await testTimes(title, page, texts.slice(0, 20));
  await testAnswers(title, ask, native, texts);
  await testSilence(title, page);
  if (file === pages[0]) {
    await testTranslations(title, ask, native.folder, texts);
    await testWalk(title, ask, native.folder, info);
    await testSwitches(title, ask, native.folder);
    await testLinks(title, browser, page, path.resolve(file));
    if (browser.name === "Chromium") await testLearning(title, ask, native);
  }
  await page.close();
}

async function openAtRest(open) {
  const browser = await open();
  await sleep(isTimed ? 3000 : 0); // what it does when it starts is not the page's
  return browser;
}

const natives = [];
for (const file of pages) natives.push(await nativeEngine(qkv, partsOf(file), path.join(out, path.basename(file, ".html") + "-model")));
for (const { program, open } of browsers) {
  if (!open) {
    console.log(`skipped - pages in ${program}, which is not installed (tools/deps test installs it)`);
    continue;
  }
  let browser = await openAtRest(open);
  for (const [i, file] of pages.entries())
    try {
      await testPage(browser, file, natives[i]);
    } catch (error) { // once: a browser on a busy machine may come to a stand by itself, a page that does it twice is at fault
      if (!(error instanceof Silence)) throw error;
      console.log(`# ${file} in ${browser.name}: ${error.message}; once more in a new one`);
      browser.end();
      browser = await openAtRest(open);
      await testPage(browser, file, natives[i]);
    }
  browser.end();
}
for (const native of natives) native.end();
finish();
