// unicode_tables.mjs: writes src/token/unicode.def: what the libraries that qkv is built on do not know of Unicode yet, and what
// the tokenizers that it is compared with do not know. Needs the npm packages @unicode/unicode-N of the versions below; neither
// the build nor the tests do. usage, where they are installed:
//   node .../tools/unicode_tables.mjs >.../src/token/unicode.def
//   node .../tools/unicode_tables.mjs scripts >.../src/token/scripts.def
import { readdirSync } from 'fs';
import { createRequire } from 'module';
import { pathToFileURL } from 'url';
const require = createRequire(pathToFileURL(process.cwd() + '/'));

const names = {
  LU: 'Uppercase_Letter', LL: 'Lowercase_Letter', LT: 'Titlecase_Letter', LM: 'Modifier_Letter', LO: 'Other_Letter',
  MN: 'Nonspacing_Mark', MC: 'Spacing_Mark', ME: 'Enclosing_Mark', ND: 'Decimal_Number', NL: 'Letter_Number',
  NO: 'Other_Number', PC: 'Connector_Punctuation', PD: 'Dash_Punctuation', PS: 'Open_Punctuation', PE: 'Close_Punctuation',
  PI: 'Initial_Punctuation', PF: 'Final_Punctuation', PO: 'Other_Punctuation', SM: 'Math_Symbol', SC: 'Currency_Symbol',
  SK: 'Modifier_Symbol', SO: 'Other_Symbol', ZS: 'Space_Separator', ZL: 'Line_Separator', ZP: 'Paragraph_Separator',
  CC: 'Control', CF: 'Format', CO: 'Private_Use', CS: 'Surrogate',
};

async function load(version, path) {
  const folder = `@unicode/unicode-${version}.0.0/${path}`;
  for (const file of [`${folder}.mjs`]) {
    try {
      const module = await import(pathToFileURL(require.resolve('./node_modules/' + file)));
      return module.default;
    } catch (e) {
      if (e.code !== 'MODULE_NOT_FOUND') throw e;
    }
  }
  return null; // no code point of that version has it
}

async function categories(version) {
  const all = new Map();
  for (const [name, long] of Object.entries(names))
    for (const c of (await load(version, `General_Category/${long}/code-points`)) || []) all.set(c, name);
  return all;
}

const hex = (c) => '0x' + c.toString(16).toUpperCase().padStart(4, '0');

// Ranges of code points with one value; may_join(c) says whether a code point between two of them may be in the range too.
function ranges(value, may_join) {
  const made = [];
  for (let c = 0; c < 0x110000; c++) {
    const v = value(c), last = made[made.length - 1];
    if (v === undefined) continue;
    let gap = last ? last[1] + 1 : 0;
    while (last && last[2] === v && gap < c && may_join(gap)) gap++;
    if (last && last[2] === v && gap === c) last[1] = c;
    else made.push([c, c, v]);
  }
  return made;
}

// Where runs of one script begin, of those that Unicode 9 had; what it had not assigned lies in any of them. One number each: the code
// point times 256, and the script. Kana counts as Han, as in SentencePiece.
async function put_scripts() {
  const of = new Map(), numbers = new Map([['Han', 1]]), starts = [];
  for (const name of readdirSync('node_modules/@unicode/unicode-9.0.0/Script').sort()) {
    if (name === 'Unknown') continue; // private use, too
    const known = ['Hiragana', 'Katakana'].includes(name) ? 'Han' : name;
    if (!numbers.has(known)) numbers.set(known, numbers.size + 1);
    for (const c of await load(9, `Script/${name}/code-points`)) of.set(c, numbers.get(known));
  }
  of.set(0x30fc, 1); // the mark of long vowels
  let last = 0;
  for (let c = 0; c < 0x110000; c++)
    if (of.has(c) && of.get(c) !== last) starts.push('0x' + (c * 256 + (last = of.get(c))).toString(16).toUpperCase());
  console.log('/* scripts.def: made by tools/unicode_tables.mjs from the Unicode Character Database. Where runs of one script begin: the code');
  console.log(' * point times 256, and the number of the script, of which Han and kana are 1. */');
  for (let i = 0; i < starts.length; i += 12) console.log(starts.slice(i, i + 12).join(', ') + ',');
}

if (process.argv[2] === 'scripts') {
  await put_scripts();
  process.exit(0);
}

const [v8, v9, v14, v16] = [await categories(8), await categories(9), await categories(14), await categories(16)];
const put = (word, list) => list.forEach(([a, b, v]) => console.log(`${word}(${hex(a)}, ${hex(b)}${v === true ? '' : ', ' + v})`));

console.log('/* unicode.def: made by tools/unicode_tables.mjs from the Unicode Character Database.');
console.log(' * NEWER(first, last, category): assigned after Unicode 14, up to 16; YOUNG(first, last, version): assigned in this version');
console.log(" * after 8, or 10: in one after 9; LOWER(code, lower): the lower case of one that came after 14. */");
put('NEWER', ranges((c) => (v14.has(c) ? undefined : v16.get(c)), () => false));
put('YOUNG', ranges((c) => (!v16.has(c) || v8.has(c) ? undefined : v9.has(c) ? 9 : 10), (c) => !v16.has(c)));
const lower16 = await load(16, 'Simple_Case_Mapping/Lowercase/code-points');
const lower14 = await load(14, 'Simple_Case_Mapping/Lowercase/code-points');
for (const [c, to] of lower16) if (!lower14.has(c)) console.log(`LOWER(${hex(c)}, ${hex(to)})`);
