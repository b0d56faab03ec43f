/* live.js: the live page around its views: what is seen (in the address), what the engine answered, and the parts that all views
 * have. docs/engine.md has the requests. */
'use strict';

// ---- what is seen: all of it is in the address, so that a link, a reload and the way back show the same ----
const defaults = {
    text: '', ids: '', target: '', view: 'model', kind: '', layer: 0, head: 0, also: '', picture: 'map', root: 0, special: 1,
    query: 0, key: 0, step: 0, place: 0, output: -1, switches: '', touched: 0, checkpoint: -1, job: 'reverse', lesson: '', numbers: '',
    beam: 4, max_tokens: 16, temperature: 0, top_k: 0, top_p: 1, seed: 0,
};
const state = { ...defaults };
const limits = { beam: [1, 16], max_tokens: [0, 256], temperature: [0, 3], top_k: [0, 200], top_p: [0, 1], seed: [0, 4294967295] };

function fitted(name, text) {
    if (typeof defaults[name] === 'string') return text;
    if (name === 'layer' && text === 'rollout' || (name === 'layer' || name === 'head') && text === 'mean') return text;
    const x = text.trim() === '' ? NaN : Number(text), isWhole = !['temperature', 'top_p'].includes(name), [low, high] = limits[name] ?? [-1, 1e9];
    return Number.isFinite(x) ? clamp(isWhole ? Math.round(x) : x, low, high) : defaults[name];
}
function readAddress() {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const name of Object.keys(defaults)) state[name] = given.has(name) ? fitted(name, given.get(name)) : defaults[name];
}
function addressNow({ withToken = true } = {}) {
    const given = new URLSearchParams(), token = new URLSearchParams(location.hash.slice(1)).get('token');
    if (token && withToken) given.set('token', token);
    for (const name of Object.keys(defaults)) if (state[name] !== defaults[name]) given.set(name, state[name]);
    return `#${given}`;
}
let isTyping = false; // keystrokes and sliders that follow each other are one step back
function change(changes, { typing = false, quiet = false } = {}) {
    Object.assign(state, changes);
    const write = quiet || typing && isTyping ? 'replaceState' : 'pushState';
    isTyping = typing;
    const address = addressNow();
    if (address !== location.hash) history[write](null, '', address);
    return refresh();
}

// ---- the engine ----
let engine = null, info = null;
const can = name => info?.can.includes(name) ?? false;
const answers = new Map(); // the last ones, by what was asked
function rememberAnswer(key, answer) {
    answers.set(key, answer);
    for (const old of answers.keys()) if (answers.size > 48) answers.delete(old);
    return answer;
}
const switchesNow = () => state.switches.split(' ').filter(Boolean);
// The checkpoint that is looked at: an index into those of a training; the one without a folder is the model itself.
const ownCheckpoint = () => info?.checkpoints?.findIndex(({ folder }) => !folder) ?? -1;
const checkpointNow = () => state.checkpoint >= 0 && info?.checkpoints ? Math.min(state.checkpoint, info.checkpoints.length - 1) : ownCheckpoint();
const pickCheckpoint = (i, typing = false) => change({ checkpoint: i === ownCheckpoint() ? -1 : i, ids: '' }, { typing });
// What every request has beside its own: the checkpoint, and the switches where all views are to show the changed model.
function amended(request) {
    const made = { ...request };
    if (!('checkpoint' in made) && checkpointNow() !== ownCheckpoint()) made.checkpoint = checkpointNow();
    if (state.touched && made.switches === undefined && switchesNow().length) made.switches = switchesNow();
    return made;
}

// The answer to a request; null when a newer one of the same slot took its place.
async function newest(slot, asking) {
    const request = amended(asking), key = JSON.stringify(request);
    if (answers.has(key)) return answers.get(key);
    const answer = await engine.latest(slot, request);
    return answer && rememberAnswer(key, answer);
}

// ---- the run that is seen ----
let run = null;        // of the text and the target that are looked at
let found = null;      // of the text: what the model made of it
const isTranslator = () => info.task === 'translate', isGenerator = () => info.task === 'generate';
const places = { special: true, pieces: true }; // rows of maps are then the places of the tokens

function searchRequest() {
    const request = { do: 'run', text: state.text, ...places };
    if (isTranslator()) Object.assign(request, state.target ? { target: state.target } : { beam: state.beam, n_best: Math.min(3, state.beam) });
    if (isGenerator()) for (const name of ['max_tokens', 'temperature', 'top_k', 'top_p', 'seed']) request[name] = state[name];
    return request;
}
// What every request about this run has: the target that was found is named, nothing is searched again.
const about = (more, of = run) => ({ text: of.text, ...places, ...of.task === 'classify' || of.task === 'encode' ? {} : { target_ids: of.target_ids ?? [] }, ...more });

async function runNow() {
    const key = JSON.stringify(amended(searchRequest()));
    if (found?.key !== key) {
        const answer = await engine.latest('run', amended(searchRequest()));
        if (!answer) return false;
        found = { ...answer, text: state.text, key };
    }
    const ids = /^\d{1,7}(\.\d{1,7})*$/.test(state.ids) ? state.ids.split('.').map(Number) : null;
    if (!ids || !isTranslator()) run = found;
    else if (run?.key !== key + state.ids) {
        const answer = await engine.latest('run', amended({ do: 'run', text: state.text, ...places, target_ids: ids }));
        if (!answer) return false;
        run = { ...answer, text: state.text, key: key + state.ids };
    }
    return true;
}
const kindsNow = () => run.kinds.filter(({ layers }) => layers > 0);
const kindNow = () => kindsNow().find(({ kind }) => kind === state.kind);
const tokensOf = side => run.sides[side].tokens;
const labelsOf = side => tokensOf(side).map(labelOf);
// Keys that switches hide, as places; without a kind a token of a translator's source is hidden from both that see it.
const hidden = { of: null, places: null };
function hiddenKeys(kind) {
    const of = `${kind} ${state.switches}`;
    if (hidden.of === of) return hidden.places;
    const given = switchesNow().map(text => text.match(/^hide-key=(?:([a-z]+):)?(\d+)$/)).filter(Boolean);
    return Object.assign(hidden, { of, places: new Set(given.filter(([, k]) => k === undefined ? kind !== 'decoder' || !info.encoder_layers : k === kind).map(([, , place]) => +place)) }).places;
}
const isMasked = (kind, row, column, isChanged = !!state.touched) => kind === 'decoder' && column > row || isChanged && hiddenKeys(kind).has(column);

// What was chosen stays where it is there; else cross-attention, the last layer, the first head.
function keepChoice() {
    const kinds = kindsNow(), changes = {};
    if (!kinds.length) return;
    const now = kindNow() ?? kinds.find(({ kind }) => kind === 'cross') ?? kinds[0];
    if (now.kind !== state.kind) Object.assign(changes, { kind: now.kind, ...state.kind ? {} : { layer: now.layers - 1, head: 0 } });
    if (state.layer >= now.layers || state.layer < 0 || state.layer === 'rollout' && now.kind === 'cross') changes.layer = now.layers - 1;
    if (state.head >= now.heads || state.head < 0) changes.head = 0;
    Object.assign(state, changes);
    state.query = clamp(state.query, 0, tokensOf(now.rows).length - 1);
    state.key = clamp(state.key, 0, tokensOf(now.columns).length - 1);
}

// One map, (rows, columns): from the run where it has them, else from the engine.
async function mapOf(kind, layer, head, of = run, more = null) {
    const { rows, columns } = of.kinds.find(k => k.kind === kind), all = of.weights?.[kind];
    const shape = [of.sides[rows].tokens.length, of.sides[columns].tokens.length], size = shape[0] * shape[1];
    if (all && !more && typeof layer === 'number' && typeof head === 'number') {
        const at = (layer * all.shape[1] + head) * size;
        return { rows: shape[0], columns: shape[1], weights: all.data.subarray(at, at + size) };
    }
    const request = amended(about({ do: 'head', kind, layer, head: layer === 'rollout' ? 'mean' : head, ...more }, of)), key = JSON.stringify(request);
    const answer = answers.get(key) ?? rememberAnswer(key, await engine.ask(request));
    return { rows: shape[0], columns: shape[1], weights: answer.weights.data };
}

// ---- refreshing ----
const views = []; // {name, title, isThere, build(host), update(host)}: update may wait; it asks isCurrent() then
let turn = 0, built = null;
const viewNow = () => views.find(v => v.name === state.view && v.isThere()) ?? views.find(v => v.isThere());

function setBusy(isBusy) {
    document.body.classList.toggle('busy', isBusy);
    find('answer').setAttribute('aria-busy', String(isBusy));
    find('panel').setAttribute('aria-busy', String(isBusy));
}
// Runs work; what goes wrong is told in a sentence.
async function trying(work) {
    try { return await work(); } catch (problem) {
        complain(problem.status === undefined ? tr('The page made a mistake: {0}', problem.message) : problem.message);
        if (problem.status === undefined) console.error(problem);
        find('loading')?.remove();
        setBusy(false);
        return null;
    }
}

function refresh() {
    const mine = ++turn;
    drawControls();
    drawTabs();
    drawChanged();
    return trying(async () => {
        if (state.text.trim() === '' && viewNow()?.needsText !== false) return showNothing();
        if (viewNow().needsText !== false || state.text.trim() !== '') {
            setBusy(true);
            if (!await runNow()) return;
            if (mine !== turn) return;
            complain(null);
            keepChoice();
            drawAnswer();
            if (!built) await painted();
            performance.mark('answer seen');
            if (mine !== turn) return;
        }
        await showView(mine);
        if (mine === turn) setBusy(false);
    });
}
// What the page opens with is seen before the view is drawn, which takes longer; a page in the background is not painted.
const painted = () => new Promise(seen => {
    requestAnimationFrame(() => setTimeout(seen));
    setTimeout(seen, 50);
});
async function showView(mine) {
    const view = viewNow(), panel = find('panel');
    if (built !== view) {
        built = view;
        panel.replaceChildren();
        view.build(panel);
    }
    panel.setAttribute('aria-labelledby', `tab-${view.name}`);
    await view.update(panel, () => mine === turn);
}
function showNothing() {
    setBusy(false);
    complain(null);
    built = null;
    find('answer-body').replaceChildren(element('p', { className: 'quiet' }, tr('Type a text, or choose an example.')));
    find('cost').textContent = '';
    find('panel').replaceChildren();
}

// ---- text, examples, options ----
function drawControls() {
    const field = find('text');
    if (field.value !== state.text) field.value = state.text;
    for (const chip of find('examples').children) chip.setAttribute('aria-pressed', String(chip.dataset.text === state.text));
    for (const input of find('fields').querySelectorAll('input')) {
        if (input !== document.activeElement) input.value = state[input.name];
    }
}
// The search runs at once with every keystroke: the newest alone is answered, so that typing never waits.
function onText() {
    change({ text: find('text').value, ids: '', target: '', switches: '', touched: 0 }, { typing: true });
}
function optionField(name, label, type, more = {}) {
    const input = element('input', { type, name, ...more, on: { input: onOption } });
    return element('label', { className: type === 'text' ? 'wide' : '' }, `${label} `, input);
}
// A number that does not fit is told beside the field; the options that hold it are then open.
function onOption({ target: input }) {
    const { name, value } = input, [low, high] = limits[name] ?? [];
    const isWrong = input.type === 'number' && (value === '' || !(+value >= low && +value <= high));
    input.setAttribute('aria-invalid', String(isWrong));
    if (isWrong) return complain(tr('{0}: a number from {1} to {2} is needed.', input.labels[0].textContent.trim(), low, high));
    complain(null);
    change({ [name]: fitted(name, value), ids: '' }, { typing: true });
}
function drawOptions() {
    const number = (name, label, step = 1) => optionField(name, label, 'number', { min: limits[name][0], max: limits[name][1], step });
    const fields = isTranslator() ? [optionField('target', tr('Translation to look at, instead of a search'), 'text', { dir: 'auto' }), number('beam', tr('Beam'))]
        : isGenerator() ? [number('max_tokens', tr('Tokens to add')), number('temperature', tr('Temperature'), 0.1),
            number('top_k', tr('Top-k')), number('top_p', tr('Top-p'), 0.05), number('seed', tr('Seed'))] : [];
    find('options').hidden = fields.length === 0;
    find('fields').replaceChildren(...fields);
}
function drawInfo() {
    const millions = info.parameters / 1e6, { encoder_layers: e, decoder_layers: d } = info;
    const parameters = language === 'zh' && info.parameters >= 1e4 ? `${Math.round(info.parameters / 1e4)} 万` : millions >= 1 ? `${millions.toFixed(1)} M` : `${(info.parameters / 1e3).toFixed(0)} k`;
    const does = { translate: tr('translates'), classify: tr('classifies'), generate: tr('continues texts'), encode: tr('reads') }[info.task];
    find('model').textContent = info.name;
    document.title = tr('{0}: what it attends to', info.name);
    find('facts').replaceChildren(...[does, tr('{0} parameters', parameters), e + d === 1 ? tr('{0} layer', 1) : tr('{0} layers', e && d ? `${e} + ${d}` : e || d),
        tr('{0} heads', info.heads), tr('vocabulary of {0}', info.vocabulary)].map(fact => element('li', {}, fact)));
    const examples = info.examples?.length ? info.examples : [info.example].filter(Boolean);
    find('examples').replaceChildren(...examples.slice(0, 6).map(text => button(shortened(text, 260), () =>
        change({ text, ids: '', target: '', switches: '', touched: 0 }), { dir: 'auto', title: text, data: { text } })));
    drawOptions();
}

// ---- the answer ----
function drawAnswer() {
    const title = { translate: tr('Translation'), classify: tr('Class'), generate: tr('Continuation') }[info.task];
    find('answer').hidden = !title;
    if (!title) return;
    find('answer-title').textContent = title;
    fill(find('answer-body'), { translate: drawTranslations, classify: drawClasses, generate: drawContinuation }[info.task](found));
    const count = run.kinds[0] ? tokensOf(run.kinds[0].columns).length : 0;
    find('cost').textContent = tr('{0} tokens, {1} ms', count, (found.milliseconds ?? 0).toFixed(0));
}
function drawTranslations({ output: { translations = [] } }) {
    const now = (run.target_ids ?? []).join('.'), at = Math.max(0, translations.findIndex(t => (t.ids ?? []).join('.') === now));
    const choices = translations.map((t, i) => {
        const radio = element('input', { type: 'radio', name: 'translation', checked: i === at, data: { keep: `translation-${i}` },
            on: { change: () => change({ ids: i ? t.ids.join('.') : '', switches: '' }) } });
        return element('label', { className: 'choice' }, radio, element('b', { dir: 'auto' }, t.text || tr('(nothing)')),
            element('span', { className: 'numbers quiet', title: tr('score: higher is better') }, Number.isFinite(t.score) ? minus(t.score.toFixed(3)) : ''));
    });
    return element('div', { role: 'radiogroup', 'aria-label': tr('Translations, the best first') }, ...choices);
}
function classRows(classes) {
    return element('div', { className: 'classes' }, ...classes.flatMap(({ label, probability }) =>
        [element('span', { dir: 'auto' }, label), bar(probability), element('span', { className: 'numbers' }, percent(probability))]));
}
const drawClasses = ({ output: { classes = [] } }) => classRows(classes);
// Of a long text only the end: the continuation is what is new.
function drawContinuation({ output: { text = '' } }) {
    const before = state.text.length > 300 ? `… ${state.text.slice(-200)}` : state.text;
    return element('p', { className: 'written', dir: 'auto' }, element('span', {}, before), text);
}

// ---- parts that several views have ----
const kindNames = () => ({ encoder: tr('Encoder self-attention'), decoder: tr('Decoder self-attention'), cross: tr('Cross-attention') });
function spoken(layer, head) {
    if (layer === 'rollout') return tr('rollout over all layers');
    const ofLayer = layer === 'mean' ? tr('mean of all layers') : tr('layer {0}', layer);
    return tr('{0}, {1}', ofLayer, head === 'mean' ? tr('mean of all heads') : tr('head {0}', head));
}
// One of several: radios that look like one switch.
function segments(name, label, choices, now, act) {
    return element('div', { className: 'segments', role: 'radiogroup', 'aria-label': label }, ...choices.map(([value, text]) =>
        element('label', {}, element('input', { type: 'radio', name, value, checked: value === now, data: { keep: `${name}-${value}` },
            on: { change: () => act(value) } }), element('span', {}, text))));
}
const kindSwitch = () => segments('kind', tr('Kind of attention'), kindsNow().map(({ kind }) => [kind, kindNames()[kind]]), state.kind, kind => change({ kind, also: '' }));
function checkbox(label, isOn, act, keep) {
    return element('label', { className: 'switch' }, element('input', { type: 'checkbox', checked: isOn, data: { keep },
        on: { change: ({ target }) => act(target.checked) } }), ` ${label}`);
}
function slider(name, label, low, high, step, shown = x => x) {
    const said = element('output', { className: 'numbers' }, shown(state[name]));
    const input = element('input', { type: 'range', min: low, max: high, step, value: state[name], data: { keep: `slider-${name}` },
        on: { input: () => change({ [name]: +input.value }, { typing: true }) } });
    return element('label', { className: 'slider' }, element('span', {}, label), input, said);
}
function numberSelect(label, values, now, act, keep) {
    const options = values.map(([value, text]) => element('option', { value, selected: `${value}` === `${now}` }, text));
    return element('label', { className: 'pick' }, `${label} `, element('select', { data: { keep }, on: { change: ({ target }) => act(target.value) } }, ...options));
}
const numbered = labels => labels.map((label, i) => [i, `${i} ${label}`]);
// One part of a view; what goes wrong in it is told there, and the others go on.
async function part(host, draw, isCurrent) {
    try { await draw(host, isCurrent); } catch (problem) {
        if (problem.status === undefined) throw problem;
        if (isCurrent()) fill(host, element('p', { className: 'problem' }, problem.message));
    }
}
const note = text => element('p', { className: 'quiet note' }, text);

// Buttons that save what a view shows. draw(pen) gives {width, height}, without it the card is drawn as it is seen; rows() are those
// of a table, null where it has told why there are none; value() is for a program.
function saving(name, { draw, rows, value }) {
    const host = element('div', { className: 'segments save', role: 'group', 'aria-label': tr('Save this view as') });
    const picture = draw ?? (pen => drawCard(pen, host.closest('.card, #panel')));
    const made = [['PNG', async () => { if (!await savePng(name(), picture)) complain(tr('The browser cannot make a picture of that size: zoom in.')); }],
        ['SVG', () => saveSvg(name(), picture)], ['CSV', () => { const table = rows(); if (table) saveCsv(name(), table); }], ['JSON', () => saveJson(name(), value())]];
    host.append(...made.map(([text, act]) => button(text, act)));
    return host;
}
// A card of the page under a title.
function drawCard(pen, card) {
    const colours = coloursNow(), seen = sizeSeen(card), width = seen.width + 16, height = seen.height + 56;
    pen.rect(0, 0, width, height, colours.card);
    titled(pen, width, viewNow().title(), colours);
    drawSeen(pen, card, [8, 48], colours);
    return { width, height };
}
// A title, what is under it, and where its numbers come from; for pictures that leave the page.
function titled(pen, width, title, colours) {
    pen.rect(0, 0, width, 46, colours.card);
    pen.text(shortened(title, width - 16, 14), 8, 14, { size: 14, fill: colours.ink, bold: true });
    pen.text(shortened(`${info.name}: ${run?.text ?? ''}`, width - 16), 8, 34, { fill: colours.quiet });
}

// ---- tabs ----
function drawTabs() {
    if (!info) return;
    const now = viewNow();
    fill(find('tabs'), ...views.filter(v => v.isThere()).map(v => button(v.title(), () => change({ view: v.name }), {
        id: `tab-${v.name}`, role: 'tab', 'aria-selected': String(v === now), 'aria-controls': 'panel', tabIndex: v === now ? 0 : -1,
        data: { keep: `tab-${v.name}` } })));
    const tab = find(`tab-${now?.name}`), bar = find('tabs'); // on a phone they are scrolled: the one that is chosen is seen
    if (tab && bar.scrollWidth > bar.clientWidth) bar.scrollLeft = clamp(bar.scrollLeft, tab.offsetLeft + tab.offsetWidth - bar.offsetLeft - bar.clientWidth, tab.offsetLeft - bar.offsetLeft);
}
function stepTab(by) {
    const there = views.filter(v => v.isThere()), at = there.indexOf(viewNow());
    change({ view: there[(at + by + there.length) % there.length].name });
    find(`tab-${state.view}`).focus();
}

// Where all views show the changed model, that is said above them.
function drawChanged() {
    const isTouched = state.touched && switchesNow().length > 0, isOlder = checkpointNow() !== ownCheckpoint();
    find('changed').hidden = !isTouched && !isOlder;
    fill(find('changed'), isTouched ? tr('All views show the changed model ({0}): ', switchesNow().join(', ')) : isOlder ? tr('All views show the model of step {0}: ', info.checkpoints[checkpointNow()].step) : '',
        button(tr('Back to the original'), () => change(isTouched ? { touched: 0 } : { checkpoint: -1 })));
}

// ---- light and dark ----
function setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    find('theme').textContent = theme === 'dark' ? tr('Light') : tr('Dark');
    find('theme').setAttribute('aria-pressed', String(theme === 'dark'));
    if (run) refresh();
}

// ---- keyboard ----
const shortcuts = () => [
    ['/', tr('go to the text field'), () => find('text').focus()],
    [`1 – ${views.filter(v => v.isThere()).length}`, tr('view')],
    [tr('arrows'), tr('another head, weight or step: what has the keyboard')],
    ['n p', tr('next and previous step of the walk')],
    ['d', tr('light or dark'), switchTheme],
    ['Alt ←', tr('back')],
    ['?', tr('this list'), () => find('help').showModal()],
];
const arrows = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

function onKey(event) {
    const { target, key } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || find('help').open || event.defaultPrevented) return;
    if (target.matches('textarea, select, input:not([type="radio"]):not([type="checkbox"])')) return;
    const there = views.filter(v => v.isThere());
    if (target.matches('[role="tab"]') && arrows[key]?.[1]) stepTab(arrows[key][1]);
    else if (key >= '1' && key <= `${there.length}`) change({ view: there[key - 1].name });
    else if (shortcuts().some(([k, , act]) => k === key && act)) shortcuts().find(([k]) => k === key)[2]();
    else if (!viewNow()?.onKey?.(key)) return;
    event.preventDefault();
}

// ---- start ----
function drawHelp() {
    find('keys').replaceChildren(...shortcuts().flatMap(([keys, does]) =>
        [element('dt', {}, ...keys.split(' ').flatMap(k => [element('kbd', {}, k), ' '])), element('dd', {}, does)]));
}
async function copyLink() {
    const link = `${location.href.split('#')[0]}${addressNow({ withToken: false })}`;
    try {
        await navigator.clipboard.writeText(link);
        tell(tr('The link is copied.'));
    } catch { prompt(tr('Link to what is seen now:'), link); }
}
function otherLanguage() {
    const link = find('language'), isChinese = language === 'zh';
    Object.assign(link, { textContent: isChinese ? 'English' : '中文', lang: isChinese ? 'en' : 'zh', hreflang: isChinese ? 'en' : 'zh' });
    link.addEventListener('click', () => { link.href = `?lang=${isChinese ? 'en' : 'zh'}${addressNow()}`; });
}
function listen() {
    const on = (id, event, act) => find(id).addEventListener(event, act);
    on('text', 'input', onText);
    on('theme', 'click', switchTheme);
    on('copy', 'click', copyLink);
    on('help-open', 'click', () => find('help').showModal());
    on('skip', 'click', event => { event.preventDefault(); find('panel').focus(); });
    document.addEventListener('keydown', onKey);
    window.addEventListener('popstate', () => { isTyping = false; readAddress(); refresh(); });
    darkPreferred.addEventListener('change', () => { if (!memory.get('qkv-theme')) setTheme(preferredTheme()); });
    let width = 0;
    new ResizeObserver(([{ contentRect }]) => {
        if (Math.round(contentRect.width) === width) return;
        if (width && run) requestAnimationFrame(() => refresh());
        width = Math.round(contentRect.width);
    }).observe(find('panel'));
}
document.addEventListener('DOMContentLoaded', () => trying(async () => {
    translatePage();
    const remembered = memory.get('qkv-theme');
    setTheme(['light', 'dark'].includes(remembered) ? remembered : preferredTheme());
    drawHelp();
    otherLanguage();
    readAddress();
    listen();
    engine = await openEngine();
    info = await engine.ask({ do: 'info' });
    drawInfo();
    if (state.text === '' && !location.hash.includes('text=')) state.text = info.example ?? '';
    await refresh();
    performance.mark('first answer');
}));
