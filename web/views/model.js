/* model.js: the model: a small map of every head of every layer, and the grid that other views choose a head with. */
'use strict';

const thumbnailSide = 40;
let thumbnails = { of: null, maps: new Map() }; // of the run that is seen

// The largest weight of every cell, at most so many cells a side; masked ones are -1.
function shrunk({ rows, columns, weights }, kind) {
    const r = Math.min(rows, thumbnailSide), c = Math.min(columns, thumbnailSide), small = new Float32Array(r * c).fill(-1);
    for (let i = 0; i < rows; i++) {
        for (let j = 0; j < columns; j++) {
            if (isMasked(kind, i, j)) continue;
            const at = Math.floor(i * r / rows) * c + Math.floor(j * c / columns);
            small[at] = Math.max(small[at], weights[i * columns + j]);
        }
    }
    return { rows: r, columns: c, weights: small };
}
// Every cell has some points of the canvas, so that the lines of masked ones are seen.
function thumbnail({ rows, columns, weights }) {
    const scale = Math.max(1, Math.round(80 / Math.max(rows, columns))), width = columns * scale, height = rows * scale;
    const canvas = element('canvas', { width, height, 'aria-hidden': 'true' }), image = new ImageData(width, height);
    const out = new Uint32Array(image.data.buffer), { high } = rangeOf(weights, rows, columns);
    const [ground, line] = themeNow() === 'dark' ? [0xff342a26, 0xff665a52] : [0xfff4f0ee, 0xffbdb4ac];
    for (let y = 0; y < height; y++) {
        for (let x = 0; x < width; x++) {
            const value = weights[Math.floor(y / scale) * columns + Math.floor(x / scale)];
            out[y * width + x] = value < 0 ? (x + y) % 6 ? ground : line : palettePixels[shade(value, high, state.root)];
        }
    }
    canvas.getContext('2d').putImageData(image, 0, 0);
    return canvas;
}

// ---- the grid: a row a layer, a column a head. pick(layer, head), isOn(layer, head); means: a column and a row of them ----
function headGrid({ kind, layers, heads }, { pick, isOn, label = spoken, means = false, name = kind }) {
    const columns = [...range(heads), ...means ? ['mean'] : []], rows = [...range(layers), ...means ? ['mean'] : []];
    const top = element('div', { role: 'row' }, element('span', { role: 'columnheader' }, tr('layer')),
        ...columns.map(h => element('span', { role: 'columnheader' }, h === 'mean' ? tr('mean') : `${h}`)));
    const cells = rows.map(layer => element('div', { role: 'row' }, element('span', { role: 'rowheader' }, layer === 'mean' ? tr('mean') : `${layer}`),
        ...columns.map(head => gridCell(kind, layer, head, { pick, isOn, label, name }))));
    const grid = element('div', { className: 'grid', role: 'grid', 'aria-label': tr('{0}: layers (rows) and heads (columns)', kindNames()[kind]),
        on: { keydown: event => stepGrid(event, grid) } }, top, ...cells);
    grid.style.gridTemplateColumns = `max-content repeat(${heads}, minmax(20px, 76px))${means ? ' max-content' : ''}`;
    const all = [...grid.querySelectorAll('button')], on = all.find(b => b.getAttribute('aria-selected') === 'true') ?? all[0];
    if (on) on.tabIndex = 0;
    grid.dataset.columns = columns.length;
    return grid;
}
function gridCell(kind, layer, head, { pick, isOn, label, name }) {
    const small = thumbnails.maps.get(`${kind}/${layer}/${head}`), isMean = layer === 'mean' || head === 'mean';
    return element('button', { type: 'button', role: 'gridcell', 'aria-label': label(layer, head), title: label(layer, head), tabIndex: -1,
        'aria-selected': String(isOn(layer, head)), className: isMean ? 'mean' : '', data: { place: `${layer}/${head}`, keep: `${name}-${layer}-${head}` },
        on: { click: event => pick(layer, head, event.shiftKey || event.ctrlKey || event.metaKey) } },
    small ? thumbnail(small) : '');
}
function stepGrid(event, grid) {
    const step = arrows[event.key], all = [...grid.querySelectorAll('button')], at = all.indexOf(event.target), n = +grid.dataset.columns;
    if (!step || at < 0) return;
    event.preventDefault();
    const row = Math.floor(at / n) + step[0], column = at % n + step[1], next = column >= 0 && column < n ? all[row * n + column] : null;
    if (!next) return;
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
}

// Fills in the small maps: at once those that came with the run, the others one by one while nothing newer is asked.
async function drawThumbnails(host, kind, isCurrent) {
    if (thumbnails.of !== run) thumbnails = { of: run, maps: new Map() };
    const { maps } = thumbnails, { layers, heads } = run.kinds.find(k => k.kind === kind);
    for (let layer = 0; layer < layers; layer++) {
        for (let head = 0; head < heads; head++) {
            const key = `${kind}/${layer}/${head}`;
            if (!maps.has(key)) {
                const map = run.weights?.[kind] ? await mapOf(kind, layer, head)
                    : { ...await mapSize(kind), weights: (await engine.ask(amended(about({ do: 'head', kind, layer, head })))).weights.data };
                if (!isCurrent()) return;
                maps.set(key, shrunk(map, kind));
            }
            host.querySelector(`[aria-label][data-place="${layer}/${head}"]`)?.replaceChildren(thumbnail(maps.get(key)));
        }
    }
}
function mapSize(kind) {
    const { rows, columns } = run.kinds.find(k => k.kind === kind);
    return { rows: tokensOf(rows).length, columns: tokensOf(columns).length };
}

// A row a weight, of the maps that came with the run; what is masked has none.
function allWeights() {
    const rows = [['kind', 'layer', 'head', 'query', 'key', 'weight']], n = Object.values(run.weights ?? {}).reduce((sum, { data }) => sum + data.length, 0);
    if (n > 1e6) return complain(tr('{0} weights are too many for a table: save one head, or JSON.', n)), null;
    for (const { kind, layers, heads, rows: queries, columns: keys } of kindsNow().filter(k => run.weights?.[k.kind])) {
        const { data } = run.weights[kind], qs = tokensOf(queries), ks = tokensOf(keys);
        for (const i of range(layers * heads * qs.length * ks.length)) {
            const key = i % ks.length, query = Math.floor(i / ks.length) % qs.length, at = Math.floor(i / ks.length / qs.length);
            rows.push([kind, Math.floor(at / heads), at % heads, qs[query], ks[key], isMasked(kind, query, key) ? '' : exact(data[i])]);
        }
    }
    return rows;
}

// ---- the view ----
views.push({
    name: 'model', title: () => tr('Model'), isThere: () => can('run'),
    build(host) {
        host.append(note(tr('Every head of every layer: rows are the tokens that attend, columns those attended to. Hatched: masked. Choose a head to look at it.')),
            element('div', { className: 'kinds' }), saving(() => 'model', { rows: allWeights, value: () => ({ model: info.name, ...run, weights: Object.fromEntries(Object.entries(run.weights ?? {}).map(([kind, { shape, data }]) => [kind, { shape, data: Array.from(data, exact) }])) }) }));
    },
    async update(host, isCurrent) {
        const place = host.querySelector('.kinds');
        place.style.setProperty('--least', `${Math.max(420, 100 + 44 * info.heads)}px`);
        fill(place, ...kindsNow().map(of => {
            const grid = headGrid(of, { means: true, isOn: (layer, head) => of.kind === state.kind && layer === state.layer && head === state.head,
                pick: (layer, head) => change({ view: 'head', kind: of.kind, layer, head, also: '' }) });
            const card = element('section', { className: 'card', data: { kind: of.kind }, 'aria-labelledby': `model-${of.kind}` },
                element('h2', { id: `model-${of.kind}` }, kindNames()[of.kind]), element('p', { className: 'quiet' },
                    tr('{0} × {1}', labelsOf(of.rows).length, labelsOf(of.columns).length)), element('div', { className: 'scroll' }, grid));
            if (of.kind !== 'cross') card.append(button(tr('Rollout over all layers'), () => change({ view: 'head', kind: of.kind, layer: 'rollout', head: 'mean', also: '' })));
            return card;
        }));
        for (const { kind } of kindsNow()) await drawThumbnails(place.querySelector(`[data-kind="${kind}"]`), kind, isCurrent);
    },
});
