#!/bin/sh
# shortlist.sh: qkv shortlist and qkv translate --shortlist, as a user types them. usage: shortlist.sh QKV MAKE_MODEL
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") make_model=$(realpath "$2")
cd "$folder" || exit 1
export LC_ALL=C.UTF-8
unset QKV_ISA QKV_THREADS OMP_NUM_THREADS

printf 'the cat sat on the mat\nI love you\nyou love the cat\n我爱你\n猫坐在垫子上\n你爱猫，我爱狗\n the dog and the cat\n我爱你\n' >corpus
cp corpus in
sed 1q corpus >one
for kind in pair decoder ids; do check "a model: $kind" "$make_model" $kind $kind corpus; done
sed 's/.*/&\t&/' corpus >pairs

names="shortlist: "
learn="shortlist -m pair --train corpus corpus --likeliest 3 --frequent 5"
# shellcheck disable=SC2086
{
check "a list" run 0 "qkv: wrote list" $learn -o list
check "of one file" run 0 "" shortlist -m pair --train pairs --likeliest 3 --frequent 5 -o second --quiet
check "is the same" cmp list second
for threads in 1 2 4; do
    check "on $threads threads" run 0 "" $learn -o second --quiet -t $threads
    check "the same too" cmp list second
done
refused "three files" 2 "takes one file or two" shortlist -m pair --train corpus corpus corpus -o x
refused "files of unequal length" 4 "corpus" shortlist -m pair --train corpus one -o x
refused "a model that does not translate" 2 "an encoder and a decoder" shortlist -m decoder --train corpus corpus -o x
refused "a model without text" 2 "no tokenizer" shortlist -m ids --train corpus corpus -o x
refused "a folder that is not there" 3 "no/such" $learn -o no/such
}
names="translate: "
check "translate without" run 0 "" translate -m pair --max-length 6 --json
cp out without
short="translate -m pair --max-length 6 --json --shortlist list"
# shellcheck disable=SC2086
{
check "translate with it" run 0 "" $short
cp out first
refuse "chooses other tokens" cmp -s out without
for batch in 1 7; do
    for threads in 1 2; do
        check "with --batch $batch -t $threads" run 0 "" $short --batch $batch -t $threads
        check "the same bytes" cmp out first
    done
done
}
check "a prefix that is on no list" run 0 "" translate -m pair --max-length 8 --shortlist list --prefix 狗
check "starts every translation" sh -c '[ "$(grep -c "^狗" out)" = 8 ]'
refused "a file that is none" 4 "corpus" translate -m pair --shortlist corpus
refused "a model's file" 4 "not a shortlist" translate -m pair --shortlist pair/model.safetensors
refused "no file" 3 "nothing" translate -m pair --shortlist nothing
head -c 200 list >cut
refused "a cut file" 4 "cut" translate -m pair --shortlist cut
printf 'a few words more for a larger vocabulary: %s\n' one two three four five six seven eight nine ten one two three >>corpus
check "another model" "$make_model" other pair corpus
refused "the list of another model" 2 "the shortlist is for vocabularies of" translate -m other --shortlist list
tr cd wz <in >letters
check "a model of as many, other tokens" "$make_model" turned pair letters
same "as many" "$("$qkv" info turned | grep -i vocabulary)" "$("$qkv" info pair | grep -i vocabulary)"
refused "its list" 2 "learned with other tokenizers" translate -m turned --shortlist list
sed 's/"tokenizers":"[0-9a-f]*"/"xokenizers":"0123456789abcdef"/' list >older
check "a list of an older release" run 0 "" translate -m turned --shortlist older
sed 's/"tokenizers":"[0-9a-f]*"/"tokenizers":"0123456789abcdeX"/' list >wrong
refused "a fingerprint that is none" 4 "16 hexadecimal digits" translate -m pair --shortlist wrong
finish
