// make_templates.js: chat templates of our own that use all that published ones do, and what npm's "@huggingface/jinja" (0.5.10)
// makes of some conversations with them: templates.json, for test_jinja.c. The tests do not need it. usage, here:
//   NODE_PATH=.../node_modules node make_templates.js >templates.json
const { Template } = require('@huggingface/jinja');

const templates = {
  chatml: `{% for message in messages %}
  {{- '<|im_start|>' + message.role + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}
{% endfor %}
{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`,
  headers: `{{- bos_token }}
{%- if messages[0].role == 'system' %}
    {%- set system = messages[0]['content'] | trim %}
    {%- set rest = messages[1:] %}
{%- else %}
    {%- set system = "" %}
    {%- set rest = messages %}
{%- endif %}
{{- "<|start|>system<|end|>\\n\\n" }}{{ system }}
{%- for m in rest %}
    {%- if (m.role == 'user') != (loop.index0 % 2 == 0) and m.role != 'tool' %}
        {{- '(' ~ loop.index ~ '/' ~ loop.length ~ ')' }}
    {%- endif %}
    {{- '<|start|>' ~ m.role | upper ~ '<|end|>' -}} {{ m.content | default('-', true) | trim }}{{ eos_token if loop.last else '' }}
{%- endfor -%}
{{- '<|start|>ASSISTANT<|end|>' if add_generation_prompt else '.' }}`,
  tools: `{%- macro kinds(property, level=0) -%}
  {%- if property.type == 'object' -%}
    { {%- for name, inner in property.properties.items() -%}
      {{ name }}: {{ kinds(inner, level=level + 1) }}{{ ', ' if not loop.last }}
    {%- endfor -%} }
  {%- elif property.enum is defined -%}
    {{ property.enum | join(' | ') }}
  {%- elif property['items'] is defined -%}
    {{ kinds(property['items'], level) }}[]
  {%- else -%}
    {{ property.type }}@{{ level }}
  {%- endif -%}
{%- endmacro -%}
{%- if tools is defined and tools %}
Tools:
{%- for tool in tools %}
{%- set f = tool.function if tool.function is defined else tool %}
- {{ f.name }}({{ kinds(f.parameters) }}): {{ f.description | replace("\\n", " ") }}
{{ tool | tojson }}
{{ f.parameters | tojson(indent=2) }}
{%- endfor %}
{%- endif %}
{%- for m in messages if m.role != 'system' %}
{%- if m.tool_calls is defined and m.tool_calls is not none %}
{%- for call in m.tool_calls %}
[{{ call.function.name }} {{ call.function.arguments | tojson }}{% if call.id %}#{{ call.id[-3:] }}{% endif %}]
{%- endfor %}
{%- else %}
{{ m.role }}: {{ m.content if m.content is string else m.content | map(attribute='text') | join('+') }}
{%- endif %}
{%- else %}
nobody spoke
{%- endfor %}`,
  namespaces: `{%- set ns = namespace(last=-1, found=false, parts=[]) -%}
{%- for m in messages[::-1] -%}
  {%- set index = messages | length - 1 - loop.index0 -%}
  {%- if not ns.found and m.role == "user" -%}
    {%- set ns.found = true -%}{%- set ns.last = index -%}
  {%- endif -%}
{%- endfor -%}
last user: {{ ns.last }}
{%- for m in messages -%}
  {%- set ns.parts = ns.parts + [m.role[0] ~ m.role[-1]] -%}
  {%- if loop.index0 > ns.last %} after{% elif loop.index0 < ns.last %} before{% else %} it{% endif -%}
  {%- if loop.previtem is defined and loop.previtem.role == m.role %}!{% endif -%}
  {%- if loop.nextitem is defined %},{% else %}.{% endif -%}
{%- endfor %}
{{ ns.parts | join('-') }}`,
  thinking: `{%- for m in messages %}
{%- set content = m.content or '' %}
{%- if m.role == 'assistant' and '</think>' in content %}
{%- set reasoning = content.split('</think>')[0].rstrip().split('<think>')[-1].lstrip() %}
{%- set content = content.split('</think>')[-1].strip() %}
<{{ reasoning | length }}:{{ reasoning }}>
{%- endif %}
{{ m.role.capitalize() }}{{ ':' ~ ' ' }}{{ content }}
{%- endfor %}
{%- if enable_thinking is defined and enable_thinking is false %} /no_think{% endif %}`,
  text: `{# a comment #}{%- set a = "It's" %}{% set b %}  block {{ a }}
{% endset -%}
{{ b | trim }}|{{ a | lower }}|{{ a.upper() }}|{{ 'the quick fox' | title }}|{{ 'word' | capitalize }}
{{ "a,b,,c".split(",") | tojson }}{{ " x  y ".split() | tojson }}{{ "a-b-c".split("-", 1) | tojson }}
{{ "aXbX".replace("X", "--") }}{{ "aXbX" | replace("X", "y", 1) }}{{ "abc".startswith("ab") }}{{ "abc".endswith("x") }}
{{ "one\\ntwo\\n\\nthree" | indent }}/{{ "one\\ntwo" | indent(2, true) }}
{{ "héllo"[1:3] }}{{ "héllo"[-1] }}{{ "abc"[::-1] }}{{ 'b' in 'abc' }}{{ 'z' not in 'abc' }}{{ "a" "b" 'c' }}
{{ "tab\\t\\"quote\\"\\\\" | tojson }}{{ 'ünïcode 日本' | tojson }}{{ 'é' | tojson(ensure_ascii=true) }}`,
  numbers: `{{ 1 + 2 * 3 }} {{ 7 // 2 }} {{ 7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ -3 + 1 }} {{ (1 + 2) * 3 }} {{ 1.5 + 1 }} {{ 3 | abs }} {{ -3 | abs }}
{{ 1 < 2 }} {{ 2 <= 2 }} {{ 3 > 4 }} {{ 3 >= 4 }} {{ 1 == 1.0 }} {{ 1 != 2 }} {{ not true }} {{ true and false or true }}
{{ '42' | int }} {{ 'x' | int(7) }} {{ '1.5' | float }} {{ 3.7 | int }} {{ 5 | string }} {{ true | string }}
{% for i in range(3) %}{{ i }}{% endfor %} {% for i in range(5, 0, -2) %}{{ i }}{% endfor %}
{{ 3 is odd }} {{ 3 is even }} {{ 3 is number }} {{ 3.0 is integer }} {{ none is none }} {{ x is undefined }} {{ true is boolean }} {{ true is true }} {{ 1 is not string }}`,
  lists: `{%- set l = [3, 1, 2, 1] %}{% set d = {'b': 1, "a": [true, none, 2.5], 'c': {'x': ''}} -%}
{{ l | sort | tojson }} {{ l | sort(reverse=true) | tojson }} {{ l | unique | list | tojson }} {{ l | length }} {{ l | first }} {{ l | last }} {{ l | reverse | list | tojson }}
{{ (l + [9])[1:-1] | tojson }} {{ l[::2] | tojson }} {{ 2 in l }} {{ 5 not in l }} {{ l }} {{ d }}
{{ d | tojson }} {{ d | tojson(indent=4) }} {{ d | tojson(separators=(',', ':')) }} {{ d | tojson(sort_keys=true) }}
{% for k, v in d | dictsort %}{{ k }}={{ v | tojson }};{% endfor %} {% for k in d %}{{ k }}{% endfor %} {% for k, v in d.items() %}{{ k }}{% endfor %}
{{ d.keys() | list | join }} {{ d.values() | list | length }} {{ d.get('b') }} {{ d.get('z', 'none') }} {{ d['a'][1] }} {{ d.a.0 }} {{ 'b' in d }} {{ d is mapping }} {{ l is iterable }} {{ l is sequence }}
{%- set people = [{'n': 'Bo', 'age': 3}, {'n': 'al', 'age': 2}, {'n': 'Cy'}] %}
{{ people | selectattr('age') | map(attribute='n') | join(', ') }} {{ people | rejectattr('n', 'equalto', 'Bo') | list | length }} {{ people | sort(attribute='n') | map(attribute='n') | join }} {{ people | selectattr('age', 'defined') | list | length }}
{%- set a, b = 1, 'two' %} {{ a }}{{ b }} {% for x in [] %}never{% else %}empty{% endfor %}`,
  loops: `{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{{ loop.first }}{{ loop.revindex }} {% endfor %}
{% for a in [1, 2] %}{% for b in [10, 20] if b > a * 9 %}{{ a * b }}@{{ loop.index }}/{{ loop.length }} {% endfor %}{% endfor %}
    {% if true %}
    indented
    {% endif %}
  {%- generation %}made{% endgeneration -%}  
{%- macro shout(text, mark='!', times=1) %}{{ text | upper }}{% for _ in range(times) %}{{ mark }}{% endfor %}{% endmacro %}
{{ shout('a') }}{{ shout('b', '?') }}{{ shout('c', times=3) }}{{ shout(text='d', mark='.') }}
{%- call shout('e') %}{% endcall %}
{%- macro wrapped(tag) %}<{{ tag }}>{{ caller() }}</{{ tag }}>{% endmacro %}{% call wrapped('b') %}inner {{ 1 + 1 }}{% endcall %}
{%- filter upper %} loud {% endfilter %}`,
  refusing: `{%- for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system here') }}{% endif %}{{ m.content }};{% endfor %}`,
};

const tool = { type: 'function', function: { name: 'weather', description: 'The weather\nof a "city"', parameters: {
  type: 'object', properties: { city: { type: 'string' }, unit: { type: 'string', enum: ['c', 'f'] },
    days: { type: 'array', items: { type: 'integer' } }, where: { type: 'object', properties: { x: { type: 'number' } } } } } } };
const call = { id: 'call00042', type: 'function', function: { name: 'weather', arguments: { city: 'Zürich', days: [1, 2] } } };
const user = (content) => ({ role: 'user', content });
const assistant = (content) => ({ role: 'assistant', content });
const always = { bos_token: '<s>', eos_token: '</s>', add_generation_prompt: true };
const conversations = [
  { messages: [user('Hello')] },
  { messages: [{ role: 'system', content: ' Be brief. ' }, user('Hi'), assistant('Hello!'), user('日本語 <b>&</b> "q"')] },
  { messages: [user('a'), user('b'), assistant('<think>\nhm\n</think>\n\nSo: c')], add_generation_prompt: false, enable_thinking: false },
  { messages: [user('Weather?'), { role: 'assistant', content: null, tool_calls: [call] }, { role: 'tool', content: '{"t": 21}' }], tools: [tool] },
  { messages: [] },
];

const given = conversations.map((c) => ({ ...always, ...c }));
const cases = [];
for (const [name, template] of Object.entries(templates))
  given.forEach((variables, conversation) => {
    if (!template.includes('messages') && conversation) return;
    let text = null; // it refuses
    try { text = new Template(template).render(variables); } catch (e) { /* and so must we */ }
    cases.push({ name, conversation, text });
  });
process.stdout.write(JSON.stringify({ templates, conversations: given, cases }, null, 1) + '\n');
