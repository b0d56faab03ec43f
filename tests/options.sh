#!/bin/sh
# options.sh: every option of "qkv train" that qkv/transformer.def lists lands in config.json, and a training resumes with it,
# typed or not: its record has it. Its checkpoint refuses another value. usage: options.sh QKV LIST_OPTIONS
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") list=$(realpath "$2")
cd "$folder" || exit 1

awk 'BEGIN { for (i = 10; i < 70; i++) print "a b c " i "\td e f " i }' >pairs
awk 'BEGIN { for (i = 10; i < 70; i++) print i % 2 "\ta b c " i }' >labels

# train JOB FOLDER OPTIONS...
train() {
    job=$1 out=$2 text=pairs
    shift 2
    [ "$job" != classify ] || text=labels
    "$qkv" train "$job" --paper --train $text --tokens characters --layers 1 --dim 8 --heads 4 --inner 8 --positions learned \
        --longest 30 --max-tokens 64 --steps 1 --quiet --threads 1 --out "$out" "$@"
}
# stops PIECE JOB FOLDER: resuming is refused.
stops() {
    piece=$1
    shift
    train "$@" --resume 2>err
    status=$?
    [ "$status" = 2 ] && grep -qF -- "$piece" err && return
    echo "status $status: $(cat err)" && return 1
}

check "a translator to compare with" train translate translate
check "a classifier to compare with" train classify classify
check "an encoder to compare with" train mask mask
"$list" >options
while read -r job name value key stored; do
    case $job in EVERY | TRANSLATE) job=translate ;; CLASSIFY) job=classify ;; MASK) job=mask ;; esac
    case $name in # what a small model can have
        dim) value=16 stored=16 ;;
        longest) value=40 stored=40 ;;
        no-first-norm) job=mask ;; # whose norms come first
    esac
    if [ "$value" = - ]; then set -- "--$name"; else set -- "--$name" "$value"; fi
    check "--$name trains" train $job "$name" "$@"
    contains "--$name is in config.json" "$(cat "$name/config.json")" "\"$key\": $stored"
    refuse "--$name is not what there is without it" grep -qF "\"$key\": $stored" $job/config.json
    check "--$name stays when it resumes" train $job "$name" "$@" --resume
    check "and is in training.json" "$qkv" train --resume --out "$name" --quiet --threads 1
    contains "from which it is taken" "$(cat "$name/config.json")" "\"$key\": $stored"
    cp $job/training.json "$name"
    check "--$name is in the checkpoint" stops "it was trained with other" $job "$name"
done <options
rows=$(grep -c '^QKV_TRAIN_OPTION' "$(dirname "$0")/../include/qkv/transformer.def")
same "all of them" "$rows" "$(wc -l <options | tr -d ' ')"
finish
