/* why.js: which tokens an output is due to, by four methods side by side. */
'use strict';

const whyMethods = [
    ['gradient', () => tr('gradient × input'), true], ['integrated', () => tr('integrated gradients'), true],
    ['value-zeroing', () => tr('value zeroing'), false], ['rollout', () => tr('attention rollout'), false],
];
// Which token of the output is explained, and the place in what the decoder reads that gives it.
const lastExplained = () => isTranslator() ? outIds().length : outIds().length - 1;
const whyIndex = () => clamp(state.place, 0, Math.max(0, lastExplained()));
const whyPlace = () => isTranslator() ? whyIndex() : Math.max(0, tokensOf('read').length - outIds().length + whyIndex() - 1);
function outputButtons() {
    return element('div', { className: 'tokens', role: 'group', 'aria-label': tr('Token to explain') }, ...outTokens().slice(0, lastExplained() + 1).map((token, i) =>
        button(labelOf(token), () => change({ place: i }), { dir: 'auto', 'aria-pressed': String(i === whyIndex()), data: { keep: `why-${i}` } })));
}
const classPicker = () => numberSelect(tr('Class'), [[-1, tr('the likeliest')], ...info.labels.map((label, i) => [i, label])], state.output, v => change({ output: +v }), 'why-class');
const whyRequest = () => about({ do: 'why', ...info.task === 'classify' ? state.output >= 0 ? { output: state.output } : {} : { at: whyPlace() } });

function whyTable(rows, title, highs) {
    const cell = (row, [name, , isSigned]) => {
        const x = row[name], made = element('td', {}, x === undefined || x === null ? '' : short(x));
        if (x === undefined || x === null) return made;
        const colour = shade(x, highs[name], false);
        Object.assign(made.style, isSigned ? { background: signedColour(x, highs[name]), color: onSigned(x, highs[name]) } : { background: paletteCss[colour], color: onShade(colour) });
        return made;
    };
    return element('div', {}, element('h3', {}, title), element('table', { className: 'wide-table' },
        element('thead', {}, element('tr', {}, element('th', { scope: 'col' }, tr('token')), ...whyMethods.map(([, label]) => element('th', { scope: 'col' }, label())))),
        element('tbody', {}, ...rows.map((row, i) => element('tr', {}, element('th', { scope: 'row', dir: 'auto' }, `${i} ${labelOf(row.token)}`), ...whyMethods.map(method => cell(row, method)))))));
}
// Integrated gradients are complete: all of them add up to what the logit has more than it has without the text.
function completeness(answer, all) {
    if (!all.some(row => Number.isFinite(row.integrated))) return '';
    const sum = all.reduce((total, row) => total + (row.integrated ?? 0), 0), change = answer.logit - answer.baseline_logit;
    return note(tr('Integrated gradients add up to {0}; the logit is {1}, without the text {2}: a difference of {3}.', short(sum), short(answer.logit), short(answer.baseline_logit), short(change)));
}

views.push({
    name: 'why', title: () => tr('Why'), isThere: () => can('why'),
    build(host) {
        host.append(element('section', { className: 'card', 'aria-labelledby': 'why-title' }, element('div', { className: 'bar', id: 'why-bar' }), element('div', { id: 'why-choice' }), element('div', { id: 'why-body', className: 'two' }), element('div', { id: 'why-notes' })));
    },
    async update(host, isCurrent) {
        fill(find('why-choice'), info.task === 'classify' ? classPicker() : outputButtons());
        const answer = await newest('why', whyRequest());
        if (!answer || !isCurrent()) return;
        const source = answer.source ?? [], read = answer.read ?? [], all = [...source, ...read], highs = Object.fromEntries(whyMethods.map(([name]) => [name, largestOf(all.map(row => row[name] ?? 0))]));
        const rows = () => [['side', 'token', ...whyMethods.map(([name]) => name)], ...[['source', source], ['read', read]].flatMap(([side, list]) => list.map(row => [side, row.token, ...whyMethods.map(([name]) => row[name] ?? '')]))];
        fill(find('why-bar'), element('h2', { id: 'why-title', dir: 'auto' }, tr('Why “{0}”?', labelOf(answer.name))), saving(() => 'why', { rows, value: () => ({ model: info.name, text: run.text, ...answer }) }));
        fill(find('why-body'), source.length ? whyTable(source, tr('The text'), highs) : null, read.length ? whyTable(read, isTranslator() ? tr('What was said before') : tr('What was read'), highs) : null);
        fill(find('why-notes'), completeness(answer, all), note(tr('Gradients: red speaks for the output, blue against it. Value zeroing and rollout are shares of 1, whatever the output is.')));
    },
});
