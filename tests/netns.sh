#!/bin/sh
# netns.sh: ranks on hosts with addresses of their own, by Open MPI and MPICH over tcp: they train and translate together, and a link that is cut ends
# all of them. It needs root, ip and tc. usage: netns.sh QKV [SECONDS], of silence before a rank is given up: the usual 20 unless given
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1")
elastic=$(realpath "$(dirname "$0")/../tools/elastic")
export QKV_MPI_SILENCE="${2:-20}"
. "$(dirname "$0")/hosts.sh"
trap 'drop_hosts; rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
cd "$folder" || exit 1

why=$(hosts_missing)
plugin=$(dirname "$qkv")/../src/libqkv-mpi-openmpi.so
if [ -z "$why" ] && ! { [ -e "$plugin" ] && mpirun --version 2>/dev/null | grep -q "Open MPI"; }; then
    why="there is no plugin for Open MPI, or no mpirun (tools/deps mpi)"
fi
[ -n "$why" ] || make_hosts 4 2>err || why="no namespaces can be made here: $(cat err)"
if [ -n "$why" ]; then skipped "hosts: $why"; finish; exit; fi

"$qkv" example translate --out made >/dev/null 2>&1
head -n 203 made/train.tsv >pairs.tsv && head -n 20 made/valid.tsv >valid.tsv && cut -f1 pairs.tsv >source.txt
train="train translate --train pairs.tsv --valid valid.tsv --paper --dim 16 --heads 2 --layers 1 --inner 32 --vocab 300 --dropout 0.1
    --max-tokens 128 --patience 0 --threads 1 --valid-every 0 --save-every 10 --micro-batches 8"
files() { cat "$1/checkpoint.safetensors" "$1/model.safetensors" | cksum; }
running() { for k in 1 2 3 4; do ip netns pids "$hosts_prefix-$k"; done | xargs -r ps -o comm= -p | grep -c '^qkv$'; }

# launched N FOLDER COMMAND...: on_hosts; again, without the folder if one is named, where the launcher itself failed. mpirun 4.1.4 crashes now and then
# when a rank's library has something to tell (pmix_server_log_fn), and may not reach the others' daemons at once when a cable is back.
launched() {
    n=$1 made=$2
    shift 2
    for attempt in 1 2 3; do
        on_hosts "$n" timeout 60 "$@" >out 2>err && return
        cat err
        grep -q "start one or more daemons\|pmix_server_log_fn" err || return
        [ -z "$made" ] || rm -rf "$made"
        sleep "$attempt"
    done
}

# shellcheck disable=SC2086
{
    "$qkv" $train --quiet --steps 400 --out one
    "$qkv" translate -m one -i source.txt >translated
    for n in 2 4; do
        launched $n n$n "$qkv" $train --steps 400 --out n$n
        contains "$n hosts: what they are" "$(cat err)" "$n ranks on $n hosts"
        same "$n hosts: the same bytes" "$(files one)" "$(files n$n)"
        launched $n "" "$qkv" translate -m one -i source.txt --quiet
        check "$n hosts: the same translations" cmp translated out
    done
    if [ -e "$(dirname "$qkv")/../src/libqkv-mpi-mpich.so" ] && command -v mpirun.mpich >/dev/null 2>&1; then
        on_hosts_mpich 2 timeout 60 "$qkv" $train --steps 400 --out mpich >out 2>err || cat err
        same "2 hosts, MPICH: the same bytes" "$(files one)" "$(files mpich)"
    else
        skipped "2 hosts, MPICH: there is no plugin for it, or no mpirun.mpich"
    fi

    has_begun() { for wait in $(seq 100); do [ -e "$1/checkpoint.safetensors" ] && break; sleep 0.2; done; }
    # a cable is taken away while they train: cut N K, of N hosts the K-th
    cut() {
        on_hosts "$1" "$qkv" $train --quiet --steps 1000000 --out cut$1 >cut$1.out 2>cut$1.err &
        has_begun cut$1
        cut_host "$2"
        began=$(date +%s)
        wait $!
        took=$(($(date +%s) - began))
        [ $took -le 60 ] && ok "$1 hosts, one is cut off: mpirun ends within 60 seconds" || not_ok "$1 hosts, one is cut off: mpirun ends within 60 seconds" "$took"
        contains "and says which" "$(cat cut$1.err)" "rank $(($2 - 1)) on host$2 has not answered for $QKV_MPI_SILENCE seconds: it is stopped, or cut off"
        while [ "$(running)" != 0 ] && [ $(($(date +%s) - began)) -lt 60 ]; do sleep 1; done
        same "and no rank is left" 0 "$(running)"
        join_host "$2"
    }
    # ... goes on, with another number of them, to the bytes of a training that was not stopped
    resumes() {
        step=$(($(tail -n 1 cut$1/log.jsonl | sed 's/.*"step": \([0-9]*\).*/\1/') + 500))
        "$qkv" $train --quiet --steps $step --out whole$1
        launched $2 "" "$qkv" $train --resume --steps $step --out cut$1
        same "$1 hosts, then $2: the same bytes" "$(files whole$1)" "$(files cut$1)"
        same "$1 hosts: nothing half-written is left" "" "$(ls cut$1 | grep tmp)" # a rank may be waiting in a save when it is ended
    }
    if [ "$QKV_MPI_SILENCE" = 20 ]; then # not where there is little time
        cut 2 2
        resumes 2 2
    fi
    cut 4 3
    resumes 4 3

    # a loop around the launcher goes on by itself
    "$qkv" $train --quiet --steps 1000 --out whole
    on_host 1 "$elastic" -H "$(host_list 3)" -o "$(hosts_options)" "$qkv" $train --quiet --steps 1000 --out elastic >out 2>err &
    has_begun elastic
    cut_host 3
    wait $!
    same "elastic: a host of 3 is cut off, status" 0 $?
    contains "goes on with those that are left" "$(cat err)" "elastic: rank or host" "is lost: going on with 2"
    same "to the same bytes" "$(files whole)" "$(files elastic)"
}
finish
