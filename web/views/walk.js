/* walk.js: one cell of one head, step by step: what goes in, q and k, their products, scale, mask, softmax, values, W_O, residual,
 * norm, feed-forward, logits, probabilities. */
'use strict';

const mostKeys = 24; // of which strips are drawn
const listOf = x => Array.isArray(x) ? x : Array.from(x?.data ?? []);
function rowsOf(x) {
    if (Array.isArray(x)) return x;
    const [n, m] = x.shape;
    return range(n).map(i => Array.from(x.data.subarray(i * m, (i + 1) * m)));
}
// The walk as the engine gives it, numbers as plain lists, -inf where it says null.
function walkOf(answer) {
    const lists = ['in', 'x', 'q', 'scores', 'masked', 'weights', 'head', 'concat', 'out', 'sum', 'norm', 'ffn_in', 'ffn_x', 'ffn_hidden', 'ffn_out', 'ffn_sum', 'layer_out', 'best'];
    const made = { ...answer, k: rowsOf(answer.k), v: rowsOf(answer.v), scaled: listOf(answer.scaled).map(x => x ?? -Infinity) };
    for (const name of lists) made[name] = listOf(answer[name]);
    made.best_p = made.best.map(({ p }) => p);
    made.best_logits = made.best.map(({ logit }) => logit);
    return made;
}
const walkRequest = () => about({ do: 'walk', kind: state.kind, layer: state.layer, head: state.head, query: state.query, n: 8 });
// A mean has no numbers of its own: the walk then goes through the first head of the last layer.
function wholeHead() {
    if (typeof state.layer !== 'number') state.layer = kindNow().layers - 1;
    if (typeof state.head !== 'number') state.head = 0;
}

// ---- parts of steps ----
const queryLabel = () => labelsOf(kindNow().rows)[state.query];
const keyLabels = () => labelsOf(kindNow().columns);
const said = (...parts) => element('p', { className: 'sum numbers' }, ...parts);
const named = (name, values, note) => [formula(name), values, note];

// The keys whose strips are drawn: the chosen one and those with the largest weights, in their order.
function keysShown(w) {
    const byWeight = range(w.keys).sort((a, b) => w.weights[b] - w.weights[a]), first = [state.key, ...byWeight.filter(j => j !== state.key)];
    return first.slice(0, mostKeys).sort((a, b) => a - b);
}
function keyStrips(w, rows, noteOf) {
    const shown = keysShown(w), labels = keyLabels();
    return [strips(shown.map(j => [labels[j], rows[j], noteOf?.(j)]), { marked: shown.indexOf(state.key) }),
        w.keys > shown.length ? note(tr('The {0} keys with the largest weights, of {1}.', shown.length, w.keys)) : ''];
}
// A row for each key; columns: [title, value of key j].
function keyTable(w, columns, barOf) {
    const labels = keyLabels(), head = [tr('key'), ...columns.map(([title]) => title), ...barOf ? [tr('weight')] : []];
    const row = j => element('tr', { className: `${j === state.key ? 'now' : ''}${w.masked[j] ? ' masked' : ''}` },
        element('th', { scope: 'row' }, button(`${j} ${labels[j]}`, () => change({ key: j }), { dir: 'auto', data: { keep: `key-${j}` } })),
        ...columns.map(([, value]) => element('td', {}, value(j))), barOf ? element('td', { className: 'wide' }, bar(barOf(j))) : null);
    return element('div', { className: 'scroll', tabIndex: 0, role: 'region', 'aria-label': tr('All keys') }, element('table', { className: barOf ? 'wide-table' : '' },
        element('thead', {}, element('tr', {}, ...head.map(text => element('th', { scope: 'col' }, text)))), element('tbody', {}, ...range(w.keys).map(row))));
}
const addition = (a, b, c, names) => strips([named(names[0], a), named(names[1], b), named(names[2], c)]);

// ---- the steps: what each is called, its formula, what it says and shows, its numbers ----
const walkSteps = [
    { title: () => tr('input'), formula: w => !w.pre_norm ? 'x = in' : 'x = Norm(in)', numbers: w => ({ in: w.in, x: w.x }),
        text: w => tr('What the layer reads for “{0}”: {1} numbers. They also go around the attention, to be added later.', queryLabel(), w.dim),
        show: w => [strips([named('in', w.in), named('x', w.x)])] },
    { title: () => 'q', formula: () => 'q = x W_Q + b_Q', numbers: w => ({ q: w.q }), text: w => tr('The query: what “{0}” looks for, {1} numbers of this head.', queryLabel(), w.d_k),
        show: w => [strips([named('x', w.x), named('q', w.q)])] },
    { title: () => 'k', formula: () => 'k_j = x_j W_K + b_K', numbers: w => ({ k: w.k }), text: () => tr('A key for every token: what it offers to be found by.'),
        show: w => [strips([named('q', w.q)]), ...keyStrips(w, w.k)] },
    { title: () => 'q · k', formula: () => 's_j = q · k_j = Σ_i q_i k_ji', numbers: w => ({ products: w.q.map((x, i) => x * w.k[state.key][i]), scores: w.scores }),
        text: () => tr('Number times number, then the sum: large where query and key point the same way. The key of “{0}”:', keyLabels()[state.key]), show: showProducts },
    { title: () => tr('scale'), formula: () => 'z_j = s_j / √d_k', numbers: w => ({ scale: w.scale, scores: w.scores, scaled: w.scaled }),
        text: w => tr('Times {0}: without it the sums grow with d_k = {1}, and softmax sees one key only.', short(w.scale), w.d_k),
        show: w => [keyTable(w, [[tr('score'), j => short(w.scores[j])], [tr('scaled'), j => short(w.masked[j] ? w.scores[j] * w.scale : w.scaled[j])]])] },
    { title: () => tr('mask'), formula: () => 'z_j = −∞', numbers: w => ({ masked: w.masked, scaled: w.scaled }),
        text: w => w.masked.some(Boolean) ? tr('Hatched keys are masked: the query must not see them. Their score becomes −∞, which is not zero: their weight will be exactly 0.')
            : tr('This query sees every key: nothing is masked here.'),
        show: w => [keyTable(w, [[tr('scaled'), j => short(w.scaled[j])], [tr('seen'), j => w.masked[j] ? tr('masked') : tr('yes')]])] },
    { title: () => 'softmax', formula: () => 'a_j = exp(z_j) / Σ_i exp(z_i)', numbers: w => ({ weights: w.weights }), text: readRow,
        show: w => [keyTable(w, [[tr('scaled'), j => short(w.scaled[j])], [formula('a_j'), j => digits(w.weights[j])]], j => w.weights[j])] },
    { title: () => tr('values'), formula: () => 'o = Σ_j a_j v_j', numbers: w => ({ v: w.v, head: w.head }), text: () => tr('Every value times its weight, all added up: what the head takes away.'),
        show: w => [...keyStrips(w, w.v.map((v, j) => v.map(x => x * w.weights[j])), j => `a = ${short(w.weights[j])}`), strips([named('o', w.head)])] },
    { title: () => formula('W_O'), formula: () => 'y = Concat(o_0, o_1, …) W_O + b_O', numbers: w => ({ concat: w.concat, out: w.out }),
        text: w => tr('All {0} heads side by side, mixed by one matrix. This head’s part is framed.', w.heads), show: showConcat },
    { title: () => tr('residual'), formula: () => 'h = in + y', numbers: w => ({ in: w.in, out: w.out, sum: w.sum }), text: () => tr('What went around is added: the attention only changes what was there.'),
        show: w => [addition(w.in, w.out, w.sum, ['in', 'y', 'h'])] },
    { title: () => tr('norm'), formula: w => !w.pre_norm ? 'Norm(h) = γ (h − μ) / σ + β' : 'Norm(h)', numbers: w => ({ norm: w.norm, ffn_x: w.ffn_x }),
        text: w => !w.pre_norm ? tr('Mean and spread are taken out, then scaled and shifted by learned numbers.') : tr('Here the norm stands in front of the next sub-layer: h goes on as it is, and the feed-forward network reads its norm.'),
        show: w => [strips([named('h', w.sum), named('Norm', !w.pre_norm ? w.norm : w.ffn_x)])] },
    { title: () => tr('feed-forward'), formula: () => 'f = g(x W_1 + b_1) W_2 + b_2', numbers: w => ({ ffn_x: w.ffn_x, ffn_hidden: w.ffn_hidden, ffn_out: w.ffn_out }),
        text: w => tr('Every token by itself: up to {0} numbers, through the activation, and back to {1}.', w.d_ff, w.dim), show: showFeedForward },
    { title: () => tr('layer output'), formula: () => 'h + f', numbers: w => ({ ffn_in: w.ffn_in, ffn_out: w.ffn_out, ffn_sum: w.ffn_sum, layer_out: w.layer_out }), text: () => tr('Added again: this is what the next layer reads.'),
        show: w => [strips([named('h', w.ffn_in), named('f', w.ffn_out), named('h + f', w.ffn_sum), [tr('out'), w.layer_out]])] },
    { title: () => 'logits', isThere: w => w.best.length > 0, formula: () => 'ℓ = h_last W_vocab + b', numbers: w => ({ best: w.best, best_logits: w.best_logits }),
        text: () => tr('After the last layer, one number for every word of the vocabulary, or for every class. The largest:'), show: w => [bestTable(w, 'best_logits')] },
    { title: () => tr('probabilities'), isThere: w => w.best.length > 0, formula: () => 'p = softmax(ℓ)', numbers: w => ({ best: w.best, best_p: w.best_p }), text: () => tr('And softmax once more: what the model says here.'),
        show: w => [bestTable(w, 'best_p')] },
];
function showProducts(w) {
    const key = w.k[state.key], products = w.q.map((x, i) => x * key[i]), sum = products.reduce((a, b) => a + b, 0);
    const terms = range(Math.min(3, products.length)).map(i => `${short(w.q[i])} × ${short(key[i])}`).join(' + ');
    return [strips([named('q', w.q), named('k_j', key)]), strips([[formula('q_i k_ji'), products]]), said(formula('s_j'), ` = ${terms} + … = `, element('b', {}, digits(sum))),
        keyTable(w, [[formula('s_j'), j => short(w.scores[j])]])];
}
function showConcat(w) {
    const high = largestOf(w.concat), part = strip(w.concat, { high, label: 'concat' }), size = w.concat.length, pen = new CanvasPen(part.getContext('2d'), 1), cell = parseFloat(part.style.width) / size;
    pen.frame(state.head * w.d_v * cell + 1, 1, w.d_v * cell - 2, 18, '#000', 2);
    return [element('div', { className: 'strips' }, element('span', { className: 'strip-name' }, 'concat'), part, element('span')), strips([named('o', w.head), named('y', w.out)])];
}
function showFeedForward(w) {
    return [strips([named('x', w.ffn_x)]), strips([[tr('hidden'), w.ffn_hidden]]), strips([named('f', w.ffn_out)]),
        note(tr('{0} of {1} hidden numbers are not zero.', w.ffn_hidden.filter(x => x !== 0).length, w.d_ff))];
}
// The row in words: who gets most.
function readRow(w) {
    const labels = keyLabels(), best = range(w.keys).sort((a, b) => w.weights[b] - w.weights[a]).slice(0, 2);
    return tr('Exponentials over their sum: a row that adds up to 1. “{0}” attends {1} to “{2}”.', queryLabel(), percent(w.weights[best[0]]), labels[best[0]]);
}
function bestTable(w, name) {
    const names = w.best_tokens, high = Math.max(...w[name].map(Math.abs), 1e-9);
    return element('table', { className: 'wide-table' }, element('thead', {}, element('tr', {}, ...[tr('token'), name === 'best_p' ? tr('probability') : tr('logit'), tr('size')].map(text => element('th', { scope: 'col' }, text)))),
        element('tbody', {}, ...w.best.map((_, i) => element('tr', {}, element('th', { scope: 'row', dir: 'auto' }, labelOf(names[i])),
            element('td', {}, name === 'best_p' ? percent(w[name][i]) : short(w[name][i])), element('td', { className: 'wide' }, bar(w[name][i] / high))))));
}

// ---- the view ----
let walked = null;
const stepsNow = () => walkSteps.filter(step => !step.isThere || step.isThere(walked));
const stepBy = by => { if (walked) change({ step: clamp(state.step + by, 0, stepsNow().length - 1) }); };

function drawWalkBar(host) {
    const { layers, heads, rows, columns } = kindNow(), count = n => range(n).map(i => [i, `${i}`]);
    fill(host, kindSwitch(), numberSelect(tr('Layer'), count(layers), state.layer, v => change({ layer: +v }), 'walk-layer'), numberSelect(tr('Head'), count(heads), state.head, v => change({ head: +v }), 'walk-head'),
        numberSelect(tr('Query'), numbered(labelsOf(rows)), state.query, v => change({ query: +v }), 'walk-query'), numberSelect(tr('Key'), numbered(labelsOf(columns)), state.key, v => change({ key: +v }), 'walk-key'),
        saving(() => `walk-${state.kind}-${state.layer}.${state.head}-${state.query}`, { value: () => ({ model: info.name, text: run.text, kind: state.kind, layer: state.layer, head: state.head, query: state.query, ...walked }),
            rows: () => [['key', 'score', 'scaled', 'masked', 'weight'], ...range(walked.keys).map(j => [tokensOf(columns)[j], walked.scores[j], Number.isFinite(walked.scaled[j]) ? walked.scaled[j] : '', walked.masked[j], walked.weights[j]])] }));
}
function drawStepList(host, steps, now) {
    const entry = (step, i) => element('li', {}, element('button', { type: 'button', 'aria-current': i === now ? 'step' : 'false', data: { keep: `step-${i}` }, on: { click: () => change({ step: i }) } }, `${i + 1} `, step.title()));
    fill(host, element('ol', { className: 'steps' }, ...steps.map(entry)));
}
const plainNumbers = numbers => Object.entries(numbers).map(([name, value]) => `${name} = ${JSON.stringify(value, (_, x) => typeof x === 'number' ? Number.isFinite(x) ? exact(x) : '−∞' : x)}`).join('\n');

views.push({
    name: 'walk', title: () => tr('Walk'), isThere: () => can('walk'),
    onKey(key) {
        if (key !== 'n' && key !== 'p') return false;
        stepBy(key === 'n' ? 1 : -1);
        return true;
    },
    build(host) {
        host.append(element('div', { className: 'bar walk-bar' }), element('nav', { 'aria-label': tr('Steps') }), element('section', { className: 'card', 'aria-labelledby': 'walk-title' }));
    },
    async update(host, isCurrent) {
        wholeHead();
        const answer = await newest('walk', walkRequest());
        if (!answer || !isCurrent()) return;
        walked = walkOf(answer);
        const steps = stepsNow(), now = clamp(state.step, 0, steps.length - 1), step = steps[now];
        drawWalkBar(host.querySelector('.walk-bar'));
        drawStepList(host.querySelector('nav'), steps, now);
        fill(host.querySelector('section'), element('div', { className: 'bar' }, element('h2', { id: 'walk-title' }, `${now + 1} `, step.title()),
            button(tr('◂ Back'), () => stepBy(-1), { disabled: now === 0, data: { keep: 'walk-back' } }), button(tr('Next ▸'), () => stepBy(1), { className: 'primary', disabled: now === steps.length - 1, data: { keep: 'walk-next' } })),
        formula(step.formula(walked)), element('p', { className: 'stage-text', dir: 'auto' }, step.text(walked)), ...step.show(walked),
        element('details', { className: 'all' }, element('summary', {}, tr('All numbers')), element('pre', { tabIndex: 0, role: 'region', 'aria-label': tr('All numbers') }, plainNumbers(step.numbers(walked)))));
        tell(tr('Step {0} of {1}', now + 1, steps.length));
    },
});
