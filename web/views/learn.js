/* learn.js: the checkpoints of a training, and a tiny model that learns while one looks on. */
'use strict';

// ---- checkpoints ----

// Lines over steps: [{name, colour, points: [[step, value], ..]}]; a line at `at`.
function drawCurves(pen, width, height, lines, at, colours) {
    const all = lines.flatMap(line => line.points), most = Math.max(1, ...all.map(([x]) => x)), high = Math.max(1e-6, ...all.map(([, y]) => y));
    const left = 46, bottom = height - 24, px = x => left + (width - left - 12) * x / most, py = y => 22 + (bottom - 22) * (1 - y / high);
    pen.rect(0, 0, width, height, colours.card);
    for (const part of [0, 0.5, 1]) {
        pen.path([[left, py(part * high)], [width - 12, py(part * high)]], colours.edge);
        pen.text(short(part * high), left - 6, py(part * high), { size: 11, fill: colours.quiet, align: 'right' });
        pen.text(`${Math.round(part * most)}`, px(part * most), bottom + 12, { size: 11, fill: colours.quiet, align: part === 1 ? 'right' : 'center' });
    }
    if (at !== null) pen.path([[px(at), 22], [px(at), bottom]], colours.accent, 2);
    lines.forEach((line, i) => {
        if (line.points.length) pen.path(line.points.map(([x, y]) => [px(x), py(y)]), line.colour, 2);
        for (const [x, y] of line.points.length < 30 ? line.points : []) pen.rect(px(x) - 2, py(y) - 2, 4, 4, line.colour);
        pen.rect(left + 150 * i, 6, 14, 4, line.colour);
        pen.text(line.name, left + 150 * i + 19, 8, { size: 12, fill: colours.ink });
    });
    return { width, height };
}
function curves(host, lines, at, label) {
    const canvas = element('canvas', { role: 'img', 'aria-label': label }), width = Math.max(260, host.clientWidth - 4);
    drawCurves(sized(canvas, width, 200), width, 200, lines, at, coloursNow());
    return canvas;
}
const colourOf = i => headColours[themeNow()][i];
const lossNote = () => note(tr('The training loss is measured with dropout and smoothed targets, the validation loss without them, on pairs that are not trained on: the second may be the lower one.'));
const checkpointColumns = () => [tr('step'), tr('training loss'), tr('validation loss'), { translate: tr('Translation'), classify: tr('Class'), generate: tr('Continuation') }[info.task] ?? ''].filter(Boolean);
function saidBy({ output: { translations, classes, text } }) {
    return translations ? translations[0]?.text || tr('(nothing)') : classes ? `${classes[0].label} ${percent(classes[0].probability)}` : text ?? '';
}
const lossText = x => Number.isFinite(x) ? x.toFixed(3) : '–';
// What every checkpoint makes of the text, one after the other: only one of them is loaded at a time.
async function drawSaid(host, isCurrent) {
    const list = info.checkpoints, said = list.map(() => '…'), columns = checkpointColumns(), hasOutput = columns.length > 3;
    const draw = () => fill(host, element('div', { className: 'scroll', tabIndex: 0, role: 'region', 'aria-label': tr('Checkpoints') }, element('table', { className: 'wide-table' }, element('thead', {}, element('tr', {}, ...columns.map((text, i) => element('th', { scope: 'col', className: i > 2 ? 'token' : '' }, text)))),
        element('tbody', {}, ...list.map((c, i) => element('tr', { className: i === checkpointNow() ? 'now' : '' }, element('th', { scope: 'row' }, button(`${c.step}`, () => pickCheckpoint(i), { className: 'numbers', 'aria-pressed': String(i === checkpointNow()), data: { keep: `step-${i}` } })),
            element('td', {}, lossText(c.loss)), element('td', {}, lossText(c.valid)), hasOutput ? element('td', { className: 'token', dir: 'auto' }, said[i]) : null))))),
    saving(() => 'checkpoints', { rows: () => [['step', 'loss', 'valid', 'output'], ...list.map((c, i) => [c.step, c.loss ?? '', c.valid ?? '', said[i]])], value: () => ({ model: info.name, text: state.text, checkpoints: list.map((c, i) => ({ ...c, output: said[i] })) }) }));
    draw();
    for (const [i, c] of hasOutput && state.text.trim() ? list.entries() : []) {
        const answer = await newest(`checkpoint ${i}`, { ...searchRequest(), attention: [], checkpoint: c.folder ? i : undefined });
        if (!answer || !isCurrent()) return;
        said[i] = saidBy(answer);
        draw();
    }
}
async function drawCheckpoints(host, isCurrent) {
    const list = info.checkpoints, now = checkpointNow(), points = name => list.filter(c => Number.isFinite(c[name])).map(c => [c.step, c[name]]), place = name => host.querySelector(`.checkpoint-${name}`);
    const said = element('output', { className: 'numbers' }, tr('step {0}', list[now].step));
    const input = element('input', { type: 'range', min: 0, max: list.length - 1, step: 1, value: now, 'aria-valuetext': tr('step {0}', list[now].step), data: { keep: 'checkpoint' }, on: { input: () => pickCheckpoint(+input.value, true) } });
    fill(place('bar'), element('label', { className: 'slider' }, element('span', {}, tr('Checkpoint')), input, said), list[now].folder ? null : note(tr('This is the model itself.')));
    fill(place('curve'), curves(place('curve'), [{ name: tr('training loss'), colour: colourOf(0), points: points('loss') }, { name: tr('validation loss'), colour: colourOf(1), points: points('valid') }], list[now].step, tr('Loss over the steps of the training')), lossNote());
    if (state.text.trim() !== '' && run) {
        fill(place('maps'), element('div', { className: 'bar' }, kindSwitch()), element('div', { className: 'scroll' }, headGrid(kindNow(), { name: 'learnt', isOn: () => false, pick: (layer, head) => change({ view: 'head', layer, head, also: '' }) })));
        await drawThumbnails(place('maps'), state.kind, isCurrent);
    }
    if (isCurrent()) await part(place('said'), drawSaid, isCurrent);
}

// ---- watch it learn ----
const lesson = { running: false, isActive: false, job: null, answer: null, accuracy: 0, history: [], steps: 5 };
const enough = 0.99, mostSteps = 5000;

async function beginLesson() {
    const answer = await engine.ask({ do: 'learn', start: { task: state.job, seed: 1, letters: 8, length: 6 } });
    Object.assign(lesson, { job: state.job, answer, accuracy: answer.accuracy ?? 0, history: [], steps: 5 });
}
// One call of the engine: so many steps that the page is drawn a few times a second.
async function lessonStep(steps) {
    const before = performance.now(), last = lesson.history.findLast(({ accuracy }) => accuracy !== null)?.step ?? -50, isMeasured = (lesson.answer?.step ?? 0) + steps >= last + 50;
    const answer = await engine.ask({ do: 'learn', steps, measure: isMeasured });
    const took = performance.now() - before;
    lesson.steps = clamp(Math.round(lesson.steps * clamp(250 / Math.max(1, took), 0.5, 2)), 1, 50);
    if (isMeasured) lesson.accuracy = answer.accuracy;
    lesson.answer = { ...lesson.answer, ...answer };
    lesson.history.push({ step: answer.step, loss: answer.loss, accuracy: isMeasured ? answer.accuracy : null });
}
async function runLesson() {
    lesson.running = true;
    drawLesson();
    if (lesson.isActive) return; // the steps that a pause came too late for are still under way
    lesson.isActive = true;
    await trying(async () => {
        if (lesson.job !== state.job || !lesson.answer) await beginLesson();
        while (lesson.running && built?.name === 'learn' && lesson.accuracy < enough && lesson.answer.step < mostSteps) {
            await lessonStep(lesson.steps);
            drawLesson();
        }
    });
    lesson.running = lesson.isActive = false;
    drawLesson();
    if (lesson.accuracy >= enough) tell(tr('It has learnt it: {0} after {1} steps.', percent(lesson.accuracy), lesson.answer.step));
}
function drawLesson() {
    const host = find('lesson');
    if (!host) return;
    const { answer, accuracy, history, running } = lesson;
    const start = button(running ? tr('Pause') : answer?.step ? tr('Go on') : tr('Start'), () => { if (running) { lesson.running = false; drawLesson(); } else runLesson(); }, { className: 'primary', data: { keep: 'lesson-start' } });
    const one = button(tr('One step'), () => trying(async () => { if (lesson.job !== state.job || !lesson.answer) await beginLesson(); await lessonStep(1); drawLesson(); }), { disabled: running, data: { keep: 'lesson-one' } });
    const anew = button(tr('Begin anew'), () => trying(async () => { lesson.running = false; await beginLesson(); drawLesson(); }), { disabled: running, data: { keep: 'lesson-anew' } });
    fill(host.querySelector('.lesson-bar'), segments('job', tr('What it learns'), [['reverse', tr('reverse')], ['sort', tr('sort')], ['copy', tr('copy')]], state.job, job => { lesson.running = false; lesson.answer = null; change({ job }); }), start, one, anew);
    if (!answer || lesson.job !== state.job) return fill(host.querySelector('.lesson-body'), note(tr('A Transformer with one layer each and new numbers. It has never seen a letter: press Start.')));
    const loss = history.map(h => [h.step, h.loss]), right = history.filter(h => h.accuracy !== null).map(h => [h.step, h.accuracy]);
    return fill(host.querySelector('.lesson-body'), element('p', {}, element('span', { className: 'big numbers' }, percent(accuracy)), ' ', tr('of unseen rows are right; step {0}, loss {1}, {2} parameters', answer.step, Number.isFinite(answer.loss) ? answer.loss.toFixed(3) : '–', answer.parameters ?? '')),
        element('div', { className: 'two' }, curves2(host, loss, right), lessonExamples(answer.examples ?? [])), lessonMaps(answer),
        saving(() => `learn-${state.job}`, { rows: () => [['step', 'loss', 'accuracy'], ...history.map(h => [h.step, h.loss, h.accuracy ?? ''])], value: () => ({ job: state.job, history, examples: answer.examples }) }));
}
function curves2(host, loss, right) {
    const half = { clientWidth: host.clientWidth > 900 ? host.clientWidth / 2 - 40 : host.clientWidth - 32 };
    return element('div', {}, curves(half, [{ name: tr('training loss'), colour: colourOf(0), points: loss }], null, tr('Loss over the steps')), curves(half, [{ name: tr('share that is right'), colour: colourOf(2), points: right }], null, tr('Share that is right over the steps')));
}
function lessonExamples(examples) {
    return element('table', { className: 'wide-table' }, element('thead', {}, element('tr', {}, ...[tr('read'), tr('wanted'), tr('said')].map(text => element('th', { scope: 'col' }, text)))),
        element('tbody', {}, ...examples.slice(0, 8).map(e => element('tr', {}, element('td', { className: 'token' }, e.text), element('td', { className: 'token' }, e.target), element('td', { className: `token ${e.is_right ? 'right' : 'wrong'}` }, `${e.is_right ? '✓' : '✕'} ${e.found}`)))));
}
// The maps of the first example: what it attends to while it learns.
function lessonMaps({ kinds = [], weights = {}, sides }) {
    const of = kinds.find(k => k.kind === 'cross') ?? kinds[0], all = of && weights[of.kind];
    if (!all) return null;
    const [layers, heads, rows, columns] = all.shape, size = rows * columns;
    const maps = range(layers * heads).map(i => thumbnail(shrunk({ rows, columns, weights: all.data.subarray(i * size, (i + 1) * size) }, of.kind)));
    return element('div', {}, element('h3', {}, tr('{0} of the first example, head by head', kindNames()[of.kind])), element('div', { className: 'lesson-maps', role: 'img', 'aria-label': tr('{0}: what each head attends to', sides?.[of.columns]?.tokens.map(labelOf).join(' ') ?? '') }, ...maps));
}

views.push({
    name: 'learn', title: () => tr('Learn'), isThere: () => can('learn') || info?.checkpoints?.length > 1, needsText: false,
    build(host) {
        if (info.checkpoints?.length > 1) host.append(element('section', { className: 'card', id: 'checkpoints', 'aria-labelledby': 'checkpoints-title' }, element('h2', { id: 'checkpoints-title' }, tr('The training')),
            ...['bar', 'curve', 'maps', 'said'].map(name => element('div', { className: `checkpoint-${name}` }))));
        if (can('learn')) host.append(element('section', { className: 'card', id: 'lesson', 'aria-labelledby': 'lesson-title' }, element('h2', { id: 'lesson-title' }, tr('Watch it learn')), note(tr('A tiny model is trained here, in the page, on rows of letters that are made up on the way.')),
            element('div', { className: 'bar lesson-bar' }), element('div', { className: 'lesson-body' })));
    },
    async update(host, isCurrent) {
        if (find('lesson')) drawLesson();
        if (find('checkpoints')) await drawCheckpoints(find('checkpoints'), isCurrent);
    },
});
