/* head.js: one head as a map or as lines, several heads over each other. */
'use strict';

const longestLabel = 130, barWidth = 74, mostLines = 4000;
let figure = null, placed = null, cursor = null; // what is drawn, where, and the weight or token pointed at

// ---- which heads ----
const alsoNow = () => state.also.split(',').filter(Boolean).map(p => p.split('.').map(Number))
    .filter(([l, h]) => l < kindNow().layers && h < kindNow().heads && !(l === state.layer && h === state.head));
const headsNow = () => [[state.layer, state.head], ...typeof state.layer === 'number' && typeof state.head === 'number' ? alsoNow() : []];
function pickHead(layer, head, isMore) {
    const isPlain = typeof layer === 'number' && typeof head === 'number' && typeof state.layer === 'number' && typeof state.head === 'number';
    if (!isPlain || !(isMore || find('overlay')?.checked)) return change({ layer, head, also: '' });
    const on = headsNow().filter(([l, h]) => l !== layer || h !== head);
    if (on.length === headsNow().length) on.push([layer, head]);
    if (on.length === 0) return undefined;
    return change({ layer: on[0][0], head: on[0][1], also: on.slice(1).map(p => p.join('.')).join(',') });
}
const titleOfHeads = () => `${tr('{0}, {1}', kindNames()[state.kind], spoken(state.layer, state.head))}${alsoNow().map(([l, h]) => ` + ${l}.${h}`).join('')}`;

// ---- the figure: maps of all chosen heads, without special tokens where they are not wanted ----
async function figureNow() {
    const { kind, rows, columns } = kindNow(), maps = await Promise.all(headsNow().map(([l, h]) => mapOf(kind, l, h)));
    const kept = side => range(tokensOf(side).length).filter(i => state.special || !run.sides[side].special[i]);
    const is = kept(rows), js = kept(columns), n = js.length, wide = maps[0].columns;
    const layers = maps.map(({ weights }) => Float32Array.from({ length: is.length * n }, (_, at) => weights[is[Math.floor(at / n)] * wide + js[at % n]]));
    const weights = layers.length === 1 ? layers[0] : layers[0].map((_, at) => layers.reduce((sum, w) => sum + w[at], 0) / layers.length);
    const labels = (side, list) => list.map(i => labelOf(tokensOf(side)[i]));
    return { kind, weights, layers, is, js, rows: labels(rows, is), columns: labels(columns, js), root: !!state.root,
        isMasked: (r, c) => isMasked(kind, is[r], js[c]), ...rangeOf(weights, is.length, n), window: { top: 0, bottom: is.length, left: 0, right: n } };
}
const weightAt = (f, r, c) => f.weights[r * f.columns.length + c];
const colourAt = (f, r, c) => shade(weightAt(f, r, c), f.high, f.root);

// ---- the map ----
// Where everything goes. head: points left free above, for a title.
function mapLayout(f, width, height, head) {
    const { top, bottom, left, right } = f.window, n = bottom - top, m = right - left, most = Math.min(longestLabel, width * 0.24);
    const rowWidth = longest(f.rows.slice(top, bottom), most), columnWidth = longest(f.columns.slice(left, right), most);
    const margin = Math.ceil(rowWidth) + 30, space = width - margin - barWidth;
    const high = Math.min(56, Math.max(0.01, height / n)), cw = Math.min(Math.max(84, Math.min(3 * high, 160)), space / m), ch = Math.min(high, Math.max(26, 2 * cw));
    const turned = columnWidth > cw - 4;
    const room = turned ? Math.min(most, Math.max(12, ...f.columns.slice(left, right).map(l => turnedHeight(shortened(l, most))))) + 8 : 20;
    const y = head + 24 + Math.ceil(room), shift = Math.max(0, Math.floor((space - cw * m) / 2));
    return { shift, x: shift + margin, y, cw, ch, w: cw * m, h: ch * n, turned, most, head, width, height: Math.ceil(y + Math.max(ch * n, 90) + 8) };
}
const everyOf = size => size >= 14 ? 1 : Math.ceil(18 / size); // every k-th label, so that they do not overlap

function drawMap(pen, f, at, colours) {
    const { top, bottom, left, right } = f.window, { x, y, cw, ch, w, h } = at, ink = { fill: colours.ink };
    drawCells(pen, f, at, colours);
    for (let r = top; r < bottom; r += everyOf(ch)) pen.text(shortened(f.rows[r], at.most), x - 6, y + (r - top + 0.5) * ch, { ...ink, align: 'right' });
    for (let c = left; c < right; c += at.turned ? everyOf(cw) : 1) {
        const cx = x + (c - left + 0.5) * cw;
        if (at.turned) turnedLabel(pen, shortened(f.columns[c], at.most), cx, y - 6, ink);
        else pen.text(shortened(f.columns[c], cw), cx, y - 11, { ...ink, align: 'center' });
    }
    const axis = { fill: colours.quiet, align: 'center' };
    pen.text(tr('query (attending)'), at.shift + 9, y + Math.max(h / 2, 45), { ...axis, turned: true });
    pen.text(tr('key (attended)'), x + Math.max(w / 2, 40), at.head + 10, axis);
    drawScale(pen, f, at, colours);
}
function drawCells(pen, f, { x, y, cw, ch, w, h }, colours) {
    const { top, bottom, left, right } = f.window, hasNumbers = cw >= 34 && ch >= 16;
    if (f.kind === 'decoder' || hiddenKeys(f.kind).size) hatch(pen, x, y, w, h, colours); // what is masked is not drawn over
    if ((bottom - top) * (right - left) > 10000) pen.picture(pixels(f), x, y, w, h);
    else for (let r = top; r < bottom; r++) {
        for (let c = left; c < right; c++) {
            if (f.isMasked(r, c)) continue;
            const px = x + (c - left) * cw, py = y + (r - top) * ch, colour = colourAt(f, r, c);
            const [x1, x2] = [c, c + 1].map(i => Math.round(x + (i - left) * cw)), [y1, y2] = [r, r + 1].map(i => Math.round(y + (i - top) * ch)); // a cell ends where the next begins
            pen.rect(x1, y1, Math.max(1, x2 - x1), Math.max(1, y2 - y1), paletteCss[colour]);
            if (hasNumbers) pen.text(weightAt(f, r, c).toFixed(2), px + cw / 2, py + ch / 2, { size: cw < 42 ? 11 : 12, fill: onShade(colour), align: 'center' });
        }
    }
}
// A point a cell; masked ones are left clear.
function pixels(f) {
    const { top, bottom, left, right } = f.window, width = right - left, height = bottom - top;
    const canvas = element('canvas', { width, height }), image = new ImageData(width, height), out = new Uint32Array(image.data.buffer);
    for (let r = 0; r < height; r++)
        for (let c = 0; c < width; c++) out[r * width + c] = f.isMasked(top + r, left + c) ? 0 : palettePixels[colourAt(f, top + r, left + c)];
    canvas.getContext('2d').putImageData(image, 0, 0);
    return canvas;
}
function drawScale(pen, f, { x, y, w, h }, colours) {
    const left = x + w + 14, height = Math.max(h, 90), steps = 64;
    for (let i = 0; i < steps; i++) pen.rect(left, y + height * i / steps, 10, height / steps + 0.5, paletteCss[Math.round(255 * (1 - (i + 0.5) / steps))]);
    for (const part of [0, 0.5, 1]) {
        const value = f.high * (f.root ? part * part : part), sign = part === 1 && f.largest > f.high ? '≥ ' : '';
        pen.text(sign + short(value), left + 15, y + height * (1 - part) + 10 * (part - 0.5), { size: 11, fill: colours.quiet });
    }
    pen.text(tr('weight'), left, y - 12, { size: 11, fill: colours.quiet });
}

// ---- lines: queries on the left, keys on the right, a colour for each head ----
function linesLayout(f, width, height, head) {
    const { top, bottom, left, right } = f.window, n = Math.max(bottom - top, right - left);
    const most = Math.min(160, width * 0.28), rh = Math.min(32, height / n), y = head + 26;
    const labels = [tr('query (attending)'), ...f.rows.slice(top, bottom), ...f.columns.slice(left, right)];
    const side = Math.ceil(14 + longest(labels, most)), space = width - 2 * side, between = clamp(space, 60, 460);
    const x1 = side + Math.max(0, Math.floor((space - between) / 2));
    return { x1, x2: x1 + between, y, rh, most, head, width, height: Math.ceil(y + rh * n + 8) };
}
function drawLines(pen, f, at, colours, only = null) {
    const { top, bottom, left, right } = f.window, { x1, x2, y, rh } = at, middle = i => y + (i + 0.5) * rh, between = (x1 + x2) / 2;
    const lines = strongest(f, only), faded = only ? 1 : Math.min(1, 2 / Math.sqrt(lines.length / 100)); // many lines are a fog
    for (const { r, c, weight, layer } of lines) {
        const [y1, y2] = [middle(r - top), middle(c - left)];
        pen.path([[x1 + 4, y1], [x2 - 4, y2, between, y1, between, y2]], headColours[themeNow()][layer % 8], clamp(rh / (only ? 6 : 8), 0.4, 3),
            Math.max(only ? 0.06 : 0, faded * shade(weight, f.high, f.root) / 255));
    }
    const name = (text, i, x, align, isNow) => pen.text(shortened(text, at.most, 13), x, middle(i), { size: 13, fill: isNow ? colours.accent : colours.ink, align, bold: isNow });
    for (let r = top; r < bottom; r += everyOf(rh)) name(f.rows[r], r - top, x1 - 2, 'right', only?.row === r);
    for (let c = left; c < right; c += everyOf(rh)) name(f.columns[c], c - left, x2 + 2, 'left', only?.column === c);
    pen.text(tr('query (attending)'), x1 - 2, at.head + 10, { fill: colours.quiet, align: 'right' });
    pen.text(tr('key (attended)'), x2 + 2, at.head + 10, { fill: colours.quiet });
}
// The lines worth drawing: the strongest, none of under 1/255 of the largest weight, of one row or column where it is given.
function strongest(f, only) {
    const { top, bottom, left, right } = f.window, stride = f.columns.length, counts = new Uint32Array(256);
    const each = visit => f.layers.forEach((weights, layer) => {
        for (let r = only?.row ?? top; r < (only?.row != null ? only.row + 1 : bottom); r++) {
            for (let c = only?.column ?? left; c < (only?.column != null ? only.column + 1 : right); c++)
                visit(r, c, layer, weights[r * stride + c], Math.min(255, Math.floor(255 * weights[r * stride + c] / f.high)));
        }
    });
    each((r, c, layer, weight, step) => counts[step]++);
    let from = 255;
    for (let sum = counts[255]; from > 1 && sum + counts[from - 1] <= mostLines; from--) sum += counts[from - 1];
    const lines = [];
    each((r, c, layer, weight, step) => { if (step >= from && lines.length < mostLines) lines.push({ r, c, layer, weight }); });
    return lines.sort((a, b) => a.weight - b.weight);
}
const pictures = { map: { layout: mapLayout, draw: drawMap }, lines: { layout: linesLayout, draw: drawLines } };

// ---- on the screen ----
function drawHead() {
    const view = pictures[state.picture] ?? pictures.map, stage = find('stage'), width = Math.max(260, stage.clientWidth);
    placed = view.layout(figure, width, clamp(window.innerHeight - 240, 300, 700), 0);
    view.draw(sized(find('picture'), width, placed.height), figure, placed, coloursNow());
    drawOver();
}
const arrowText = (r, c) => `${figure.rows[r]} → ${figure.columns[c]}: ${figure.isMasked(r, c) ? tr('masked') : digits(weightAt(figure, r, c))}`;
// The three strongest of a token, for the lines.
function readToken({ row, column }) {
    const isRow = row !== null, ends = range(isRow ? figure.columns.length : figure.rows.length).map(i => isRow ? [row, i] : [i, column]);
    return ends.sort((a, b) => weightAt(figure, ...b) - weightAt(figure, ...a)).slice(0, 3).map(end => arrowText(...end)).join('    ');
}
function drawOver() {
    const pen = sized(find('over'), placed.width, placed.height), isMap = state.picture !== 'lines', reading = find('reading');
    find('picture').classList.toggle('dim', !!cursor && !isMap);
    reading.textContent = !cursor ? isMap ? tr('Point at a weight to read it, click it to walk through it.') : tr('Point at a token to see its lines alone.')
        : isMap ? arrowText(cursor.row, cursor.column) : readToken(cursor);
    reading.classList.toggle('quiet', !cursor);
    if (!cursor) return;
    if (!isMap) return drawLines(pen, figure, placed, coloursNow(), cursor);
    const { x, y, cw, ch, w, h } = placed, { top, left } = figure.window, cx = x + (cursor.column - left) * cw, cy = y + (cursor.row - top) * ch;
    pen.context.globalAlpha = 0.65;
    pen.frame(x, cy, w, ch, '#fff');
    pen.frame(cx, y, cw, h, '#fff');
    pen.context.globalAlpha = 1;
    pen.frame(cx, cy, cw, ch, '#000', 3);
    pen.frame(cx, cy, cw, ch, '#fff', 1.5);
}
function cursorAt(px, py) {
    const { top, bottom, left, right } = figure.window;
    if (state.picture !== 'lines') {
        const row = top + Math.floor((py - placed.y) / placed.ch), column = left + Math.floor((px - placed.x) / placed.cw);
        return row >= top && row < bottom && column >= left && column < right ? { row, column } : null;
    }
    const i = Math.floor((py - placed.y) / placed.rh), isLeft = px < (placed.x1 + placed.x2) / 2;
    if (i < 0 || i >= (isLeft ? bottom - top : right - left)) return null;
    return isLeft ? { row: top + i, column: null } : { row: null, column: left + i };
}
function moveCursor(to) {
    cursor = to;
    if (placed) drawOver();
}
function stepCursor([down, right]) {
    const { top, bottom, left, right: end } = figure.window, isFirst = !cursor || cursor.row === null || cursor.column === null;
    const row = isFirst ? top : clamp(cursor.row + down, top, bottom - 1), column = isFirst ? left : clamp(cursor.column + right, left, end - 1);
    moveCursor({ row, column });
    tell(arrowText(row, column));
}
function walkFromCursor() {
    if (!cursor || !can('walk') || typeof state.layer !== 'number' || typeof state.head !== 'number') return;
    const query = figure.is[cursor.row ?? 0], key = figure.js[cursor.column ?? 0];
    change({ view: 'walk', query, key, step: 0 });
}
function zoomBy(factor) {
    const f = figure.window, n = figure.rows.length, m = figure.columns.length, r = cursor?.row ?? (f.top + f.bottom) / 2, c = cursor?.column ?? (f.left + f.right) / 2;
    const part = (size, all) => clamp(Math.round(size * factor), Math.min(4, all), all);
    const rows = part(f.bottom - f.top, n), columns = part(f.right - f.left, m);
    const top = clamp(Math.round(r - rows / 2), 0, n - rows), left = clamp(Math.round(c - columns / 2), 0, m - columns);
    figure.window = { top, bottom: top + rows, left, right: left + columns };
    cursor = null;
    drawHead();
}

// ---- saving ----
function savedHead(pen) {
    const view = pictures[state.picture] ?? pictures.map, colours = coloursNow(), { window: seen } = figure;
    const size = n => n <= 200 ? 16 * n : n; // room for every label, as long as somebody may read them
    const width = Math.max(720, 240 + size(seen.right - seen.left)), at = view.layout(figure, width, Math.max(720, size(seen.bottom - seen.top)), 50);
    pen.rect(0, 0, width, at.height, colours.card);
    titled(pen, width, titleOfHeads(), colours);
    view.draw(pen, figure, at, colours);
    return { width, height: at.height };
}
const headRows = () => [['', ...figure.columns], ...figure.rows.map((name, r) => [name, ...figure.columns.map((_, c) => figure.isMasked(r, c) ? '' : exact(weightAt(figure, r, c)))])];
const headValue = () => ({ model: info.name, text: run.text, kind: state.kind, heads: headsNow(), queries: figure.rows, keys: figure.columns,
    weights: figure.rows.map((_, r) => figure.columns.map((__, c) => figure.isMasked(r, c) ? null : exact(weightAt(figure, r, c)))) });

// ---- the view ----
function drawHeadBar(host) {
    fill(host, element('h2', { id: 'head-title' }, titleOfHeads()),
        segments('picture', tr('View'), [['map', tr('map')], ['lines', tr('lines')]], state.picture, picture => change({ picture })),
        checkbox(tr('√ colours'), !!state.root, on => change({ root: +on }), 'root'),
        checkbox(tr('special tokens'), !!state.special, on => change({ special: +on }), 'special'),
        element('div', { className: 'segments', role: 'group', 'aria-label': tr('Zoom') },
            button('+', () => zoomBy(0.6), { title: tr('Zoom in') }), button('−', () => zoomBy(1 / 0.6), { title: tr('Zoom out') })),
        saving(() => `attention-${state.kind}-${headsNow().map(p => p.join('.')).join('-')}`, { draw: savedHead, rows: headRows, value: headValue }));
}
function drawLegend(host) {
    const heads = headsNow();
    fill(host, ...heads.length < 2 ? [] : [...heads.map(([l, h], i) => {
        const key = element('span', { className: 'key' }, element('i'), tr('layer {0}, head {1}', l, h));
        key.firstChild.style.background = headColours[themeNow()][i % 8];
        return key;
    }), state.picture === 'lines' ? '' : element('span', { className: 'quiet' }, tr('the map is their mean'))]);
}
views.push({
    name: 'head', title: () => tr('Head'), isThere: () => can('run'),
    build(host) {
        const overlay = checkbox(tr('several heads'), false, on => { if (!on) change({ also: '' }); }, 'overlay');
        overlay.firstChild.id = 'overlay';
        host.append(element('div', { className: 'bar', id: 'head-kinds' }), element('div', { className: 'beside' },
            element('section', { className: 'card', 'aria-label': tr('Layers and heads') }, element('div', { className: 'scroll', id: 'head-grid' }), overlay,
                element('div', { id: 'head-rollout' })),
            element('section', { className: 'card', 'aria-labelledby': 'head-title' }, element('div', { className: 'bar', id: 'head-bar' }),
                element('div', { className: 'legend', id: 'legend' }), element('p', { id: 'reading', className: 'numbers', dir: 'auto' }),
                element('div', { id: 'stage' }, element('canvas', { id: 'picture', 'aria-hidden': 'true' }),
                    element('canvas', { id: 'over', tabIndex: 0, role: 'application', 'aria-describedby': 'reading' })),
                element('p', { id: 'size', className: 'quiet numbers' }))));
        listenToHead(find('over'));
    },
    async update(host, isCurrent) {
        const next = await figureNow(), isSame = figure && next.rows.length === figure.rows.length && next.columns.length === figure.columns.length;
        if (!isCurrent()) return;
        if (isSame) next.window = figure.window;
        else cursor = null;
        figure = next;
        fill(find('head-kinds'), kindSwitch());
        fill(find('head-grid'), headGrid(kindNow(), { means: true, pick: pickHead, name: 'pick', isOn: (l, h) => headsNow().some(p => p[0] === l && p[1] === h) }));
        if (state.also) find('overlay').checked = true;
        fill(find('head-rollout'), state.kind === 'cross' ? null : button(tr('Rollout over all layers'), () => change({ layer: 'rollout', head: 'mean', also: '' }),
            { 'aria-pressed': String(state.layer === 'rollout'), data: { keep: 'rollout' } }));
        drawHeadBar(find('head-bar'));
        drawLegend(find('legend'));
        find('over').setAttribute('aria-label', tr('{0}. Arrow keys move from weight to weight.', titleOfHeads()));
        find('size').textContent = tr('{0} × {1}, largest weight {2}', figure.rows.length, figure.columns.length, digits(figure.largest));
        drawHead();
        await drawThumbnails(find('head-grid'), state.kind, isCurrent);
    },
});
function listenToHead(over) {
    const point = event => { const box = over.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    const on = (event, act) => over.addEventListener(event, act);
    on('pointermove', event => moveCursor(cursorAt(...point(event))));
    on('pointerdown', event => moveCursor(cursorAt(...point(event))));
    on('pointerleave', event => { if (event.pointerType === 'mouse') moveCursor(null); });
    on('click', event => { moveCursor(cursorAt(...point(event))); walkFromCursor(); });
    on('blur', () => moveCursor(null));
    on('keydown', event => {
        if (arrows[event.key]) stepCursor(arrows[event.key]);
        else if (event.key === 'Enter') walkFromCursor();
        else return;
        event.preventDefault();
    });
}
