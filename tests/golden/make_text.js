// make_text.js: the ids that Hugging Face's own tokenizers give for text.txt, for test_text.c and test_token_kinds.c.
// Needs the npm package "tokenizers"; the tests do not. usage, in this folder:
//   qkv tokenizer --train text.txt --size 700 --min-count 1 --out text_tokenizer.json
//   NODE_PATH=.../node_modules node make_text.js >text_ids.json
//   qkv tokenizer --train text.txt --kind words --size 160 --min-count 1 --out text_words.json
//   qkv tokenizer --train text.txt --kind characters --out text_characters.json
//   NODE_PATH=.../node_modules node make_text.js kinds >text_kinds_ids.json
// With the name of another tokenizer.json it prints the ids of that one alone.
const fs = require('fs');
const path = require('path');
const { Tokenizer, lowercase } = require('tokenizers');

const whole = fs.readFileSync(path.join(__dirname, 'text.txt'), 'utf8');
const lines = whole.split('\n').slice(0, -1);

// Each variant changes the file in the way test_text.c does.
const variants = {
  plain: () => {},
  prefix_space: (json) => { json.pre_tokenizer.add_prefix_space = true; },
  whole_text: (json) => { json.pre_tokenizer.use_regex = false; },
  added: (json) => {
    const off = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: false };
    const added = (content, id) => ({ id, content, ...off });
    const n = Object.keys(json.model.vocab).length;
    json.added_tokens.push(added('小明', n), added('mat', n + 1), added('mats', n + 2), added('two inside', n + 3));
  },
};

async function ids(tokenizer, text) {
  return (await tokenizer.encode(text, null, { addSpecialTokens: false })).getIds();
}

async function golden(json) {
  const tokenizer = Tokenizer.fromString(JSON.stringify(json));
  const result = { whole: await ids(tokenizer, whole), lines: [] };
  for (const line of lines) result.lines.push(await ids(tokenizer, line));
  return result;
}

// Capital letters of many scripts; U+0130 becomes two characters, a last sigma is like any other.
const capitals = [
  'GREAT Film!', 'ÄÖÜ STRAẞE ŒUVRE ÇA Ñ Ø Å Þ Ð', 'İSTANBUL IĞDIR', 'ŁÓDŹ ČEŠTINA ŐŰ Ș Ț', 'ĐƯỜNG PHỐ VIỆT NAM',
  'ΣΊΣΥΦΟΣ ὈΔΥΣΣΕΎΣ Ὧ ᾈ ΐ',
  'КОШКА Ёж ЇЖАК ЉУБАВ Ѣ', 'ՀԱՅԵՐԵՆ', 'ᲡᲐᲥᲐᲠᲗᲕᲔᲚᲝ ႠႡ', 'ᎣᏏᏲ Ꭰ Ᏸ', 'ⰀⰁ ⲀⲂ', 'Ａｂｃ Ⅷ Ⓐ ǅ Ǆ ǆ', '𐐀𐐁 𞤀𞤁',
  'Ⱥ Ⱦ K Å Ω', '小明 猫が שלום سلام',
];

async function kinds() {
  const normalizer = lowercase();
  const result = { lower: capitals.map((text) => [text, normalizer.normalizeString(text)]) };
  for (const kind of ['words', 'characters']) {
    const json = fs.readFileSync(path.join(__dirname, `text_${kind}.json`), 'utf8');
    const tokenizer = Tokenizer.fromString(json);
    result[kind] = await golden(JSON.parse(json));
    result[kind].decoded = await tokenizer.decode(result[kind].whole, false);
    result[kind].without_specials = await tokenizer.decode(result[kind].whole, true);
  }
  process.stdout.write(`${JSON.stringify(result).replace(/\],/g, '],\n')}\n`);
}

async function main() {
  if (process.argv[2] === 'kinds') return kinds();
  const file = process.argv[2] || path.join(__dirname, 'text_tokenizer.json');
  const result = {};
  for (const [name, change] of Object.entries(variants)) {
    if (process.argv[2] && name !== 'plain') continue;
    const json = JSON.parse(fs.readFileSync(file, 'utf8'));
    change(json);
    result[name] = await golden(json);
  }
  const rows = Object.entries(result).map(([name, r]) => {
    const list = r.lines.map((l) => `    ${JSON.stringify(l)}`).join(',\n');
    return ` ${JSON.stringify(name)}: {\n  "whole": ${JSON.stringify(r.whole)},\n  "lines": [\n${list}\n  ]\n }`;
  });
  process.stdout.write(`{\n${rows.join(',\n')}\n}\n`);
}

main();
