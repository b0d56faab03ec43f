/* output.js: what comes out: the next token, the surprise at every one, the search as a tree, what each layer would say. */
'use strict';

// ---- the place that is looked at: so many tokens of the output stand already ----
const outIds = () => run.target_ids ?? [];
const placeNow = () => clamp(state.place, 0, outIds().length);
// The tokens of the output as they are spelt, the end among them where it was said.
function outTokens() {
    if (run.sides.chosen && isTranslator()) return tokensOf('chosen');
    const all = tokensOf('read');
    return outIds().length ? all.slice(-outIds().length) : [];
}

// ---- the next token ----
function nextRow({ id, token, p, drawn, special }, high) {
    const choose = button(special ? token : labelOf(token), () => goOn(id, token), { dir: 'auto', title: tr('Go on with this token'), data: { keep: `next-${id}` } });
    return element('tr', {}, element('th', { scope: 'row' }, special ? labelOf(token) : choose), element('td', { className: 'wide' }, bar(p / high, drawn / high)),
        element('td', {}, percent(p)), element('td', {}, percent(drawn)));
}
// A translator looks at the translation that begins so; a generator has the token in its text.
function goOn(id, token) {
    const before = outIds().slice(0, placeNow());
    if (isTranslator()) return change({ ids: [...before, id].join('.'), place: before.length + 1 });
    return change({ text: state.text + outTokens().slice(0, before.length).join('') + token, place: 0 });
}
async function drawNext(host, isCurrent) {
    const { temperature, top_k, top_p } = state;
    const answer = await newest('next', { do: 'next', text: run.text, ...places, target_ids: outIds().slice(0, placeNow()), n: 12, temperature, top_k, top_p });
    if (!answer || !isCurrent()) return;
    const rows = answer.tokens, high = Math.max(...rows.map(({ p, drawn }) => Math.max(p, drawn)), 1e-9), tokens = outTokens();
    const before = placeNow() ? tokens.slice(0, placeNow()).slice(-4).map(labelOf).join(' ') : tr('the start');
    fill(host.querySelector('.next-head'), tr('After {0}', `“${before}”`), element('span', { className: 'quiet' }, ` ${tr('entropy {0} bits', answer.entropy.toFixed(2))}`));
    fill(host.querySelector('.next-body'), element('table', { className: 'wide-table' },
        element('thead', {}, element('tr', {}, ...[tr('token'), tr('probability'), tr('model'), tr('drawn')].map(text => element('th', { scope: 'col' }, text)))),
        element('tbody', {}, ...rows.map(row => nextRow(row, high)))));
    fill(host.querySelector('.next-save'), saving(() => 'next-token', { rows: () => [['id', 'token', 'logit', 'p', 'drawn'],
        ...rows.map(({ id, token, logit, p, drawn }) => [id, token, logit, p, drawn])], value: () => ({ model: info.name, text: run.text, ...answer }) }));
}
function drawSliders(host) {
    const most = outIds().length;
    fill(host, slider('temperature', tr('Temperature'), 0, 2, 0.05, x => x.toFixed(2)), slider('top_k', tr('Top-k'), 0, 100, 1, x => x || tr('all')),
        slider('top_p', tr('Top-p'), 0.05, 1, 0.05, x => x.toFixed(2)), most ? slider('place', tr('Tokens before'), 0, most, 1) : null);
}

// ---- surprise ----
async function drawSurprise(host, isCurrent) {
    const answer = await newest('surprise', about({ do: 'surprise', n: 5 }));
    if (!answer || !isCurrent()) return;
    const { tokens } = answer, high = Math.max(1, ...tokens.map(({ bits }) => bits)), first = tokens.length - outIds().length;
    const offset = isTranslator() ? 0 : Math.max(0, first);
    fill(host, element('div', { className: 'tokens' }, ...tokens.map(({ token, bits, rank, best }, i) => {
        const isOut = i >= offset && i - offset <= outIds().length, others = best.map(b => `${labelOf(b.token)} ${percent(b.p)}`).join(', ');
        const made = element('button', { type: 'button', className: 'tinted', title: tr('{0} bits, rank {1}; likeliest: {2}', bits.toFixed(2), rank + 1, others), dir: 'auto',
            'aria-pressed': String(isOut && i - offset === placeNow()), data: { keep: `surprise-${i}` }, on: { click: () => { if (isOut) change({ place: i - offset }); } } },
        labelOf(token), element('small', {}, `${bits.toFixed(1)}`));
        made.style.background = cssOf([255, 255 - 0.45 * 255 * bits / high, 255 - 0.75 * 255 * bits / high].map(Math.round));
        return made;
    })), note(tr('Bits of surprise: 0 where the model was sure of the token. Choose one to see what else could stand there.')),
    saving(() => 'surprise', { rows: () => [['token', 'bits', 'rank'], ...tokens.map(({ token, bits, rank }) => [token, bits, rank])], value: () => ({ model: info.name, text: run.text, tokens }) }));
}

// ---- the beam as a tree ----
const nodeHeight = 26, mostDropped = 4;
// Of every step all nodes that went on and a few of the others; the winner's way is marked.
function treeOf(nodes) {
    const steps = [], shown = new Set(), won = new Set();
    nodes.forEach((node, i) => { (steps[node.step] ??= []).push(i); });
    for (const step of steps) {
        let dropped = 0;
        for (const i of step) if (nodes[i].state !== 'dropped' || dropped++ < mostDropped) shown.add(i);
    }
    const done = nodes.map((_, i) => i).filter(i => nodes[i].state === 'done').sort((a, b) => nodes[b].score - nodes[a].score);
    for (let i = done[0] ?? -1; i >= 0; i = nodes[i].parent) won.add(i);
    return { steps: steps.map(step => step.filter(i => shown.has(i))), won, best: done[0] };
}
function drawTree(pen, nodes, colours, head = 0) {
    const { steps, won } = treeOf(nodes), at = new Map();
    let x = 10;
    const height = head + 16 + nodeHeight * Math.max(1, ...steps.map(step => step.length));
    for (const step of steps) {
        const width = Math.max(30, ...step.map(i => widthOf(nodeText(nodes[i]), 13)));
        step.forEach((i, row) => at.set(i, { x, y: head + 16 + nodeHeight * (row + 0.5), width: widthOf(nodeText(nodes[i]), 13) }));
        x += width + 46;
    }
    pen.rect(0, head, x, height - head, colours.card);
    for (const [i, to] of at) {
        const from = at.get(nodes[i].parent), isWon = won.has(i), middle = from && (from.x + from.width + to.x) / 2;
        if (from) pen.path([[from.x + from.width + 4, from.y], [to.x - 4, to.y, middle, from.y, middle, to.y]], isWon ? colours.accent : colours.hatch, isWon ? 2.5 : 1, nodes[i].state === 'dropped' ? 0.5 : 1);
        pen.text(nodeText(nodes[i]), to.x, to.y, { size: 13, bold: isWon, fill: isWon ? colours.accent : nodes[i].state === 'dropped' ? colours.quiet : colours.ink });
    }
    return { width: Math.ceil(x), height: Math.ceil(height) };
}
const nodeText = ({ token, log_p, state: how }) => `${how === 'dropped' ? '✕ ' : ''}${shortened(labelOf(token), 110, 13)} ${minus(log_p.toFixed(2))}`;

async function drawBeam(host, isCurrent) {
    const answer = await newest('beam', { do: 'beam', text: run.text, beam: state.beam });
    if (!answer || !isCurrent()) return;
    const { nodes } = answer, canvas = element('canvas', { role: 'img', 'aria-label': tr('The search as a tree; the table below has its numbers.') });
    const { width, height } = drawTree(new SvgPen(), nodes, coloursNow());
    drawTree(sized(canvas, width, height), nodes, coloursNow());
    const picture = pen => {
        pen.rect(0, 0, Math.max(width, 420), height + 50, coloursNow().card);
        titled(pen, Math.max(width, 420), tr('Beam search'), coloursNow());
        return { width: Math.max(width, 420), height: drawTree(pen, nodes, coloursNow(), 50).height };
    };
    const rows = () => [['step', 'parent', 'token', 'log_p', 'state', 'score'], ...nodes.map(n => [n.step, n.parent, n.token, n.log_p, n.state, n.score ?? ''])];
    fill(host, slider('beam', tr('Beam'), 1, 8, 1), element('div', { className: 'chart', tabIndex: 0, role: 'region', 'aria-label': tr('The tree') }, canvas),
        note(tr('log p from the start; ✕: not followed. Marked: the translation that won.')), saving(() => 'beam', { draw: picture, rows, value: () => ({ model: info.name, text: run.text, ...answer }) }), treeTable(nodes));
}
function treeTable(nodes) {
    const head = [tr('step'), tr('token'), tr('log p'), tr('state')], states = { kept: tr('kept'), dropped: tr('dropped'), done: tr('done') };
    return element('details', { className: 'all' }, element('summary', {}, tr('As a table')), element('div', { className: 'scroll', tabIndex: 0, role: 'region', 'aria-label': tr('As a table') }, element('table', {},
        element('thead', {}, element('tr', {}, ...head.map(text => element('th', { scope: 'col' }, text)))),
        element('tbody', {}, ...nodes.slice(0, 400).map(n => element('tr', {}, element('td', {}, n.step), element('td', { className: 'token', dir: 'auto' }, labelOf(n.token)),
            element('td', {}, minus(n.log_p.toFixed(3))), element('td', {}, states[n.state])))))));
}

// ---- the lens ----
async function drawLens(host, isCurrent) {
    const answer = await newest('lens', about({ do: 'lens', n: 4 }));
    if (!answer || !isCurrent()) return;
    const { tokens, layers, next } = answer;
    const cell = ({ best, next_p }, isRight) => {
        const colour = shade(best[0].p, 1, false), made = element('td', { className: 'token', dir: 'auto', title: `${best.map(b => `${labelOf(b.token)} ${percent(b.p)}`).join(', ')}; ${tr('of what comes: {0}', percent(next_p))}` },
            isRight ? element('b', {}, labelOf(best[0].token)) : labelOf(best[0].token), ` ${percent(best[0].p)}`);
        Object.assign(made.style, { background: paletteCss[colour], color: onShade(colour) });
        return made;
    };
    const isRight = (c, i) => c.best[0].token === next[i];
    const names = layers.map((_, l) => l === 0 ? tr('embedding') : tr('layer {0}', l - 1));
    fill(host, element('div', { className: 'scroll', tabIndex: 0, role: 'region', 'aria-label': tr('Layer by layer') }, element('table', { className: 'wide-table' },
        element('thead', {}, element('tr', {}, ...[tr('read'), ...names].map(text => element('th', { scope: 'col', className: 'token' }, text)))),
        element('tbody', {}, ...tokens.map((token, i) => element('tr', {}, element('th', { scope: 'row', dir: 'auto' }, labelOf(token)), ...layers.map(layer => cell(layer[i], isRight(layer[i], i)))))))),
    note(tr('What each layer would say already after every token. Bold: it is what comes next.')),
    saving(() => 'lens', { rows: () => [['token', ...names], ...tokens.map((token, i) => [token, ...layers.map(l => `${l[i].best[0].token} ${l[i].best[0].p}`)])], value: () => ({ model: info.name, text: run.text, ...answer }) }));
}

// ---- the view ----
views.push({
    name: 'output', title: () => tr('Output'), isThere: () => ['next', 'lens'].some(can),
    build(host) {
        const card = (name, title, ...inside) => element('section', { className: 'card', id: `output-${name}`, 'aria-labelledby': `title-${name}` }, element('h2', { id: `title-${name}` }, title), ...inside);
        const parts = [can('next') && card('next', tr('Next token'), element('div', { className: 'sliders' }), element('h3', { className: 'next-head' }), element('div', { className: 'next-body' }), element('div', { className: 'next-save' })),
            can('surprise') && card('surprise', tr('Surprise'), element('div')), can('lens') && card('lens', tr('Logit lens'), element('div'))];
        host.append(element('div', { className: 'two' }, parts[0] || null, element('div', {}, ...parts.slice(1).filter(Boolean))), can('beam') ? card('beam', tr('Beam search'), element('div')) : '');
    },
    async update(host, isCurrent) {
        if (can('next')) {
            drawSliders(host.querySelector('.sliders'));
            await drawNext(find('output-next'), isCurrent);
        }
        for (const [name, draw] of [['surprise', drawSurprise], ['lens', drawLens], ['beam', drawBeam]])
            if (can(name) && isCurrent()) await part(find(`output-${name}`).lastElementChild, draw, isCurrent);
    },
});
