// exported_ids.js: the ids that Hugging Face's own library gives lines of standard input with a folder's tokenizer.json, what stands around a
// text included. Needs the npm package "tokenizers". usage: node exported_ids.js FOLDER <lines
const { Tokenizer } = require('tokenizers');
const fs = require('fs');
const lines = fs.readFileSync(0, 'utf8').split('\n').slice(0, -1);
const tokenizer = Tokenizer.fromFile(process.argv[2] + '/tokenizer.json');
(async () => {
  for (const line of lines) console.log((await tokenizer.encode(line)).getIds().join(' '));
})();
