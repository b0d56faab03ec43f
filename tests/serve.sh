#!/bin/bash
# serve.sh: qkv serve, as a user types it. usage: serve.sh QKV MAKE_MODEL ON_TERMINAL SANITIZERS
# bash: its /dev/tcp is a client that every machine with bash has.
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") make_model=$(realpath "$2") on_terminal=$(realpath "$3")
cd "$folder" || exit 1
export LC_ALL=C.UTF-8
unset QKV_ISA QKV_THREADS OMP_NUM_THREADS

printf 'the cat sat on the mat\nI love you\nyou love the cat\n我爱你\n猫坐在垫子上\n你爱猫，我爱狗\n the dog and the cat\n我爱你\n' >corpus
for kind in pair decoder ids; do check "a model: $kind" "$make_model" $kind $kind corpus; done

# start ARGUMENTS...: $server is its process and $address the line it said, once it is ready.
start() {
    rm -f said
    mkfifo said
    "$qkv" serve "$@" >said 2>server.err &
    server=$!
    address=
    read -r address <said
    port=${address##*:}
    port=${port%%/*}
}
# ask PORT REQUEST-LINE [HEADERS] [BODY]: the whole answer.
ask() {
    exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
    printf '%s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nConnection: close\r\n%b\r\n%s' "$2" "$1" "${3-}" "${4-}" >&3
    cat <&3
    exec 3>&-
}
# ends NAME SIGNAL STATUS: the server ends with this exit status and without a word.
ends() {
    kill "-$2" "$server"
    wait "$server"
    same "$1" "$3 " "$? $(cat server.err)"
}
# refused NAME STATUS PIECE ARGUMENTS...: exit status, one sentence with PIECE in it, nothing on stdout.
refused() {
    case_name=$1 wanted=$2 piece=$3
    shift 3
    "$qkv" serve "$@" >out 2>err </dev/null
    status=$?
    if [ "$status" = "$wanted" ] && [ "$(wc -l <err)" = 1 ] && grep -q '^qkv: ' err && grep -qF -- "$piece" err && [ ! -s out ]; then
        ok "$case_name"
    else not_ok "$case_name" "status $status, wanted $wanted" "$(cat err)" "$(cat out)"; fi
}

# ---- it serves ----
start -m pair --port 0 --languages en zh
same "it says where it is" "http://127.0.0.1:$port" "$address"
contains "the page" "$(ask "$port" 'GET /')" "HTTP/1.1 200 OK" "<!DOCTYPE html>" "</html>"
contains "the model" "$(ask "$port" 'GET /info')" '"name":"pair"' '"task":"translate"'
printf 'you love the cat\n\nthe mat' >pair/examples.txt
contains "texts of the training come first" "$(ask "$port" 'GET /info')" '"example":"you love the cat"'
body='{"do":"info"}'
contains "on the live page too" "$(ask "$port" 'POST /engine' "Content-Type: application/json\r\nContent-Length: ${#body}\r\n" "$body")" \
    '"examples":["you love the cat","the mat"]'
contains "the languages" "$(ask "$port" 'GET /languages')" '"code":"en"' '"code":"zh"'
body='{"q": "I love you", "source": "en", "target": "zh"}'
translated=$(echo 'I love you' | "$qkv" translate -m pair)
contains "a translation is the command's" \
    "$(ask "$port" 'POST /translate' "Content-Type: application/json\r\nContent-Length: ${#body}\r\n" "$body")" \
    "{\"translatedText\":$(printf '%s' "$translated" | sed 's/\\/\\\\/g; s/"/\\"/g; s/^/"/; s/$/"/')"
contains "a path of another job" "$(ask "$port" 'POST /classify' "Content-Length: 2\r\n" "{}")" "HTTP/1.1 404" 'whose task is translate: POST /translate"'
contains "another path" "$(ask "$port" 'GET /x')" "HTTP/1.1 404" '"code":404'
refused "a port that is taken" 3 "port $port of 127.0.0.1 is taken" -m pair --port "$port"
ends "Ctrl-C ends it" INT 130
start -m decoder/ --port 0
contains "a folder with a slash has its name" "$(ask "$port" 'GET /v1/models')" '"id":"decoder"'
exec 4<>"/dev/tcp/127.0.0.1/$port"
printf 'GET / HT' >&4
ends "TERM ends it, with a connection open" TERM 143
exec 4>&-

# ---- pages elsewhere, and the access log ----
start -m decoder --port 0 --allow-origin http://localhost:3000 https://example.org --access-log log
contains "an origin is let in" "$(ask "$port" 'GET /info' 'Origin: https://example.org\r\n')" \
    "HTTP/1.1 200" "Access-Control-Allow-Origin: https://example.org"
contains "another is not" "$(ask "$port" 'GET /info' 'Origin: https://example.com\r\n')" "HTTP/1.1 403"
ask "$port" 'GET /x\y' >/dev/null
ends "with an access log too" TERM 143
same "a line for each request" "127.0.0.1 GET /info 200
127.0.0.1 GET /info 403
127.0.0.1 GET /x\\x5cy 404" "$(cut -d ' ' -f 2-5 log)"
same "with its time, bytes and milliseconds" 3 \
    "$(grep -cE '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z 127\.0\.0\.1 GET [^ ]+ [0-9]{3} [0-9]+ [0-9]+\.[0-9]$' log)"
refused "a log that cannot be" 3 "no/such/folder" -m decoder --port 0 --access-log no/such/folder
refused "an origin with a path" 2 "is no origin" -m decoder --port 0 --allow-origin http://localhost:3000/
refused "too many an address" 2 "1 to 128" -m decoder --port 0 --connections-per-address 129

# ---- completions: one batch, and beginnings that are kept ----
body='{"prompt": "the cat sat on the mat", "max_tokens": 4, "seed": 3}'
complete() { ask "$port" 'POST /v1/completions' "Content-Type: application/json\r\nContent-Length: ${#body}\r\n" "$body"; }
start -m decoder --port 0 --batch 2
complete >first
contains "nothing is kept before" "$(cat first)" "HTTP/1.1 200" '"prompt_tokens":12' '"cached_tokens":0}'
for i in 1 2 3 4 5; do
    complete >"again.$i" &
    clients[$i]=$!
done
wait "${clients[@]}"
contains "what was read is kept" "$(cat again.1)" "HTTP/1.1 200" '"cached_tokens":11}'
same "more than the batch has room for, each as the first" 1 \
    "$(cat first again.* | grep -o '"choices":.*"usage"' | sort -u | wc -l)"
ends "the end of a batch" INT 130
start -m decoder --port 0 --prefix-cache 0
complete >/dev/null
contains "nothing is kept where nothing may be" "$(complete)" '"cached_tokens":0}'
ends "the end of it" INT 130
refused "a batch that is too large" 2 "a batch of 129: it must be from 1 to 128" -m decoder --port 0 --batch 129
refused "a batch of none" 2 "--batch" -m decoder --port 0 --batch 0
refused "two models" 2 "--model is given twice" -m pair -m decoder --port 0
refused "more than can be kept" 2 "--prefix-cache" -m decoder --port 0 --prefix-cache 9000000000000

# ---- memory comes back ----
# resident: kilobytes of the server.
resident() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$server/status"; }
if [ "${4-none}" != none ] || [ ! -r /proc/self/status ]; then
    skipped "memory comes back after a burst: sanitizers keep what is freed"
else
    start -m pair --port 0
    texts=$(yes "\"$(printf 'the cat sat on the mat %.0s' $(seq 25))\"" | head -64 | paste -sd,)
    burst="{\"input\":[$texts]}"
    embed() { ask "$port" 'POST /v1/embeddings' "Content-Type: application/json\r\nContent-Length: ${#burst}\r\n" "$burst"; }
    embed >/dev/null # threads and their tables stay
    before=$(resident)
    for i in $(seq 24); do
        embed >"burst.$i" &
        clients[$i]=$!
    done
    wait "${clients[@]}"
    same "a burst is answered" 24 "$(grep -l '^HTTP/1.1 200' burst.* | wc -l)"
    for i in $(seq 300); do
        after=$(resident)
        [ "$after" -le $((before * 13 / 10)) ] && break
        sleep 0.1
    done
    if [ "$after" -le $((before * 13 / 10)) ]; then
        ok "memory comes back after a burst"
    else not_ok "memory comes back after a burst" "$before KiB before, $after KiB after"; fi
    ends "it ends after a burst" TERM 143
fi

# ---- a line of several sentences: one rule for the server and the command ----
for i in 1 2 3 4 5 6 7 8 9 10; do printf 'I love you.\t我爱你。\nThe cat sat.\t猫坐着。\n'; done >zh.tsv
check "a translator" "$qkv" train translate --train zh.tsv --split 0 --tokens characters --layers 1 --dim 32 --heads 2 --inner 64 \
    --max-tokens 64 --epochs 40 --lr 0.01 --schedule constant --dropout 0 --quiet --out zh
text='I love you. The cat sat. I love you.'
body="{\"q\": \"$text\", \"source\": \"en\", \"target\": \"zh\"}"
start -m zh --port 0 --languages en zh
same "the same translation" "{\"translatedText\":\"$("$qkv" translate -m zh "$text")\"}" \
    "$(ask "$port" 'POST /translate' "Content-Type: application/json\r\nContent-Length: ${#body}\r\n" "$body" | tail -n 1 | tr -d '\r')"
same "sentence by sentence, without a space" "$(printf '%s\n' 'I love you.' 'The cat sat.' 'I love you.' | "$qkv" translate -m zh | tr -d '\n')" \
    "$("$qkv" translate -m zh "$text")"
refuse "which is not that of the whole line" test "$("$qkv" translate -m zh --split never "$text")" = "$("$qkv" translate -m zh "$text")"
ends "it ends" INT 130

# ---- a token ----
start -m pair --port 0 --host 0.0.0.0 --token secret
same "the printed address has the token" "/#token=secret" "/${address#*:*:[0-9]*/}"
host=${address#http://}
host=${host%%:*}
exec 3<>"/dev/tcp/$host/$port"
printf 'GET /health HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\n\r\n' "$host" "$port" >&3
contains "the printed address answers" "$host $(cat <&3)" "HTTP/1.1 200"
exec 3>&-
[ "$host" != 0.0.0.0 ] && ok "others can open it" || not_ok "others can open it" "$address"
contains "it is asked for" "$(ask "$port" 'GET /info')" "HTTP/1.1 401" "WWW-Authenticate: Bearer"
contains "and let in" "$(ask "$port" 'GET /info' 'Authorization: Bearer secret\r\n')" "HTTP/1.1 200"
contains "the page needs none" "$(ask "$port" 'GET /')" "HTTP/1.1 200"
ends "the end" INT 130
printf 'from a file\n' >bad.token
printf 'filed\r\nmore\n' >token
start -m pair --port 0 --token-file token
same "a token of a file is not printed" "http://127.0.0.1:$port" "$address"
contains "it is asked for" "$(ask "$port" 'GET /info')" "HTTP/1.1 401"
contains "and let in" "$(ask "$port" 'GET /info' 'Authorization: Bearer filed\r\n')" "HTTP/1.1 200"
ends "the end of a file's" INT 130
export QKV_TOKEN=variable
start -m pair --port 0 --host 127.0.0.1
same "a token of the environment is not printed" "http://127.0.0.1:$port" "$address"
contains "it is let in" "$(ask "$port" 'GET /info' 'Authorization: Bearer variable\r\n')" "HTTP/1.1 200"
contains "LibreTranslate's key too" "$(ask "$port" 'GET /languages?api_key=variable')" "HTTP/1.1 200"
ends "the end of a variable's" INT 130
start -m pair --port 0 --token-file token
contains "a file comes before the environment" "$(ask "$port" 'GET /info' 'Authorization: Bearer filed\r\n')" "HTTP/1.1 200"
ends "the end of both" INT 130
unset QKV_TOKEN
: >empty.token
head -c 5000 /dev/zero | tr '\0' x >long.token
refused "a token and a file" 2 "choose one" -m pair --port 0 --token x --token-file token
refused "a file that is not there" 3 "none.token: cannot be opened" -m pair --port 0 --token-file none.token
refused "a folder" 3 "cannot be read" -m pair --port 0 --token-file .
refused "an empty file" 4 "first line is empty" -m pair --port 0 --token-file empty.token
refused "a long token" 4 "at most 4096 bytes" -m pair --port 0 --token-file long.token
refused "a token of words" 2 "visible ASCII" -m pair --port 0 --token-file bad.token
refused "--host without --token" 2 "it needs --token" -m pair --port 0 --host 0.0.0.0
refused "--host of this machine without --token" 2 "it needs --token" -m pair --port 0 --host 127.0.0.1
refused "a token with a space" 2 "token" -m pair --port 0 --token 'a b'
refused "an address that is not this machine's" 3 "cannot listen" -m pair --port 0 --host 203.0.113.7 --token t

# ---- bad options ----
refused "no model" 2 "--model is missing" --port 0
refused "a model that is not there" 3 "none: there is no such folder" -m none
refused "a model without tokenizer" 2 "no tokenizer" -m ids --port 0
refused "a port that is none" 2 "ports are 0 to 65535" -m pair --port 65536
refused "a port that is no number" 2 "--port" -m pair --port x
refused "one language" 2 "two codes" -m pair --port 0 --languages en
refused "three languages" 2 "two codes" -m pair --port 0 --languages en zh de
# ---- a model's file that changes under the server ----
cp -r pair cut
start -m cut --port 0 --languages en zh
body='{"q": "I love you", "source": "en", "target": "zh"}'
translate() { ask "$port" 'POST /translate' "Content-Type: application/json\r\nContent-Length: ${#body}\r\n" "$body"; }
contains "it translates" "$(translate)" "HTTP/1.1 200"
# told PIECE: waits until the server has said it.
told() { until grep -qF "$1" server.err; do sleep 0.05; done; }
: >cut/model.safetensors
told "cannot be loaded; the old model is still served: cut/model.safetensors"
contains "a model whose file is cut is served on" "$(translate)" "HTTP/1.1 200"
cp pair/model.safetensors cut/model.safetensors
told "cut was loaded again"
contains "whole again, it is loaded" "$(translate)" "HTTP/1.1 200"
kill -HUP "$server"
until [ "$(grep -c 'loaded again' server.err)" = 2 ]; do sleep 0.05; done
contains "SIGHUP loads it too" "$(translate)" "HTTP/1.1 200"
same "each is told once" 3 "$(wc -l <server.err)"
: >server.err
ends "the server has lived on" INT 130

"$on_terminal" 80 "$qkv" serve -m pair --port 0 >said 2>&1 &
terminal=$!
until grep -q http said; do sleep 0.05; done
server=$(pgrep -P "$terminal")
kill -KILL "$terminal"
wait "$terminal" 2>/dev/null
for i in $(seq 200); do [ -d "/proc/$server" ] && ! grep -q '^State:.Z' "/proc/$server/status" || break; sleep 0.05; done
[ "$i" -lt 200 ] && ok "it ends with its terminal" || not_ok "it ends with its terminal" "process $server"
finish
