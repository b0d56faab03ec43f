"use strict";
/* live.js: type a text, see what the model makes of it and what one head attends to. Views of their own are in other files. */

const LIVE_TEXTS = {
  en: {
    source: "Text", translate: "Translation", classify: "Class", generate: "Continuation", encode: "Tokens",
    heads: "What it attends to", kind: "attention", layer: "layer", head: "head", mean: "mean", loading: "The model is being loaded.",
    encoder: "source to source", decoder: "target to target", cross: "target to source",
    about: (i, where) => `${i.name}: ${i.parameters.toLocaleString("en")} parameters, ${i.heads} heads, ${where}`,
    local: "computed in this page", remote: "computed by the server", took: ms => `${ms.toFixed(0)} ms`, masked: "masked",
  },
  zh: {
    source: "文本", translate: "译文", classify: "类别", generate: "续写", encode: "词元",
    heads: "注意力", kind: "注意力", layer: "层", head: "头", mean: "平均", loading: "正在加载模型。",
    encoder: "源文对源文", decoder: "译文对译文", cross: "译文对源文",
    about: (i, where) => `${i.name}：${i.parameters.toLocaleString("en")} 个参数，${i.heads} 个头，${where}`,
    local: "在本页面中计算", remote: "由服务器计算", took: ms => `${ms.toFixed(0)} 毫秒`, masked: "已掩蔽",
  },
};
const say = LIVE_TEXTS[/^zh/i.test(navigator.language) ? "zh" : "en"];
const at = id => document.getElementById(id);

/* Weights of a kind, a layer and a head, or their mean, as rows. */
function chosenWeights(run, kind, layer, head) {
  const { shape, data } = run.weights[kind], [layers, heads, rows, columns] = shape;
  const sum = new Float32Array(rows * columns);
  let n = 0;
  for (let l = 0; l < layers; l++)
    for (let h = 0; h < heads; h++) {
      if ((layer !== "mean" && layer !== l) || (head !== "mean" && head !== h)) continue;
      const from = (l * heads + h) * rows * columns;
      for (let i = 0; i < sum.length; i++) sum[i] += data[from + i];
      n++;
    }
  return { rows, columns, weights: sum.map(x => x / n) };
}

function drawMap(run, kind, layer, head) {
  const about = run.kinds.find(k => k.kind === kind), map = chosenWeights(run, kind, layer, head);
  const queries = run.sides[about.rows].tokens, keys = run.sides[about.columns].tokens;
  const table = document.createElement("table"), top = table.createTHead().insertRow(), body = table.createTBody();
  const cell = (row, name, text) => row.appendChild(Object.assign(document.createElement(name), { textContent: text }));
  cell(top, "td", "");
  for (const key of keys) cell(top, "th", key).scope = "col";
  for (let i = 0; i < map.rows; i++) {
    const row = body.insertRow();
    cell(row, "th", queries[i]).scope = "row";
    for (let k = 0; k < map.columns; k++) {
      const x = map.weights[i * map.columns + k], isMasked = kind === "decoder" && k > i;
      const one = cell(row, "td", isMasked ? "" : x.toFixed(2));
      if (isMasked) one.className = "is-masked", one.title = say.masked;
      else one.style.background = `rgba(var(--cell), ${(0.55 * x).toFixed(3)})`;
    }
  }
  at("map").replaceChildren(table);
}

function outputText(run) {
  const o = run.output;
  if (o.translations) return o.translations.length ? o.translations[0].text : "";
  if (o.classes) return o.classes.map(c => `${c.label} ${(100 * c.probability).toFixed(1)}%`).join("   ");
  if (o.text !== undefined) return run.text + o.text;
  return run.sides.source.tokens.join(" ");
}

function fillSelect(select, values, names) {
  const before = select.value;
  select.replaceChildren(...values.map((value, i) => new Option(names[i], value)));
  if (values.map(String).includes(before)) select.value = before;
}

async function startLive() {
  let run = null;
  at("status").textContent = say.loading;
  const engine = await openEngine(), info = await engine.ask({ do: "info" });
  window.qkvEngine = engine; // for views, tests and the console
  at("about").textContent = say.about(info, engine.isLocal ? say.local : say.remote);
  at("text-label").textContent = say.source;
  at("output-label").textContent = say[info.task];
  at("heads-label").textContent = say.heads;
  for (const name of ["kind", "layer", "head"]) at(name + "-label").textContent = say[name];

  const number = id => (at(id).value === "mean" ? "mean" : Number(at(id).value));
  const draw = () => run && run.weights[at("kind").value] && drawMap(run, at("kind").value, number("layer"), number("head"));
  function choose() {
    const kinds = run.kinds.filter(k => run.weights[k.kind]);
    fillSelect(at("kind"), kinds.map(k => k.kind), kinds.map(k => say[k.kind]));
    const kind = kinds.find(k => k.kind === at("kind").value);
    const upTo = n => ["mean", ...Array(n).keys()], named = n => [say.mean, ...Array(n).keys()];
    if (kind) fillSelect(at("layer"), upTo(kind.layers), named(kind.layers));
    if (kind) fillSelect(at("head"), upTo(kind.heads), named(kind.heads));
    draw();
  }
  async function typed() {
    at("output").classList.add("is-old");
    const begin = performance.now();
    try {
      const answer = await engine.latest("typed", { do: "run", text: at("text").value });
      if (!answer) return;
      run = answer;
      at("output").textContent = outputText(run);
      at("output").classList.remove("is-old");
      at("status").textContent = say.took(performance.now() - begin);
      if (!at("kind").value && run.weights.cross) fillSelect(at("kind"), ["cross"], [say.cross]);
      choose();
    } catch (error) {
      at("status").textContent = error.message;
    }
    document.body.dataset.answers = Number(document.body.dataset.answers || 0) + 1;
  }
  at("text").value = info.example;
  at("text").addEventListener("input", typed);
  at("kind").addEventListener("change", choose);
  for (const id of ["layer", "head"]) at(id).addEventListener("change", draw);
  await typed();
}
startLive().catch(error => { at("status").textContent = error.message; });
