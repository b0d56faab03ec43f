// render_templates.js: what npm's "@huggingface/jinja" writes for every template and every conversation of a folder: see
// ../templates.sh. What it refuses gets no file. usage:
//   NODE_PATH=.../node_modules TZ=UTC node render_templates.js DIR
const fs = require('fs');
const path = require('path');
const { Template } = require('@huggingface/jinja');

const folder = process.argv[2];
const files = fs.readdirSync(folder);
const conversations = files.filter((f) => /^\d+\.json$/.test(f)).map((f) => path.parse(f).name);
const RealDate = Date;
globalThis.Date = class extends RealDate { constructor(...a) { super(...(a.length ? a : [1720000000000])); } };
for (const file of files.filter((f) => f.endsWith('.jinja'))) {
  const name = path.parse(file).name;
  const source = fs.readFileSync(path.join(folder, file), 'utf8');
  for (const number of conversations) {
    const variables = JSON.parse(fs.readFileSync(path.join(folder, `${number}.json`)));
    try { fs.writeFileSync(path.join(folder, `${name}.${number}.txt`), new Template(source).render(variables)); } catch (e) { /* refused */ }
  }
}
