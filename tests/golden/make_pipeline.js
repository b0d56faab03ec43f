// make_pipeline.js: small tokenizers of every kind that tokenizer.json has, and what Hugging Face's own tokenizers make of some
// lines with them: pipeline.json, for test_pipeline.c. Needs the npm package "tokenizers"; the tests do not. usage, here:
//   NODE_PATH=.../node_modules node make_pipeline.js >pipeline.json
const fs = require('fs');
const path = require('path');
const { Tokenizer } = require('tokenizers');

const read = (name) => fs.readFileSync(path.join(__dirname, name));
const lines = read('text.txt')
  .toString()
  .split('\n')
  .slice(0, -1)
  .map((l) => [...l].slice(0, 48).join(''))
  .concat([
    '',
    ' ',
    'a',
    'A  cat',
    '\u00a0cat\u3000mat\u2009',
    'ÀÉÎõü Straße ŁÓDŹ İSTANBUL',
    'e\u0301 a\u0323\u0302 o\u0302\u0323 \u1ed9',
    '\uac00\uac01 \u1100\u1161\u11a8 각',
    'ﬁne ﬀ ½ ² Ⅷ ① ㍿ ㌔ Å ｆｕｌｌ ＡＢＣ１２３',
    '我爱你，世界！ 𠀀',
    'ガギグ が',
    '3.14 + 2,718 = 5,858 1234567 ٣٤٥ १२३',
    "don't DON'T it's IT'S we'LL 'ſ",
    'The <s>cat</s> <pad> <unk>',
    'the[MASK] cat [MASK]  sat',
    ' <mask>  <mask>cat',
    'hello world',
    'Hello World! HELLO',
    'xtag tag tagx tag',
    'LowerCase lowercase lowercasex',
    '😀 👩\u200d👩\u200d👧 ❤\ufe0f',
    'a\u200bb\u00adc\ufeffd',
    'tab\there\r',
    '▁cat ▁ ▁▁',
    '<0x41> <0xE2>',
    'zzz qqq @@@ ###',
    'שָׁלוֹם عَلَيْكُم',
    'नमस्ते สวัสดี',
    'one-two_three four.five',
    '   lead and trail   ',
    'cat,mat;sat',
    '\u180e\u2028\u0085x',
    'a.b.c...d',
    '1a2b33c',
    // what came after Unicode 8, 9 and 14: letters, numbers, marks, signs and punctuation, and what decomposes
    'a\u{31350}b\u{10D50}c \u{1E4F0}\u{10D40}5 \u1C89\uA7CB',
    'x\u{1E4EC}y\u08D4z\u07FD \u{1CC00}! \u{10EAD}a\u{2E50}\u{11BE1}b\u166D',
    '\u{1F16C}\u32FF \u{11935}\u{11930} \u1CF2\u1734a \u200B\u2581\uFFFD|cat||mat|',
  ]);

// ---- vocabularies, learned from the lines ----

const letters = [...new Set([...lines.slice(0, 27).join('')].filter((c) => c !== ' '))].sort();

// Byte pairs by the definition.
function learn(words, n) {
  const merges = [];
  let pieces = words.map((w) => [...w]);
  while (merges.length < n) {
    const counts = new Map();
    for (const p of pieces)
      for (let i = 0; i + 1 < p.length; i++) {
        const key = `${p[i]} ${p[i + 1]}`;
        counts.set(key, (counts.get(key) || 0) + 1);
      }
    const best = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))[0];
    if (!best || best[1] < 2) break;
    const [left, right] = best[0].split(' ');
    merges.push(best[0]);
    pieces = pieces.map((p) => {
      const out = [];
      for (let i = 0; i < p.length; i++) {
        const both = p[i] === left && p[i + 1] === right;
        out.push(both ? left + right : p[i]);
        i += both;
      }
      return out;
    });
  }
  return merges;
}

// The same of words that are cut into letters with signs; what is merged has the right one's sign no longer.
function learnSigned(cut, sign) {
  const merges = [];
  const tokens = new Set(['<unk>', ...letters, ...letters.flatMap((c) => cut(`x${c}`).slice(1))]);
  let pieces = words.map((w) => cut(w.toLowerCase()));
  pieces.flat().forEach((p) => tokens.add(p));
  while (merges.length < 80) {
    const counts = new Map();
    for (const p of pieces)
      for (let i = 0; i + 1 < p.length; i++) counts.set(`${p[i]} ${p[i + 1]}`, (counts.get(`${p[i]} ${p[i + 1]}`) || 0) + 1);
    const best = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))[0];
    if (!best || best[1] < 2) break;
    const [left, right] = best[0].split(' ');
    const made = left + right.slice(sign.length);
    merges.push(best[0]);
    tokens.add(made);
    pieces = pieces.map((p) => {
      const out = [];
      for (let i = 0; i < p.length; i++) {
        const both = p[i] === left && p[i + 1] === right;
        out.push(both ? made : p[i]);
        i += both;
      }
      return out;
    });
  }
  return { merges, vocab: numbered([...tokens]) };
}

const numbered = (tokens) => Object.fromEntries([...new Set(tokens)].map((t, i) => [t, i]));
const words = lines
  .slice(0, 27)
  .join(' ')
  .split(' ')
  .filter((w) => w);
const common = learn(
  words.map((w) => w.toLowerCase()),
  80,
).map((m) => m.replace(' ', ''));
const signed = learn(
  words.map((w) => `▁${w}`),
  120,
);
const bytes = [...Array(256).keys()].map((b) => `<0x${b.toString(16).toUpperCase().padStart(2, '0')}>`);

// Vocabularies and merges are written once; files name them.
const shared = {};
const share = (name, value) => {
  shared[name] = value;
  return value;
};

const added = (id, content, more) => ({
  id,
  content,
  single_word: false,
  lstrip: false,
  rstrip: false,
  normalized: false,
  special: true,
  ...more,
});

const wordPieces = share(
  'pieces',
  numbered([
    '[PAD]',
    '[UNK]',
    '[CLS]',
    '[SEP]',
    '[MASK]',
    ...letters,
    ...letters.map((c) => c.toLowerCase()),
    ...letters.map((c) => `##${c.toLowerCase()}`),
    ...common,
    ...common.map((c) => `##${c}`),
    'straße',
    'strasse',
  ]),
);
const bertAdded = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'].map((t) => added(wordPieces[t], t));
const unigram = share(
  'unigram',
  ['<s>', '<pad>', '</s>', '<unk>', ...new Set(['▁', ...letters, ...signed.map((m) => m.replace(' ', ''))])].map((t, i) => [
    t,
    i < 4 ? 0 : -(1 + ((i * 37) % 90)) / 7 - 3 / [...t].length,
  ]),
);
const unigramAdded = unigram.slice(0, 4).map((t, id) => added(id, t[0]));
const pairs = share(
  'pairs',
  numbered(['<unk>', '<s>', '</s>', ...bytes, '▁', ...letters, ...signed.map((m) => m.replace(' ', ''))]),
);
const pairsAdded = ['<unk>', '<s>', '</s>'].map((t) => added(pairs[t], t));
const wordLevel = share(
  'words',
  numbered(['<unk>', ...words.map((w) => w.toLowerCase()), ...words, ...letters, 'fine', 'abc', '123', '.', ',', 'full']),
);
share('merges', signed);

// ---- the pieces of a file ----

const byteLevel = (more) => ({ type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: true, ...more });
const llama3 =
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+" +
  '|\\s+(?!\\S)|\\s+';
const split = (pattern, behavior, invert = false) => ({ type: 'Split', pattern, behavior, invert });
const sequence = (key, ...steps) => ({ type: 'Sequence', [key]: steps });
const bertNormalizer = (more) => ({
  type: 'BertNormalizer',
  clean_text: true,
  handle_chinese_chars: true,
  strip_accents: null,
  lowercase: true,
  ...more,
});
const special = (id, type_id = 0) => ({ SpecialToken: { id, type_id } });
const text = (id, type_id = 0) => ({ Sequence: { id, type_id } });
const template = (single, pair, tokens) => ({
  type: 'TemplateProcessing',
  single,
  pair,
  special_tokens: Object.fromEntries(tokens.map(([t, id]) => [t, { id: t, ids: [id], tokens: [t] }])),
});
const bertTemplate = template(
  [special('[CLS]'), text('A'), special('[SEP]')],
  [special('[CLS]'), text('A'), special('[SEP]'), text('B', 1), special('[SEP]', 1)],
  [
    ['[CLS]', wordPieces['[CLS]']],
    ['[SEP]', wordPieces['[SEP]']],
  ],
);
const wordPiece = {
  type: 'WordPiece',
  unk_token: '[UNK]',
  continuing_subword_prefix: '##',
  max_input_chars_per_word: 20,
  vocab: wordPieces,
};
const metaspace = (more) => ({ type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true, ...more });
const ends = template([text('A'), special('</s>')], [text('A'), special('</s>'), text('B'), special('</s>')], [['</s>', 2]]);
const bpe = (more) => ({
  type: 'BPE',
  dropout: null,
  unk_token: '<unk>',
  continuing_subword_prefix: null,
  end_of_word_suffix: null,
  fuse_unk: true,
  byte_fallback: true,
  vocab: pairs,
  merges: signed,
  ...more,
});
const file = (model, parts) => ({
  version: '1.0',
  truncation: null,
  padding: null,
  added_tokens: [],
  normalizer: null,
  pre_tokenizer: null,
  post_processor: null,
  decoder: null,
  ...parts,
  model,
});
const gpt2 = JSON.parse(read('text_tokenizer.json'));
const unigramBytes = share('unigram_bytes', [...unigram, ...bytes.map((b) => [b, -100])]);
const words1 = { type: 'WordLevel', unk_token: '<unk>', vocab: wordLevel };

// The map of characters that SentencePiece compiled for spm_unigram.model.
function charsmap() {
  const model = read('spm_unigram.model');
  let at = 0;
  const varint = () => {
    let v = 0;
    for (let s = 1; ; s *= 128) {
      const b = model[at++];
      v += (b & 127) * s;
      if (b < 128) return v;
    }
  };
  const field = (wanted, end) => {
    while (at < end) {
      const key = varint();
      if (key % 8 === 0) {
        varint();
        continue;
      }
      if (key % 8 !== 2) {
        at += key % 8 === 5 ? 4 : 8;
        continue;
      }
      const n = varint();
      if (Math.floor(key / 8) === wanted) return at + n;
      at += n;
    }
    return 0;
  };
  const end = field(2, field(3, model.length));
  return model.subarray(at, end).toString('base64');
}

const files = {
  llama3: file(
    { ...gpt2.model, ignore_merges: true },
    {
      added_tokens: gpt2.added_tokens,
      pre_tokenizer: sequence('pretokenizers', split({ Regex: llama3 }, 'Isolated'), byteLevel({ use_regex: false })),
      post_processor: sequence(
        'processors',
        byteLevel(),
        template([special('<s>'), text('A')], [special('<s>'), text('A'), special('<s>', 1), text('B', 1)], [['<s>', 1]]),
      ),
      decoder: byteLevel(),
    },
  ),
  roberta: file(gpt2.model, {
    added_tokens: [...gpt2.added_tokens, added(700, '<mask>', { lstrip: true })],
    pre_tokenizer: byteLevel({ add_prefix_space: true }),
    post_processor: {
      type: 'RobertaProcessing',
      sep: ['</s>', 2],
      cls: ['<s>', 1],
      trim_offsets: false,
      add_prefix_space: true,
    },
    decoder: byteLevel(),
  }),
  bert: file(wordPiece, {
    added_tokens: bertAdded,
    normalizer: bertNormalizer(),
    pre_tokenizer: { type: 'BertPreTokenizer' },
    post_processor: bertTemplate,
    decoder: { type: 'WordPiece', prefix: '##', cleanup: true },
  }),
  bert_cased: file(wordPiece, {
    added_tokens: bertAdded,
    normalizer: bertNormalizer({ lowercase: false, handle_chinese_chars: false }),
    pre_tokenizer: { type: 'BertPreTokenizer' },
    post_processor: { type: 'BertProcessing', sep: ['[SEP]', wordPieces['[SEP]']], cls: ['[CLS]', wordPieces['[CLS]']] },
    decoder: { type: 'WordPiece', prefix: '##', cleanup: false },
  }),
  bert_accents: file(wordPiece, {
    added_tokens: bertAdded,
    normalizer: bertNormalizer({ lowercase: false, strip_accents: true, clean_text: false }),
    pre_tokenizer: { type: 'BertPreTokenizer' },
  }),
  t5: file(
    { type: 'Unigram', unk_id: 3, vocab: unigram, byte_fallback: false },
    {
      added_tokens: unigramAdded,
      normalizer: sequence(
        'normalizers',
        { type: 'Precompiled', precompiled_charsmap: charsmap() },
        { type: 'Replace', pattern: { Regex: ' {2,}' }, content: ' ' },
      ),
      pre_tokenizer: metaspace(),
      post_processor: ends,
      decoder: metaspace(),
    },
  ),
  unigram_old: file(
    { type: 'Unigram', unk_id: 3, vocab: unigram },
    {
      added_tokens: unigramAdded,
      normalizer: { type: 'NFKC' },
      pre_tokenizer: sequence(
        'pretokenizers',
        { type: 'WhitespaceSplit' },
        { type: 'Metaspace', replacement: '▁', add_prefix_space: true },
      ),
      decoder: { type: 'Metaspace', replacement: '▁', add_prefix_space: true },
    },
  ),
  unigram_bytes: file(
    { type: 'Unigram', unk_id: 3, vocab: unigramBytes, byte_fallback: true },
    {
      added_tokens: unigramAdded,
      pre_tokenizer: metaspace({ prepend_scheme: 'first', split: false }),
      decoder: sequence('decoders', { type: 'ByteFallback' }, metaspace({ prepend_scheme: 'first' })),
    },
  ),
  llama2: file(bpe(), {
    added_tokens: pairsAdded,
    normalizer: sequence(
      'normalizers',
      { type: 'Prepend', prepend: '▁' },
      { type: 'Replace', pattern: { String: ' ' }, content: '▁' },
    ),
    post_processor: template(
      [special('<s>'), text('A')],
      [special('<s>'), text('A'), special('<s>', 1), text('B', 1)],
      [['<s>', pairs['<s>']]],
    ),
    decoder: sequence(
      'decoders',
      { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
      { type: 'ByteFallback' },
      { type: 'Fuse' },
      { type: 'Strip', content: ' ', start: 1, stop: 0 },
    ),
  }),
  bpe_unknown: file(bpe({ byte_fallback: false, fuse_unk: false }), {
    added_tokens: pairsAdded,
    pre_tokenizer: metaspace({ prepend_scheme: 'never' }),
    decoder: metaspace({ prepend_scheme: 'never' }),
  }),
  bpe_fused: file(bpe({ byte_fallback: false }), { added_tokens: pairsAdded, pre_tokenizer: metaspace() }),
  bpe_dropped: file(bpe({ byte_fallback: false, unk_token: null }), { added_tokens: pairsAdded, pre_tokenizer: metaspace() }),
  words: file(words1, {
    normalizer: sequence(
      'normalizers',
      { type: 'NFKC' },
      { type: 'Lowercase' },
      { type: 'Strip', strip_left: true, strip_right: false },
    ),
    pre_tokenizer: { type: 'Whitespace' },
  }),
  words_nfkd: file(words1, {
    normalizer: sequence('normalizers', { type: 'NFKD' }, { type: 'StripAccents' }, { type: 'Lowercase' }),
    pre_tokenizer: sequence(
      'pretokenizers',
      { type: 'WhitespaceSplit' },
      { type: 'Punctuation', behavior: 'MergedWithPrevious' },
      { type: 'Digits', individual_digits: true },
    ),
  }),
  words_nfd: file(words1, {
    normalizer: { type: 'NFD' },
    pre_tokenizer: sequence(
      'pretokenizers',
      { type: 'Digits', individual_digits: false },
      { type: 'Punctuation', behavior: 'Contiguous' },
      { type: 'WhitespaceSplit' },
    ),
  }),
  words_nfc: file(words1, { normalizer: { type: 'NFC' }, pre_tokenizer: { type: 'WhitespaceSplit' } }),
  added: file(bpe({ byte_fallback: false }), {
    added_tokens: [
      ...pairsAdded,
      ...[
        ['tag', { single_word: true }],
        ['[MASK]', { lstrip: true }],
        ['cat', { rstrip: true }],
        ['LowerCase', { normalized: true }],
        ['hello world', { normalized: true, lstrip: true, rstrip: true }],
        ['<mask>', { lstrip: true, special: true }],
        ['mat', {}],
        ['mats', {}],
      ].map(([t, more], i) => added(Object.keys(pairs).length + i, t, { special: false, ...more })),
    ],
    normalizer: { type: 'Lowercase' },
    pre_tokenizer: metaspace(),
  }),
};
files.expressions = file(words1, {
  pre_tokenizer: sequence(
    'pretokenizers',
    split({ Regex: '\\w+|[^\\w\\s]+' }, 'Isolated'),
    split({ Regex: '^\\S|\\W$|[\\S\\n]{9}|\\bthe\\b|\\d{2}' }, 'Isolated'),
  ),
});

// Files as older versions wrote them: no type, and keys that mean nothing where they stand.
const untyped = ({ type, ...model }) => ({ ...model, leftover: true });
files.untyped_pieces = file(untyped(wordPiece), {
  added_tokens: bertAdded.map((t) => ({ ...t, leftover: 1 })),
  normalizer: { ...bertNormalizer(), leftover: 1 },
  pre_tokenizer: { type: 'BertPreTokenizer', add_prefix_space: true },
  post_processor: { ...bertTemplate, add_prefix_space: true },
  decoder: { type: 'WordPiece', prefix: '##', cleanup: true, leftover: 1 },
});
files.untyped_unigram = file(untyped({ type: 'Unigram', unk_id: 3, vocab: unigram }), {
  added_tokens: unigramAdded,
  pre_tokenizer: metaspace({ str_rep: '▁' }),
  decoder: metaspace({ str_rep: '▁' }),
});
files.untyped_words = file(untyped(words1), { pre_tokenizer: { type: 'Whitespace' } });
files.untyped_pairs = file(untyped(bpe()), { added_tokens: pairsAdded, pre_tokenizer: metaspace() });

// Merges of words whose last letter has a sign, and of words whose other letters have one.
const suffixed = learnSigned((w) => [...w].map((c, i, all) => (i + 1 < all.length ? c : `${c}</w>`)), '');
const prefixed = learnSigned((w) => [...w].map((c, i) => (i ? `@@${c}` : c)), '@@');
for (const [name, { merges, vocab }] of Object.entries({ suffixed, prefixed })) {
  share(`${name}_merges`, merges);
  share(name, vocab);
  files[name] = file(
    bpe({
      vocab,
      merges,
      byte_fallback: false,
      fuse_unk: name === 'prefixed',
      ...(name === 'suffixed' ? { end_of_word_suffix: '</w>' } : { continuing_subword_prefix: '@@' }),
    }),
    {
      normalizer: { type: 'Lowercase' },
      pre_tokenizer: { type: 'WhitespaceSplit' },
      ...(name === 'suffixed' && { decoder: { type: 'BPEDecoder', suffix: '</w>' } }),
    },
  );
}

// Ids with gaps; a new token gets the number of tokens for its id.
const gappy = share('gaps', Object.fromEntries(Object.entries(wordLevel).map(([t, i]) => [t, i + 3 * Math.floor(i / 50)])));
files.gaps = file(
  { ...words1, vocab: gappy },
  { added_tokens: [added(gappy['the'], 'the', { special: false })], pre_tokenizer: { type: 'Whitespace' } },
);

// Steps that few files have.
files.nmt = file(words1, { normalizer: { type: 'Nmt' }, pre_tokenizer: { type: 'CharDelimiterSplit', delimiter: ' ' } });
files.fixed = file(words1, { pre_tokenizer: { type: 'FixedLength', length: 3 } });
files.scripts = file(words1, { pre_tokenizer: { type: 'UnicodeScripts' } });
files.bytes_first = file(gpt2.model, { normalizer: { type: 'ByteLevel' }, decoder: byteLevel() });
files.speech = file(words1, {
  pre_tokenizer: split({ Regex: '.' }, 'Isolated'),
  decoder: { type: 'CTC', pad_token: 'a', word_delimiter_token: 't', cleanup: true },
});
files.categories = file(words1, {
  pre_tokenizer: split({ Regex: '\\p{Lu}+|\\P{L}\\p{M}|[^\\p{P}\\p{S}\\p{Nd}]|\\p{So}+|\\d' }, 'Isolated'),
  decoder: { type: 'Fuse' },
});

for (const behavior of ['Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous'])
  for (const invert of [false, true])
    files[`split_${behavior}_${invert}`] = file(words1, {
      pre_tokenizer: sequence('pretokenizers', split({ Regex: '\\s|\\.' }, behavior, invert), split({ String: 'a' }, behavior)),
    });

// The file with names in place of what is shared, or of what text_tokenizer.json has.
function named(json) {
  const name = (value) => {
    if (value === gpt2.model.vocab || value === gpt2.model.merges) return 'text_tokenizer';
    return Object.keys(shared).find((key) => shared[key] === value) || value;
  };
  return {
    ...json,
    model: { ...json.model, vocab: name(json.model.vocab), ...(json.model.merges && { merges: name(json.model.merges) }) },
  };
}

// Spans are compared where none is a part of a character, or of several characters that became one: what is in the place of
// others comes from all of them here.
const withSpans = ['bert', 'bert_cased', 'bpe_unknown', 'words_nfkd', 'words_nfd', 'added'];

async function main() {
  const out = [];
  for (const [name, json] of Object.entries(files)) {
    const tokenizer = Tokenizer.fromString(JSON.stringify(json));
    const rows = [];
    for (const line of lines) {
      const plain = await tokenizer.encode(line, null, { addSpecialTokens: false });
      const framed = await tokenizer.encode(line, null, { addSpecialTokens: true });
      const around = framed.getIds().length > plain.getIds().length ? framed.getIds() : null;
      const at = [];
      for (const [b, e] of plain.getOffsets()) at.push(...[b, e].map((i) => Buffer.byteLength([...line].slice(0, i).join(''))));
      const decoded = json.decoder || name === 'words' ? await tokenizer.decode(plain.getIds(), false) : null;
      rows.push([plain.getIds(), decoded, withSpans.includes(name) ? at : null, around]);
    }
    const pair = await tokenizer.encode(lines[0], lines[1], { addSpecialTokens: true });
    out.push(
      ` {"name": ${JSON.stringify(name)}, "pair": ${JSON.stringify([pair.getIds(), pair.getTypeIds()])},\n  "rows": [\n   ${rows
        .map((r) => JSON.stringify(r))
        .join(',\n   ')}],\n  "tokenizer": ${JSON.stringify(named(json))}}`,
    );
  }
  process.stdout.write(
    `{"lines": ${JSON.stringify(lines)},\n"shared": ${JSON.stringify(shared)},\n"cases": [\n${out.join(',\n')}\n]}\n`,
  );
}

main();
