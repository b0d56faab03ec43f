/* draw.js: what both pages draw with: elements, colours, numbers as text, pens for a canvas and for SVG, saving. */
'use strict';

// ---- elements ----
const find = id => document.getElementById(id);
const clamp = (x, low, high) => Math.min(Math.max(x, low), high);
const range = n => Array.from({ length: Math.max(0, n) }, (_, i) => i);

// on: {event: listener, ..}; other properties that the element does not have become attributes.
function element(tag, { on = {}, data = {}, ...properties } = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
        if (value === undefined) continue;
        if (name in made && name !== 'role' && name !== 'list') made[name] = value;
        else made.setAttribute(name, value);
    }
    for (const [event, act] of Object.entries(on)) made.addEventListener(event, act);
    Object.assign(made.dataset, data);
    made.append(...children.filter(child => child !== null && child !== undefined));
    return made;
}
const button = (label, act, properties = {}) => element('button', { type: 'button', ...properties, on: { click: act } }, label);
const unseen = text => element('span', { className: 'unseen' }, text);

// Replaces what a place holds, and keeps the keyboard where it was: elements are told apart by data-keep.
function fill(host, ...children) {
    const kept = host.contains(document.activeElement) ? document.activeElement.dataset.keep : null;
    host.replaceChildren(...children.filter(Boolean));
    if (kept) host.querySelector(`[data-keep="${CSS.escape(kept)}"]`)?.focus({ preventScroll: true });
}

// ---- what is told, light and dark ----
function complain(sentence) {
    find('problem').textContent = sentence ?? '';
    find('problem').hidden = !sentence;
}
const tell = sentence => { find('live').textContent = sentence; };

const darkPreferred = matchMedia('(prefers-color-scheme: dark)');
const preferredTheme = () => darkPreferred.matches ? 'dark' : 'light';
const themeNow = () => document.documentElement.dataset.theme;
function switchTheme() {
    const theme = themeNow() === 'dark' ? 'light' : 'dark';
    memory.set('qkv-theme', theme);
    setTheme(theme);
}

// Storage may be forbidden, as it is for some files: the page then forgets.
const memory = {
    get(name) { try { return localStorage.getItem(name); } catch { return null; } },
    set(name, value) { try { localStorage.setItem(name, value); } catch { /* forgotten */ } },
};

// Formulas are written W_Q, d_k^2, x^{1/4}: one letter or word behind _ or ^, or what is in braces, is set lower or higher.
function formula(text) {
    const parts = text.split(/([_^](?:[A-Za-z0-9]+|\{[^}]*\}))/).map((part, i) => i % 2 ? element(part[0] === '_' ? 'sub' : 'sup', {}, part.slice(1).replace(/[{}]/g, '')) : part);
    return element('span', { className: 'formula', lang: 'en', dir: 'ltr' }, ...parts.filter(part => part !== ''));
}

// ---- numbers and tokens as text ----
const minus = text => text.replaceAll('-', '−');
const digits = x => minus(x === 0 || Math.abs(x) >= 1e-3 ? x.toFixed(6) : x.toExponential(5)); // small ones keep theirs
const short = x => x === null || x === -Infinity ? '−∞' : minus(Math.abs(x) >= 100 ? x.toFixed(0) : Math.abs(x) >= 10 ? x.toFixed(1)
    : x === 0 || Math.abs(x) >= 0.01 ? x.toFixed(2) : x.toExponential(0));
const percent = p => p >= 0.9995 ? '100%' : p >= 0.1 ? `${(100 * p).toFixed(1)}%` : p >= 0.0001 ? `${(100 * p).toFixed(2)}%` : p > 0 ? '<0.01%' : '0%';
const exact = x => +x.toPrecision(9); // enough to have the same float again

// White space is seen where it is all there is; what is in front of a word is not.
function labelOf(token) {
    const seen = token.replace(/\n/g, '⏎').replace(/\t/g, '⇥').replace(/[\u0000-\u001f\u007f]/g, '�');
    if (seen.trim() === '') return seen === '' ? '∅' : '␣'.repeat(Math.min(seen.length, 4));
    return seen.trim();
}

// ---- colours ----
const hexTriples = colours => colours.map(hex => [0, 2, 4].map(i => parseInt(hex.slice(i, i + 2), 16)));
const viridis = hexTriples(['440154', '482878', '3e4989', '31688e', '26828e', '1f9e89', '35b779', '6ece58', 'b5de2b', 'fde725']);
const blueRed = hexTriples(['2166ac', '4393c3', '92c5de', 'd1e5f0', 'f7f7f7', 'fddbc7', 'f4a582', 'd6604d', 'b2182b']);
function mixed(anchors, x) {
    const at = clamp(x, 0, 1) * (anchors.length - 1), i = Math.min(Math.floor(at), anchors.length - 2);
    return anchors[i].map((low, c) => Math.round(low + (at - i) * (anchors[i + 1][c] - low)));
}
const paletteOf = anchors => range(256).map(i => mixed(anchors, i / 255));
const cssOf = ([r, g, b]) => `rgb(${r},${g},${b})`;
const palette = paletteOf(viridis), paletteCss = palette.map(cssOf), signedCss = paletteOf(blueRed).map(cssOf);
const palettePixels = Uint32Array.from(palette, ([r, g, b]) => (0xff000000 | b << 16 | g << 8 | r) >>> 0); // ABGR in memory

const shade = (x, high, root) => Math.round(255 * clamp(root ? Math.sqrt(x / high) : x / high, 0, 1)) || 0;
// Black or white, whichever is read better: at least 4.5 to 1 on any colour (WCAG 2's relative luminance).
function inkOn(rgb) {
    const [r, g, b] = rgb.map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? '#000' : '#fff';
}
const signedInks = paletteOf(blueRed).map(inkOn), paletteInks = palette.map(inkOn);
const signedAt = (x, high) => Math.round(255 * clamp(0.5 + x / high / 2, 0, 1)) || 0;
const signedColour = (x, high) => signedCss[signedAt(x, high)], onSigned = (x, high) => signedInks[signedAt(x, high)];
const onShade = colour => paletteInks[colour];
// Of several heads drawn over each other: told apart by those who see few colours too (Okabe and Ito), in light and dark.
const headColours = { light: ['#0072b2', '#b34700', '#007a59', '#a8327e', '#6b5b00', '#3a3a3a', '#5b2fc0', '#8a1c1c'],
    dark: ['#56b4e9', '#ff9b57', '#2fd3a6', '#f29ccf', '#f0e442', '#dddddd', '#b79bff', '#ff8f8f'] };
const largestOf = values => values.reduce((most, x) => Math.max(most, Math.abs(x ?? 0)), 0) || 1;

function coloursNow() {
    const style = getComputedStyle(document.documentElement), get = name => style.getPropertyValue(name).trim();
    return Object.fromEntries(['ink', 'quiet', 'edge', 'card', 'accent', 'faint', 'hatch'].map(name => [name, get(`--${name}`)]));
}

// The largest weight, and the one at the end of the colours: the same, or of many rows one that most rows do not reach, so that
// a few large weights do not leave all others dark.
function rangeOf(values, rows, columns) {
    const best = new Float32Array(rows);
    for (let i = 0; i < rows * columns; i++) {
        const r = Math.floor(i / columns);
        if (values[i] > best[r]) best[r] = values[i];
    }
    best.sort();
    const largest = best[rows - 1] ?? 0;
    return { largest, high: (rows > 40 && best[Math.floor(0.7 * rows)]) || largest || 1 };
}

// ---- text that is drawn ----
const fontFamily = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "WenQuanYi Micro Hei", sans-serif';
const fontOf = (size, bold) => `${bold ? '600 ' : ''}${size}px ${fontFamily}`;
const ruler = document.createElement('canvas').getContext('2d');
function widthOf(text, size = 12) {
    ruler.font = fontOf(size);
    return ruler.measureText(text).width;
}
const graphemes = typeof Intl.Segmenter === 'function'
    ? text => Array.from(new Intl.Segmenter().segment(text), ({ segment }) => segment) : text => [...text];
function shortened(text, most, size = 12) {
    if (text.length < 200 && widthOf(text, size) <= most) return text;
    const characters = graphemes(text.slice(0, 400));
    let n = characters.length;
    while (n > 1 && widthOf(characters.slice(0, n).join('') + '…', size) > most) n = Math.min(n - 1, Math.ceil(n * 0.9));
    return characters.slice(0, n).join('') + '…';
}
const longest = (labels, most) => Math.min(most, labels.reduce((w, l) => Math.max(w, l.length < 200 ? widthOf(l) : most), 12));

// Signs that are read upright in a vertical line; other labels are turned as a whole.
const isUpright = text => /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Extended_Pictographic}\p{Emoji_Modifier}\u200d\ufe0f\u3000-\u303f\uff00-\uffef…]+$/u.test(text);

// ---- pens: the same drawing on a canvas and as SVG ----
class CanvasPen {
    constructor(context, scale) { Object.assign(this, { context, scale }); }
    rect(x, y, w, h, fill) {
        this.context.fillStyle = fill;
        this.context.fillRect(x, y, w, h);
    }
    frame(x, y, w, h, stroke, width = 1) {
        this.context.strokeStyle = stroke;
        this.context.lineWidth = width;
        this.context.strokeRect(x, y, w, h);
    }
    path(points, stroke, width = 1, alpha = 1) {
        const { context } = this;
        Object.assign(context, { strokeStyle: stroke, lineWidth: width, globalAlpha: alpha });
        context.beginPath();
        points.forEach(([x, y, ...ahead], i) => {
            if (i === 0) context.moveTo(x, y);
            else if (ahead.length) context.bezierCurveTo(...ahead, x, y);
            else context.lineTo(x, y);
        });
        context.stroke();
        context.globalAlpha = 1;
    }
    text(text, x, y, { size = 12, fill, align = 'left', turned = false, bold = false }) {
        const { context } = this;
        context.save();
        context.translate(x, y);
        if (turned) context.rotate(-Math.PI / 2);
        Object.assign(context, { font: fontOf(size, bold), fillStyle: fill, textAlign: align, textBaseline: 'middle' });
        context.fillText(text, 0, 0);
        context.restore();
    }
    picture(image, x, y, w, h) {
        this.context.imageSmoothingEnabled = false;
        this.context.drawImage(image, x, y, w, h);
    }
    clipped(x, y, w, h, draw) {
        this.context.save();
        this.context.beginPath();
        this.context.rect(x, y, w, h);
        this.context.clip();
        draw();
        this.context.restore();
    }
}

class SvgPen {
    constructor() { this.parts = []; }
    static escaped(text) { return text.replace(/[&<>"]/g, c => `&#${c.charCodeAt(0)};`).replace(/[\u0000-\u0008\u000b-\u001f]/g, ''); }
    static short(x) { return +x.toFixed(2); }
    put(tag, attributes, inside) {
        const given = value => typeof value === 'number' ? SvgPen.short(value) : SvgPen.escaped(value);
        const listed = Object.entries(attributes).map(([name, value]) => ` ${name}="${given(value)}"`).join('');
        this.parts.push(inside === undefined ? `<${tag}${listed}/>` : `<${tag}${listed}>${inside}</${tag}>`);
    }
    rect(x, y, width, height, fill) { this.put('rect', { x, y, width, height, fill }); }
    frame(x, y, width, height, stroke, line = 1) { this.put('rect', { x, y, width, height, fill: 'none', stroke, 'stroke-width': line }); }
    path(points, stroke, width = 1, alpha = 1) {
        const d = points.map(([x, y, ...ahead], i) => (i === 0 ? 'M' : ahead.length ? 'C' : 'L') + [...ahead, x, y].map(SvgPen.short).join(' ')).join('');
        this.put('path', { d, fill: 'none', stroke, 'stroke-width': width, 'stroke-opacity': alpha });
    }
    text(text, x, y, { size = 12, fill, align = 'left', turned = false, bold = false }) {
        const at = turned ? { transform: `translate(${SvgPen.short(x)} ${SvgPen.short(y)}) rotate(-90)` } : { x, y };
        const anchor = { left: 'start', center: 'middle', right: 'end' }[align];
        const look = { fill, 'font-size': size, 'text-anchor': anchor, ...(bold ? { 'font-weight': '600' } : {}) };
        this.put('text', { ...at, dy: '0.35em', ...look }, SvgPen.escaped(text));
    }
    picture(image, x, y, width, height) {
        this.put('image', { x, y, width, height, preserveAspectRatio: 'none', style: 'image-rendering:pixelated', href: image.toDataURL('image/png') });
    }
    clipped(x, y, width, height, draw) {
        const id = `clip${this.parts.length}`, before = this.parts;
        this.parts = [];
        draw();
        const inside = this.parts.join('');
        this.parts = before;
        this.put('clipPath', { id }, `<rect x="${SvgPen.short(x)}" y="${SvgPen.short(y)}" width="${SvgPen.short(width)}" height="${SvgPen.short(height)}"/>`);
        this.put('g', { 'clip-path': `url(#${id})` }, inside);
    }
    document(width, height) {
        return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
            `font-family="${SvgPen.escaped(fontFamily)}" text-rendering="geometricPrecision"><style>rect{shape-rendering:crispEdges}</style>\n${this.parts.join('\n')}\n</svg>\n`;
    }
}

// A label that reads upwards from (x, y); signs that are read upright stand one above the other.
function turnedLabel(pen, text, x, y, look) {
    if (!isUpright(text)) return pen.text(text, x, y, { ...look, align: 'left', turned: true });
    const signs = graphemes(text), size = (look.size ?? 12) + 1;
    signs.forEach((sign, i) => pen.text(sign, x, y - (signs.length - i - 0.5) * size, { ...look, align: 'center' }));
}
const turnedHeight = (text, size = 12) => isUpright(text) ? graphemes(text).length * (size + 1) : widthOf(text, size);

// Diagonal lines: there is nothing here that could be zero.
function hatch(pen, x, y, w, h, { faint, hatch: line }, every = 7) {
    pen.clipped(x, y, w, h, () => {
        pen.rect(x, y, w, h, faint);
        for (let from = -h; from < w; from += every) pen.path([[x + from, y + h], [x + from + h, y]], line, 1);
    });
}

// A canvas of so many points on the screen, sharp on every screen, and its pen.
function sized(canvas, width, height) {
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext('2d');
    context.setTransform(scale, 0, 0, scale, 0, 0);
    return new CanvasPen(context, scale);
}

// ---- saving ----
function save(name, content) {
    const link = element('a', { href: URL.createObjectURL(content), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
function savePng(name, draw) {
    const canvas = element('canvas'), still = new CanvasPen(canvas.getContext('2d'), 1), { width, height } = draw(still);
    const scale = width * height > 4e6 ? 1 : 2;
    Object.assign(canvas, { width: width * scale, height: height * scale });
    const context = canvas.getContext('2d');
    context.scale(scale, scale);
    draw(new CanvasPen(context, scale));
    return new Promise(done => canvas.toBlob(blob => { if (blob) save(`${name}.png`, blob); done(!!blob); }));
}
function saveSvg(name, draw) {
    const pen = new SvgPen(), { width, height } = draw(pen);
    save(`${name}.svg`, new Blob([pen.document(width, height)], { type: 'image/svg+xml' }));
}
const saveJson = (name, value) => save(`${name}.json`, new Blob([JSON.stringify(value), '\n'], { type: 'application/json' }));
function saveCsv(name, rows) {
    const cell = value => /[",\n\r]/.test(`${value}`) ? `"${`${value}`.replace(/"/g, '""')}"` : `${value}`;
    save(`${name}.csv`, new Blob(['\ufeff', rows.map(row => row.map(cell).join(',')).join('\r\n'), '\r\n'], { type: 'text/csv' }));
}
