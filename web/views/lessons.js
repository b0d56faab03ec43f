/* lessons.js: lessons of "qkv learn" that are arithmetic, with numbers that can be changed. Their texts are the command's, and so are
 * the numbers before anything is changed: tests/page/views.test.mjs compares them. */
'use strict';

// ---- arithmetic on matrices, which are arrays of rows ----
const sumOf = row => row.reduce((sum, x) => sum + x, 0), meanOf = row => sumOf(row) / row.length;
const dot = (a, b) => sumOf(a.map((x, i) => x * b[i]));
const transposed = a => a[0].map((_, j) => a.map(row => row[j]));
const product = (a, b) => a.map(row => transposed(b).map(column => dot(row, column)));
const each = (a, act) => a.map((row, i) => row.map((x, j) => act(x, i, j)));
const columnsOf = (a, from, to) => a.map(row => row.slice(from, to));
// A row that may see nothing takes nothing.
function softmaxOf(row) {
    const most = Math.max(...row), exps = row.map(x => most === -Infinity ? 0 : Math.exp(x - most));
    return exps.map(x => x / (sumOf(exps) || 1));
}
const varianceOf = (x, less = 0) => sumOf(x.map(v => (v - meanOf(x)) ** 2)) / (x.length - less);
const layerNormOf = x => x.map(v => (v - meanOf(x)) / Math.sqrt(varianceOf(x) + 1e-5));
const rmsNormOf = x => x.map(v => v / Math.sqrt(meanOf(x.map(w => w * w)) + 1e-5));
const positionOf = (place, d) => range(d).map(i => (i % 2 ? Math.cos : Math.sin)(place / 10000 ** ((i - i % 2) / d)));
function smoothedLoss(logits, targets, s) {
    return meanOf(logits.map((row, i) => {
        const logs = softmaxOf(row).map(Math.log);
        return -(1 - s) * logs[targets[i]] - s * meanOf(logs);
    }));
}
// Runs of n words, each counted at most as often as the reference has it.
function ngramMatches(words, reference, n) {
    const count = list => range(list.length - n + 1).reduce((all, i) => { const run = list.slice(i, i + n).join(' '); return all.set(run, (all.get(run) ?? 0) + 1); }, new Map());
    const theirs = count(reference);
    return [sumOf([...count(words)].map(([run, times]) => Math.min(times, theirs.get(run) ?? 0))), Math.max(0, words.length - n + 1)];
}
const learningRate = (step, d, warmUp) => d ** -0.5 * Math.min(step ** -0.5, step * warmUp ** -1.5);

// ---- what a lesson shows ----
// As the command prints floats.
const digitsOf = (x, n) => x === -Infinity ? '−∞' : minus((Math.abs(x) < 0.5 * 10 ** -n ? 0 : Math.fround(x)).toFixed(n));
const line = text => element('p', { className: 'quiet' }, text);
const written = text => element('p', {}, formula(text));
const heading = text => element('h3', {}, text);
// A matrix: names of rows and columns, so many digits; sums: a column of them; weights are shaded; hidden(i, j): masked.
function matrix(values, { rows = values.map((_, i) => i), columns = values[0].map((_, j) => j), digits: n = 3, sums = false, shaded = false, hidden = () => false } = {}) {
    const cell = (x, i, j) => {
        if (hidden(i, j)) return element('td', { className: 'masked', title: tr('masked') }, '///');
        const made = element('td', {}, digitsOf(x, n[j] ?? n)), colour = shaded ? shade(x, 1, false) : 0;
        if (shaded) Object.assign(made.style, { background: paletteCss[colour], color: onShade(colour) });
        return made;
    };
    return element('table', { className: 'matrix' },
        element('thead', {}, element('tr', {}, element('td'), ...columns.map(name => element('th', { scope: 'col', dir: 'auto' }, `${name}`)), sums ? element('th', { scope: 'col', className: 'row-sum' }, tr('sum')) : null)),
        element('tbody', {}, ...values.map((row, i) => element('tr', {}, element('th', { scope: 'row', dir: 'auto' }, `${rows[i]}`), ...row.map((x, j) => cell(x, i, j)), sums ? element('td', { className: 'row-sum' }, digitsOf(sumOf(row.filter((_, j) => !hidden(i, j))), n)) : null))));
}
// S[0][0] = 0.835 * 0.933 + 0.978 * 1.387 = 2.136
const spelledSum = (name, a, b, n) => element('p', { className: 'numbers by-hand' }, `${name} = ${a.map((x, i) => `${digitsOf(x, n)} × ${digitsOf(b[i], n)}`).join(' + ')} = ${digitsOf(dot(a, b), n)}`);

// ---- the lessons: inputs are matrices, rows or texts, by name ----
const handTokens = ['哈基咪', '南北', '绿豆'], maskedWords = ['I', 'love', 'you', 'too'], paddedWords = n => maskedWords.map((_, i) => i < n ? ['thank', 'you', 'very', 'much'][i] : '<pad>');
const lessons = [
    { name: 'attention', number: 1, title: () => tr('Query, key and value by hand'), written: 'Attention(Q, K, V) = softmax(Q K^T / √d_k) V',
        inputs: { Q: [[0.83469, 0.97845], [-0.22141, -0.50136], [-0.38049, -0.49219]], K: [[0.93336, 1.38711], [-0.48322, -0.40851], [-0.40379, -0.55737]],
            V: [[1.03332, -0.07687, 1.94313, -1.26163], [1.18222, -0.02983, -1.46568, 1.37369], [-0.1396, -0.50793, -0.88052, 1.52022]] }, names: handTokens,
        show({ Q, K, V }) {
            const names = { rows: handTokens, columns: handTokens }, scores = product(Q, transposed(K)), scaled = each(scores, x => x / Math.sqrt(Q[0].length)), weights = scaled.map(softmaxOf), exps = scaled[0].map(Math.exp), three = x => digitsOf(x, 3);
            return [heading(tr('Step 1: scores')), line(tr('Every query meets every key: score = q . k, the sum of the products, number by number. It is large where the two point the same way and negative where they point apart. The first one by hand:')), spelledSum('S[0][0]', Q[0], K[0], 3),
                line(tr('And all of them, S = Q K^T: a row for each query, a column for each key.')), matrix(scores, names),
                heading(tr('Step 2: scaling')), line(tr('All scores are divided by sqrt(d_k) = {0}, so that they do not grow with the length of the vectors. Lesson 2 is about why.', three(Math.sqrt(Q[0].length)))), matrix(scaled, names),
                heading(tr('Step 3: softmax')), line(tr('Scores become shares: take exp of each, which is always above 0, and divide by the sum of the row. For the first row the three exps are {0}, {1} and {2}, their sum is {3}, and the first share is {4} / {5} = {6}.', ...exps.map(three), three(sumOf(exps)), three(exps[0]), three(sumOf(exps)), three(exps[0] / sumOf(exps)))), matrix(weights, { ...names, sums: true, shaded: true }),
                line(tr('These are the attention weights: row i says how much token i takes from each token. Each row sums to 1.')),
                heading(tr('Step 4: the weighted sum')), line(tr('Each token takes the values by its shares. The first number of the first output is the first column of V, weighted by the first row of the shares:')), spelledSum('O[0][0]', weights[0], transposed(V)[0], 3),
                line(tr('All outputs, O = A V, where A are the shares:')), matrix(product(weights, V), { rows: handTokens })];
        } },
    { name: 'softmax', number: 12, title: () => tr('Why softmax'), written: 'softmax(x)_i = exp(x_i) / (exp(x_1) + … + exp(x_n))', inputs: { x: [2, 1, 0.1] },
        show({ x }) {
            const p = softmaxOf(x), four = v => digitsOf(v, 4);
            return [matrix([p, softmaxOf(x.map(v => v + 100)), softmaxOf(x.map(v => 2 * v)), softmaxOf(x.map(v => v / 2))], { rows: ['x', 'x + 100', '2 x', 'x / 2'], digits: 4, sums: true, shaded: true }),
                line(tr('It normalises: every row is above 0 and sums to 1, whatever the scores are; x / sum(x) would not with negative ones. Adding 100 to all changes nothing, which is why the largest is subtracted before exp.')),
                line(tr('It is differentiable: the gradient of the first share is [{0}, {1}, {2}], p_i (1 - p_i) at its own score and -p_i p_j at others. The largest alone (argmax) would have gradient 0 everywhere, and nothing could be learned through it.', four(p[0] * (1 - p[0])), four(-p[0] * p[1]), four(-p[0] * p[2])))];
        } },
    { name: 'masks', number: 3, title: () => tr('Masks: causal and padding'), inputs: { S: [[0.61641, 0.77101, -0.07585, 0.05932], [-1.3392, -0.99905, 0.13168, 0.73089], [-1.33862, -0.39569, 0.36962, 1.60062], [0.79827, -1.08805, -0.96245, -2.96554]], length: [2] }, names: maskedWords,
        show({ S, length: [length] }) {
            const names = { rows: maskedWords, columns: maskedWords }, n = clamp(Math.round(length), 0, 4), padded = { rows: paddedWords(n), columns: paddedWords(n) }, later = (i, j) => j > i, behind = (i, j) => j >= n, either = (i, j) => later(i, j) || behind(i, j);
            const under = hides => each(S, (x, i, j) => hides(i, j) ? -Infinity : x), seen = (hides, more) => matrix(under(hides).map(softmaxOf), { ...more, hidden: hides, sums: true, shaded: true });
            return [line(tr('Without a mask every token sees every token. Scores (scaled), and the weights that the softmax makes of them:')), seen(() => false, names),
                heading(tr('The causal mask')), line(tr('A model that writes a text word by word must not look at words that are not written yet. So position i sees 0 to i only. The mask is added to the scores before the softmax: 0 where one may look, -inf where one may not.')),
                line(tr('Scores with the mask, and their softmax. exp(-inf) = 0, so a hidden key (///) gets exactly 0, and the others share what it had:')), matrix(under(later), names), seen(later, names),
                heading(tr('The padding mask')), seen(behind, padded), line(tr('The rows of the padding itself are still computed. Nobody reads them, and the loss leaves them out.')),
                line(tr('Masks combine: a key is seen only if all of them let it be seen. Both at once:')), seen(either, padded)];
        } },
    { name: 'positions', number: 6, title: () => tr('Sines and cosines'), written: 'PE(pos, 2i) = sin(pos / 10000^{2i/d}),  PE(pos, 2i+1) = cos(pos / 10000^{2i/d})', inputs: { d: [4], 'd of the products': [64] },
        show({ d: [d], 'd of the products': [wide] }) {
            const even = x => 2 * clamp(Math.round(x / 2), 1, 256), ks = [0, 1, 2, 5, 10, 20], ps = [0, 7, 15, 29], at = (p, k) => dot(positionOf(p, even(wide)), positionOf(p + k, even(wide)));
            return [matrix(range(5).map(p => positionOf(p, Math.min(16, even(d)))), { rows: range(5).map(p => `PE(${p})`), digits: 4 }), line(tr('They are the hands of a clock: the fast one tells neighbours apart, the slow one tells far places apart.')),
                line(tr('Attention compares by dot products. Here is PE(p) . PE(p + k) at d = {0}, for some places p and distances k:', even(wide))), matrix(ps.map(p => ks.map(k => at(p, k))), { rows: ps.map(p => `p = ${p}`), columns: ks.map(k => `k = ${k}`) })];
        } },
    { name: 'norm', number: 7, title: () => tr('LayerNorm: every vector on one scale'), written: 'LayerNorm(x) = gain (x − mean) / √(var + eps) + bias', inputs: { x: [140, 150, 160, 170, 180] },
        show({ x }) {
            return [matrix([x, layerNormOf(x)], { rows: ['x', 'LayerNorm(x)'], digits: 4 }),
                line(tr('The mean is {0}. The variance is the biased one, divided by n: {1}. Divided by n - 1 it would be {2}, and the first number would be {3}: weights trained with the one do not fit the other.', short(meanOf(x)), short(varianceOf(x)), short(varianceOf(x, 1)), digitsOf((x[0] - meanOf(x)) / Math.sqrt(varianceOf(x, 1)), 4))),
                heading(tr('RMSNorm: only the length')), written('RMSNorm(x) = gain x / √(mean(x²) + eps)'), matrix([layerNormOf(x), rmsNormOf(x), rmsNormOf(x.map(v => 10 * v))], { rows: ['LayerNorm', 'RMSNorm', 'RMSNorm(10 x)'], digits: 4 })];
        } },
    { name: 'loss', number: 7, title: () => tr('Label smoothing: never quite sure'), written: 'loss = −(1 − s) log p[target] − s/K (log p[0] + … + log p[K−1])', inputs: { logits: [[2, 1, 0.1], [0.5, 2.5, 0.3]], targets: [0, 1], s: [0.1] },
        show({ logits, targets, s: [given] }) {
            const s = clamp(given, 0, 1), right = targets.map(t => clamp(Math.round(t), 0, logits[0].length - 1));
            return [line('softmax(logits)'), matrix(logits.map(softmaxOf), { digits: 4, sums: true, shaded: true }),
                matrix([[smoothedLoss(logits, right, 0)], [smoothedLoss(logits, right, s)]], { rows: [tr('without smoothing'), `s = ${s}`], columns: ['loss'], digits: 6 })];
        } },
    { name: 'feed-forward', number: 13, title: () => tr('The feed-forward network and ReLU'), written: 'FFN(x) = max(0, x W_1 + b_1) W_2 + b_2',
        inputs: { x: [[1, 2], [-1, 1], [0, -1], [2, 0]], W_1: [[1, 1, -2], [1, -1, 1]], b_1: [0, 0, 1], W_2: [[1, 0], [0, 1], [2, -1]], b_2: [0.5, 0] },
        show({ x, W_1, b_1, W_2, b_2 }) {
            const inner = each(product(x, W_1), (v, i, j) => v + b_1[j]), kept = each(inner, v => Math.max(0, v));
            return [line(tr('max(0, x) is called ReLU: what is negative becomes 0, the rest stays, and so does its gradient, 1 or 0.')), written('x W_1 + b_1'), matrix(inner, { digits: 1 }), written('max(0, x W_1 + b_1)'), matrix(kept, { digits: 1 }),
                line(tr('and times W_2, plus b_2:')), matrix(each(product(kept, W_2), (v, i, j) => v + b_2[j]), { digits: 1 })];
        } },
    { name: 'heads', number: 14, title: () => tr('Multi-head attention: split, concatenate, W_O'), written: 'MultiHead(X) = Concat(head_1, …, head_h) W_O', names: handTokens,
        inputs: { X: [[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 1]], W_V: [[1, 2, 0, 0], [3, 4, 0, 0], [0, 0, 1, -1], [0, 0, 1, 1]], W_O: [[1, 0, 0, 1], [0, 1, 1, 0], [1, 0, -1, 0], [0, 1, 0, -1]] },
        show({ X, W_V, W_O }) {
            const names = { rows: handTokens, digits: 4 }, V = product(X, W_V), width = X[0].length / 2;
            const heads = range(2).map(h => {
                const own = columnsOf(X, h * width, (h + 1) * width), weights = each(product(own, transposed(own)), x => x / Math.sqrt(width)).map(softmaxOf);
                return { weights, output: product(weights, columnsOf(V, h * width, (h + 1) * width)) };
            }), concat = heads[0].output.map((row, i) => [...row, ...heads[1].output[i]]);
            return [heading(tr('Step 1: project and split')), line(tr('W_Q and W_K are the identity here, so that Q = K = X. W_V mixes; its product V = X W_V:')), matrix(V, { rows: handTokens, digits: V.flat().every(Number.isInteger) ? 0 : 4 }),
                heading(tr('Step 2: every head attends on its own')), ...heads.flatMap(({ weights, output }, h) => [line(tr('The weights of head {0}, softmax(Q K^T / sqrt({1})) of its own columns:', h + 1, width)), matrix(weights, { ...names, columns: handTokens, sums: true, shaded: true }), line(tr('and what it returns, these weights times its two columns of V:')), matrix(output, names)]),
                heading(tr('Step 3: concatenate, and W_O')), line(tr('The results are laid side by side again, head 1 on the left:')), matrix(concat, names), line(tr('and the output, Concat W_O, of the shape that X had, so that it can be added to X:')), matrix(product(concat, W_O), names)];
        } },
    { name: 'warm-up', number: 16, title: () => tr('Warm-up'), written: 'lrate = d_model^{−0.5} min(step^{−0.5}, step · warmup^{−1.5})', inputs: { d_model: [512], warmup: [4000] },
        show({ d_model: [d], warmup: [warmUp] }) {
            const steps = [1, 1000, 2000, 4000, 8000, 16000, 100000], rate = step => learningRate(step, Math.max(1, d), Math.max(1, warmUp));
            return [matrix(steps.map(step => [rate(step)]), { rows: steps, columns: ['lrate'], digits: 7 }),
                curves({ clientWidth: Math.min(640, find('panel').clientWidth - 60) }, [{ name: 'lrate', colour: colourOf(0), points: range(101).map(i => [i * 160, i ? rate(i * 160) : 0]) }], null, tr('Warm-up'))];
        } },
    { name: 'bleu', number: 17, title: () => tr('BLEU: how good is a translation?'), written: 'BLEU = BP (p_1 p_2 p_3 p_4)^{1/4},  BP = min(1, exp(1 − r / c))', inputs: { translation: 'the quick brown fox jumps over the dog', reference: 'the quick brown fox jumps over the lazy dog' },
        show({ translation, reference }) {
            const words = translation.trim().split(/\s+/).filter(Boolean), wanted = reference.trim().split(/\s+/).filter(Boolean), counts = [1, 2, 3, 4].map(n => ngramMatches(words, wanted, n));
            const parts = counts.map(([right, all]) => right / (all || 1)), brevity = words.length ? Math.min(1, Math.exp(1 - wanted.length / words.length)) : 0;
            return [matrix(counts.map(([right, all], i) => [right, all, parts[i]]), { rows: [1, 2, 3, 4].map(n => `p${n}`), columns: [tr('right'), tr('all'), 'p'], digits: [0, 0, 4] }), matrix([[brevity], [100 * brevity * parts.reduce((all, p) => all * p, 1) ** 0.25]], { rows: ['BP', 'BLEU'], columns: [tr('number')], digits: 4 })];
        } },
];

// What a name in the address is called; letters of formulas stay.
const inputTitles = () => ({ length: tr('Length'), targets: tr('Targets'), translation: tr('Translation'), reference: tr('Reference'), 'd of the products': tr('d of the products') });

// ---- numbers that were changed, in the address: Q:1,2,3;K:.. ----
const lessonNow = () => lessons.find(({ name }) => name === state.lesson) ?? lessons[0];
const flatOf = given => typeof given === 'string' ? given : given.flat().join(',');
function numbersGiven() {
    const changed = Object.fromEntries(state.numbers.split(';').filter(Boolean).map(text => [text.slice(0, text.indexOf(':')), text.slice(text.indexOf(':') + 1)]));
    return Object.fromEntries(Object.entries(lessonNow().inputs).map(([name, usual]) => {
        if (changed[name] === undefined) return [name, usual];
        if (typeof usual === 'string') return [name, changed[name]];
        const list = changed[name].split(',').map(x => x.trim() === '' ? NaN : Number(x)), isMatrix = Array.isArray(usual[0]), wide = isMatrix ? usual[0].length : usual.length;
        if (list.length !== usual.flat().length || !list.every(x => Number.isFinite(x) && Math.abs(x) <= 1e6)) return [name, usual];
        return [name, isMatrix ? usual.map((_, i) => list.slice(i * wide, (i + 1) * wide)) : list];
    }));
}
function setGiven(name, value) {
    const all = { ...numbersGiven(), [name]: value }, { inputs } = lessonNow();
    change({ numbers: Object.entries(all).filter(([n, v]) => flatOf(v) !== flatOf(inputs[n])).map(([n, v]) => `${n}:${typeof v === 'string' ? v.replaceAll(';', ' ') : flatOf(v)}`).join(';') }, { typing: true });
}
function onNumber(name, place, input) {
    const x = input.value.trim() === '' ? NaN : Number(input.value), isWrong = !(Math.abs(x) <= 1e6);
    input.setAttribute('aria-invalid', String(isWrong));
    if (isWrong) return complain(tr('{0}: a number from {1} to {2} is needed.', name, minus('-1000000'), 1000000));
    complain(null);
    const now = numbersGiven()[name], wide = now[0].length;
    return setGiven(name, Array.isArray(now[0]) ? each(now, (v, i, j) => i * wide + j === place ? x : v) : now.map((v, i) => i === place ? x : v));
}
function numberField(name, place, value, label) {
    return element('input', { type: 'number', step: 'any', value, 'aria-label': label, data: { input: name, place }, on: { input: ({ target }) => onNumber(name, place, target) } });
}
function inputTable(name, usual, names) {
    const title = inputTitles()[name] ?? name;
    if (typeof usual === 'string') return element('label', { className: 'lesson-text' }, `${title} `, element('input', { type: 'text', value: usual, data: { input: name, place: -1 }, on: { input: ({ target }) => setGiven(name, target.value) } }));
    const rows = Array.isArray(usual[0]) ? usual : [usual], wide = rows[0].length, isToken = names && rows.length === names.length;
    return element('div', { className: 'lesson-input' }, element('b', {}, formula(title)), element('div', { className: 'scroll' }, element('table', { role: 'presentation' }, element('tbody', {}, ...rows.map((row, i) => element('tr', {}, isToken ? element('td', { className: 'token' }, names[i]) : null,
        ...row.map((x, j) => element('td', {}, numberField(name, i * wide + j, x, rows.length > 1 ? `${title}[${i}][${j}]` : wide > 1 ? `${title}[${j}]` : title)))))))));
}
const numberTexts = host => [...host.querySelectorAll('tr')].map(row => [...row.cells].map(cell => cell.textContent));
let lessonBuilt = null;
function buildLesson(host) {
    const { inputs, names, title, number, written: says } = lessonBuilt = lessonNow(), index = lessons.indexOf(lessonBuilt);
    const others = numberSelect(tr('Lesson'), lessons.map((l, i) => [i, l.title()]), index, i => change({ lesson: lessons[i].name, numbers: '' }), 'lesson-choice');
    fill(host, element('div', { className: 'bar' }, others, button(tr('The usual numbers'), () => change({ numbers: '' }), { data: { keep: 'lesson-usual' } })), element('h2', { id: 'lessons-title' }, title()), says ? written(says) : '',
        note(tr('“qkv learn {0}” says more. Change a number: everything below follows.', number)), element('div', { className: 'lesson-inputs', role: 'group', 'aria-label': tr('Numbers to change') }, ...Object.entries(inputs).map(([name, usual]) => inputTable(name, usual, names))),
        element('div', { className: 'lesson-steps scroll', tabIndex: 0, role: 'region', 'aria-label': tr('Lesson') }), saving(() => `lesson-${lessonNow().name}`, { rows: () => numberTexts(host.querySelector('.lesson-steps')), value: () => ({ lesson: lessonNow().name, given: numbersGiven(), tables: [...host.querySelectorAll('.lesson-steps table')].map(numberTexts) }) }));
}

views.push({
    name: 'lessons', title: () => tr('Lessons'), isThere: () => true, needsText: false,
    build(host) {
        lessonBuilt = null;
        host.append(element('section', { className: 'card', id: 'lessons', 'aria-labelledby': 'lessons-title' }));
    },
    async update() {
        const host = find('lessons'), values = numbersGiven();
        if (lessonBuilt !== lessonNow()) buildLesson(host);
        for (const input of host.querySelectorAll('[data-input]')) {
            const now = values[input.dataset.input], text = typeof now === 'string' ? now : `${now.flat()[input.dataset.place]}`;
            if (input !== document.activeElement) Object.assign(input, { value: text }).removeAttribute('aria-invalid');
        }
        fill(host.querySelector('.lesson-steps'), ...lessonNow().show(values));
    },
});
