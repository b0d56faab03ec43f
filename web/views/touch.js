/* touch.js: the model changed while it runs: heads and layers off, keys hidden, positions moved, rows edited, values swapped; what
 * comes out beside what came out before. The changes are spelt as the options of "qkv attend" are. */
'use strict';

const mostEdited = 64; // keys of a row that can be typed

// ---- which switches are on ----
const isSwitched = text => switchesNow().includes(text);
const setSwitches = list => change({ switches: list.join(' '), ...list.length ? {} : { touched: 0 } });
const addSwitch = text => setSwitches([...switchesNow().filter(other => other !== text), text]);
const toggleSwitch = text => setSwitches(isSwitched(text) ? switchesNow().filter(other => other !== text) : [...switchesNow(), text]);
const hasTwoStacks = () => kindsNow().length > 1;
const stackOf = kind => kind === 'cross' ? 'decoder' : kind;                       // whose layers they are
const keysOf = kind => hasTwoStacks() && kind !== 'decoder' ? '' : `${kind}:`;     // a source token is hidden from both that see it
const positionsOf = kind => kind === 'cross' ? 'encoder' : kind;

// ---- what is switched ----
function layerButtons() {
    const { kind, layers } = kindNow();
    return element('div', { className: 'tokens', role: 'group', 'aria-label': tr('Layers off') }, ...range(layers).map(layer => {
        const text = `without-layer=${stackOf(kind)}:${layer}`;
        return button(tr('layer {0}', layer), () => toggleSwitch(text), { className: isSwitched(text) ? 'off' : '', 'aria-pressed': String(isSwitched(text)), data: { keep: `off-${layer}` } });
    }));
}
function keyButtons(labels) {
    return element('div', { className: 'tokens', role: 'group', 'aria-label': tr('Keys hidden') }, ...labels.slice(0, 200).map((label, place) => {
        const text = `hide-key=${keysOf(state.kind)}${place}`;
        return button(label, () => toggleSwitch(text), { className: isSwitched(text) ? 'off' : '', 'aria-pressed': String(isSwitched(text)), dir: 'auto', data: { keep: `hide-${place}` } });
    }));
}
// Two tokens and a button: move, swap; one token: zero.
const pair = { from: 0, to: 1 };
function pairControls(labels) {
    const last = labels.length - 1, tokens = numbered(labels), pick = (name, label) => numberSelect(label, tokens, clamp(pair[name], 0, last), v => { pair[name] = +v; }, `pair-${name}`);
    const made = name => clamp(pair[name], 0, last), act = (label, text, keep) => button(label, () => addSwitch(text()), { data: { keep } });
    return element('div', { className: 'bar' }, pick('from', tr('Token')), pick('to', tr('and')),
        act(tr('Move to its position'), () => `move=${positionsOf(state.kind)}:${made('from')}=${made('to')}`, 'do-move'),
        act(tr('Swap their values'), () => `swap-values=${state.kind}:${made('from')}=${made('to')}`, 'do-swap'), act(tr('Zero the value of the first'), () => `zero-value=${state.kind}:${made('from')}`, 'do-zero'));
}
async function drawRowEditor(host, isCurrent) {
    const { rows, columns } = kindNow(), labels = labelsOf(columns), map = await mapOf(state.kind, state.layer, state.head, run, { switches: [] });
    if (isCurrent()) fill(host, rowEditor(rows, labels, map));
}
function rowEditor(rows, labels, map) {
    const n = state.kind === 'decoder' ? state.query + 1 : labels.length, at = state.query * map.columns;
    if (n > mostEdited) return note(tr('Rows of more than {0} keys are not edited here.', mostEdited));
    const fields = range(n).map(j => element('input', { type: 'number', min: 0, step: 'any', value: exact(+map.weights[at + j].toFixed(4)) }));
    const text = () => `edit-row=${state.kind}:${state.layer}.${state.head}.${state.query}=${fields.map(f => Math.max(0, +f.value || 0)).join(',')}`;
    const only = j => fields.forEach((field, i) => { field.value = +(i === j); });
    return element('div', {}, element('div', { className: 'bar' }, numberSelect(tr('Layer'), range(kindNow().layers).map(i => [i, i]), state.layer, v => change({ layer: +v }), 'edit-layer'),
        numberSelect(tr('Head'), range(kindNow().heads).map(i => [i, i]), state.head, v => change({ head: +v }), 'edit-head'), numberSelect(tr('Query'), numbered(labelsOf(rows)), state.query, v => change({ query: +v }), 'edit-query')),
    element('div', { className: 'row-edit' }, ...fields.map((field, j) => element('label', { dir: 'auto' }, `${j} ${labels[j]} `, field))),
    button(tr('Use this row'), () => addSwitch(text()), { data: { keep: 'do-row' } }), ' ', button(tr('All on the first key'), () => only(0)), ' ', button(tr('Even'), () => fields.forEach(f => { f.value = exact(1 / n); })));
}
function switchList() {
    const list = switchesNow(), quote = text => `'${text.replace(/'/g, "'\\''")}'`, option = s => { const at = s.indexOf('='); return `--${s.slice(0, at)} ${quote(s.slice(at + 1))}`; };
    if (!list.length) return note(tr('Nothing is changed yet: switch a head off, or hide a token.'));
    return element('div', {}, element('ul', { className: 'switches', 'aria-label': tr('Changes') }, ...list.map(text => element('li', {}, element('button', { type: 'button', data: { keep: `remove-${text}` }, on: { click: () => toggleSwitch(text) } },
        unseen(tr('Remove ')), element('code', {}, text), element('span', { 'aria-hidden': 'true' }, ' ✕'))))),
    element('div', { className: 'bar' }, button(tr('Remove all'), () => setSwitches([])), checkbox(tr('show the changed model in all views'), !!state.touched, on => change({ touched: +on }), 'touched')),
    element('code', { className: 'command', dir: 'ltr' }, `qkv attend -m MODEL ${quote(run.text)} ${list.map(option).join(' ')}`));
}

// ---- before and after ----
// Tokens of both that are in the longest sequence they share; the others differ.
function commonTokens(a, b) {
    const length = range(a.length + 1).map(() => new Uint16Array(b.length + 1)), inA = new Set(), inB = new Set();
    for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) length[i][j] = a[i] === b[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
    for (let i = 0, j = 0; i < a.length && j < b.length;) {
        if (a[i] === b[j]) { inA.add(i++); inB.add(j++); } else if (length[i + 1][j] >= length[i][j + 1]) i++;
        else j++;
    }
    return [inA, inB];
}
function markedTokens(tokens, same, special) {
    const spaced = tokens.map((token, i) => special?.[i] ? '' : token);
    return element('p', { className: 'output-text', dir: 'auto' }, ...spaced.flatMap((token, i) => token === '' ? [] : same.has(i) ? [token] : [element('mark', {}, token)]));
}
const outSide = of => {
    const side = of.sides.chosen && isTranslator() ? of.sides.chosen : of.sides.read, n = side.tokens.length, from = isTranslator() ? 0 : n - (of.target_ids?.length ?? 0);
    return { tokens: side.tokens.slice(from), special: side.special.slice(from) };
};
function besideTexts(before, after) {
    const a = outSide(before), b = outSide(after), [inA, inB] = commonTokens(a.tokens, b.tokens), changed = Math.max(b.tokens.length - inB.size, a.tokens.length - inA.size);
    return [[tr('Original'), markedTokens(a.tokens, inA, a.special)], [tr('Changed'), markedTokens(b.tokens, inB, b.special)], changed === 1 ? tr('{0} token differs', 1) : changed ? tr('{0} tokens differ', changed) : tr('The output is the same.')];
}
function besideClasses(before, after) {
    const of = ({ output: { classes } }) => Object.fromEntries(classes.map(c => [c.label, c.probability])), a = of(before), b = of(after), moved = Math.max(...Object.keys(a).map(l => Math.abs(a[l] - b[l])));
    const ordered = classes => classRows(Object.keys(a).map(label => ({ label, probability: classes[label] })));
    return [[tr('Original'), ordered(a)], [tr('Changed'), ordered(b)], tr('The largest change is {0}.', percent(moved))];
}
const outputOf = switches => newest(`touch-${switches.length ? 'after' : 'before'}`, { ...searchRequest(), pieces: false, attention: [], switches });

async function drawBeside(host, isCurrent) {
    const before = await outputOf([]), after = switchesNow().length ? await outputOf(switchesNow()) : before;
    if (!before || !after || !isCurrent()) return;
    const [first, second, said] = info.task === 'classify' ? besideClasses(before, after) : info.task === 'encode' ? [[tr('Original'), ''], [tr('Changed'), ''], ''] : besideTexts(before, after);
    fill(host, element('div', { className: 'two' }, ...[first, second].map(([title, content]) => element('div', {}, element('h3', {}, title), content))), element('p', { className: 'quiet', role: 'status' }, said));
}
// The chosen head before and after, on the same tokens.
async function drawTouchedMaps(host, isCurrent) {
    const maps = [];
    for (const switches of [[], switchesNow()]) maps.push(await mapOf(state.kind, state.layer, state.head, run, { switches }));
    if (!isCurrent()) return;
    const { kind, rows, columns } = kindNow(), high = Math.max(...maps.map(({ weights }) => rangeOf(weights, maps[0].rows, maps[0].columns).high));
    const largest = maps[0].weights.reduce((most, x, i) => Math.max(most, Math.abs(x - maps[1].weights[i])), 0);
    const draw = (map, title, isChanged) => {
        const f = { kind, weights: map.weights, layers: [map.weights], rows: labelsOf(rows), columns: labelsOf(columns), root: !!state.root, high, largest: high, isMasked: (r, c) => isMasked(kind, r, c, isChanged), window: { top: 0, bottom: map.rows, left: 0, right: map.columns } };
        const canvas = element('canvas', { role: 'img', 'aria-label': title }), width = Math.max(260, Math.floor(host.clientWidth / (host.clientWidth > 740 ? 2 : 1)) - 16), at = mapLayout(f, width, 300, 0);
        drawMap(sized(canvas, width, at.height), f, at, coloursNow());
        return element('div', {}, element('h3', {}, title), canvas);
    };
    fill(host, element('div', { className: 'two' }, draw(maps[0], tr('Original'), false), draw(maps[1], tr('Changed'), true)), element('p', { className: 'quiet numbers' }, tr('On the original’s tokens; the largest change of a weight is {0}.', digits(largest))),
    saving(() => 'touch', { rows: () => [['query', 'key', 'original', 'changed'], ...range(maps[0].rows * maps[0].columns).map(i => [labelsOf(rows)[Math.floor(i / maps[0].columns)], labelsOf(columns)[i % maps[0].columns], ...maps.map(({ weights }) => exact(weights[i]))])],
        value: () => ({ model: info.name, text: run.text, switches: switchesNow(), kind, layer: state.layer, head: state.head, original: Array.from(maps[0].weights, exact), changed: Array.from(maps[1].weights, exact) }) }));
}

views.push({
    name: 'touch', title: () => tr('Touch'), isThere: () => can('switches'),
    build(host) {
        const card = (id, title) => element('section', { className: 'card', 'aria-labelledby': `touch-${id}-title` }, element('h2', { id: `touch-${id}-title` }, title), element('div', { id: `touch-${id}` }));
        host.append(element('div', { className: 'bar', id: 'touch-kinds' }), element('div', { className: 'beside' }, element('div', {}, card('heads', tr('Switch off')), card('keys', tr('Tokens'))),
            element('div', {}, card('list', tr('Changes')), card('output', tr('What comes out')), card('maps', tr('The head')), card('row', tr('Edit a row')))));
    },
    async update(host, isCurrent) {
        wholeHead();
        const of = kindNow(), labels = labelsOf(of.columns), isOff = (l, h) => isSwitched(`without-head=${of.kind}:${l}.${h}`);
        fill(find('touch-kinds'), kindSwitch());
        fill(find('touch-heads'), element('div', { className: 'scroll offs' }, headGrid(of, { name: 'touch', isOn: isOff, label: (l, h) => `${spoken(l, h)}: ${isOff(l, h) ? tr('off') : tr('on')}`,
            pick: (l, h) => { Object.assign(state, { layer: l, head: h }); toggleSwitch(`without-head=${of.kind}:${l}.${h}`); } })), element('h3', {}, tr('Layers off')), layerButtons());
        fill(find('touch-keys'), element('h3', {}, tr('Keys hidden')), keyButtons(labels), pairControls(labels));
        fill(find('touch-list'), switchList());
        await part(find('touch-output'), drawBeside, isCurrent);
        if (isCurrent()) await part(find('touch-maps'), drawTouchedMaps, isCurrent);
        if (isCurrent()) await part(find('touch-row'), drawRowEditor, isCurrent);
        if (isCurrent()) await drawThumbnails(find('touch-heads'), of.kind, isCurrent);
    },
});
