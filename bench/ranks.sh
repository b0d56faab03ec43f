#!/bin/sh
# Updates of a training on hosts of one core each, joined by slow links, beside what tools/simulate-cluster says of them. Root, ip, tc and Open MPI
# are needed (tests/hosts.sh), and two cores that nobody else uses.
# usage: bench/ranks.sh QKV FOLDER PART...      measures the parts, keeps them in FOLDER and prints all that are there
#        compute   two processes at once, each with the micro-batches of one of two ranks, that do not speak to each other
#        quarter   the same with half as many: the rest is what an update takes without any
#        free      two ranks, and the links as fast as they are here: what the processors spend on copying
#        RATE      two ranks, such as 250mbit 500mbit 1gbit
#        4@RATE    four ranks on the two cores
set -u
[ $# -ge 2 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
tests=$(realpath "$(dirname "$0")/../tests")
simulate=$(realpath "$(dirname "$0")/../tools/simulate-cluster")
qkv=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
shift 2
. "$tests/hosts.sh"
trap drop_hosts EXIT
trap 'exit 1' HUP INT TERM
cd "$folder" || exit 1

[ -e pairs.tsv ] || { "$qkv" example translate --out made >/dev/null 2>&1 && head -n 3000 made/train.tsv >pairs.tsv; }
train="train translate --train pairs.tsv --paper --dim 256 --heads 4 --layers 2 --inner 1024 --vocab 1000 --patience 0 --threads 1 --steps 12
    --save-every 0 --log-every 1 --quiet"

# The median of the last 10 of 12 updates.
median_step() { sed -n 's/.*"seconds": \([0-9.]*\)}.*/\1/p' "$1/log.jsonl" | awk 'NR > 2 { print $1 - last } { last = $1 }' | sort -n | sed -n '5p;6p' | awk '{ s += $1 } END { print s / 2 }'; }

# A part of the update on each core, in so many micro-batches.
measure_alone() {
    rm -rf alone0 alone1
    # shellcheck disable=SC2086
    for core in 0 1; do taskset -c $core "$qkv" $train --max-tokens $((128 * $1)) --micro-batches "$1" --out alone$core & done
    wait
    median_step alone0
}

# measure_ranks N RATE
measure_ranks() {
    rm -rf ranks
    make_hosts "$1"
    [ "$2" = free ] || limit_hosts "$2"
    # shellcheck disable=SC2016,SC2086
    on_hosts "$1" sh -c 'exec taskset -c $((OMPI_COMM_WORLD_RANK % 2)) "$@"' sh "$qkv" $train --max-tokens 1024 --micro-batches 8 --out "$folder/ranks" >&2
    drop_hosts
    median_step ranks
}

for part in "$@"; do
    case $part in
        compute) measure_alone 4 ;;
        quarter) measure_alone 2 ;;
        *@*) measure_ranks "${part%@*}" "${part#*@}" ;;
        *) measure_ranks 2 "$part" ;;
    esac >"$part.new"
    mv "$part.new" "$part"
done

# What was measured, and what is predicted from compute, quarter and free alone.
[ -e compute ] && [ -e quarter ] && [ -e free ] || exit 0
params=$(sed -n 's/.*"parameters": \([0-9]*\).*/\1/p' alone0/training.json)
awk -v p="$params" -v compute="$(cat compute)" -v quarter="$(cat quarter)" -v free="$(cat free)" 'BEGIN {
    leaf = (compute - quarter) / 2
    if (leaf > compute / 4) leaf = compute / 4 # they were disturbed
    copy = free > compute ? 8 * p / (free - compute) : 1e12
    print leaf, compute - 4 * leaf, copy }' >terms
read -r leaf update copy <terms
echo "$params weights; a micro-batch $leaf s, an update without any $update s; $copy bytes/s are copied"
for part in *bit; do
    n=2 rate=$part
    case $part in *@*) n=${part%@*} rate=${part#*@} ;; esac
    link=$(echo "$rate" | sed 's/gbit/e9/; s/mbit/e6/')
    # n/2 ranks on a core take their turns
    each() { awk -v x="$1" -v n="$n" "BEGIN { print $2 }"; }
    said=$("$simulate" params="$params" compute="$(each "$leaf" '8 * x * n / 2')" update="$(each "$update" 'x * n / 2')" micro=8 ranks="$n" jitter=0 \
        link="$link" copy="$(each "$copy" 'x * 2 / n')" message=2e-5 latency=1e-4)
    step=${said##*step }
    echo "$part: measured $(cat "$part"), predicted $step, $(awk -v m="$(cat "$part")" -v p="$step" 'BEGIN { printf "%+.0f%%", 100 * (p / m - 1) }') ($said)"
done
