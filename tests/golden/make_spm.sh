#!/bin/sh
# make_spm.sh: small SentencePiece models, and what SentencePiece's own tools make of spm_text.txt with them, for test_spm.c.
# Needs Debian's sentencepiece; the tests do not. usage, in this folder: sh make_spm.sh
set -eu
export LC_ALL=C.UTF-8

# U+FB01 is fi, U+00BD is 1/2, U+3000 and U+00A0 are spaces, a letter with a mark after it is one letter, U+200B is nothing.
printf 'FB01\t66 69\nBD\t31 2F 32\n3000\t20\nA0\t20\n65 301\tE9\n200B\t\nFF21\t41\n9\t20\n2162\t49 49 49\n' >rules.tsv
train() {
    name=$1
    shift
    spm_train --input=text.txt --model_prefix="spm_$name" --hard_vocab_limit=false --minloglevel=2 --num_threads=1 "$@"
    rm "spm_$name.vocab"
}
train unigram --vocab_size=330 --model_type=unigram --normalization_rule_tsv=rules.tsv
train bytes --vocab_size=560 --model_type=bpe --byte_fallback=true --normalization_rule_name=identity \
    --remove_extra_whitespaces=false --user_defined_symbols='<tag>,cat sat,的' --character_coverage=0.98
train suffix --vocab_size=320 --model_type=unigram --normalization_rule_tsv=rules.tsv --treat_whitespace_as_suffix=true \
    --user_defined_symbols='<tag>,mats' --control_symbols='<ctl>'
train plain --vocab_size=340 --model_type=bpe --normalization_rule_name=identity --add_dummy_prefix=false
train word --vocab_size=150 --model_type=word --normalization_rule_tsv=rules.tsv
train char --vocab_size=120 --model_type=char --normalization_rule_name=identity --user_defined_symbols='<tag>,cat sat'
# A denormalizer: an e after a c is an E, and "the" is "THE".
printf '63 65\t63 45\n74 68 65\t54 48 45\n' >back.tsv
train back --vocab_size=330 --model_type=unigram --normalization_rule_tsv=rules.tsv --denormalization_rule_tsv=back.tsv
rm rules.tsv back.tsv

{
    for name in unigram bytes suffix plain word char back; do
        spm_encode --model="spm_$name.model" --output_format=id <spm_text.txt >ids
        echo "# $name"
        spm_decode --model="spm_$name.model" --input_format=id <ids | paste -d '|' ids -
    done
} >spm_ids.txt
rm ids
