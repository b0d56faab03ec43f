#!/bin/sh
# kills.sh: SIGKILL and SIGSTOP of each rank of a training, while it computes, while it reduces gradients and while rank 0 saves: all ranks are gone in
# time, the checkpoint is whole, and the training goes on, with another number of ranks, to the bytes of one that was never stopped.
# usage: kills.sh QKV SIGNAL_AT few|all       few: two of the forty, with little patience
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1")
shim=$(realpath "$2")
how=${3:-all}
cd "$folder" || exit 1
if ! { [ -e "$(dirname "$qkv")/../src/libqkv-mpi-openmpi.so" ] && mpirun --version 2>/dev/null | grep -q "Open MPI"; }; then
    skipped "kills: there is no plugin for Open MPI, or no mpirun (tools/deps mpi)"
    finish
    exit
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
[ "$how" = all ] || export QKV_MPI_SILENCE=2

"$qkv" example translate --out made >/dev/null 2>&1
head -n 203 made/train.tsv >pairs.tsv && head -n 20 made/valid.tsv >valid.tsv
train="train translate --train pairs.tsv --valid valid.tsv --paper --dim 64 --heads 2 --layers 1 --inner 128 --vocab 300 --dropout 0.1
    --max-tokens 1024 --patience 0 --threads 1 --valid-every 0 --save-every 4 --micro-batches 8 --quiet --steps 24"
files() { cat "$1/checkpoint.safetensors" "$1/model.safetensors" | cksum; }
# shellcheck disable=SC2086
"$qkv" $train --out whole
wanted=$(files whole)

# killed LAUNCHER RANKS RANK SIGNAL MOMENT
killed() {
    name="$(basename "$1") of $2 ranks, rank $3, signal $4, $5"
    rm -rf run && mkdir notes
    options=
    [ "$1" != mpirun ] || options="--oversubscribe --bind-to none"
    case $5 in save) n=2 ;; *) n=120 ;; esac
    case $4 in 9) most=10 ;; *) most=60 ;; esac
    # shellcheck disable=SC2086
    timeout 120 "$1" $options -n "$2" env LD_PRELOAD="$shim" QKV_SIGNAL="$3 $4 $5 $n" QKV_SIGNAL_FOLDER="$folder/notes" \
        "$qkv" $train --out "$folder/run" >out 2>err &
    job=$!
    while [ ! -e notes/sent ] && kill -0 $job 2>/dev/null; do sleep 0.1; done
    began=$(date +%s%N)
    wait $job
    took=$((($(date +%s%N) - began) / 100000000))
    left=$(pgrep -f "^[^ ]*/qkv .*--out $folder/run\$")
    step=$(head -c 300 run/checkpoint.safetensors | tr -cd '[:print:]' | sed -n 's/.*"steps":"\([0-9]*\)".*/\1/p')
    # shellcheck disable=SC2086
    "$qkv" $train --resume --out run >out 2>again
    if [ ! -e notes/sent ]; then not_ok "$name: the signal was not sent" "$(cat err)"
    elif [ $took -gt ${most}0 ]; then not_ok "$name: all are gone after $took tenths of a second, and not $most"
    elif [ -n "$left" ]; then not_ok "$name: processes are left" "$left"
    elif [ "${step:-0}" -lt 4 ] || [ "$step" -ge 24 ]; then not_ok "$name: a checkpoint of its middle" "step $step"
    elif [ "$(files run)" != "$wanted" ]; then not_ok "$name: the same bytes after all" "resumed from step $step" "$(cat err again)"
    elif ls run | grep -q tmp; then not_ok "$name: nothing half-written is left" "$(ls run)"
    else ok "$name: gone after $((took / 10)).$((took % 10)) s, resumed from step $step"; fi
    rm -rf notes
}

if [ "$how" = few ]; then
    killed mpirun 2 1 9 reduce
    killed mpirun 2 0 19 save
else
    for moment in compute reduce save; do
        for signal in 9 19; do
            for rank in 0 1 2 3; do killed mpirun 4 $rank $signal $moment; done
            for rank in 0 1; do killed mpirun 2 $rank $signal $moment; done
        done
    done
    if [ -e "$(dirname "$qkv")/../src/libqkv-mpi-mpich.so" ] && command -v mpirun.mpich >/dev/null 2>&1; then
        for signal in 9 19; do
            for moment in compute save; do killed mpirun.mpich 2 1 $signal $moment; done
        done
    else
        skipped "MPICH: there is no plugin for it, or no mpirun.mpich"
    fi
fi
finish
