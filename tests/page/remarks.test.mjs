// remarks.test.mjs: what people once had against the explorer and the pictures, 1 to 16, each as a case that can fail.
// usage: node remarks.test.mjs QKV OUT FOLDER: the folder has translator, language, learned, heads12 and pages of them
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { check, complaintsOf, download, finish, group, installedIn, same } from './cases.mjs';

const [qkv, out, folder] = process.argv.slice(2).map(path => resolve(path)), { axe, launch } = installedIn(out), browser = await launch();
const place = name => join(folder, name), run = (...given) => execFileSync(qkv, given, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], cwd: folder });
const pictureOf = (name, ...given) => { run(...given, '-o', name); return readFileSync(place(name), 'utf8'); };
const textsOf = svg => [...svg.matchAll(/<text([^>]*)>([^<]*)/g)].map(([, look, text]) => ({ text: text.replaceAll('&lt;', '<').replaceAll('&gt;', '>'), size: +look.match(/font-size="([\d.]+)"/)[1] }));
const tokensOf = (...given) => { run(...given, '-o', 'tokens.json'); return JSON.parse(readFileSync(place('tokens.json'), 'utf8')).queries.map(token => token.trim()); };
const words = n => Array.from({ length: n }, (_, i) => ['the', 'cat', 'dog', 'is', 'black'][i % 5]).join(' ');
mkdirSync(join(out, 'remarks'), { recursive: true });

async function open(file, hash = '', options = {}) {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options }), page = await context.newPage();
    page.setDefaultTimeout(60000);
    await page.goto(`${pathToFileURL(place(file)).href}#${hash}`);
    await page.waitForFunction(() => !document.body.classList.contains('busy') && (!find('problem').hidden || document.querySelector('canvas, .next-body tr')));
    return page;
}
const settled = page => page.waitForFunction(() => !document.body.classList.contains('busy'));
const explorer = text => { run('attend', '-m', 'translator', '--text', text, '-o', 'explorer.html'); return open('explorer.html'); };

const remarks = [
    [1, 'twelve heads and their mean fit at 1440', async () => {
        const page = await open('heads12.html', 'view=model');
        same('no grid is cut', await page.evaluate(() => [...document.querySelectorAll('.grid')].filter(grid => grid.parentElement.scrollWidth > grid.parentElement.clientWidth + 1).length), 0);
        const boxes = await page.locator('.grid .mean').evaluateAll(all => all.filter(mean => mean.getBoundingClientRect().right > mean.closest('.card').getBoundingClientRect().right).length);
        same('no mean is', boxes, 0);
    }],
    [2, 'what is masked does not look like zero', async () => {
        const page = await open('translator.html', 'text=the+cat&view=head&kind=decoder&layer=0&head=0');
        check('hatched in a picture', (await download(page, join(out, 'remarks'), '.save button:text-is("SVG")')).bytes.toString().includes('clip-path'));
        check('null in JSON', JSON.parse((await download(page, join(out, 'remarks'), '.save button:text-is("JSON")')).bytes).weights[0].at(-1) === null);
        const old = await explorer('the cat');
        await old.click('[role=tab]:text-is("Decoder")');
        await old.waitForTimeout(300);
        await old.focus('#over');
        for (const key of ['ArrowRight', 'ArrowRight']) await old.keyboard.press(key);
        await old.waitForFunction(() => /: masked$/.test(document.querySelector('#reading').innerText), null, { timeout: 10000 }).catch(() => {});
        check('the explorer reads it so', /: masked$/.test(await old.locator('#reading').innerText()), await old.locator('#reading').innerText());
        check('and so does the terminal', run('attend', '-m', 'translator', '--text', 'the cat', '--kind', 'decoder').includes('// masked'));
    }],
    [3, 'links, history and reload', async () => {
        const page = await open('translator.html', 'text=the+cat&view=head&kind=decoder&layer=0&head=1'), title = () => page.locator('#head-title').innerText(), first = await title();
        await page.click('#head-grid [data-place="1/2"]');
        await settled(page);
        const second = await title();
        await page.goBack();
        await settled(page);
        same('back', await title(), first);
        await page.goForward();
        await page.reload();
        await page.waitForFunction(() => find('head-title') && !document.body.classList.contains('busy'));
        same('forward, and after a reload', await title(), second);
    }],
    [4, 'it begins with examples', async () => {
        const page = await open('translator.html');
        check('several to choose from', await page.locator('#examples button').count() > 1);
        check('and one is answered', await page.inputValue('#text') !== '' && await page.locator('.choice b').count() > 0);
    }],
    [5, 'a beam of 99 is told with the options closed', async () => {
        const page = await open('translator.html');
        await page.evaluate(() => { const beam = document.querySelector('[name="beam"]'); beam.value = 99; beam.dispatchEvent(new Event('input')); });
        check('in a sentence', (await page.locator('#problem').innerText()).includes('1 to 16'));
    }],
    [6, 'a space is no empty token', async () => {
        const page = await open('language.html', 'text=the&view=output&max_tokens=4');
        check('in the output', !(await page.locator('#panel').innerText()).includes('∅'));
        same('a space, and a space before a word', await page.evaluate(() => [labelOf(' '), labelOf(' cat')]), ['␣', 'cat']);
    }],
    [7, 'pictures of all heads keep their labels at 16 words', () => {
        const given = ['attend', '-m', 'translator', '--text', words(16), '--kind', 'encoder'], tokens = tokensOf(...given);
        const texts = textsOf(pictureOf('all.svg', ...given, '--layer', 'all', '--head', 'all')).map(({ text }) => text.trim());
        same('every token is named', tokens.filter(token => !texts.includes(token)), []);
        check('beside the rows and above the columns', texts.filter(text => tokens.includes(text)).length >= 2 * tokens.length, texts);
    }],
    [8, 'at 80 columns the terminal has all tokens it has room for', () => {
        const said = execFileSync(qkv, ['attend', '-m', 'translator', '--text', words(24), '--kind', 'encoder'], { encoding: 'utf8', cwd: folder, env: { ...process.env, COLUMNS: '80' } }).split('\n');
        check('no line is wider', said.every(line => line.length <= 80), said);
        check('every row has its token', said.filter(line => /[░▒▓█]/.test(line)).every(line => /^\s*\S+ /.test(line)), said);
        check('and the columns have letters above them', said.slice(1, 8).join('').replace(/[^a-z]/g, '').length > 10, said.slice(0, 8));
    }],
    [9, 'past the model’s context something is said', async () => {
        const page = await open('learned.html', `text=${words(60).replaceAll(' ', '+')}&max_tokens=0`);
        check('in a sentence', (await page.locator('#problem').innerText()).length > 20, await page.locator('#problem').innerText());
    }],
    [10, 'labels of queries and keys are of one size, and a title is whole', () => {
        const given = ['attend', '-m', 'translator', '--text', words(40), '--kind', 'encoder'], tokens = tokensOf(...given);
        const sizes = textsOf(pictureOf('large.svg', ...given)).filter(({ text }) => tokens.includes(text.trim())).map(({ size }) => size);
        check('at most 1.2 times', sizes.length >= tokens.length && Math.max(...sizes) <= 1.2 * Math.min(...sizes), { tokens: tokens.length, labels: sizes.length, sizes: [...new Set(sizes)] });
        const title = 'a title that is far longer than the picture under it is wide, and goes on, and on';
        writeFileSync(place(`${title}.txt`), '1 2\n3 4\n');
        const drawn = pictureOf('title.svg', 'show', 'array', `${title}.txt`), width = +drawn.match(/width="([\d.]+)/)[1], [, x, , length] = drawn.match(/<text x="([\d.-]+)"( [a-z-]+="[^"]*")*? textLength="([\d.]+)"[^>]*>a title/) ?? [];
        check('it lies inside', +x >= 0 && +x + +length <= width, { x, length, width });
    }],
    [11, 'a page of 417 tokens and 40 heads is small', () => console.log('skipped - 11: "a large page" of page.test.mjs weighs it')],
    [12, 'forced colours show what is selected', async () => {
        const page = await open('translator.html', 'view=head', { forcedColors: 'active' }), look = selector => page.evaluate(s => { const c = getComputedStyle(document.querySelector(s)); return [c.outlineStyle, c.borderTopColor, c.backgroundColor, c.borderBottomColor].join(); }, selector);
        for (const where of ['#tabs', '#head-grid']) check(where, await look(`${where} [aria-selected="true"]`) !== await look(`${where} [aria-selected="false"]`));
    }],
    [13, 'names and headers of tables', async () => {
        for (const page of [await explorer('the cat'), await open('translator.html', 'view=output')])
            same('axe has nothing against them', (await complaintsOf(page, axe)).filter(line => /label-content-name-mismatch|empty-table-header/.test(line)), []);
    }],
    [14, 'the curve of a training is named, and says why its losses differ', () => {
        const texts = textsOf(pictureOf('curve.svg', 'show', 'curve', place('translator'))).map(({ text }) => text);
        check('named after its folder', texts.includes('Training of translator'), texts);
        check('with dropout and smoothing', texts.includes('training loss (with dropout and label smoothing)'), texts);
    }],
    [15, 'pictures name the text, the model and the colours', () => {
        const texts = textsOf(pictureOf('one.svg', 'attend', '-m', 'translator', '--text', 'the cat')).map(({ text }) => text);
        check('all three', texts.includes('translator: the cat') && texts.includes('attention weight'), texts);
        const flow = pictureOf('flow.svg', 'show', 'flow'), drawn = [...flow.matchAll(/<use xlink:href="#(glyph\d+)-/g)].map(([, font]) => font);
        check('W_Q has its letter set lower, in a smaller font', new Set(drawn).size > 3, [...new Set(drawn)]);
    }],
    [16, 'ink, emoji, room, paper, old answers', async () => {
        const page = await open('translator.html', 'text=the+cat&view=head');
        same('every colour has ink of 4.5 to 1', await page.evaluate(() => {
            const light = rgb => { const [r, g, b] = rgb.map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
            return palette.filter((rgb, i) => { const l = light(rgb), ink = onShade(i) === '#000' ? 0 : 1; return (Math.max(l, ink) + 0.05) / (Math.min(l, ink) + 0.05) < 4.5; }).length;
        }), 0);
        same('emoji are not turned', await page.evaluate(() => { const turned = []; turnedLabel({ text: (_, x, y, look) => turned.push(!!look.turned) }, '👍🏽', 0, 0, {}); return turned; }), [false]);
        same('a wide map leaves little blank', await page.evaluate(() => { const f = { rows: ['a', 'b'], columns: range(30).map(i => `w${i}`), window: { top: 0, bottom: 2, left: 0, right: 30 } }; return mapLayout(f, 1000, 400, 0).height > 260; }), false);
        await page.emulateMedia({ media: 'print' });
        check('the first page is not empty', await page.evaluate(() => find('panel').getBoundingClientRect().top < 1000));
        check('an answer of an older text is marked', await page.evaluate(() => { find('text').value = 'the dog'; find('text').dispatchEvent(new Event('input')); return find('answer').getAttribute('aria-busy') === 'true'; }));
        // A terminal without colours gets none: tests/attend.sh, which has a terminal.
    }],
];
same('there are sixteen', remarks.map(([n]) => n), Array.from({ length: 16 }, (_, i) => i + 1));
for (const [n, title, work] of remarks) await group(`${n}: ${title}`, async () => { console.log(`# ${n}: ${title}`); await work(); });
await browser.close();
finish();
