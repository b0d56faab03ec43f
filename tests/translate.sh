#!/bin/sh
# translate.sh: qkv translate and qkv forward, as a user types them. usage: translate.sh QKV MAKE_MODEL
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") make_model=$(realpath "$2")
cd "$folder" || exit 1
export LC_ALL=C.UTF-8
unset QKV_ISA QKV_THREADS OMP_NUM_THREADS

printf 'the cat sat on the mat\nI love you\nyou love the cat\n我爱你\n猫坐在垫子上\n你爱猫，我爱狗\n the dog and the cat\n我爱你\n' >corpus
for kind in pair encoder decoder learned ids; do check "a model: $kind" "$make_model" $kind $kind corpus; done

short="translate -m pair --max-length 6"

# ---- lines ----
i=0
while [ $i -lt 5 ]; do
    cat corpus
    echo "the cat $i"
    echo
    i=$((i + 1))
done >in
# shellcheck disable=SC2086
{
check "translate" run 0 "" $short
cp out first
same "one line in, one line out" "$(wc -l <in)" "$(wc -l <out)"
same "an empty line gives an empty line" "" "$(sed -n 10p out)"
check "not every translation is empty" grep -q . out
for batch in 1 7 32; do
    for threads in 1 2 4; do
        check "with --batch $batch -t $threads" run 0 "" $short --batch $batch -t $threads
        check "the same bytes" cmp out first
    done
done
check "--input" run 0 "" $short --input in
check "reads the same" cmp out first
check "--beam 4 is the default" run 0 "" $short --beam=4 --length-penalty=0.6
check "and changes nothing" cmp out first
sed 's/^  "model_type"/  "length_penalty": 1.5,&/' pair/config.json >fitted.json
cp -r pair fitted && mv fitted.json fitted/config.json
fitted="translate -m fitted --max-length 6 --json"
check "with scores" run 0 "" $short --json
cp out scored
check "a model with a length penalty of its own" run 0 "" $fitted
cp out own
check "has other scores" sh -c '! cmp -s own scored'
check "those of the penalty" run 0 "" $short --json --length-penalty 1.5
check "which the option gives too" cmp out own
check "--length-penalty" run 0 "" $fitted --length-penalty 0.6
check "overrides it" cmp out scored
contains "info" "$("$qkv" info fitted)" "search          beam 4, length penalty 1.5"
contains "info --json" "$("$qkv" info fitted --json)" '"length_penalty": 1.5,'
contains "info of a model without" "$("$qkv" info pair --json)" '"generation": null,'
check "the mean of two that differ in it" "$qkv" average --quiet -m fitted pair -o mean
check "has none" cmp mean/config.json pair/config.json
check "the mean of one" "$qkv" average --quiet -m fitted fitted -o mean
contains "keeps it" "$(cat mean/config.json)" '"length_penalty": 1.5'
sed 's/1\.5/-1.5/' fitted/config.json >wrong.json && cp wrong.json mean/config.json
check "one out of range" run 4 'length_penalty": expected a number above 0 and below 100' translate -m mean
check "--beam 1" run 0 "" $short --beam 1
check "is another search" sh -c '! cmp -s out first'
printf 'I love you' >in
check "a last line without newline" run 0 "" $short
same "is a line" "$(sed -n 2p first)" "$(cat out)"
printf 'I love you\r\n' >in
check "a carriage return before the newline" run 0 "" $short
same "is part of it" "$(sed -n 2p first)" "$(cat out)"
: >in
check "nothing in" run 0 "" $short
same "nothing out" 0 "$(wc -c <out)"
mkfifo pipe answers
"$qkv" $short --batch 1 <pipe >answers 2>err &
exec 3>pipe 4<answers
echo 'I love you' >&3
read -r answer <&4
same "each line is answered before the next comes" "$(sed -n 2p first)" "$answer"
exec 3>&- 4<&-
wait

# ---- lines of several sentences ----
printf 'I love you. The cat sat on the mat! 我爱你。\n' >in
check "a line of three sentences" run 0 "" $short
cp out joined
check "is split by default" run 0 "" $short --split
check "as with --split" cmp out joined
for word in always yes; do check "--split $word" run 0 "" $short --split $word && check "is the same" cmp out joined; done
check "--split never" run 0 "" $short --split never
cp out whole
check "is another translation" sh -c '! cmp -s whole joined'
check "--split=no" run 0 "" $short --split=no
check "is the same" cmp out whole
check "--split before a text" run 0 "" $short --split "$(cat in)"
check "takes no value from it" cmp out joined
check "--split=sometimes" run 2 '--split: "sometimes" is not one of auto, always, never' $short --split=sometimes
printf 'I love you.\nThe cat sat on the mat!\n我爱你。\n' >in
check "its sentences, a line each" run 0 "" $short
same "are what is joined" "$(tr -d ' \n' <out)" "$(tr -d ' \n' <joined)"
cp out first_lines
check "a line of one sentence" run 0 "" $short --split never
check "is not changed by the split" cmp out first_lines
sed 's/^  "model_type"/  "sentences": 2,&/' pair/config.json >two.json
cp -r pair two && mv two.json two/config.json
printf 'I love you. The cat sat.\nI love you. The cat sat on the mat! 我爱你。\n' >in
check "a model trained on two sentences a line" run 0 "" translate -m two --max-length 6
check "and without the split" sh -c '"$0" translate -m two --max-length 6 --split never <in >never' "$qkv"
same "translates two at once" "$(head -n 1 never)" "$(head -n 1 out)"
same "and splits three" "$(cat joined)" "$(sed -n 2p out)"
check "info" "$qkv" info two
contains "shows the number" "$(LC_ALL=C.UTF-8 "$qkv" info two)" "splits lines of more than 2 sentences"
contains "in JSON too" "$("$qkv" info two --json)" '"sentences": 2'
check "the mean with another" "$qkv" average --quiet -m two pair -o mean_of_two
check "has no number" cmp mean_of_two/config.json pair/config.json
sed 's/"sentences": 2/"sentences": 0/' two/config.json >wrong.json && cp wrong.json mean_of_two/config.json
check "none is no number" run 4 'key "sentences": expected a whole number from 1' translate -m mean_of_two
head -n 1 in >short_line && mv short_line in
check "two sentences with too many tokens" run 0 "" translate -m two --max-length 6 --max-source 7
cp out two_split
printf 'I love you.\nThe cat sat.\n' >in
check "one by one" run 0 "" $short
same "are split" "$(tr -d ' \n' <out)" "$(tr -d ' \n' <two_split)"
awk 'BEGIN { for (i = 0; i < 100; i++) printf "The cat sat. "; print "" }' >in
check "a line of 100 sentences" run 0 "" $short --json --n-best 2
same "is one line" 1 "$(wc -l <out)"
printf 'I love you. The cat sat.\n' >in
check "--heatmap keeps it whole" run 0 "need whole lines: 1 of the lines has" $short --heatmap
check "--prefix" run 0 "" $short --prefix '我爱'
same "starts the line once" 1 "$(grep -o 我爱 out | wc -l)"

# ---- files that are more than text ----
for name in s.srt s.VTT a.md a.markdown p.html p.htm p.xml d.json m.tmx m.xliff m.po; do
    printf '1\n00:00:01,000 --> 00:00:02,000\nI love you\n' >$name
    refused "$name" 5 "$name: " $short -i $name
    contains "says what to do" "$(cat err)" "extract the text first, or use --plain"
done
: >d.docx
refused "a document" 5 "d.docx: documents are not supported: save it as plain text first" $short -i d.docx
check "--plain" run 0 "" $short -i s.srt --plain
same "translates all lines" 3 "$(wc -l <out)"
check "another name" cp s.srt s.txt
check "is text" run 0 "" $short -i s.txt

# ---- formats ----
printf 'I love you\n\nthe cat\n' >in
check "--n-best" run 0 "" $short --n-best 3 --max-length 3
same "numbers the lines from 0" "0 1 2" "$(cut -d' ' -f1 out | uniq | tr '\n' ' ' | sed 's/ $//')"
same "an empty line has one, of score 0" "1 |||  ||| 0.000000" "$(grep '^1 ' out)"
check "the best first" sh -c "grep '^0 ' out | sed 's/.* ||| //' | sort -c -g -r"
same "the N best of a line" 3 "$(grep -c '^2 ' out)"
check "--n-best over 4 has its own beam" run 0 "" $short --n-best 6
check "--alignment" run 0 "" $short --alignment --prefix 'you'
check "adds pairs" grep -qE '^you.* \|\|\| [0-9]+-0( [0-9]+-[0-9]+)*$' out
same "an empty line has none" " |||" "$(sed -n 2p out)"
check "--json" run 0 "" $short --json --n-best 2
same "an object a line" 3 "$(grep -c '^{"line": [0-9]*, "source": ".*", "source_tokens": \[.*\], "translations": \[.*\]}$' out)"
contains "has the source, its tokens, texts and scores" "$(head -n 1 out)" '"line": 1' '"source": "I love you"' '"source_tokens": ["I", "' \
    '"text": "' '"score": -' '"log_p": -' '"cut": ' '"tokens": ['
same "and no attention" 0 "$(grep -c attention out)"
check "--json --alignment" run 0 "" $short --json --alignment --prefix you
contains "has it" "$(head -n 1 out)" '"alignment": [[' '"attention": [['
if command -v python3 >/dev/null; then
    check "a JSON parser reads it, and rows of attention sum to 1" python3 -c '
import json
for line in open("out", encoding="utf-8"):
    o = json.loads(line)
    for t in o["translations"]:
        assert len(t["attention"]) == (len(t["tokens"]) + 1 if t["tokens"] else 0)
        assert len(t["alignment"]) == len(t["tokens"])
        for row in t["attention"]: assert len(row) == len(o["source_tokens"]) + 1 and abs(sum(row) - 1) < 1e-4
        for s, k in t["alignment"]: assert t["attention"][k][s] == max(t["attention"][k][:-1])'
else skipped "a JSON parser reads it"; fi
printf 'a "b" \\ \t\377\n' >in
check "quotes, a tab and a bad byte" run 0 "line 1: byte 10" $short --json
contains "are escaped and repaired" "$(cat out)" '"source": "a \"b\" \\ \u0009�"'
printf '\357\273\277I love you\n' >in
check "a byte order mark" run 0 "" $short --json
contains "is no part of a line" "$(cat out)" '"source": "I love you"'
printf 'a\nb\377\n' >bad.txt
check "the file of a bad line is named" run 0 "qkv: bad.txt: line 2: byte 2 is not UTF-8" $short --input bad.txt
printf 'BZh91AY&SY\022\064' >bz2.txt
refused "bzip2" 5 'bz2.txt: it is bzip2, not text in UTF-8: decompress it first, as in "bzip2 -dc FILE' $short --input bz2.txt
printf 'I love you\n' >in
check "--heatmap" run 0 "" $short --heatmap --prefix '我爱你，'
contains "names the tokens" "$(cat out)" "love" "</s>" "，" "█" "blank to █: 0 to 0."
check "translates the same" run 0 "" $short --prefix '我爱你，'
cp out plain
"$qkv" $short --prefix '我爱你，' --heatmap <in >out
same "above the heatmap" "$(cat plain)" "$(head -n 1 out)"
printf '狗\n' >in
check "tokens that are parts of a character" run 0 "" $short --heatmap --prefix 狗 --max-length 3
same "are one column and one row" "狗|狗 </s>|狗|</s>|blank to █: 0" \
    "$(sed 's/^ *//; s/ *[ ░▒▓█]*$//; s/ to 0.*//' out | tr '\n' '|' | sed 's/|$//')"
printf 'the cat sat on the mat and the dog sat on the cat and the mat sat on the dog\n' >in
check "a heatmap of many tokens" run 0 "" $short --heatmap
check "is no wider than its columns need" sh -c 'awk "length(\$0) > 200 { exit 1 }" out'
check "--prefix" run 0 "" $short --prefix '我爱你'
contains "starts every translation" "$(cat out)" 我爱你
printf 'I love you\n' >in
check "greedy search" run 0 "" $short --beam 1 --json
tokens_twice="sed 's/.*\"tokens\": \\[\\(.*\\)\\]}\\]}\$/\\1/; s/, /\\n/g' out | sort | uniq -d"
check "repeats a token" sh -c "$tokens_twice | grep -q ."
check "--no-repeat-ngram 1 with greedy search" run 0 "" $short --beam 1 --no-repeat-ngram 1 --json
check "repeats none" sh -c "! $tokens_twice | grep -q ."

# ---- bad input ----
{ head -c 1000000 /dev/zero | tr '\0' a; printf '\nI love you\n'; } >in
check "a line of 1 MB is refused, and how to allow it" run 6 "line 1 has 1000000 tokens, more than 1024: --max-source" $short
same "an empty line stands for it, the rest goes on" "|$(sed -n 2p first)|" "$(tr '\n' '|' <out)"
check "in JSON" run 6 "line 1" $short --json
contains "an error does" "$(cat out)" '{"line": 1, "error": "line 1 has 1000000 tokens' '{"line": 2, "source": "I love you"'
printf 'xxxxxxxxxxxxxxxxxxxxx\nI love you\n' >in
check "--max-source" run 6 "more than 20" $short --max-source 20
check "allows that many" run 0 "" $short --max-source 21
check "positions that end" run 6 "line 1 has 21 tokens, more than 11: the model has positions for no more" translate -m learned
same "let the rest go on" 2 "$(wc -l <out)"
printf 'a\000b\n' >in
check "a NUL byte" run 0 "" $short --json
contains "is a character" "$(cat out)" '"source": "a\u0000b"'
printf 'good\nb\377d\ngood\n' >in
check "bad bytes are replaced and the line is named" run 0 "line 2: byte 2" $short
same "in three lines" 3 "$(wc -l <out)"
check "--quiet does not name it" run 0 "" $short --quiet
check "--strict refuses it" run 4 "line 2: byte 2" $short --strict
same "after the lines before" 1 "$(wc -l <out)"
refused "no model" 2 "--model is missing" translate
refused "a model that is not there" 3 "none: there is no such folder" translate -m none
refused "a model without tokenizer" 2 "no tokenizer" translate -m ids
refused "an encoder alone" 5 'no head for "translate": it can fill, embed' translate -m encoder
refused "--json and --heatmap" 2 "choose one" $short --json --heatmap
refused "more results than the beam" 2 "--n-best 3 needs" $short --beam 2 --n-best 3
refused "a beam too large" 2 "beam 5000" $short --beam 5000
refused "a beam of 0" 2 "--beam" $short --beam 0
refused "a negative length penalty" 2 "--length-penalty" $short --length-penalty=-1
refused "a prefix that is too long" 2 "prefix of" $short --prefix 'xyzxyzxyz'
refused "a prefix that is not UTF-8" 2 "the prefix is not UTF-8" $short --prefix "$(printf '\377')"
refused "an input that is not there" 3 "none.txt" $short --input none.txt
"$qkv" $short <. >/dev/null 2>err
same "a folder for input" 3 $?
if [ -e /dev/full ]; then
    "$qkv" $short <corpus >/dev/full 2>err
    same "a full disk" 3 $?
fi
}

# ---- model folders ----
mkdir -p empty models many broken
cp -r pair models/pair
touch many/a many/b many/c many/d many/e
: >in
refused "a folder that is not there" 3 'none: there is no such folder: a model is a folder that "qkv train" wrote' translate -m none
refused "a name of others" 3 "opus/en-de: there is no such folder on this machine, and qkv downloads nothing" translate -m opus/en-de
refused "a path that looks like one" 3 'models/en-de: there is no such folder: a model is' translate -m models/en-de
refused "a file of the model" 3 'pair/config.json is not a folder, as a model is: give "pair"' translate -m pair/config.json
refused "a file" 3 "corpus is not a folder, as a model is, with config.json" translate -m corpus
refused "an empty folder" 3 "empty holds no config.json: a model's folder has one, with model.safetensors and tokenizer.json; this one holds nothing" \
    translate -m empty
refused "a folder of other things" 3 "this one holds a, b, c, d and 1 more" translate -m many
refused "a folder of models" 3 'models holds no config.json, so no model; but "models/pair" does' translate -m models
ln -s nowhere broken/config.json
refused "a link that leads nowhere" 3 "broken/config.json: cannot open" translate -m broken
rm -r broken
for c in classify fill generate embed "similar --corpus corpus" "perplexity corpus" forward attend info serve "export --as marian -o x" \
    tokenize "show positions" "average --out x"; do
    # shellcheck disable=SC2086
    refused "$c without it" 3 "none: there is no such folder" $c -m none
done
for file in config.json model.safetensors tokenizer.json; do
    rm -rf broken
    cp -r pair broken
    : >"broken/$file"
    refused "an empty $file" 4 "broken/$file" translate -m broken
done
rm broken/model.safetensors
cp pair/tokenizer.json broken/
refused "a missing file" 3 "broken/model.safetensors" translate -m broken
sed 's/"heads"/"heds"/' pair/config.json >broken/config.json
cp pair/model.safetensors broken/
refused "an unknown key" 4 "heds" translate -m broken
sed 's/"inner": 32/"inner": 48/' pair/config.json >broken/config.json
refused "weights of another shape" 4 "broken/model.safetensors" translate -m broken
sed 's/"model_type": "qkv"/"model_type": "rwkv"/' pair/config.json >broken/config.json
refused "another architecture" 5 "marian" translate -m broken

# ---- forward ----
shape_of() { head -c 128 "$1" | tr -d '\0' | LC_ALL=C sed -n "s/.*'shape': \(([0-9, ]*)\).*/\1/p" | tr -d ' '; }
printf 'I love you\n' >in
check "forward writes" run 0 "wrote l.npy" forward -m pair --source 'I love you' --target '我爱你' --logits l.npy --hidden h.npy --encoder e.npy
size=$(grep -o '"vocabulary": [0-9]*' pair/config.json | grep -o '[0-9]*$')
tokens=$("$qkv" tokenize --tokenizer pair/tokenizer.json --ids <in | wc -w)
same "the encoder's states, with the end" "($((tokens + 1)),16)" "$(shape_of e.npy)"
printf '我爱你\n' >in
targets=$("$qkv" tokenize --tokenizer pair/tokenizer.json --ids <in | tr ' ' ,)
rows=$(($(echo "$targets" | tr ',' '\n' | wc -l) + 1))
same "the decoder's, with the start" "($rows,16)" "$(shape_of h.npy)"
same "the logits" "($rows,$size)" "$(shape_of l.npy)"
printf 'I love you\n' >in
sources=$("$qkv" tokenize --tokenizer pair/tokenizer.json --ids <in | tr ' ' ,)
check "ids are taken as they are" run 0 "" forward -m pair --source-ids "$sources,2" --target-ids "1,$targets" --logits l2.npy --quiet
check "and give the same" cmp l.npy l2.npy
check "--raw adds nothing" run 0 "" forward -m pair --source 'I love you' --target-ids "1,$targets" --raw --encoder e2.npy --quiet
same "to a source" "($tokens,16)" "$(shape_of e2.npy)"
check "without files" run 0 "" forward -m pair --source 'I love you'
contains "it prints the shapes" "$(cat out)" "encoder  ($((tokens + 1)), 16)" "hidden   (1, 16)" "logits   (1, $size)"
next=$(sed -n 's/^ *\([0-9]*\)  [0-9.]*  .*/\1/p' out | head -n 1)
sed -n 's/^ *[0-9]*  [0-9.]*  //p' out | head -n 1 >shown
same "tokens as qkv tokenize shows them" "$(echo "$next" | "$qkv" detokenize -m pair --ids --quiet)" "$("$qkv" detokenize -m pair --quiet <shown)"
same "and 5 tokens" 5 "$(grep -c '^ *[0-9]*  0\.[0-9]* ' out)"
check "greedy search" run 0 "" translate -m pair --beam 1 --max-length 1 --json
sed 's/.*"tokens": \["\(.*\)"\].*/\1/' out >raw
same "takes the first of them" "$("$qkv" detokenize -m pair --raw --quiet <raw)" "$(echo "$next" | "$qkv" detokenize -m pair --ids --quiet)"
check "an encoder" run 0 "" forward -m encoder --source 'I love you' --logits l3.npy --quiet
same "has logits too" "($tokens,$size)" "$(shape_of l3.npy)"
check "a decoder" run 0 "" forward -m decoder --target 'I love you' --hidden h3.npy --quiet
same "reads <s> and the text, as generate does" "($((tokens + 1)),16)" "$(shape_of h3.npy)"
check "with --raw" run 0 "" forward -m decoder --target 'I love you' --raw --hidden h3.npy --quiet
same "the text alone" "($tokens,16)" "$(shape_of h3.npy)"
check "a model of ids" run 0 "" forward -m ids --source-ids 5,6 --target-ids 1 --quiet
refused "text for a model of ids" 2 "give --source-ids" forward -m ids --source x --target-ids 1
refused "no source" 2 "--source or --source-ids is missing" forward -m pair
refused "no target for a decoder" 2 "--target or --target-ids is missing" forward -m decoder
refused "a source for a decoder" 2 "has no encoder" forward -m decoder --source x
refused "a target for an encoder" 2 "has no decoder" forward -m encoder --source x --target y
refused "both text and ids" 2 "choose one" forward -m pair --source x --source-ids 5
refused "an id out of range" 2 "--source-ids: $size is outside 0..$((size - 1))" forward -m pair --source-ids "5,$size"
refused "no ids" 2 "not a list of ids" forward -m pair --source-ids 5,,6
refused "a negative id" 2 "not a list of ids" forward -m pair --source-ids=-5
refused "a huge id" 2 "not a list of ids" forward -m pair --source-ids 99999999999999999999
refused "text that is not UTF-8" 4 "not UTF-8" forward -m pair --source "$(printf '\377')"
refused "an empty text" 2 "empty" forward -m pair --source ''
refused "hidden states of an encoder" 2 "see --encoder" forward -m encoder --source x --hidden h4.npy
refused "a folder that is not there" 3 "no/l.npy" forward -m pair --source x --logits no/l.npy
refused "more tokens than learned positions" 2 "positions" forward -m learned --source xxxxxxxxxxxxxxxxxxxx

# ---- summarize on a translator ----
for i in 1 2 3 4 5 6 7 8 9 10; do printf 'I love you\t我爱你\nthe cat sat\t猫坐着\n'; done >zh.tsv
cut -f1 zh.tsv | sed 's/.*/the &\t&/' >shorter.tsv
for made in zh shorter; do
    check "a model of $made.tsv" run 0 "" train translate --train $made.tsv --split 0 --tokens characters --layers 1 --dim 32 --heads 2 \
        --inner 64 --max-tokens 64 --epochs 20 --lr 0.01 --schedule constant --dropout 0 --quiet --out $made
done
check "summarize by a translator" run 0 "are in different scripts: is zh a translator?" summarize -m zh "I love you" "the cat sat"
same "is told once" 1 "$(wc -l <err)"
check "and not of a model that shortens" run 0 "" summarize -m shorter "the I love you"

# ---- help ----
contains "qkv translate --help" "$("$qkv" translate --help --all)" -m --beam --n-best --length-penalty --max-length --max-source --no-repeat-ngram \
    --prefix --alignment --json --heatmap --batch --strict --quiet
contains "qkv forward --help" "$("$qkv" forward --help --all)" --source-ids --target-ids --raw --logits --hidden --encoder

# ---- a model's file that is cut while it is mapped ----
cp -r pair cut
mkfifo feed
"$qkv" translate -m cut <feed >out 2>err &
pid=$! turn=0
exec 5>feed
until grep -q cut/model.safetensors /proc/$pid/maps || [ $turn -gt 200 ]; do sleep 0.05; turn=$((turn + 1)); done
: >cut/model.safetensors
echo 'I love you' >&5
exec 5>&-
wait $pid
same "a cut file ends the command with the status of input and output" 3 $?
contains "and a sentence that names it" "$(cat err)" "qkv: /" "cut/model.safetensors: the file was cut"
finish
