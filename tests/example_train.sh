#!/bin/sh
# example_train.sh: examples/11_train.c trains in a folder, and called again resumes. usage: example_train.sh EXAMPLE QKV TRAIN VALID
. "$(dirname "$0")/cases.sh"
example=$(realpath "$1") qkv=$(realpath "$2") train=$(realpath "$3") valid=$(realpath "$4")
cd "$folder" || exit 1

"$example" model "$train" "$valid" 6 >first 2>&1 || cat first
contains "it trains to its end" "$(cat first)" "valid loss" "reached after step 6"
contains "the folder is a model's and a training's" "$(echo model/*)" model/config.json model/model.safetensors \
    model/checkpoint.safetensors model/training.json model/log.jsonl
"$example" model "$train" "$valid" 12 >second 2>&1 || cat second
contains "called again it resumes" "$(cat second)" "resumed after step 6" "reached after step 12"
"$example" whole "$train" "$valid" 12 >third 2>&1 || cat third
check "to the same bytes as one run" cmp model/checkpoint.safetensors whole/checkpoint.safetensors
check "the command uses the model" "$qkv" translate -m model --max-length 5 "I love you"
finish
