#!/bin/sh
# elastic.sh: a training whose ranks die one after the other goes on with those that are left. usage: elastic.sh QKV SIGNAL_AT
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1")
shim=$(realpath "$2")
elastic=$(realpath "$(dirname "$0")/../tools/elastic")
cd "$folder" || exit 1

"$elastic" -n 2 "$qkv" >out 2>err
same "elastic: no command, status" 2 $?
"$elastic" -n two "$qkv" train translate --out x >out 2>err
same "no number: status" 2 $?
contains "and why" "$(cat err)" "\"two\" is no number of ranks"
"$elastic" "$qkv" train translate --train x >out 2>err
contains "no folder: why" "$(cat err)" "--out is needed"
if ! { [ -e "$(dirname "$qkv")/../src/libqkv-mpi-openmpi.so" ] && mpirun --version 2>/dev/null | grep -q "Open MPI"; }; then
    skipped "elastic: there is no plugin for Open MPI, or no mpirun (tools/deps mpi)"
    finish
    exit
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none

"$qkv" example translate --out made >/dev/null 2>&1
head -n 203 made/train.tsv >pairs.tsv
train="train translate --train pairs.tsv --paper --dim 16 --heads 2 --layers 1 --inner 32 --vocab 300 --max-tokens 256 --patience 0 --threads 1
    --save-every 4 --micro-batches 8 --quiet --steps 40"
files() { cat "$1/checkpoint.safetensors" "$1/model.safetensors" | cksum; }
# dies N MOMENT COMMAND...: rank 1 dies there, once
dies() {
    mkdir notes
    n=$1 moment=$2
    shift 2
    timeout 100 "$elastic" -n "$n" -o "--oversubscribe --bind-to none" env LD_PRELOAD="$shim" QKV_SIGNAL="1 9 $moment" QKV_SIGNAL_FOLDER="$folder/notes" "$@"
    status=$?
    rm -r notes
    return $status
}
# shellcheck disable=SC2086
{
    "$qkv" $train --out whole
    dies 3 "reduce 40" "$qkv" $train --out lost >out 2>err
    same "rank 1 of 3 dies: status" 0 $?
    contains "it goes on with 2" "$(cat err)" "elastic: rank or host 1 is lost: going on with 2"
    same "to the same bytes" "$(files whole)" "$(files lost)"
    dies 2 "reduce 1" "$qkv" $train --out early >out 2>err
    same "rank 1 of 2 dies before the first checkpoint" "$(files whole)" "$(files early)"
    "$elastic" -n 2 -o "--oversubscribe" "$qkv" train translate --train none.tsv --out bad >out 2>err
    same "an error of qkv's own: status" 3 $?
    same "is not tried again" 1 "$(grep -c 'none.tsv: cannot open' err)"
    if [ -e "$(dirname "$qkv")/../src/libqkv-mpi-mpich.so" ] && command -v mpirun.mpich >/dev/null 2>&1; then
        mkdir notes
        ELASTIC_LAUNCHER=mpirun.mpich timeout 100 "$elastic" -n 3 env LD_PRELOAD="$shim" QKV_SIGNAL="1 9 reduce 120" QKV_SIGNAL_FOLDER="$folder/notes" "$qkv" $train --out mpich >out 2>err
        same "MPICH, rank 1 of 3 dies: status" 0 $?
        contains "it goes on with 2" "$(cat err)" "is lost: going on with 2"
        same "to the same bytes" "$(files whole)" "$(files mpich)"
        printf '#!/bin/sh\n[ "$PMI_RANK" != 1 ] || set -- $(echo "$@" | sed "s#whole/tokenizer.json#none.json#")\nexec "%s" "$@"\n' "$qkv" >one_errs && chmod +x one_errs
        ELASTIC_LAUNCHER=mpirun.mpich timeout 60 "$elastic" -n 2 ./one_errs $train --tokenizer whole/tokenizer.json --out bad >out 2>err
        same "MPICH, an error of one rank: status" 3 $?
        same "is not tried again" "" "$(grep 'is lost' err)"
    else
        skipped "MPICH: there is no plugin for it, or no mpirun.mpich"
    fi
}
finish
