#!/bin/sh
# cells.sh: every cell of the table "family by head by command" of docs/published.md, tried on a small random model of the family with
# the head: "yes" runs, "-" is refused with a sentence. The READMEs say the same.  usage: cells.sh QKV GOLDEN MAKE_FORMS ROOT
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") golden=$(realpath "$2") make_forms=$(realpath "$3") root=$(realpath "$4")
cd "$folder" || exit 1

# ---- models: golden weights, which know 23 ids, and a tokenizer for as many words ----

# tokens FAMILY: its 23 tokens, from id 0; the first few are special
tokens() {
    case $1 in
        roberta | xlm-roberta | camembert | mpnet | *bart | m2m_100) set -- '<s>' '<pad>' '</s>' '<unk>' '<mask>' ;;
        marian) set -- '</s>' '<unk>' '<a>' '<b>' '<c>' ;;
        pegasus | *t5) set -- '<pad>' '</s>' '<unk>' '<a>' '<b>' ;;
        bert | distilbert | electra | albert | modernbert) set -- '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' ;;
        *) set -- '<pad>' '<s>' '</s>' '<unk>' '<a>' ;;
    esac
    printf '%s\n' "$@" the cat sat on mat a dog ran '##s' . , good bad film is was paris '<pad>'
}
# frame FAMILY: what stands before a text, between two, and behind it
frame() {
    case $1 in
        roberta | xlm-roberta | camembert | mpnet | bart) echo '<s> </s> </s>' ;;
        mbart | m2m_100 | marian | pegasus | *t5) echo '- - </s>' ;;
        bert | distilbert | electra | albert | modernbert) echo '[CLS] [SEP] [SEP]' ;;
        *) echo '<s> - -' ;;
    esac
}
piece() { [ "$1" = - ] || printf '{"SpecialToken": {"id": "%s", "type_id": 0}}%s' "$1" "$2"; }
# tokenizer FAMILY: as tokenizer.json
tokenizer() {
    tokens "$1" | awk 'NR == 23 && seen["<pad>"] { $0 = "france" } { seen[$0] = 1; print }' >tokens.txt
    read -r before between after <<LINE
$(frame "$1")
LINE
    awk -v q='"' 'NR <= 5 || /<pad>/ { added = added (added ? ", " : "") "{\"id\": " NR - 1 ", \"content\": \"" $0 "\", \"special\": true}"
            named = named (named ? ", " : "") q $0 "\": {\"id\": \"" $0 "\", \"ids\": [" NR - 1 "], \"tokens\": [\"" $0 "\"]}" }
        { vocab = vocab (vocab ? ", " : "") q $0 "\": " NR - 1; if ($0 ~ /[Uu][Nn][Kk]/) unknown = $0 }
        END { print added >"added"; print vocab >"vocab"; print named >"named"; print unknown >"unknown" }' tokens.txt
    single="$(piece "$before" ', '){\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}"
    [ "$after" = - ] || single="$single, $(piece "$after")"
    pair="$(piece "$before" ', '){\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, $(piece "$between" ', '){\"Sequence\": {\"id\": \"B\", \"type_id\": 0}}"
    [ "$after" = - ] || pair="$pair, $(piece "$after")"
    printf '{"added_tokens": [%s], "normalizer": null, "pre_tokenizer": {"type": "BertPreTokenizer"}, "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": false},
 "post_processor": {"type": "TemplateProcessing", "single": [%s], "pair": [%s], "special_tokens": {%s}},
 "model": {"type": "WordPiece", "unk_token": "%s", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {%s}}}\n' \
        "$(cat added)" "$single" "$pair" "$(cat named)" "$(cat unknown)" "$(cat vocab)"
}
# title FAMILY: as "architectures" has it
title() {
    case $1 in
        xlm-roberta) echo XLMRoberta ;; camembert) echo Camembert ;; distilbert) echo DistilBert ;; modernbert) echo ModernBert ;;
        mpnet) echo MPNet ;; *t5) echo "$1" | tr a-z A-Z ;; *) echo "$1" | sed 's/./\U&/' ;;
    esac
}
# like FAMILY: the one whose golden it has under its own name
like() { case $1 in xlm-roberta | camembert) echo roberta ;; mt5) echo t5 ;; *) echo "$1" ;; esac; }
# suffix HEAD: of the folder's name
suffix() {
    case $1 in
        ForMaskedLM | Model) echo _mlm ;; ForSequenceClassification*) echo _classify ;; ForTokenClassification) echo _tag ;;
        ForQuestionAnswering) echo _answer ;;
    esac
}
# build FAMILY HEAD: the folder m, and that of its golden in $from
build() {
    rm -rf m && mkdir m
    from=$golden/families/$(like "$1")$(suffix "$2")
    [ -d "$from" ] || from=$golden/decoders/$1
    cp "$from/config.json" "$from/model.safetensors" m || return
    chmod -R u+w m
    [ -f "$1.json" ] || tokenizer "$1" >"$1.json"
    cp "$1.json" m/tokenizer.json
    sed -i "s/\"model_type\": \"[^\"]*\"/\"model_type\": \"$1\"/; s/\"forced_bos_token_id\": null/\"forced_bos_token_id\": 5/" m/config.json
    [ "$(like "$1")" = "$1" ] || sed -i "s/\"$(title "$(like "$1")")For/\"$(title "$1")For/" m/config.json
    case $2 in
        *,*) "$make_forms" "$from" m one
            tr -d '\n' <m/config.json | sed 's/"id2label": {[^}]*}/"id2label": {"0": "LABEL_0"}/; s/"label2id": {[^}]*}/"label2id": {"LABEL_0": 0}/' >one &&
                mv one m/config.json ;;
        Model | EncoderModel)
            base=$(like "$1").
            case $1 in modernbert) base=model. ;; *t5) base= ;; esac
            "$make_forms" "$from" m bare "$base"
            sed -i "s/\"[A-Za-z0-9]*For[A-Z][A-Za-z]*\"/\"$(title "$1")$2\"/" m/config.json ;;
    esac
}

# ---- cells ----
printf 'the cat sat\na dog ran\n' >corpus
# arguments COMMAND: to $given
arguments() {
    case $1 in
        generate) given='-n 2 -p the' ;; perplexity | summarize) given='--input corpus' ;; fill) given='[MASK]' ;;
        rank | similar) given='--corpus corpus the' ;; answer) given='--context corpus the' ;; *) given=the ;;
    esac
}
# cell FAMILY HEAD COMMAND yes|-: most of the time goes into starting processes, so that there is one
cell() {
    name="$1 $2: $3" command=$3 wanted=$4
    arguments "$3"
    "$qkv" "$command" -m m $given <in >out 2>err
    status=$? said=
    read -r said <err
    case $wanted.$status.$said in
        yes.0.*) if [ -s out ]; then ok "$name"; else not_ok "$name" "it printed nothing"; fi ;;
        -.5."qkv: $command: "*) if [ -s out ]; then not_ok "no $name" "it printed a result"; else ok "no $name"; fi ;;
        *) not_ok "$name" "$wanted in the table, but status $status: $(cat err)" ;;
    esac
}

# one_label: the number of the last model is the one that PyTorch gives for the first of three labels
row() { tensor "$from/golden.safetensors" "$1" | awk 'NR <= 7 { printf (NR > 1 ? ",%d" : "%d"), $1 }'; }
one_label() {
    types=
    grep -q '"type_vocab_size": [2-9]' m/config.json && types="--type-ids $(row types)"
    check "forward of $family" run 0 "" forward -m m --source-ids "$(row ids)" $types --classes y.npy --quiet
    near "the logit of $family" "$(tensor "$from/golden.safetensors" classes | head -n 1)" "$(npy y.npy)" 1e-4
}

# table FILE: FAMILIES|HEAD|COMMAND|... and FAMILIES|HEAD|yes|-|..., without spaces around and backticks, of the one that begins so
table() {
    awk -F '|' '/^\| family \| head \|/ { on = 1 } on && !/^\|/ { exit }
        on && !/^\| ---/ { s = ""; for (i = 2; i < NF; i++) { gsub(/^ +| +$|`/, "", $i); s = s (i > 2 ? "|" : "") $i } print s }' "$1"
}
: >in
table "$root/docs/published.md" >table
commands=$(head -n 1 table | cut -d '|' -f 3- | tr '|' ' ')
sed 1d table >rows
# Each "yes" on every family of its row; each "-" on one, which moves on from column to column, or with CELLS=all on every one.
while IFS='|' read -r families head cells; do
    families=$(echo "$families" | tr -d ',') cells=$(echo "$cells" | tr '|' ' ')
    set -- $families
    n=$# i=0
    for family in $families; do
        echo "$family" >>families
        build "$family" "$head" || { not_ok "$family $head" "there is no golden"; continue; }
        set -- $commands
        column=0
        for wanted in $cells; do
            if [ "$wanted" != - ] || [ $((column % n)) = $i ] || [ "${CELLS:-}" = all ]; then cell "$family" "$head" "$1" "$wanted"; fi
            column=$((column + 1))
            shift
        done
        i=$((i + 1))
        case $head in ForCausalLM) given= ;; *) given='--source the' ;; esac
        case $family.$head in *.ForCausalLM | *.ForConditionalGeneration | bart.*) given="$given --target the" ;; esac
        check "$family $head: forward" run 0 "" forward -m m $given
        case $head in *,*) one_label ;; esac
    done
done <rows

# ---- the list of families, and what the READMEs say ----
build bert Model
sed -i 's/"bert"/"rwkv"/' m/config.json
run 5 'unsupported architecture "rwkv"' info m
same "the table has every family" "$(sed 's/.*supported are //; s/ and qkv.*//; s/, /\n/g' err | sort)" "$(sort -u families)"
# What is "yes" in each row, as the READMEs list it
awk -F '|' 'NR == 1 { for (i = 3; i <= NF; i++) name[i] = $i; next }
    { s = ""; for (i = 3; i <= NF; i++) if ($i == "yes") s = s (s ? ", " : "") name[i]; sub(/,.*/, "", $2); print $1 "|" $2 "|" s }' table >wanted
for readme in README.md README.zh-CN.md; do
    awk -F '|' '/^\| (family \| head|家族 \| 头) \|/ { on = 1; next } on && !/^\|/ { exit } on && !/^\| ---/ {
        for (i = 2; i < NF; i++) gsub(/^ +| +$|`/, "", $i); sub(/,.*/, "", $3); print $2 "|" $3 "|" $4 }' "$root/$readme" >got
    same "$readme says the same" "$(cat wanted)" "$(cat got)"
done
finish
