// cases.mjs: what the tests of both pages have: cases that are counted, a Chromium, the rules of accessibility.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

// ---- cases ----
export const counts = { passed: 0, failed: 0 };
export function check(name, holds, found) {
    if (holds) counts.passed++;
    else counts.failed++;
    console.log(`${holds ? 'ok' : 'not ok'} - ${name}`);
    if (!holds && found !== undefined) console.log(`    found: ${typeof found === 'string' ? found : JSON.stringify(found)}`);
}
export const same = (name, found, wanted) => check(name, JSON.stringify(found) === JSON.stringify(wanted), { found, wanted });

// A group of cases; one that throws has failed, and the others go on. ONLY=WORDS in the environment runs those with the words in
// their name.
export async function group(name, work) {
    if (process.env.ONLY && !name.includes(process.env.ONLY)) return;
    try { await work(); } catch (problem) { check(`${name}: ${problem.message}`, false); }
}
export function finish() {
    console.log(`${counts.passed} passed, ${counts.failed} failed`);
    process.exit(counts.failed ? 1 : 0);
}

// ---- the browser ----
const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync'];
export function installedIn(folder) {
    const installed = createRequire(join(folder, 'package.json')), { chromium } = installed('playwright-core');
    return { axe: readFileSync(installed.resolve('axe-core/axe.min.js'), 'utf8'),
        launch: () => chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: flags }) };
}
// What the rules of accessibility have against a page: all of them, but for the contrast that level AAA wants.
export async function complaintsOf(page, axe) {
    await page.evaluate(axe);
    return page.evaluate(async () => {
        const wanted = window.axe.getRules().filter(({ tags }) => !tags.includes('wcag2aaa'));
        const rules = Object.fromEntries(wanted.map(({ ruleId }) => [ruleId, { enabled: true }]));
        const { violations } = await window.axe.run({ rules });
        return violations.map(({ id, nodes }) => `${id}: ${nodes.length}, ${nodes[0].html}`);
    });
}
export async function download(page, folder, button) {
    const [file] = await Promise.all([page.waitForEvent('download'), page.click(button)]);
    const path = join(folder, file.suggestedFilename());
    await file.saveAs(path);
    return { name: file.suggestedFilename(), bytes: readFileSync(path) };
}
