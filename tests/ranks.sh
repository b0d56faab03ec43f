#!/bin/sh
# ranks.sh: trainings and lines shared by ranks, as mpirun starts them: the same bytes as one process. usage: ranks.sh QKV
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1")
cd "$folder" || exit 1

# ---- without a launcher ----
size="--paper --dim 16 --heads 2 --layers 1 --inner 32 --vocab 300 --dropout 0.1 --max-tokens 128 --patience 0 --quiet --threads 1"
"$qkv" example translate --out made >/dev/null 2>&1
head -n 203 made/train.tsv >pairs.tsv && head -n 20 made/valid.tsv >valid.tsv
translate="train translate --train pairs.tsv --valid valid.tsv $size --valid-every 7"
awk -F'\t' '{ print (length($1) % 2 ? "odd" : "even") "\t" $1 }' pairs.tsv >labels.tsv
cut -f1 pairs.tsv >lines.txt && cut -f1 valid.tsv >valid.txt
classify="train classify --train labels.tsv $size --tokens words"
generate="train generate --train lines.txt --valid valid.txt $size --documents lines"
mask="train mask --train lines.txt --valid valid.txt $size --documents lines"
files() { cat "$1/checkpoint.safetensors" "$1/model.safetensors" | cksum; }
passes() { head -c 20000 "$1/checkpoint.safetensors" | grep -ao '"passes":"[0-9]*"' | tr -dc 0-9; }

# shellcheck disable=SC2086
{
    "$qkv" $translate --micro-batches 8 --update-freq 2 --steps 30 --out one
    wanted=$(files one)
    "$qkv" $translate --micro-batches 8 --update-freq 2 --steps 11 --out stopped
    "$qkv" $translate --micro-batches 8 --update-freq 2 --steps 30 --resume --out stopped
    same "micro-batches: stopped and resumed" "$wanted" "$(files stopped)"
    "$qkv" $translate --micro-batches 8 --update-freq 2 --steps 30 --threads 2 --out threads
    same "micro-batches: at 2 threads" "$wanted" "$(files threads)"
    "$qkv" $translate --micro-batches 4 --update-freq 2 --steps 30 --out other
    if [ "$wanted" = "$(files other)" ]; then not_ok "another number of them sums otherwise"; else ok "another number of them sums otherwise"; fi
    run=$("$qkv" $translate --micro-batches 5000 --steps 3 --out toomany 2>&1)
    same "too many are refused" 2 $?
    contains "and why" "$run" "5000 micro-batches"
}
QKV_MPI=unheard "$qkv" train translate --train pairs.tsv --out x 2>err
same "a plugin that is none: status" 2 $?
contains "and why" "$(cat err)" "expected openmpi, mpich or none"

# ---- with one ----
if [ -e "$(dirname "$qkv")/../src/libqkv-mpi-openmpi.so" ] && command -v mpirun >/dev/null 2>&1 && mpirun --version 2>/dev/null | grep -q "Open MPI"; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
    launch="mpirun --oversubscribe --bind-to none"
    # ranks N ARGUMENTS...
    ranks() { n=$1; shift; timeout 60 $launch -n "$n" "$qkv" "$@"; }
    if ! said=$(timeout 60 $launch -n 2 true 2>&1); then skipped "ranks: mpirun does not run here: $said"; finish; exit; fi
else
    skipped "ranks: there is no plugin for Open MPI, or no mpirun (tools/deps mpi)"
    finish
    exit
fi

# shellcheck disable=SC2086
{
    # every job, with accumulation: 30 updates of 5 batches of 8 micro-batches, but for the last of an epoch, which has fewer
    for job in translate classify generate mask; do
        eval "command=\"\$$job --update-freq 5 --steps 30\""
        "$qkv" $command --micro-batches 8 --out $job.one 2>err || cat err
        [ "$(passes $job.one)" -lt 1200 ] && ok "$job: an epoch ends with a part of an update" || not_ok "$job: an epoch ends with a part of an update"
        for n in 1 2 3 4; do
            ranks $n $command --out $job.$n 2>err || cat err
            same "$job: $n ranks, the same bytes" "$(files $job.one)" "$(files $job.$n)"
        done
        QKV_ISA=baseline "$qkv" $command --micro-batches 8 --out $job.lower
        timeout 60 $launch -n 1 "$qkv" $command --out $job.isa : -n 1 -x QKV_ISA=baseline "$qkv" $command --out $job.isa 2>err
        same "$job: one rank with a lower instruction set" "$(files $job.lower)" "$(files $job.isa)"
    done
    ranks 2 $translate --update-freq 2 --steps 13 --out less 2>err || cat err
    { cat labels.tsv && head -n 9 labels.tsv && printf 'ODD\ta text\n\tno label\n'; } >messy.tsv
    counts() { grep -E '^(qkv: messy|texts|duplicates|validation|classes)' err; }
    messy="$(echo "$classify" | sed 's/labels.tsv/messy.tsv/; s/--quiet//') --valid messy.tsv --merge-labels --steps 2"
    "$qkv" $messy --out messy.one 2>err
    counts >counted
    contains "what is counted of labelled text" "$(cat counted)" "2 labels that differ only in case" "duplicates  9 of the training texts"
    ranks 3 $messy --out messy.3 2>err
    same "3 ranks count the same" "$(cat counted)" "$(counts)"
    check "3 ranks go on from 2" ranks 3 $translate --update-freq 2 --steps 22 --resume --out less
    "$qkv" $translate --update-freq 2 --steps 30 --resume --out less 2>err || cat err
    same "2 ranks, then 3, then none" "$wanted" "$(files less)"
    # only rank 0 reaches the checkpoint
    ranks 2 $translate --update-freq 2 --steps 13 --out near 2>err || cat err
    mkdir far && cp near/training.json far
    timeout 60 $launch -n 1 "$qkv" $translate --update-freq 2 --steps 30 --resume --out near : \
        -n 2 "$qkv" $translate --update-freq 2 --steps 30 --resume --out far 2>err || cat err
    same "a checkpoint that only rank 0 reaches" "$wanted" "$(files near)"

    # only rank 0 has the text
    mkdir empty
    for job in translate classify generate mask; do
        eval "command=\"\$$job --update-freq 5 --steps 30\""
        timeout 60 $launch -n 1 "$qkv" $command --out $job.near : -n 2 -wdir "$folder/empty" "$qkv" $command --out far 2>err || cat err
        same "$job: text that only rank 0 has" "$(files $job.one)" "$(files $job.near)"
    done
    by_bleu="$translate --metric bleu --steps 14"
    several="train classify --train several.tsv --valid several.tsv --label-separator , $size --tokens words --steps 8 --valid-every 4"
    numbers="train classify --train numbers.tsv --valid numbers.tsv --numbers $size --tokens words --steps 8 --valid-every 4"
    balanced="$classify --valid labels.tsv --balance --steps 8 --valid-every 4"
    awk -F'\t' '{ print (length($1) % 2 ? "odd" : "even") (NR % 3 ? "" : ",third") "\t" $1 }' pairs.tsv >several.tsv
    awk -F'\t' '{ print length($1) / 10 "\t" $1 }' pairs.tsv >numbers.tsv
    for kind in by_bleu several numbers balanced; do
        eval "command=\$$kind"
        check "$kind: one process" "$qkv" $command --micro-batches 8 --out $kind.one
        timeout 60 $launch -n 1 "$qkv" $command --out $kind.near : -n 2 -wdir "$folder/empty" "$qkv" $command --out far 2>err || cat err
        same "$kind: text that only rank 0 has" "$(files $kind.one)" "$(files $kind.near)"
    done
    same "nothing is left where the others ran" "" "$(ls -A empty)"
    timeout 60 $launch -n 1 "$qkv" $by_bleu --out bad.near : -n 1 -wdir "$folder/empty" "$qkv" $translate --steps 14 --out far 2>err
    same "ranks that measure otherwise: status" 2 $?
    contains "and why" "$(cat err)" "has other bytes of the options"

    ranks 2 --lang zh train translate --train none.tsv --out bad >out 2>err
    contains "in Chinese" "$(cat err)" "2 个进程，在 1 台主机上" "指令集"

    # a model of several buckets: its optimizer's state is on all ranks
    wide="$translate --dim 96 --inner 384 --layers 3"
    "$qkv" $wide --micro-batches 8 --update-freq 2 --steps 12 --out wide 2>err || cat err
    for n in 2 4; do
        ranks $n $wide --update-freq 2 --steps 12 --out wide.$n 2>err || cat err
        same "several buckets: $n ranks, the same bytes" "$(files wide)" "$(files wide.$n)"
    done
    ranks 3 $wide --update-freq 2 --steps 4 --out wide.3 2>err || cat err
    ranks 2 $wide --update-freq 2 --steps 7 --resume --out wide.3 2>err || cat err
    ranks 4 $wide --update-freq 2 --steps 9 --resume --out wide.3 2>err || cat err
    "$qkv" $wide --update-freq 2 --steps 12 --resume --out wide.3 2>err || cat err
    same "3 ranks, then 2, then 4, then none" "$(files wide)" "$(files wide.3)"

    # the peak of each rank, looked at every 0.2 s
    large="$translate --dim 320 --inner 1280 --layers 4 --max-tokens 64 --micro-batches 4 --steps 1"
    peaks() { rm -rf large; timeout 60 $launch -n $1 ./watched "$qkv" $large --out large 2>err || cat err; cat peak.* && rm -f peak.*; }
    cat >watched <<-'END'
	#!/bin/sh
	"$@" & p=$!
	while peak=$(grep VmHWM /proc/$p/status 2>/dev/null); do echo "${peak#*:}" >peak.$OMPI_COMM_WORLD_RANK; sleep 0.2; done
	wait $p
	END
    chmod +x watched
    alone=$(peaks 1 | awk '{ print $1 }')
    peaks 4 >shared
    less=$(($(wc -c <large/model.safetensors) / 1024 * 2 * 3 / 4))
    same "each of 4 ranks needs less memory than one, by at least 3/4 of the optimizer's state" "4" \
        "$(awk -v alone="$alone" -v less="$less" 'alone - $1 > 0.9 * less { n++ } END { print n + 0 }' shared)"

    # errors
    ranks 3 train translate --train none.tsv --steps 3 --out bad >out 2>err
    same "an error of all: status" 3 $?
    same "is said once" 1 "$(grep -c 'none.tsv: cannot open' err)"
    ranks 3 $translate --steps 12 --out wide >out 2>err
    same "a folder that rank 0 refuses: status" 2 $?
    same "is said once" 1 "$(grep -c 'wide holds a training already' err)"
    same "and not as the error of one rank" 0 "$(grep -c 'all ranks end' err)"
    timeout 60 $launch -n 1 "$qkv" $translate --steps 12 --save-every 5 --out differ : -n 1 "$qkv" $translate --steps 12 --save-every 4 --out differ >out 2>err
    same "ranks that would save at other steps: status" 2 $?
    contains "and why" "$(cat err)" "rank 1 has other bytes of the options than rank 0"
    timeout 60 $launch -n 1 "$qkv" $translate --steps 12 --out differ : -n 1 "$qkv" $translate --steps 12 --tokenizer one/tokenizer.json --out differ >out 2>err
    same "ranks that would learn and be given a tokenizer: status" 2 $?
    contains "and why" "$(cat err)" "rank 1 has other bytes of the options than rank 0"
    timeout 60 $launch -n 1 "$qkv" $translate --tokenizer one/tokenizer.json --steps 12 --out bad : \
        -n 1 "$qkv" $translate --tokenizer none.json --steps 12 --out bad >out 2>err
    same "an error of one rank: status" 3 $?
    contains "names the rank" "$(cat err)" "none.json: cannot open: No such file or directory (rank 1 on $(uname -n))"
    # rank 0's text is everybody's, and so are its tokenizer and what is chosen; nothing of it stays in the folder
    timeout 60 $launch -n 1 "$qkv" $generate --steps 30 --update-freq 5 --out text.0 : \
        -n 1 "$qkv" train generate --train none.txt --valid none.txt $size --documents lines --steps 30 --update-freq 5 --out text.0 >out 2>err || cat err
    same "a text is read by one rank" "$(files generate.one)" "$(files text.0)"
    same "and nothing of it stays" "" "$(find text.0 generate.3 -name '*.tmp')"
    "$qkv" $translate --micro-batches 8 --separate --steps 5 --out two.one 2>err || cat err
    timeout 60 $launch -n 1 "$qkv" $translate --separate --steps 5 --out two.2 : \
        -n 1 "$qkv" train translate --train none.tsv --valid none.tsv $size --valid-every 7 --separate --steps 5 --out two.2 >out 2>err || cat err
    same "both tokenizers are learned by one rank" "$(files two.one)" "$(files two.2)"
    "$qkv" train translate --train pairs.tsv --micro-batches 8 --steps 3 --quiet --threads 1 --out chosen.one 2>err || cat err
    timeout 60 $launch -n 1 "$qkv" train translate --train pairs.tsv --steps 3 --quiet --threads 1 --out chosen.2 : \
        -n 1 "$qkv" train translate --train none.tsv --steps 3 --quiet --threads 1 --out chosen.2 >out 2>err || cat err
    same "what is not set is chosen by one rank" "$(files chosen.one)" "$(files chosen.2)"
    QKV_MPI_SILENCE=soon ranks 2 $translate --steps 3 --out bad >out 2>err
    same "seconds of silence that are none: status" 2 $?
    contains "and why" "$(cat err)" 'QKV_MPI_SILENCE is "soon", expected seconds from 2 to 3600'
    ranks 9 $translate --micro-batches 8 --steps 3 --out bad >out 2>err
    same "more ranks than micro-batches: status" 2 $?

    timeout 60 $launch -n 1 "$qkv" translate -m one -i lines.txt --quiet : -n 1 "$qkv" translate -m nowhere -i lines.txt --quiet >out 2>err
    same "a model that one rank does not find: status" 3 $?
    contains "names the rank" "$(cat err)" "nowhere" "(rank 1 on $(uname -n))"

    # cores are divided among the ranks that may run on them
    one_core="timeout 60 $launch -n 2 taskset -c $(taskset -pc $$ | sed 's/.*: \([0-9]*\).*/\1/') $qkv translate -m one hello"
    $one_core >out 2>err
    contains "2 ranks on a core: threads" "$(cat err)" "1 thread each"
    contains "and a warning" "$(cat err)" "2 ranks on $(uname -n) share 1 cores"
    $one_core --threads 1 >out 2>err
    contains "also when threads are given" "$(cat err)" "2 ranks on $(uname -n) share 1 cores"
    if [ "$(nproc)" -gt 1 ]; then
        timeout 60 $launch -n 2 sh -c 'cpu=$(taskset -pc $$ | sed "s/.*: //" | tr ",-" "\n\n" | sed -n $((OMPI_COMM_WORLD_RANK + 1))p); exec taskset -c $cpu "$@"' sh \
            "$qkv" translate -m one hello >out 2>err
        same "a core for each rank: no warning" "" "$(grep share err)"
        ranks 2 translate -m one hello --threads 200 >out 2>err
        contains "more threads than cores" "$(cat err)" "2 ranks on $(uname -n) with 200 threads each share $(nproc) cores"
    fi

    # a rank that is killed ends all, and the training goes on
    ranks 2 $translate --update-freq 2 --steps 100000 --save-every 5 --valid-every 1000 --out "$folder/killed" >out 2>err &
    for wait in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do [ -e killed/checkpoint.safetensors ] && break; sleep 0.3; done
    kill -KILL "$(pgrep -n -f "^[^ ]*/qkv .*--out $folder/killed\$")"
    began=$(date +%s)
    wait $!
    [ $(($(date +%s) - began)) -le 10 ] && ok "a killed rank ends all within 10 seconds" || not_ok "a killed rank ends all within 10 seconds"
    same "nothing is left running" "" "$(pgrep -f "^[^ ]*/qkv .*--out $folder/killed\$")"
    contains "the launcher says which" "$(cat err)" "rank" "signal 9"

    # a rank that is asked to end does not wait long for one that says nothing, as when Slurm asks the ranks that a dead one left
    ranks 2 $translate --steps 100000 --save-every 5 --valid-every 1000 --out "$folder/asked" >out 2>err &
    for wait in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do [ -e asked/checkpoint.safetensors ] && break; sleep 0.3; done
    kill -STOP "$(pgrep -n -f "^[^ ]*/qkv .*--out $folder/asked\$")"
    kill -TERM "$(pgrep -o -f "^[^ ]*/qkv .*--out $folder/asked\$")"
    began=$(date +%s)
    wait $!
    [ $(($(date +%s) - began)) -le 10 ] && ok "a rank that was asked to end ends all within 10 seconds" || not_ok "a rank that was asked to end ends all within 10 seconds"
    contains "and says why" "$(cat err)" "has not answered for 4 seconds, and this one was asked to end"

    # lines: in order, also those that are refused
    { cut -f1 pairs.tsv; printf 'a line that is too long %0300d\n' 7; echo; cut -f1 valid.tsv; } >source.txt
    "$qkv" translate -m one -i source.txt --max-source 100 >translated 2>said
    "$qkv" classify -m classify.one -i source.txt >classified 2>/dev/null
    ranks 3 translate -m one --max-source 100 --batch 16 --quiet <source.txt >out 2>err
    same "translate lines: 3 ranks, the status of a refused line" 6 $?
    check "translate lines: 3 ranks, the same output" cmp translated out
    contains "and what is said" "$(cat err)" "$(cat said)"
    head -n 3000 made/train.tsv | cut -f1 >many.txt
    "$qkv" translate -m one -i many.txt --beam 1 --max-length 8 >translated
    ranks 4 translate -m one -i many.txt --beam 1 --max-length 8 --batch 64 >out 2>err || cat err
    check "translate 3000 lines: 4 ranks, the same output" cmp translated out
    idle=$(sed -n 's/.* idle for \([0-9.]*\)% of them$/\1/p' err)
    near "and even shares" 1.5 "${idle:-none}" 1.5
    ranks 3 classify -m classify.one -i source.txt --batch 16 --quiet --out found >out 2>err || cat err
    check "classify lines: 3 ranks, the same output" cmp classified found
    "$qkv" generate -m generate.one -i valid.txt -n 8 --temp 0.9 --seed 3 >generated 2>/dev/null
    ranks 3 generate -m generate.one -n 8 --temp 0.9 --seed 3 <valid.txt >out 2>err || cat err
    check "generate for lines: 3 ranks, the same output" cmp generated out
    for documents in lines files; do
        "$qkv" perplexity -m generate.one lines.txt --documents $documents --context 24 --stride 16 --json >measured
        ranks 3 perplexity -m generate.one lines.txt --documents $documents --context 24 --stride 16 --json >out 2>err || cat err
        check "perplexity of $documents: 3 ranks, every digit" cmp measured out
    done
    "$qkv" embed -m classify.one -i lines.txt >vectors && "$qkv" embed -m classify.one "one text" --quiet --out one.npy
    ranks 3 embed -m classify.one <lines.txt >out 2>err || cat err
    check "embed lines: 3 ranks, the same output" cmp vectors out
    ranks 3 embed -m classify.one "one text" --quiet --out few.npy >out 2>err || cat err
    check "fewer lines than ranks" cmp one.npy few.npy
    printf 'good\n\377\n' | ranks 3 embed -m classify.one >out 2>err
    same "embed: a line that is not UTF-8, status" 0 $?
    same "is said once" 1 "$(grep -c 'line 2: byte 1 is not UTF-8' err)"
    echo '{' >broken.json && cp -r one broken && cp broken.json broken/config.json
    ranks 2 translate -m broken -i source.txt >out 2>err
    same "a broken model: status" 4 $?

    # the other library
    if [ -e "$(dirname "$qkv")/../src/libqkv-mpi-mpich.so" ] && command -v mpirun.mpich >/dev/null 2>&1; then
        for job in translate classify generate mask; do
            eval "command=\"\$$job --update-freq 5 --steps 30\""
            for n in 1 2 3 4; do
                timeout 60 mpirun.mpich -n $n "$qkv" $command --out mpich.$job.$n >out 2>err || cat err
                same "MPICH: $job, $n ranks, the same bytes" "$(files $job.one)" "$(files mpich.$job.$n)"
            done
        done
    else
        skipped "MPICH: there is no plugin for it, or no mpirun.mpich"
    fi
}
finish
