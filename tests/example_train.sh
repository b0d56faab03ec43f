#!/bin/sh
# example_train.sh: examples/11_train.c trains in a folder, called again it resumes, and other examples use the model.
# usage: example_train.sh TRAIN_EXAMPLE QKV TRAIN VALID TRANSLATE_EXAMPLE ATTENTION_EXAMPLE
. "$(dirname "$0")/cases.sh"
example=$(realpath "$1") qkv=$(realpath "$2") train=$(realpath "$3") valid=$(realpath "$4")
translate=$(realpath "$5") attention=$(realpath "$6")
cd "$folder" || exit 1

"$example" model "$train" "$valid" 6 >first 2>&1 || cat first
contains "it trains to its end" "$(cat first)" "step 6: valid loss"
contains "the folder is a model's and a training's" "$(echo model/*)" model/config.json model/model.safetensors \
    model/checkpoint.safetensors model/training.json model/log.jsonl
"$example" model "$train" "$valid" 12 >second 2>&1 || cat second
contains "called again it resumes" "$(cat second)" "resumed after step 6" "step 12: valid loss"
"$example" whole "$train" "$valid" 12 >third 2>&1 || cat third
check "to the same bytes as one run" cmp model/checkpoint.safetensors whole/checkpoint.safetensors
same "the command and an example translate alike" "$("$qkv" translate -m model "I love you" "a cat" 2>&1)" "$("$translate" model "I love you" "a cat" 2>&1)"
contains "an example shows what it attends to" "$("$attention" model "I love you" 2>&1)" "</s>"
refuse "a folder that is not there" "$translate" none "I love you"
finish
