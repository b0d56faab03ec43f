#!/bin/sh
# scaling.sh: the cost model of docs/scaling.md. usage: scaling.sh ROOT
. "$(dirname "$0")/cases.sh"
simulate=$1/tools/simulate-cluster

"$simulate" >"$folder/table"
same "the table of docs/scaling.md is the tool's" "" "$(grep -vxFf "$1/docs/scaling.md" "$folder/table")"
# two ranks with 4 of 8 micro-batches of 0.1 s each, 1 MB to send at 1 MB/s, half of it beside a forward pass of 1/3 of 0.1 s, half beside a backward
# pass of 2/3; nothing to copy
slow="compute=0.8 micro=8 ranks=2 params=250000 link=8247422.68 latency=0 message=0 jitter=0 changed=4"
near "by hand" "0.4 1 0.1 1.3" "$("$simulate" $slow copy=1e15 | awk '{ print $2, $4, $6, $10 }')" 0.0002
near "weights of 2 bytes: half of theirs" "0.75 1.05" "$("$simulate" $slow copy=1e15 changed=2 | awk '{ print $4, $10 }')" 0.0002
near "without overlap" "1.4" "$("$simulate" $slow copy=1e15 overlap=0 | awk '{ print $10 }')" 0.0002
# the same in 0.04 s: it is hidden, but for one of two buckets at each end, and copying 2 MB at 20 MB/s
fast="compute=0.8 micro=8 ranks=2 params=250000 link=206185567 latency=0 message=0 jitter=0 changed=4"
near "a bucket at each end" "0.42" "$("$simulate" $fast copy=1e15 | awk '{ print $10 }')" 0.0002
near "or the table of tokens, here 3/4 of the weights" "0.43" "$("$simulate" $fast table=187500 copy=1e15 | awk '{ print $10 }')" 0.0002
near "and copying" "0.52" "$("$simulate" $fast copy=2e7 | awk '{ print $10 }')" 0.0002
near "each machine updates its part, and the first weights go meanwhile" "0.46" "$("$simulate" $fast copy=1e15 update=0.1 | awk '{ print $10 }')" 0.0002
near "the busiest of 3 ranks has 3 of 8" "0.3" "$("$simulate" compute=0.8 micro=8 ranks=3 params=1 link=1e15 latency=0 message=0 jitter=0 | awk '{ print $2 }')" 0.0002
near "one machine sends nothing" "0.9" "$("$simulate" compute=0.8 update=0.1 ranks=1 params=1e6 | awk '{ print $10 }')" 0.0002
refuse "a name that is none" "$simulate" machines=3
refuse "no number" "$simulate" params=many
refuse "no weights" "$simulate" compute=1
finish
