#!/bin/sh
# Updates of a training on hosts of one core each, joined by slow links, beside what tools/simulate-cluster says of them. Root, ip, tc and Open MPI
# are needed (tests/hosts.sh), and two cores that nobody else uses.
# usage: bench/ranks.sh QKV FOLDER PART...      measures the parts, adds them to FOLDER and prints all that are there
#        RATE      two ranks of 4 micro-batches each, such as 250mbit 500mbit 1gbit; free: the links as fast as they are here
#        4@RATE    four ranks of 2 micro-batches each on the two cores
#        TOKENSt   two ranks of one micro-batch of so many tokens each at 1 Gbit/s, such as 512t: the overlap
# A machine is not as fast at one moment as at another. So processes that do not speak to each other, with the micro-batches of one rank each, are
# measured right before and right after each part.
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
train="train translate --train pairs.tsv --paper --dim 256 --heads 4 --layers 2 --inner 1024 --vocab 1000 --patience 0 --threads 1
    --save-every 0 --valid-every 1000 --log-every 1 --quiet"

# The seconds of the last 20 of 22 updates, unless fewer are made.
steps=22
steps_of() { sed -n 's/.*"seconds": \([0-9.]*\)}.*/\1/p' "$1/log.jsonl" | awk 'NR > 2 { print $1 - last } { last = $1 }'; }
median() { sort -n "$@" | awk '{ x[NR] = $1 } END { print NR ? (x[int((NR + 1) / 2)] + x[int(NR / 2) + 1]) / 2 : "none" }'; }

# alone NAME PROCESSES TOKENS MICRO_BATCHES: adds what an update takes to NAME.alone: as ranks would wait for it, that of the slowest process
alone() {
    rm -rf alone.[0-9]
    k=0
    while [ $k -lt "$2" ]; do
        # shellcheck disable=SC2086
        taskset -c $((k % 2)) "$qkv" $train --steps $steps --max-tokens "$3" --micro-batches "$4" --out alone.$k &
        k=$((k + 1))
    done
    wait
    for process in alone.[0-9]; do steps_of "$process" >"$process/steps"; done
    paste alone.[0-9]/steps | awk '{ most = 0; for (i = 1; i <= NF; i++) if ($i > most) most = $i; print most }' >>"$1.alone"
}

# ranks NAME RANKS RATE TOKENS MICRO_BATCHES OPTIONS...: adds to NAME
ranks() {
    name=$1 n=$2 rate=$3 tokens=$4 micro=$5
    shift 5
    rm -rf ranks
    make_hosts "$n"
    [ "$rate" = free ] || limit_hosts "$rate"
    # shellcheck disable=SC2016,SC2086
    on_hosts "$n" sh -c 'exec taskset -c $((OMPI_COMM_WORLD_RANK % 2)) "$@"' sh "$qkv" $train --steps $steps --max-tokens "$tokens" --micro-batches "$micro" "$@" --out "$folder/ranks" >&2
    sent=$(tc -n "$hosts_prefix-2" -s qdisc show dev eth0 | sed -n 's/.*Sent \([0-9]*\) bytes.*/\1/p' | head -n 1) # with the headers of frames
    drop_hosts
    steps_of ranks >>"$name"
}

# What the second rank puts on the wire for an update, in bytes: it has no weights to send at the start.
count_bytes() {
    steps=2 && ranks few 2 1gbit 1024 2 && few=$sent
    steps=22 && ranks many 2 1gbit 1024 2
    echo $(((sent - few) / 20)) >wire
    rm -f few many
}

# Few and less micro-batches tell what an update takes without any.
measure() {
    case $1 in
        *[0-9]t)
            alone "$1" 2 "${1%t}" 1
            ranks "$1" 2 1gbit $((2 * ${1%t})) 2
            alone "$1" 2 "${1%t}" 1 ;;
        4@*)
            alone four 4 256 2
            ranks "$1" 4 "${1#4@}" 1024 8
            alone four 4 256 2 ;;
        *)
            alone two 2 512 4
            alone less 2 256 2
            ranks "$1" 2 "$1" 1024 8
            alone less 2 256 2
            alone two 2 512 4 ;;
    esac
}

# Hundredths of a second since the machine started, of all cores, and those that other virtual machines took.
core_time() { awk '/^cpu / { for (i = 2; i <= 9; i++) all += $i; print all, $9 }' /proc/stat; }

[ -e wire ] || count_bytes
for part in "$@"; do
    before=$(core_time)
    measure "$part"
    echo "$before $(core_time)" | awk '{ printf "%.0f", 100 * ($4 - $2) / ($3 - $1) }' >"$part.stolen"
done

# ---- what was measured ----

wire=$(cat wire)
params=$(sed -n 's/.*"parameters": \([0-9]*\).*/\1/p' alone.0/training.json)
# 1448 of the 1514 bytes of a frame are content; half of the weights as what changed and half of the gradients are sent
changed=$(awk -v bytes="$wire" -v p="$params" 'BEGIN { printf "%.2f", bytes * 0.956 / (p / 2) - 4 }')
echo "a rank sends $wire bytes for an update: $changed for a weight that it has updated"
for part in *[0-9]t; do
    [ -e "$part.alone" ] || continue
    awk -v bytes="$wire" -v tokens="${part%t}" -v alone="$(median "$part.alone")" -v exact="$(median "$part")" -v stolen="$(cat "$part.stolen")" 'BEGIN {
        wire = bytes / (1e9 / 8)
        most = alone > wire ? alone : wire
        printf "%s tokens a rank: computing %.3f, transfer %.3f, exact %.3f, which is %.2f times the longer one; %d%% of the cores was stolen\n", tokens, alone, wire, exact, exact / most, stolen }'
done
[ -e two.alone ] && [ -e less.alone ] && [ -e free ] || exit 0
# From processes that do not speak to each other, and what free links add: what is copied on the core that computes.
awk -v p="$params" -v changed="$changed" -v two="$(median two.alone)" -v less="$(median less.alone)" -v free="$(median free)" 'BEGIN {
    leaf = (two - less) / 2
    if (leaf > two / 4) leaf = two / 4 # they were disturbed
    update = two - 4 * leaf
    copying = free - (4 * leaf + update / 2)
    print leaf, update, (copying > 0 ? (4 + changed) * p / copying : 1e12) }' >terms
read -r leaf update copy <terms
echo "$params weights; a micro-batch $leaf s, an update without any $update s; $copy bytes/s are copied"
for part in free *bit; do
    [ -e "$part" ] || continue
    n=2 rate=$part each=$leaf turns=1
    # two ranks take their turns on a core, and each finds its cache used by the other: as four processes show that do not speak
    case $part in 4@*)
        n=4 rate=${part#4@} turns=2
        each=$(awk -v four="$(median four.alone)" -v u="$update" 'BEGIN { print (four - 2 * u) / 2 }') ;;
    esac
    link=$(echo "$rate" | sed 's/gbit/e9/; s/mbit/e6/; s/free/1e11/')
    said=$("$simulate" params="$params" changed="$changed" table=256000 compute="$(awk -v x="$each" 'BEGIN { print 8 * x }')" update="$(awk -v x="$update" -v t=$turns 'BEGIN { print t * x }')" \
        micro=8 ranks=$n jitter=0 link="$link" copy="$(awk -v x="$copy" -v t=$turns 'BEGIN { print x / t }')" message=2e-5 latency=1e-4)
    step=${said##*step }
    echo "$part: measured $(median "$part") with $(cat "$part.stolen")% stolen, predicted $step, $(awk -v m="$(median "$part")" -v p="$step" 'BEGIN { printf "%+.0f%%", 100 * (p / m - 1) }') ($said)"
done
