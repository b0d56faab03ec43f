/* parts.js: what the views of the live page are made of beside draw.js: pictures of what is seen, strips of numbers, bars. */
'use strict';

// ---- what is seen, as a picture ----
const isUnseen = node => node.matches('.save, .unseen, [hidden], .segments input, details:not([open]) > :not(summary)') || getComputedStyle(node).display === 'none' || getComputedStyle(node).visibility === 'hidden';
// With what lies outside of scrolled parts.
function sizeSeen(host) {
    const box = host.getBoundingClientRect(), all = [...host.querySelectorAll('*')].filter(node => !node.closest('details:not([open]) > :not(summary), .unseen')).map(node => node.getBoundingClientRect());
    return { width: Math.ceil(Math.max(box.width, ...all.map(({ right }) => right - box.left + 12))), height: Math.ceil(Math.max(box.height, ...all.map(({ bottom }) => bottom - box.top + 12))) };
}
// Words where they stand; one that was broken is drawn sign by sign.
function drawWords(pen, node, at) {
    const style = getComputedStyle(node.parentElement), place = document.createRange(), look = { size: parseFloat(style.fontSize), fill: style.color, bold: style.fontWeight >= 600 };
    const put = (from, text) => {
        place.setStart(node, from);
        place.setEnd(node, from + text.length);
        const boxes = [...place.getClientRects()].filter(({ width }) => width > 0);
        if (boxes.length === 1 || boxes.length > 1 && graphemes(text).length === 1) pen.text(text, ...at(boxes[0].left, boxes[0].top + boxes[0].height / 2), look);
        else if (boxes.length) graphemes(text).reduce((start, sign) => { put(start, sign); return start + sign.length; }, from);
    };
    for (const { 0: word, index } of node.data.matchAll(/\S+/g)) put(index, word);
}
// Grounds, frames, canvases and words of an element and all that is in it, so many points from the left and the top.
function drawSeen(pen, host, [aside, down], colours) {
    const box = host.getBoundingClientRect(), at = (x, y) => [x - box.left + aside, y - box.top + down];
    const draw = node => {
        if (node.nodeType === Node.TEXT_NODE) return drawWords(pen, node, at);
        if (node.nodeType !== Node.ELEMENT_NODE || isUnseen(node)) return undefined;
        const style = getComputedStyle(node), { left, top, width, height } = node.getBoundingClientRect(), [x, y] = at(left, top), isClear = colour => /^rgba\(.*, 0\)$/.test(colour);
        if (style.backgroundImage.startsWith('repeating')) hatch(pen, x, y, width, height, colours);
        else if (!isClear(style.backgroundColor)) pen.rect(x, y, width, height, style.backgroundColor);
        if (parseFloat(style.borderLeftWidth) && parseFloat(style.borderTopWidth) && !isClear(style.borderTopColor)) pen.frame(x, y, width, height, style.borderTopColor);
        else if (parseFloat(style.borderBottomWidth) && !isClear(style.borderBottomColor)) pen.path([[x, y + height], [x + width, y + height]], style.borderBottomColor);
        if (node.matches('canvas') && node.width) return pen.picture(node, x, y, width, height);
        const said = node.matches('select') ? node.selectedOptions[0]?.textContent : node.matches('input:not([type="range"])') ? { radio: node.checked ? '●' : '○', checkbox: node.checked ? '☑' : '☐' }[node.type] ?? node.value : null;
        if (said !== null) return pen.text(said ?? '', x + 6, y + height / 2, { size: parseFloat(style.fontSize), fill: style.color });
        return node.childNodes.forEach(draw);
    };
    draw(host);
}

// ---- strips and bars ----
// Numbers as a row of coloured cells, blue below zero and red above, with an exact list for who cannot see them.
function strip(values, { high = largestOf(values), label, marked = -1, cell } = {}) {
    const n = values.length, size = cell ?? clamp(Math.floor(560 / n), 3, 22), withNumbers = size >= 22 && n <= 24;
    const canvas = element('canvas', { className: 'strip', role: 'img', title: label,
        'aria-label': `${label}: ${Array.from(values.slice(0, 8), short).join(', ')}${n > 8 ? ', …' : ''}` });
    const width = withNumbers ? n * 34 : n * size, each = width / n, pen = sized(canvas, width, 20);
    values.forEach((x, i) => {
        pen.rect(i * each, 0, each + 0.3, 20, signedColour(x, high));
        if (withNumbers) pen.text(short(x), (i + 0.5) * each, 10.5, { size: 10.5, fill: onSigned(x, high), align: 'center' });
    });
    if (marked >= 0) pen.frame(marked * each + 1, 1, each - 2, 18, '#000', 2);
    return canvas;
}
// Rows of strips that share a scale, each with a name before it.
function strips(rows, { high, marked = -1 } = {}) {
    const most = high ?? Math.max(...rows.map(([, values]) => largestOf(values)));
    return element('div', { className: 'strips' }, ...rows.flatMap(([name, values, note], i) => [
        element('span', { className: i === marked ? 'strip-name now' : 'strip-name', dir: 'auto' }, name),
        strip(values, { high: most, label: typeof name === 'string' ? name : name.textContent }),
        element('span', { className: 'numbers quiet' }, note ?? '')]));
}
// A bar of 0..1; a second, thinner one inside it shows another value.
function bar(part, inner) {
    const track = element('span', { className: 'track', 'aria-hidden': 'true' }, element('i'));
    track.firstChild.style.width = `${100 * clamp(part, 0, 1)}%`;
    if (inner !== undefined) {
        track.append(element('b'));
        track.lastChild.style.width = `${100 * clamp(inner, 0, 1)}%`;
    }
    return track;
}
// A bar to the left of the middle for what is below zero.
function signedBar(x, high) {
    const track = element('span', { className: 'track signed', 'aria-hidden': 'true' }, element('i')), part = 50 * clamp(Math.abs(x) / high, 0, 1);
    track.firstChild.style.width = `${part}%`;
    track.firstChild.style[x < 0 ? 'right' : 'left'] = '50%';
    track.firstChild.className = x < 0 ? 'below' : 'above';
    return track;
}
