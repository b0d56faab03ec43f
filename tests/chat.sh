#!/bin/sh
# chat.sh: qkv chat and qkv generate --chat, as a user types them. usage: chat.sh QKV MAKE_MODEL TYPE_AT EXAMPLE
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") make_model=$(realpath "$2") type_at=$(realpath "$3") example=$(realpath "$4")
cd "$folder" || exit 1
unset QKV_ISA QKV_THREADS OMP_NUM_THREADS

printf 'the cat sat on the mat\nI love you\nyou love the cat\n我爱你\n the dog and the cat\n' >corpus
check "a model" "$make_model" decoder decoder corpus
check "one that reads little" "$make_model" little learned-decoder corpus
names="chat: "
: >in

# ---- templates ----
check "no template" run 5 'has no chat template' chat -m decoder
contains "says what to do" "$(cat err)" "--template FILE"
check "a model of ids" "$make_model" ids ids-decoder corpus
check "has no text" run 2 "ids holds no tokenizer: expected tokenizer.json" chat -m ids
cat >simple.jinja <<'END'
{% for m in messages %}<s>{{ m.role }}: {{ m.content }}</s>{% endfor %}{% if add_generation_prompt %}<s>assistant: {% endif %}
END
cp simple.jinja decoder/chat_template.jinja
contains "examples/12_chat.c talks twice" "$(printf 'the cat\nthe dog\n' | "$example" decoder 2>&1 | grep -c 'tokens, .* read')" 2
printf '{%% for m in messages %%}\n{{ m.content' >bad.jinja
check "a damaged one" run 4 'line 2, column 13: a tag has no end' chat -m decoder --template bad.jinja
echo '{% include "x" %}' >file.jinja
check "one that asks for a file" run 5 'asks for a file' chat -m decoder --template file.jinja
echo '{% for a in range(9999) %}{% for b in range(99) %}{% for c in range(99) %}{{ c }}{% endfor %}{% endfor %}{% endfor %}' >endless.jinja
check "one without an end" run 6 'chat template: ' generate -m decoder --chat --template endless.jinja hi
check "a context that the model cannot read" run 6 'the model reads 12' chat -m little --template simple.jinja --context 13

# ---- lines from a pipe ----
printf 'the cat\nI love you\n' >in
check "two turns" run 0 "" chat -m decoder -n 7
check "two answers" [ "$(wc -l <out)" -ge 2 ]
cp out plain
"$qkv" chat -m decoder -n 7 --tokens <in >out 2>told
check "--tokens changes no answer" cmp out plain
set -- $(sed -n 's/^(\([0-9]*\) tokens before the answer, \([0-9]*\) of them read now; \([0-9]*\) said)$/\1 \2 \3/p' told)
same "the first turn reads all" "$1" "$2"
# what was read: the first prompt, and its answer but for the last token
same "the second what is new" "$5" "$(($4 - $1 - $3 + 1))"
check "which is less" [ "$5" -lt "$4" ]
for threads in 1 4; do
    check "with -t $threads" run 0 "" chat -m decoder -n 7 -t $threads
    check "the same bytes" cmp out plain
done
printf '/system be brief\nthe cat\n/save talk.json\n/reset\n/save short.json\n/nonsense\n//slash\n/save\n' >in
"$qkv" chat -m decoder -n 3 <in >out 2>told
contains "/save" "$(cat talk.json)" '[{"role": "system", "content": "be brief"},' '{"role": "user", "content": "the cat"}' '"assistant"'
same "/reset keeps the system's" '[{"role": "system", "content": "be brief"}]' "$(cat short.json)"
contains "what is told" "$(cat told)" "3 messages are in talk.json" "/save needs the name of a file" \
    '"/nonsense" is no command: /system, /reset, /save, /load, /exit, /help'
same "// is a message" 2 "$(wc -l <out)"
printf '/load talk.json\n/save again.json\n/load none.json\n/load corpus\n/load\n/help\n' >in
check "/load, and commands that fail" run 3 "(3 messages from talk.json)" chat -m decoder
contains "what is told" "$(cat err)" "none.json" "corpus: no conversation in JSON" "/load needs the name of a file" "/load FILE" "//TEXT"
check "/load takes the whole conversation" cmp talk.json again.json
echo '/restet' >in
check "an unknown command in a pipe" run 2 '"/restet" is no command' chat -m decoder
echo 'the cat' >in
check "--system" run 0 "" chat -m decoder -n 3 --system "be brief"

# ---- long talks ----
for i in 1 2 3 4 5 6 7 8 9 10 11; do echo "turn $i: the cat and the dog"; done >in
"$qkv" chat -m decoder -n 400 --context 5000 --tokens <in >out 2>told
set -- $(sed -n 's/^(\([0-9]*\) tokens before the answer, \([0-9]*\) of them.*/\1 \2/p' told | tail -n 1)
check "4,000 tokens of history" [ "$1" -gt 4000 ]
check "of which few are read" [ "$2" -lt 100 ]
"$qkv" chat -m decoder -n 60 --context 300 <in >out 2>told
same "a full context is told once" "(the context of 300 tokens is full: the oldest messages are dropped from now on)" "$(cat told)"
echo "$(head -c 4000 /dev/zero | tr '\0' x)" >in
check "a message that does not fit" run 6 "the context has 300" chat -m decoder --context 300
printf "\\377 bad\\nthe cat\\n" >in
check "a message that is not UTF-8: the next is answered" run 4 "not UTF-8 at byte 1" chat -m decoder -n 3
check "and said" [ -s out ]

# ---- at a terminal ----
long="--max-tokens 200000 --context 250000"
# shellcheck disable=SC2086
{
"$type_at" 60 "+> " "the cat" "+$(head -c 3 plain)" "^C" "+(stopped)" "+> " "^C" "+> " "/save stopped.json" "+messages are in" "+> " "/exit" -- "$qkv" chat -m decoder $long --stop "no such" >seen
}
same "Ctrl-C stops an answer, and the talk goes on" 0 $?
contains "what was said stays said" "$(cat stopped.json)" '"user", "content": "the cat"' "\"assistant\", \"content\": \"$(head -c 3 plain)"
"$type_at" 60 "+> " "the cat" "+said)" "+> " "I love you" "+said)" "+> " "/save typed.json" "+messages are in" "+> " "/exit" -- "$qkv" chat -m decoder -n 7 --tokens >seen
same "a talk at a terminal" 0 $?
set -- $(tr -d '\r' <seen | sed -n 's/.*(\([0-9]*\) tokens before the answer, \([0-9]*\) of them read now; \([0-9]*\) said)$/\1 \2 \3/p')
same "reads what is new" "$5" "$(($4 - $1 - $3 + 1))"
if ldd "$qkv" 2>/dev/null | grep -q libedit; then
    up=$(printf '\020') back=$(printf '\010')
    TERM=xterm "$type_at" 60 "+> " "the dox${back}g" "+said)" "+> " "half" "+said)" "+> " "$up$up" "+said)" "+> " "/save edited.json" "+messages are in" "+> " \
        "/exit" -- "$qkv" chat -m decoder -n 7 --tokens >seen
    same "a line that is edited, and one of the history" 0 $?
    same "are messages" "the dog half the dog" "$(tr -d '\n"' <edited.json | grep -o 'role: user, content: [a-z ]*' | sed 's/.*: //' | tr '\n' ' ' | sed 's/ $//')"
else skipped "line editing: it was built without libedit"; fi
contains "and says what a pipe does" "$(tr -d '\n\\"' <typed.json)" "role: user, content: the cat" "role: user, content: I love you"

# ---- generate ----
names="generate: "
printf 'the cat\n[{"role": "user", "content": "the cat"}]\n{"messages": [{"role": "user", "content": "the cat"}]}\n' >in
check "--chat" run 0 "" generate -m decoder --chat -n 7
same "a line is a message or a conversation" 1 "$(uniq out | wc -l)"
same "three of them" 3 "$(wc -l <out)"
printf '[{"role": "user"\nthe cat\n' >in
check "a damaged line" run 4 "line 1: chat: the conversation: line 1, byte 16: not JSON" generate -m decoder --chat -n 7
same "stands empty, and the others go on" "$(printf '\n1')" "$(head -n 1 out; tail -n 1 out | grep -c .)"
: >in
check "--special" run 0 "" generate -m decoder --special "<s>the cat</s>" -n 4 --json
special=$(sed -n 's/.*"text": "\([^"]*\)".*/\1/p' out)
check "without it" run 0 "" generate -m decoder "<s>the cat</s>" -n 4 --json
check "it is another text" [ "$special" != "$(sed -n 's/.*"text": "\([^"]*\)".*/\1/p' out)" ]
check "--chat with --special" run 2 "--chat has no --special" generate -m decoder --chat --special x
finish
