#!/bin/sh
# scaling.sh: the cost model of docs/scaling.md. usage: scaling.sh ROOT
. "$(dirname "$0")/cases.sh"
simulate=$1/tools/simulate-cluster

"$simulate" >"$folder/table"
same "the table of docs/scaling.md is the tool's" "" "$(grep -vxFf "$1/docs/scaling.md" "$folder/table")"
# two ranks with 4 of 8 micro-batches of 0.1 s each, 1 MB to send at 1 MB/s, the last backward pass hiding 2/3 of 0.1 s of it; nothing to copy
near "by hand" "0.4 1 0.0667 1.3333" "$("$simulate" compute=0.8 micro=8 ranks=2 params=250000 link=8247422.68 latency=0 message=0 jitter=0 copy=1e15 |
    awk '{ print $2, $4, $6, $10 }')" 0.0002
near "without overlap" "1.4" "$("$simulate" compute=0.8 micro=8 ranks=2 params=250000 link=8247422.68 latency=0 message=0 jitter=0 copy=1e15 overlap=0 |
    awk '{ print $10 }')" 0.0002
near "the busiest of 3 ranks has 3 of 8" "0.3" "$("$simulate" compute=0.8 micro=8 ranks=3 params=1 link=1e15 latency=0 message=0 jitter=0 | awk '{ print $2 }')" 0.0002
near "one machine sends nothing" "0.9" "$("$simulate" compute=0.8 update=0.1 ranks=1 params=1e6 | awk '{ print $10 }')" 0.0002
refuse "a name that is none" "$simulate" machines=3
refuse "no number" "$simulate" params=many
refuse "no weights" "$simulate" compute=1
finish
