/* explorer.js: the explorer page. It asks its own server (POST /attention, GET /info), or the data written into the page. */
'use strict';

/* strings.js */

// ---- small things ----

const tick = x => x === 0 ? '0' : x >= 0.1 ? x.toFixed(2) : x >= 0.001 ? x.toFixed(3) : x.toExponential(0);
const counted = (n, one, many) => (n === 1 ? one : many).replace('{0}', n.toLocaleString('en'));
const headsOf = n => counted(n, tr('{0} head'), tr('{0} heads'));
const queriesOf = n => counted(n, tr('{0} query'), tr('{0} queries'));
const keysOf = n => counted(n, tr('{0} key'), tr('{0} keys'));

// Where pieces are shown as they are, so is the white space in them.
const pieceLabel = (token, pieces) => pieces && token.trim() !== '' ? labelOf(token.replace(/ /g, '·')) : labelOf(token);

const bytesOf = base64 => Uint8Array.fromBase64?.(base64) ?? Uint8Array.from(atob(base64), c => c.charCodeAt(0));
function floatsOf(base64) {
    const { buffer, byteLength } = bytesOf(base64), view = new DataView(buffer), floats = new Float32Array(byteLength >> 2);
    for (let i = 0; i < floats.length; i++) floats[i] = view.getFloat32(4 * i, true);
    return floats;
}
// The weights of a map; a large file has them rounded and packed, the low bytes before the high ones.
async function weightsOf(given) {
    if (typeof given === 'string') return floatsOf(given);
    if (!given.u16) return given;
    const stream = new Blob([bytesOf(given.u16)]).stream().pipeThrough(new DecompressionStream('gzip'));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer()), weights = new Float32Array(bytes.length >> 1);
    for (let i = 0, n = weights.length; i < n; i++) weights[i] = (bytes[i] | bytes[n + i] << 8) / 65535;
    return weights;
}

// ---- where answers come from ----
class Refused extends Error {}

// The token behind #token=, as "qkv serve" prints it: browsers write some of its characters as %XX.
function tokenGiven() {
    const given = location.hash.match(/^#token=(.+)$/)?.[1] ?? null;
    try { return given && decodeURIComponent(given); } catch { return given; }
}

function server() {
    const token = tokenGiven();
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    async function answer(path, options) {
        let response, body;
        try {
            response = await fetch(path, { ...options, headers: { ...headers, ...options.headers }, credentials: 'omit' });
            body = await response.json();
        } catch (problem) {
            if (problem.name === 'AbortError') throw problem;
            throw new Refused(response ? tr('The server gave an answer (status {0}) that could not be read.', response.status)
                : tr('The server does not answer. Is "qkv serve" still running?'));
        }
        if (response.ok) return body;
        const hint = response.status === 401 && !token ? tr(' Open the page with #token=... at the end of its address.') : '';
        throw new Refused((body?.error?.message ?? tr('The server refused this (status {0}).', response.status)) + hint);
    }
    return {
        info: () => answer('/info', {}),
        ask: (request, signal) => answer('/attention',
            { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(request), signal }),
        has: () => true,
    };
}

// The data in the page answers the same questions. Without special tokens, it leaves out their rows and columns itself.
function file(data) {
    const { overview, thumbnails = {}, ranks = {}, heads = {} } = data;
    const keyOf = ({ kind, layer, head }) => layer === 'rollout' ? `${kind}/rollout` : `${kind}/${layer}/${head}`;
    const kept = side => overview.sides[side].tokens.map((_, i) => i).filter(i => !overview.sides[side].special[i]);
    const without = ({ tokens, special }) =>
        ({ tokens: tokens.filter((_, i) => !special[i]), special: special.filter(s => !s) });
    const described = kind => overview.kinds.find(k => k.kind === kind);
    // A large file leaves means out.
    const isRounded = Object.values(heads).some(({ weights }) => weights.u16);
    const placesOf = (wanted, n) => wanted === 'mean' ? range(n) : [wanted];
    const partsOf = ({ kind, layer, head: h }) => placesOf(layer, described(kind).layers)
        .flatMap(l => placesOf(h, described(kind).heads).map(part => `${kind}/${l}/${part}`));
    const has = request => keyOf(request) in heads || isRounded && partsOf(request).every(key => key in heads);
    async function meanOf(request) {
        const parts = partsOf(request).map(key => heads[key]), { rows, columns } = parts[0], sum = new Float64Array(rows * columns);
        for (const { weights } of parts) (await weightsOf(weights)).forEach((x, i) => { sum[i] += x; });
        return { ...request, rows, columns, weights: Float32Array.from(sum, x => x / parts.length) };
    }
    async function head(request) {
        if (!has(request)) throw new Refused(tr('This file does not have that head.'));
        const whole = heads[keyOf(request)] ?? await meanOf(request), { kind, layer, head: h } = whole;
        const weights = await weightsOf(whole.weights);
        if (request.special !== false) return { kind, layer, head: h, rows: whole.rows, columns: whole.columns, weights };
        const rows = kept(described(kind).rows), columns = kept(described(kind).columns);
        const some = new Float32Array(rows.length * columns.length);
        rows.forEach((r, i) => columns.forEach((c, j) => { some[i * columns.length + j] = weights[r * whole.columns + c]; }));
        return { kind, layer, head: h, rows: rows.length, columns: columns.length, weights: some };
    }
    async function small(request) {
        const { kind } = request, { layers, heads: n } = described(kind);
        if (request.special !== false) return thumbnails[kind];
        const maps = await Promise.all(range(layers).map(layer => Promise.all(range(n).map(async h => {
            const key = { ...request, layer, head: h };
            return heads[keyOf(key)] ? shrunk(await head(key), request.thumbnails) : null;
        }))));
        const any = maps.flat().find(Boolean) ?? { rows: 1, columns: 1 };
        return { kind, rows: any.rows, columns: any.columns, maps: maps.map(row => row.map(m => m?.bytes ?? null)) };
    }
    return {
        info: async () => data.info ?? null,
        async ask(request) {
            const isWhole = request.special !== false;
            if (!request.kind) return isWhole ? overview : { ...overview, sides: mapped(overview.sides, without) };
            if (request.thumbnails) return small(request);
            if (request.rank) return ranks[request.kind];
            return head(request);
        },
        has,
        kinds: new Set(Object.keys(heads).map(key => key.split('/')[0])),
        isRounded,
    };
}
const mapped = (object, change) => Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));

// The largest weight of every cell, at most so many cells a side.
function shrunk({ rows, columns, weights }, side) {
    const r = Math.min(rows, side), c = Math.min(columns, side), bytes = new Uint8Array(r * c);
    for (let i = 0; i < rows; i++) {
        for (let j = 0; j < columns; j++) {
            const at = Math.floor(i * r / rows) * c + Math.floor(j * c / columns);
            bytes[at] = Math.max(bytes[at], Math.round(255 * weights[i * columns + j]));
        }
    }
    return { rows: r, columns: c, bytes };
}

const written = JSON.parse(find('qkv-data').textContent);
const source = written ? file(written) : server();

// ---- what is shown ----
const thumbnailSide = 48;
const cacheBytes = 128 << 20;
const shown = {
    info: null, overview: null, answer: null, text: '', kind: null, layer: null, head: null, view: 'map', root: false,
    weights: null, rows: [], columns: [], tokens: null, high: 1, largest: 1, window: null, cursor: null, isNew: true,
};
let heads = new Map(), thumbnails = new Map(), ranks = new Map(); // answers about this overview
let reading = new AbortController(), looking = reading, beside = reading; // newer requests end older ones
let began = 0;

const kindNow = () => shown.overview.kinds.find(k => k.kind === shown.kind);
const selection = () => shown.layer === 'rollout' ? { kind: shown.kind, layer: 'rollout' }
    : { kind: shown.kind, layer: shown.layer, head: shown.head };
const keyNow = () => `${shown.kind}/${shown.layer}/${shown.head}`;
const tokensOf = side => shown.overview.sides[side].tokens;

// Every later request names the target that was found: nothing is searched again.
function about(overview, more) {
    const request = { text: shown.text, special: find('special').checked, pieces: find('pieces').checked, ...more };
    if (overview.task === 'translate' || overview.task === 'generate') request.target_ids = overview.target_ids ?? [];
    return request;
}

// Runs work; what it says is shown unless something newer ended it.
async function trying(work) {
    try { await work(); } catch (problem) {
        if (problem.name === 'AbortError') return;
        complain(problem instanceof Refused ? problem.message : tr('The page made a mistake: {0}', problem.message));
        if (!(problem instanceof Refused)) console.error(problem);
    }
}

function stop() {
    for (const running of [reading, looking, beside]) running.abort();
    document.body.classList.remove('busy');
}
function newReading() {
    stop();
    reading = new AbortController();
    began = performance.now();
    document.body.classList.add('busy');
    complain(null);
    return reading;
}

async function take(request, keepAnswer) {
    const mine = newReading();
    try {
        const overview = await source.ask(request, mine.signal);
        shown.text = request.text;
        if (!keepAnswer) shown.answer = { task: overview.task, output: overview.output, ids: overview.target_ids };
        heads = new Map();
        thumbnails = new Map();
        ranks = new Map();
        const isThere = ({ kind, layers }) => layers > 0 && (source.kinds?.has(kind) ?? true);
        shown.overview = { ...overview, kinds: overview.kinds.filter(isThere) };
        if (!keepAnswer) drawAnswer();
        shown.isNew = true;
        chooseSomething();
        await showKind();
    } finally {
        if (mine === reading) document.body.classList.remove('busy');
    }
}

// An option that does not fit is told and shown: the browser's own hint cannot be seen while the options are closed.
function optionsFit() {
    const fields = [...document.querySelectorAll('.fields label:not([hidden]) input[type="number"]')];
    const isWrong = ({ step, validity: v }) => v.badInput || v.rangeUnderflow || v.rangeOverflow || (v.stepMismatch && !step);
    for (const field of fields) field.setAttribute('aria-invalid', String(isWrong(field)));
    const wrong = fields.find(isWrong);
    if (!wrong) return true;
    const { min, max, step } = wrong, name = wrong.labels[0].textContent.trim();
    find('options').open = true;
    const kind = step ? tr('a number') : tr('a whole number');
    complain(max ? tr('{0}: {1} from {2} to {3} is needed.', name, kind, min, max)
        : tr('{0}: {1} of at least {2} is needed.', name, kind, min));
    wrong.focus();
    return false;
}

function explore() {
    const text = find('text').value;
    if (text.trim() === '') {
        complain(tr('Type a text first.'));
        find('text').focus();
        return;
    }
    if (!optionsFit()) return;
    const request = { text, special: find('special').checked, pieces: find('pieces').checked }, task = shown.info?.task;
    const number = id => find(id).valueAsNumber;
    const add = (name, value) => { if (Number.isFinite(value)) request[name] = value; };
    if (task === 'translate') {
        if (find('target').value.trim() !== '') request.target = find('target').value;
        add('beam', number('beam'));
        add('n_best', Math.min(number('n-best'), number('beam')));
    } else if (task === 'generate') {
        add('max_tokens', number('max-tokens'));
        add('temperature', number('temperature'));
        add('seed', number('seed'));
    }
    trying(() => take(request, false));
}

// The same text and target again, with another translation or other tokens shown.
const readAgain = (ids = shown.overview.target_ids) =>
    trying(() => take(about({ ...shown.overview, target_ids: ids }), true));

// What was chosen stays chosen where it is there, else: cross-attention, the last layer, the first head.
function chooseSomething() {
    const { kinds } = shown.overview;
    find('work').hidden = kinds.length === 0;
    if (kinds.length === 0) return;
    if (!kinds.some(k => k.kind === shown.kind)) {
        shown.kind = (kinds.find(k => k.kind === 'cross') ?? kinds[0]).kind;
        shown.layer = null;
    }
    keepChoice();
}
function keepChoice() {
    const { layers, heads: n } = kindNow();
    const there = shown.layer !== null && source.has(selection()) && !(shown.layer === 'rollout' && shown.kind === 'cross') &&
        !(shown.layer >= layers) && !(shown.head >= n);
    if (there) return;
    const all = places().flat().concat([{ layer: 'rollout', head: 'mean' }]);
    const wanted = all.filter(p => source.has({ kind: shown.kind, ...p }));
    const best = wanted.find(p => p.layer === layers - 1 && p.head === 0) ?? wanted[0];
    Object.assign(shown, best);
}

async function showKind() {
    if (!shown.overview.kinds.length) return;
    drawKinds();
    drawMatrix();
    drawRanking();
    find('panel').setAttribute('aria-labelledby', `kind-${shown.kind}`);
    beside.abort();
    beside = new AbortController();
    const { kind, overview } = shown, { signal } = beside;
    await showHead();
    if (signal.aborted) return;
    if (!thumbnails.has(kind)) {
        thumbnails.set(kind, await source.ask(about(overview, { kind, thumbnails: thumbnailSide }), signal));
        drawThumbnails();
    }
    if (!ranks.has(kind)) {
        ranks.set(kind, (await source.ask(about(overview, { kind, rank: true }), signal))?.heads ?? []);
        drawRanking();
    }
}

async function showHead() {
    looking.abort();
    looking = new AbortController();
    const { signal } = looking, key = keyNow(), wanted = selection(), { rows, columns } = kindNow();
    markChosen();
    if (!heads.has(key)) {
        const head = await askedHead(wanted, signal);
        if (signal.aborted) return;
        remember(key, head);
    }
    const head = heads.get(key), pieces = find('pieces').checked;
    if (shown.rows.length !== head.rows || shown.columns.length !== head.columns) shown.isNew = true;
    const { weights, high, largest } = head;
    const tokens = { rows: tokensOf(rows), columns: tokensOf(columns) };
    Object.assign(shown, { weights, high, largest, tokens, selection: wanted });
    shown.rows = tokens.rows.map(t => pieceLabel(t, pieces));
    shown.columns = tokens.columns.map(t => pieceLabel(t, pieces));
    if (shown.isNew) {
        shown.isNew = false;
        shown.window = { top: 0, bottom: head.rows, left: 0, right: head.columns };
        shown.cursor = null;
    }
    draw();
    if (began) afterPaint(began);
    began = 0;
    tell(`${titleNow()}: ${queriesOf(head.rows)}, ${keysOf(head.columns)}`);
}
async function askedHead(wanted, signal) {
    let given;
    try { given = await source.ask(about(shown.overview, wanted), signal); } catch (problem) {
        if (signal.aborted) return null; // another head is wanted by now
        throw problem;
    }
    const { rows, columns } = given, weights = typeof given.weights === 'string' ? floatsOf(given.weights) : given.weights;
    if (weights.length !== rows * columns) throw new Refused(tr('The weights that came are not as many as they should be.'));
    return { rows, columns, weights, ...rangeOf(weights, rows, columns) };
}
// From the button to the picture, for whoever measures.
const afterPaint = start =>
    requestAnimationFrame(() => setTimeout(() => performance.measure('first picture', { start, end: performance.now() })));

// Heads that were looked at stay, the oldest go first.
function remember(key, head) {
    heads.set(key, head);
    const most = Math.max(1, Math.floor(cacheBytes / Math.max(1, head.weights.byteLength)));
    for (const old of heads.keys()) {
        if (heads.size <= most) break;
        heads.delete(old);
    }
}

function choose(layer, head) {
    if (layer === 'rollout' && shown.kind === 'cross') return;
    if (!source.has({ kind: shown.kind, layer, head })) return;
    shown.layer = layer;
    shown.head = layer === 'rollout' ? 'mean' : head;
    trying(showHead);
}
function chooseKind(kind) {
    if (kind === shown.kind) return;
    shown.kind = kind;
    shown.isNew = true;
    keepChoice();
    trying(showKind);
}

// ---- header and answer ----
function drawInfo() {
    const { info } = shown;
    if (!info) return;
    const [least, many] = [1e6, 1e3].map(s => info.parameters / s);
    const parameters = language === 'zh' && info.parameters >= 1e4 ? `${Math.round(info.parameters / 1e4)} 万` : least >= 1 ? `${least.toFixed(1)} M` : many >= 1 ? `${many.toFixed(0)} k` : `${info.parameters}`;
    const layers = info.encoder_layers && info.decoder_layers ? `${info.encoder_layers} + ${info.decoder_layers}`
        : `${info.encoder_layers || info.decoder_layers}`;
    const does = { translate: tr('translates'), classify: tr('classifies'), generate: tr('continues texts'),
        encode: tr('reads') }[info.task];
    find('model').textContent = info.name;
    document.title = tr('{0}: what it attends to', info.name);
    find('facts').replaceChildren(...[does, tr('{0} parameters', parameters), tr('{0} layers', layers), headsOf(info.heads),
        tr('vocabulary of {0}', info.vocabulary.toLocaleString('en')), source.isRounded && tr('weights rounded to 1/65535')]
        .filter(Boolean).map(fact => element('li', {}, fact)));
    find('go').textContent = { translate: tr('Translate'), classify: tr('Classify'), generate: tr('Continue') }[info.task] ?? tr('Read');
    for (const field of document.querySelectorAll('[data-for]')) field.hidden = field.dataset.for !== info.task;
    find('options').hidden = !!written || info.task !== 'translate' && info.task !== 'generate';
}

function drawAnswer() {
    const { task, output, ids } = shown.answer;
    const draws = { translate: drawTranslations, classify: drawClasses, generate: drawContinuation }[task];
    find('answer').hidden = !draws;
    if (!draws) return;
    find('answer-title').textContent = { translate: tr('Translation'), classify: tr('Class'), generate: tr('Continuation') }[task];
    find('answer-body').replaceChildren(draws(output, ids));
}

function drawTranslations({ translations = [] }, ids) {
    const same = t => JSON.stringify(t.ids) === JSON.stringify(ids);
    const now = Math.max(0, translations.findIndex(same));
    const choices = translations.map((t, i) => {
        const isFixed = !!written && i !== now;
        const radio = element('input', { type: 'radio', name: 'translation', checked: i === now, disabled: isFixed });
        radio.addEventListener('change', () => readAgain(t.ids));
        const score = Number.isFinite(t.score) ? t.score.toFixed(4).replace('-', '−') : '';
        return element('label', { className: 'choice' }, radio, element('b', { dir: 'auto' }, t.text || tr('(nothing)')),
            element('span', { className: 'numbers', title: tr('score: higher is better') }, score));
    });
    return element('div', { role: 'radiogroup', 'aria-label': tr('Translations, the best first') }, ...choices);
}

function drawClasses({ classes = [] }) {
    const rows = classes.flatMap(({ label, probability }) => {
        const filled = element('i');
        filled.style.width = `${100 * probability}%`;
        return [element('span', { dir: 'auto' }, label), element('div', { className: 'track', 'aria-hidden': 'true' }, filled),
            element('span', { className: 'numbers' }, probability.toFixed(4))];
    });
    return element('div', { className: 'classes' }, ...rows);
}

// Of a long text only the end: the continuation is what is new.
function drawContinuation({ text = '' }) {
    const before = shown.text.length > 300 ? `… ${shown.text.slice(-200)}` : shown.text;
    return element('p', { className: 'written', dir: 'auto' }, element('span', {}, before), text);
}

// ---- kinds, layers and heads ----
function drawKinds() {
    const names = { encoder: tr('Encoder'), decoder: tr('Decoder'), cross: tr('Cross') };
    find('kinds').replaceChildren(...shown.overview.kinds.map(({ kind }) => {
        const isNow = kind === shown.kind;
        const tab = element('button', { type: 'button', id: `kind-${kind}`, role: 'tab', 'aria-controls': 'panel',
            'aria-selected': String(isNow), tabIndex: isNow ? 0 : -1 }, names[kind]);
        tab.addEventListener('click', () => chooseKind(kind));
        return tab;
    }));
}

// The matrix as places: a row a layer and one for their mean, a column a head and one for their mean.
function places() {
    const { layers, heads: n } = kindNow();
    return [...range(layers), 'mean'].map(layer => [...range(n), 'mean'].map(head => ({ layer, head })));
}
function spoken({ layer, head }) {
    if (layer === 'rollout') return tr('rollout over all layers');
    const ofLayer = layer === 'mean' ? tr('mean of all layers') : tr('layer {0}', layer);
    return tr('{0}, {1}', ofLayer, head === 'mean' ? tr('mean of all heads') : tr('head {0}', head));
}
const kindNames = { encoder: tr('Encoder self-attention'), decoder: tr('Decoder self-attention'), cross: tr('Cross-attention') };
const titleNow = () => tr('{0}, {1}', kindNames[shown.kind], spoken(shown));

function drawMatrix() {
    const { layers, heads: n } = kindNow(), grid = find('heads');
    const top = element('div', { role: 'row' }, element('span', { role: 'columnheader' }, tr('layer')),
        ...range(n).map(h => element('span', { role: 'columnheader' }, `${h}`)),
        element('span', { role: 'columnheader', className: 'mean' }, tr('mean')));
    const rows = places().map((row, i) => element('div', { role: 'row', className: i < layers ? '' : 'means' },
        element('span', { role: 'rowheader' }, i < layers ? `${i}` : tr('mean')), ...row.map(headButton)));
    find('panel').style.setProperty('--heads', n);
    find('panel').classList.toggle('many', n > 8);
    find('panel').classList.toggle('crowd', n > 20);
    grid.style.gridTemplateColumns = `max-content repeat(${n}, minmax(20px, 84px)) max-content`;
    grid.replaceChildren(top, ...rows);
    find('rollout').disabled = shown.kind === 'cross' || !source.has({ kind: shown.kind, layer: 'rollout' });
    drawThumbnails();
    markChosen();
}
function headButton(place) {
    const button = element('button', { type: 'button', role: 'gridcell', 'aria-label': spoken(place), title: spoken(place),
        className: place.head === 'mean' ? 'mean' : '', tabIndex: -1 });
    button.disabled = !source.has({ kind: shown.kind, ...place });
    button.dataset.place = `${place.layer}/${place.head}`;
    button.addEventListener('click', () => choose(place.layer, place.head));
    return button;
}
function markChosen() {
    const now = `${shown.layer}/${shown.head}`, isRollout = shown.layer === 'rollout';
    const buttons = [...find('heads').querySelectorAll('button')];
    for (const button of buttons) {
        const isNow = !isRollout && button.dataset.place === now;
        button.setAttribute('aria-selected', String(isNow));
        button.tabIndex = isNow ? 0 : -1;
    }
    reveal(buttons.find(b => b.dataset.place === now));
    const enabled = buttons.find(b => !b.disabled);
    if (isRollout && enabled) enabled.tabIndex = 0;
    find('rollout').setAttribute('aria-pressed', String(isRollout));
    for (const row of document.querySelectorAll('#ranking tbody tr'))
        row.setAttribute('aria-selected', String(row.dataset.place === now));
    find('large-title').textContent = titleNow();
}
// Scrolls the matrix, and it alone, to a place between the headers and the means, which stay where they are.
function reveal(button) {
    const grid = find('heads');
    if (!button || grid.scrollWidth <= grid.clientWidth && grid.scrollHeight <= grid.clientHeight) return;
    const box = selector => grid.querySelector(selector).getBoundingClientRect();
    const at = button.getBoundingClientRect(), first = box('[role="columnheader"]'), last = box('.means .mean');
    const into = (low, high, from, to) => Math.min(0, low - from - 4) + Math.max(0, high - to + 4);
    const [layer, head] = button.dataset.place.split('/');
    if (head !== 'mean') grid.scrollLeft += into(at.left, at.right, first.right, last.left);
    if (layer !== 'mean') grid.scrollTop += into(at.top, at.bottom, first.bottom, last.top);
}
function drawThumbnails() {
    const small = thumbnails.get(shown.kind);
    if (!small) return;
    small.maps.forEach((row, layer) => row.forEach((map, head) => {
        const button = find('heads').querySelector(`[data-place="${layer}/${head}"]`);
        const bytes = typeof map === 'string' ? bytesOf(map) : map;
        if (button && bytes) button.replaceChildren(thumbnail(bytes, small.rows, small.columns));
    }));
}
function thumbnail(bytes, rows, columns) {
    const canvas = element('canvas', { width: columns, height: rows, 'aria-hidden': 'true' });
    const { high } = rangeOf(bytes, rows, columns), image = new ImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    // of a decoder what is past the diagonal is left out: the button's ground is seen there
    const isLater = i => shown.kind === 'decoder' && i % columns * rows > Math.floor(i / columns + 1) * columns - 1;
    for (let i = 0; i < pixels.length; i++) pixels[i] = isLater(i) ? 0 : palettePixels[shade(bytes[i] ?? 0, high, shown.root)];
    canvas.getContext('2d').putImageData(image, 0, 0);
    return canvas;
}

// ---- the ranking ----
const measures = [
    ['head', tr('head'), tr('layer and head, counted from 0')],
    ['entropy', tr('entropy'), tr('how spread the weights of a row are, in nats: 0 when all is on one token')],
    ['diagonality', tr('diag.'), tr('how near the weights are to the diagonal: 1 when on it')],
    ['first', tr('first'), tr('share on the first token')],
    ['previous', tr('prev.'), tr('share on the token before')],
    ['same', tr('same'), tr('share on the token itself')],
    ['next', tr('next'), tr('share on the token after')],
];
const order = { by: 'head', down: false };

function drawRanking() {
    const list = ranks.get(shown.kind), [head, body] = find('ranking').querySelectorAll('thead, tbody');
    find('ranking').hidden = list && list.length === 0;
    head.replaceChildren(element('tr', {}, ...measures.map(([name, label, title]) => {
        const isNow = order.by === name, mark = isNow ? order.down ? ' ▾' : ' ▴' : '';
        const button = element('button', { type: 'button', title }, label, mark);
        button.addEventListener('click', () => sortBy(name));
        const cell = element('th', { scope: 'col' }, button);
        if (isNow) cell.setAttribute('aria-sort', order.down ? 'descending' : 'ascending');
        return cell;
    })));
    const value = h => order.by === 'head' ? h.layer * 1e6 + h.head : h[order.by] ?? -Infinity;
    const sorted = [...list ?? []].sort((a, b) => (value(a) - value(b)) * (order.down ? -1 : 1));
    body.replaceChildren(...sorted.map(h => {
        const unseen = text => element('span', { className: 'unseen' }, text);
        const button = element('button', { type: 'button' }, unseen(tr('layer')), ` ${h.layer} · `, unseen(tr('head')), ` ${h.head}`);
        const row = element('tr', {}, element('td', {}, button),
            ...measures.slice(1).map(([name]) => element('td', {}, Number.isFinite(h[name]) ? h[name].toFixed(3) : '–')));
        row.dataset.place = `${h.layer}/${h.head}`;
        row.addEventListener('click', () => choose(h.layer, h.head));
        return row;
    }));
    markChosen();
}
function sortBy(name) {
    order.down = order.by === name ? !order.down : name !== 'head';
    order.by = name;
    drawRanking();
    [...find('ranking').querySelectorAll('th button')][measures.findIndex(([m]) => m === name)].focus();
}

// ---- the map's cells ----
// A decoder does not see later tokens: their weights are not zero, there are none.
const isMasked = ({ kind }, r, c) => kind === 'decoder' && c > r;
const colourAt = ({ weights, columns, high, root }, r, c) => shade(weights[r * columns.length + c], high, root);

// The cells as points: where a point covers several cells, their largest weight, so that nothing thin is lost.
function pixels(figure, width, height) {
    const { weights, window: { top, bottom, left, right }, high, root } = figure, stride = figure.columns.length;
    const canvas = element('canvas', { width, height }), image = new ImageData(width, height);
    const out = new Uint32Array(image.data.buffer);
    const edges = (from, to, n) => Uint32Array.from({ length: n + 1 }, (_, i) => Math.floor(from + i * (to - from) / n));
    const xs = edges(left, right, width), ys = edges(top, bottom, height), line = new Float32Array(width);
    for (let y = 0; y < height; y++) {
        if (y > 0 && ys[y] === ys[y - 1] && ys[y + 1] <= ys[y] + 1) {
            out.copyWithin(y * width, (y - 1) * width, y * width);
            continue;
        }
        line.fill(0);
        for (let r = ys[y]; r < Math.max(ys[y] + 1, ys[y + 1]); r++) {
            for (let x = 0, base = r * stride; x < width; x++) {
                const end = Math.max(xs[x] + 1, xs[x + 1]);
                for (let c = xs[x]; c < end; c++) if (weights[base + c] > line[x]) line[x] = weights[base + c];
            }
        }
        const last = Math.max(ys[y] + 1, ys[y + 1]) - 1;
        for (let x = 0; x < width; x++) out[y * width + x] = isMasked(figure, last, xs[x]) ? 0 : palettePixels[shade(line[x], high, root)];
    }
    canvas.getContext('2d').putImageData(image, 0, 0);
    return canvas;
}

// On a screen all cells are one picture. Elsewhere few are rectangles, many a picture with a point a cell.
function drawCells(pen, { x, y, w, h }, figure, colours) {
    const { top, bottom, left, right } = figure.window, rows = bottom - top, columns = right - left, cw = w / columns, ch = h / rows;
    if (figure.kind === 'decoder') hatch(pen, x, y, w, h, colours);
    if (pen instanceof CanvasPen) {
        const image = pixels(figure, Math.max(1, Math.round(w * pen.scale)), Math.max(1, Math.round(h * pen.scale)));
        pen.picture(image, x, y, image.width / pen.scale, image.height / pen.scale);
    } else if (rows * columns > 10000) pen.picture(pixels(figure, columns, rows), x, y, w, h);
    else for (let r = top; r < bottom; r++) {
        for (let c = left; c < right; c++)
            if (!isMasked(figure, r, c)) pen.rect(x + (c - left) * cw, y + (r - top) * ch, cw, ch, paletteCss[colourAt(figure, r, c)]);
    }
}

// ---- the large view ----
const longestLabel = 130, barWidth = 74;

function figureNow() {
    const { kind, weights, rows, columns, high, largest, root, window: seen } = shown;
    return { kind, weights, rows, columns, high, largest, root, window: seen };
}
// Where everything goes. head: points left free above, for a title. centred: in the width, else at its left.
function mapLayout(figure, width, height, head, centred) {
    const { top, bottom, left, right } = figure.window, n = bottom - top, m = right - left;
    const most = Math.min(longestLabel, width * 0.24);
    const rowWidth = longest(figure.rows.slice(top, bottom), most);
    const columnWidth = longest(figure.columns.slice(left, right), most);
    const margin = Math.ceil(rowWidth) + 30, space = width - margin - barWidth;
    let cw = Math.min(84, space / m), ch = Math.min(64, Math.max(0.01, height / n));
    const side = Math.min(cw, ch);
    cw = Math.min(cw, Math.max(side, 26));
    ch = Math.min(ch, Math.max(side, 26));
    const turned = columnWidth > cw - 4, y = head + 24 + (turned ? Math.ceil(columnWidth) + 6 : 20);
    const shift = centred ? Math.max(0, Math.floor((space - cw * m) / 2)) : 0;
    return { shift, x: shift + margin, y, cw, ch, w: cw * m, h: ch * n, turned, most, head, width,
        height: Math.ceil(y + Math.max(ch * n, 90) + 8) };
}

// Every k-th label, so that they do not overlap.
const everyOf = size => size >= 14 ? 1 : Math.ceil(18 / size);

function drawMap(pen, figure, at, colours) {
    const { top, bottom, left, right } = figure.window, { x, y, cw, ch, w, h } = at;
    drawCells(pen, at, figure, colours);
    for (let r = top; r < bottom; r += everyOf(ch))
        pen.text(shortened(figure.rows[r], at.most), x - 6, y + (r - top + 0.5) * ch, { fill: colours.ink, align: 'right' });
    for (let c = left; c < right; c += at.turned ? everyOf(cw) : 1)
        if (at.turned) turnedLabel(pen, shortened(figure.columns[c], at.most), x + (c - left + 0.5) * cw, y - 6, { fill: colours.ink });
        else pen.text(shortened(figure.columns[c], cw), x + (c - left + 0.5) * cw, y - 11, { fill: colours.ink, align: 'center' });
    const axis = { fill: colours.quiet, align: 'center' };
    pen.text(tr('query (attending)'), at.shift + 9, y + Math.max(h / 2, 45), { ...axis, turned: true });
    pen.text(tr('key (attended)'), x + Math.max(w / 2, 40), at.head + 10, axis);
    drawValues(pen, figure, at);
    drawBar(pen, figure, at, colours);
}
function drawValues(pen, figure, { x, y, cw, ch }) {
    if (cw < 34 || ch < 16) return;
    const { top, bottom, left, right } = figure.window;
    for (let r = top; r < bottom; r++) {
        for (let c = left; c < right; c++) {
            if (isMasked(figure, r, c)) continue;
            const colour = colourAt(figure, r, c), value = figure.weights[r * figure.columns.length + c];
            pen.text(value.toFixed(2), x + (c - left + 0.5) * cw, y + (r - top + 0.5) * ch,
                { size: cw < 42 ? 11 : 12, fill: onShade(colour), align: 'center' });
        }
    }
}
function drawBar(pen, figure, { x, y, w, h }, colours) {
    const left = x + w + 14, height = Math.max(h, 90), steps = 64;
    for (let i = 0; i < steps; i++)
        pen.rect(left, y + height * i / steps, 10, height / steps + 0.5, paletteCss[Math.round(255 * (1 - (i + 0.5) / steps))]);
    for (const part of [0, 0.5, 1]) {
        const value = figure.high * (figure.root ? part * part : part), inwards = 10 * (part - 0.5);
        const sign = part === 1 && figure.largest > figure.high ? '≥ ' : '';
        pen.text(sign + tick(value), left + 15, y + height * (1 - part) + inwards, { size: 11, fill: colours.quiet });
    }
    pen.text(tr('weight'), left + 15, y + height / 2 - 16, { size: 11, fill: colours.quiet });
}

// Two columns of tokens, queries on the left.
function linesLayout(figure, width, height, head, centred) {
    const { top, bottom, left, right } = figure.window, n = Math.max(bottom - top, right - left);
    const most = Math.min(160, width * 0.28), rh = Math.min(32, height / n), y = head + 26;
    const labels = [tr('query (attending)'), ...figure.rows.slice(top, bottom), ...figure.columns.slice(left, right)];
    const side = Math.ceil(14 + longest(labels, most)), space = width - 2 * side, between = clamp(space, 60, 460);
    const x1 = side + (centred ? Math.max(0, Math.floor((space - between) / 2)) : 0);
    return { x1, x2: x1 + between, y, rh, most, head, width, height: Math.ceil(y + rh * n + 8) };
}
const mostLines = 4000;

function drawLines(pen, figure, at, colours) {
    const { top, bottom, left, right } = figure.window, { x1, x2, y, rh } = at, middle = i => y + (i + 0.5) * rh;
    const lines = strongest(figure), faded = Math.min(1, 2 / Math.sqrt(lines.length / 100)); // many lines are a fog
    for (const { r, c, weight } of lines)
        line(pen, x1 + 4, middle(r - top), x2 - 4, middle(c - left), colours.accent, clamp(rh / 8, 0.4, 2.5),
            faded * shade(weight, figure.high, figure.root) / 255);
    for (let r = top; r < bottom; r += everyOf(rh))
        pen.text(shortened(figure.rows[r], at.most), x1 - 2, middle(r - top), { size: 13, fill: colours.ink, align: 'right' });
    for (let c = left; c < right; c += everyOf(rh))
        pen.text(shortened(figure.columns[c], at.most), x2 + 2, middle(c - left), { size: 13, fill: colours.ink });
    pen.text(tr('query (attending)'), x1 - 2, at.head + 10, { fill: colours.quiet, align: 'right' });
    pen.text(tr('key (attended)'), x2 + 2, at.head + 10, { fill: colours.quiet });
}

function line(pen, x1, y1, x2, y2, ...look) {
    const middle = (x1 + x2) / 2;
    pen.path([[x1, y1], [x2, y2, middle, y1, middle, y2]], ...look);
}

// The lines worth drawing: at most so many, the strongest, none of under 1/255 of the largest weight.
function strongest({ weights, columns, window: { top, bottom, left, right }, high }) {
    const counts = new Uint32Array(256), stride = columns.length;
    const each = visit => {
        for (let r = top; r < bottom; r++)
            for (let c = left; c < right; c++) visit(r, c, Math.min(255, Math.floor(255 * weights[r * stride + c] / high)));
    };
    each((r, c, step) => counts[step]++);
    let from = 255;
    for (let sum = counts[255]; from > 1 && sum + counts[from - 1] <= mostLines; from--) sum += counts[from - 1];
    const lines = [];
    each((r, c, step) => {
        if (step >= from && lines.length < mostLines) lines.push({ r, c, weight: weights[r * stride + c] });
    });
    return lines.sort((a, b) => a.weight - b.weight);
}

const views = { map: { layout: mapLayout, draw: drawMap }, lines: { layout: linesLayout, draw: drawLines } };
let placed = null; // the layout on the screen

function draw() {
    if (!shown.weights || !shown.rows.length || !shown.columns.length) return drawNothing();
    const figure = figureNow(), width = Math.max(240, find('stage').clientWidth), view = views[shown.view];
    const height = clamp(window.innerHeight - 260, 300, 720);
    placed = view.layout(figure, width, height, 0, true);
    view.draw(sized(find('picture'), width, placed.height), figure, placed, coloursNow());
    drawOver();
    const { top, bottom, left, right } = shown.window, [n, m] = [shown.rows.length, shown.columns.length];
    const isPart = bottom - top < n || right - left < m;
    find('over').classList.toggle('drags', isPart);
    const part = isPart ? tr('; shown: queries {0} to {1}, keys {2} to {3}', top, bottom - 1, left, right - 1) : '';
    find('size').textContent = tr('{0} × {1}, largest weight {2}', queriesOf(n), keysOf(m), digits(shown.largest)) + part;
    find('over').setAttribute('aria-label', tr('{0}. Arrow keys move from weight to weight.', titleNow()));
}
function drawNothing() {
    placed = null;
    sized(find('picture'), 240, 60).text(tr('No tokens to show.'), 0, 30, { fill: coloursNow().quiet, size: 14 });
    sized(find('over'), 240, 60);
    find('reading').textContent = find('size').textContent = '';
}

// ---- the crosshair and what it reads ----
const arrow = (r, c) => `${shown.rows[r]} → ${shown.columns[c]}: ${isMasked(shown, r, c) ? tr('masked') : digits(shown.weights[r * shown.columns.length + c])}`;

// The three strongest of a token, for the lines view.
function readToken({ row, column }) {
    const isRow = row !== null, stride = shown.columns.length;
    const ends = range(isRow ? stride : shown.rows.length)
        .map(i => ({ i, weight: shown.weights[isRow ? row * stride + i : i * stride + column] }));
    const best = ends.sort((a, b) => b.weight - a.weight).slice(0, 3);
    return best.map(({ i }) => isRow ? arrow(row, i) : arrow(i, column)).join('    ');
}
function readingNow() {
    const { cursor } = shown;
    if (!cursor) return '';
    return cursor.row !== null && cursor.column !== null ? arrow(cursor.row, cursor.column) : readToken(cursor);
}

function drawOver() {
    const pen = sized(find('over'), placed.width, placed.height), { cursor } = shown;
    find('picture').classList.toggle('dim', !!cursor && shown.view === 'lines');
    const touches = matchMedia('(hover: none)').matches, what = shown.view === 'map' ? tr('weight') : tr('token');
    const hint = touches ? tr('Touch a {0} to read it.', what) : tr('Point at a {0} to read it.', what);
    find('reading').textContent = readingNow() || hint;
    find('reading').classList.toggle('quiet', !cursor);
    if (!cursor) return;
    if (shown.view === 'map') overMap(pen, cursor);
    else overLines(pen, cursor);
}
function overMap(pen, { row, column }) {
    const { x, y, cw, ch, w, h } = placed, { top, bottom, left, right } = shown.window;
    const inRows = row >= top && row < bottom, inColumns = column >= left && column < right;
    const cx = x + (column - left) * cw, cy = y + (row - top) * ch;
    pen.context.globalAlpha = 0.65;
    if (inRows) pen.frame(x, cy, w, ch, '#ffffff');
    if (inColumns) pen.frame(cx, y, cw, h, '#ffffff');
    pen.context.globalAlpha = 1;
    if (inRows && inColumns) {
        const grow = Math.max(0, (5 - Math.min(cw, ch)) / 2);
        pen.frame(cx - grow, cy - grow, cw + 2 * grow, ch + 2 * grow, '#000000', 3);
        pen.frame(cx - grow, cy - grow, cw + 2 * grow, ch + 2 * grow, '#ffffff', 1.5);
    }
    const { turned, most } = placed, onColumn = turned ? [y - 6, 'left', true] : [y - 11, 'center', false];
    if (inRows) pill(pen, shortened(shown.rows[row], most), x - 6, cy + ch / 2, 'right', false);
    if (inColumns) pill(pen, shortened(shown.columns[column], most), cx + cw / 2, ...onColumn);
}
function pill(pen, text, x, y, align, turned) {
    const length = widthOf(text) + 8, colours = coloursNow();
    if (turned) pen.rect(x - 9, y - length + 4, 18, length, colours.accent);
    else pen.rect(align === 'right' ? x - length + 4 : x - length / 2, y - 9, length, 18, colours.accent);
    pen.text(text, x, y, { fill: colours.card, align, turned });
}
// The lines of a token, or one alone, above the others; the names at their strong ends, where they do not overlap.
function overLines(pen, { row, column }) {
    const { x1, x2, y, rh, most } = placed, { top, bottom, left, right } = shown.window, colours = coloursNow();
    const middle = i => y + (i + 0.5) * rh, lines = linesOf(row, column);
    for (const { r, c, weight } of lines) {
        const alpha = shade(weight, shown.high, shown.root) / 255, thick = clamp(rh / 6, 1, 3);
        if (alpha === 0) continue;
        line(pen, x1 + 4, middle(r - top), x2 - 4, middle(c - left), colours.accent, thick, Math.max(0.06, alpha));
    }
    const named = { left: [], right: [] };
    const name = (text, i, side, weight) => {
        if (named[side].some(other => Math.abs(other - i) < everyOf(rh))) return;
        named[side].push(i);
        const bold = weight === null, label = shortened(text, most, 13), away = widthOf(label, 13) + 10;
        const [outwards, align, x] = side === 'left' ? [-1, 'right', x1 - 2] : [1, 'left', x2 + 2];
        pen.text(label, x, middle(i), { size: 13, fill: bold ? colours.accent : colours.ink, align, bold });
        const far = x + outwards * (away + 60);
        if (!bold && far > 0 && far < placed.width)
            pen.text(digits(weight), x + outwards * away, middle(i), { fill: colours.quiet, align });
    };
    if (row !== null && row >= top && row < bottom) name(shown.rows[row], row - top, 'left', null);
    if (column !== null && column >= left && column < right) name(shown.columns[column], column - left, 'right', null);
    for (const { r, c, weight } of lines.filter(l => l.weight >= 0.02 * shown.high).slice(-12).reverse()) {
        if (row === null) name(shown.rows[r], r - top, 'left', weight);
        if (column === null) name(shown.columns[c], c - left, 'right', weight);
    }
}
function linesOf(row, column) {
    const { top, bottom, left, right } = shown.window, stride = shown.columns.length;
    const from = (one, first, end) => one === null ? range(end - first).map(i => first + i) : [one];
    const line = (r, c) => ({ r, c, weight: shown.weights[r * stride + c] });
    return from(row, top, bottom).flatMap(r => from(column, left, right).map(c => line(r, c)))
        .sort((a, b) => a.weight - b.weight);
}

function cursorAt(px, py) {
    if (!placed) return null;
    const { top, bottom, left, right } = shown.window;
    if (shown.view === 'map') {
        const row = top + Math.floor((py - placed.y) / placed.ch), column = left + Math.floor((px - placed.x) / placed.cw);
        return row >= top && row < bottom && column >= left && column < right ? { row, column } : null;
    }
    const i = Math.floor((py - placed.y) / placed.rh), isLeft = px < (placed.x1 + placed.x2) / 2;
    if (i < 0 || i >= (isLeft ? bottom - top : right - left)) return null;
    return isLeft ? { row: top + i, column: null } : { row: null, column: left + i };
}
function pointAt(event) {
    const box = find('over').getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
}
let nextFrame = 0;
function moveCursor(cursor, point) {
    shown.cursor = cursor;
    const tip = find('tip');
    tip.hidden = !cursor || !point || shown.view === 'lines';
    if (!tip.hidden) {
        tip.textContent = readingNow();
        const [px, py] = point, fits = px + 14 + tip.offsetWidth <= placed.width;
        tip.style.left = `${Math.max(0, fits ? px + 14 : px - 14 - tip.offsetWidth)}px`;
        tip.style.top = `${py + 16}px`;
    }
    cancelAnimationFrame(nextFrame);
    nextFrame = requestAnimationFrame(() => { if (placed) drawOver(); });
}

// ---- zoom: a window of whole tokens ----
function setWindow(top, left, rows, columns) {
    const n = shown.rows.length, m = shown.columns.length;
    rows = clamp(Math.round(rows), Math.min(4, n), n);
    columns = clamp(Math.round(columns), Math.min(4, m), m);
    top = clamp(Math.round(top), 0, n - rows);
    left = clamp(Math.round(left), 0, m - columns);
    shown.window = { top, bottom: top + rows, left, right: left + columns };
    draw();
}
function zoom(factor, center) {
    if (!shown.window || !placed) return;
    const { top, bottom, left, right } = shown.window, n = bottom - top, m = right - left;
    const at = center ?? shown.cursor ?? {}, r = at.row ?? (top + bottom) / 2, c = at.column ?? (left + right) / 2;
    setWindow(r - (r - top) * factor, c - (c - left) * factor, n * factor, m * factor);
}
const zoomFit = () => { if (placed) setWindow(0, 0, shown.rows.length, shown.columns.length); };

let dragged = null;
function dragTo([px, py]) {
    const { from, start } = dragged, h = placed.ch ?? placed.rh, w = placed.cw ?? Infinity;
    const { top, bottom, left, right } = start;
    const rows = (from[1] - py) / h, columns = shown.view === 'map' ? (from[0] - px) / w : rows;
    setWindow(top + rows, left + columns, bottom - top, right - left);
}

// ---- saving ----
const nameNow = () => `attention-${Object.values(shown.selection).join('-')}`;

// Draws the view under a title, the model and the text. Every cell gets a point at least.
function drawSaved(pen) {
    const figure = figureNow(), { window: seen } = figure, view = views[shown.view], head = 50;
    const width = Math.max(placed.width, 240 + seen.right - seen.left), height = Math.max(720, seen.bottom - seen.top);
    const at = view.layout(figure, width, height, head, false), colours = coloursNow();
    at.width = Math.ceil(shown.view === 'map' ? Math.max(at.x + at.w + barWidth, 420) : Math.max(at.x2 + at.x1, 420));
    pen.rect(0, 0, at.width, at.height, colours.card);
    pen.text(shortened(titleNow(), at.width - 16, 14), 8, 15, { size: 14, fill: colours.ink, bold: true });
    pen.text(shortened(`${shown.info?.name ?? ''}: ${shown.overview.text ?? shown.text}`, at.width - 16), 8, 35, { fill: colours.quiet });
    view.draw(pen, figure, at, colours);
    return at;
}
async function onSavePng() {
    if (placed && !await savePng(nameNow(), drawSaved)) complain(tr('The browser cannot make a picture of that size: zoom in.'));
}
function onSaveSvg() {
    if (placed) saveSvg(nameNow(), drawSaved);
}
function onSaveJson() {
    if (!placed) return;
    const { selection: chosen, tokens: { rows, columns } } = shown, n = columns.length;
    saveJson(nameNow(), { model: shown.info?.name, task: shown.overview.task, text: shown.overview.text ?? shown.text, ...chosen, queries: rows, keys: columns,
        weights: rows.map((_, r) => Array.from(shown.weights.subarray(r * n, (r + 1) * n), exact)) });
}

// ---- light and dark ----
function setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    find('theme').textContent = theme === 'dark' ? tr('Light') : tr('Dark');
    find('theme').setAttribute('aria-pressed', String(theme === 'dark'));
    if (shown.overview) draw();
}

// ---- keyboard ----
const shortcuts = [
    ['/', tr('go to the text field'), () => { if (!written) find('text').focus(); }],
    ['← →', tr('another head')],
    ['↑ ↓', tr('another layer')],
    [tr('arrows on the map'), tr('from weight to weight')],
    ['1 2 3', tr('kind of attention')],
    ['a', tr('mean of all heads'), () => choose(shown.layer === 'rollout' ? 'mean' : shown.layer, 'mean')],
    ['r', tr('rollout'), () => choose('rollout')],
    ['m', tr('map'), () => setView('map')],
    ['l', tr('lines'), () => setView('lines')],
    ['q', tr('√ colours: small weights show'), () => find('root').click()],
    ['s', tr('special tokens'), () => find('special').click()],
    ['b', tr('every piece by itself'), () => { if (!written) find('pieces').click(); }],
    ['+ − 0', tr('zoom in, out, show everything')],
    ['d', tr('light or dark'), switchTheme],
    ['Esc', tr('stop what is running, take the crosshair away')],
    ['?', tr('this list'), () => find('help').showModal()],
];
const byKey = new Map(shortcuts.filter(s => s[2]).map(([key, , act]) => [key, act]));

function setView(view) {
    shown.view = view;
    shown.cursor = null;
    document.querySelector(`#views [value="${view}"]`).checked = true;
    draw();
}
const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

function stepHead([down, right]) {
    const grid = places(), from = shown.layer === 'rollout' ? { i: grid.length, j: 0 }
        : { i: grid.findIndex(row => row[0].layer === shown.layer), j: grid[0].findIndex(p => p.head === shown.head) };
    for (let i = from.i + down, j = from.j + right; grid[i]?.[j]; i += down, j += right) {
        if (!source.has({ kind: shown.kind, ...grid[i][j] })) continue;
        const hadFocus = find('heads').contains(document.activeElement);
        choose(grid[i][j].layer, grid[i][j].head);
        if (hadFocus) find('heads').querySelector('[tabindex="0"]').focus();
        return;
    }
}
function stepCursor([down, right]) {
    const { top, bottom, left, right: end } = shown.window, { row, column } = shown.cursor ?? {};
    const isFirst = row == null && column == null;
    const r = clamp((row ?? top) + (isFirst ? 0 : down), 0, shown.rows.length - 1);
    const c = clamp((column ?? left) + (isFirst ? 0 : right), 0, shown.columns.length - 1);
    if (r < top || r >= bottom || c < left || c >= end)
        setWindow(clamp(top, r - (bottom - top) + 1, r), clamp(left, c - (end - left) + 1, c), bottom - top, end - left);
    moveCursor({ row: r, column: c }, null);
    tell(arrow(r, c));
}
function stepKind(by) {
    const { kinds } = shown.overview, at = kinds.findIndex(k => k.kind === shown.kind);
    chooseKind(kinds[(at + by + kinds.length) % kinds.length].kind);
    find(`kind-${shown.kind}`).focus();
}
function escape() {
    stop();
    if (placed) moveCursor(null, null);
}

function onKey(event) {
    const { target, key } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || find('help').open) return;
    if (key === 'Escape') return escape();
    if (target.matches('textarea, input[type="text"], input[type="number"]')) return;
    const step = steps[key], isReady = shown.overview?.kinds.length > 0;
    if (step && isReady) {
        if (target.matches('[type="radio"]')) return;
        if (target === find('over') && placed) stepCursor(step);
        else if (target.matches('[role="tab"]')) { if (step[1]) stepKind(step[1]); }
        else if (target === document.body || find('heads').contains(target) || find('large') === target) stepHead(step);
        else return;
    } else if (isReady && '123'.includes(key)) {
        const kind = shown.overview.kinds[key - 1]?.kind;
        if (kind) chooseKind(kind);
    } else if (isReady && (key === '+' || key === '=')) zoom(0.6);
    else if (isReady && (key === '-' || key === '−')) zoom(1 / 0.6);
    else if (isReady && key === '0') zoomFit();
    else if (byKey.has(key) && (isReady || '/d?'.includes(key))) byKey.get(key)();
    else return;
    event.preventDefault();
}

// ---- start ----
function listen() {
    const on = (id, event, act, options) => find(id).addEventListener(event, act, options);
    on('ask', 'submit', event => { event.preventDefault(); explore(); });
    on('text', 'keydown', event => {
        if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
        event.preventDefault();
        explore();
    });
    on('target', 'keydown', event => {
        if (event.key !== 'Enter' || event.isComposing) return;
        event.preventDefault();
        explore();
    });
    on('special', 'change', () => readAgain());
    on('pieces', 'change', () => readAgain());
    on('root', 'change', () => { shown.root = find('root').checked; drawThumbnails(); draw(); });
    on('views', 'change', event => setView(event.target.value));
    on('rollout', 'click', () => choose('rollout'));
    on('theme', 'click', switchTheme);
    on('help-open', 'click', () => find('help').showModal());
    on('zoom-in', 'click', () => zoom(0.6));
    on('zoom-out', 'click', () => zoom(1 / 0.6));
    on('zoom-fit', 'click', zoomFit);
    on('save-png', 'click', onSavePng);
    on('save-svg', 'click', onSaveSvg);
    on('save-json', 'click', onSaveJson);
    on('over', 'pointermove', event => {
        const point = pointAt(event);
        if (dragged) dragTo(point);
        moveCursor(cursorAt(...point), point);
    });
    on('over', 'pointerdown', event => {
        const point = pointAt(event);
        if (find('over').classList.contains('drags')) {
            dragged = { from: point, start: { ...shown.window } };
            find('over').setPointerCapture(event.pointerId);
        }
        moveCursor(cursorAt(...point), point);
    });
    for (const end of ['pointerup', 'pointercancel']) on('over', end, () => { dragged = null; });
    on('over', 'pointerleave', event => { if (event.pointerType === 'mouse') moveCursor(null, null); });
    on('over', 'dblclick', zoomFit);
    on('over', 'wheel', event => {
        if (!event.ctrlKey) return; // the page scrolls
        event.preventDefault();
        zoom(event.deltaY < 0 ? 0.8 : 1.25, cursorAt(...pointAt(event)));
    }, { passive: false });
    document.addEventListener('keydown', onKey);
    darkPreferred.addEventListener('change', () => { if (!memory.get('qkv-theme')) setTheme(preferredTheme()); });
    let width = 0;
    new ResizeObserver(([{ contentRect }]) => {
        if (Math.round(contentRect.width) === width) return;
        width = Math.round(contentRect.width);
        if (shown.weights) draw();
    }).observe(find('stage'));
}

async function start() {
    translatePage();
    const remembered = memory.get('qkv-theme');
    setTheme(['light', 'dark'].includes(remembered) ? remembered : preferredTheme());
    const key = k => /^[a-z]{2,}$|[\u4e00-\u9fff]/.test(k) ? k : element('kbd', {}, k);
    find('keys').replaceChildren(...shortcuts.flatMap(([keys, does]) =>
        [element('dt', {}, ...keys.split(' ').flatMap(k => [key(k), ' '])), element('dd', {}, does)]));
    listen();
    if (written) {
        find('text').value = written.overview.text;
        find('text').readOnly = true;
        for (const id of ['go', 'text-hint', 'options']) find(id).hidden = true;
        find('pieces').parentElement.hidden = true;
    } else find('text').focus();
    shown.info = await source.info();
    drawInfo();
    if (shown.info?.example && find('text').value === '') {
        find('text').value = shown.info.example;
        find('text').select();
        explore();
    }
    if (written) await take({ text: written.overview.text, special: true }, false);
}
trying(start);
