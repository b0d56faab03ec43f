#!/bin/sh
# A model of ours, saved under the names of Marian, Pegasus or ModernBERT, gives the same logits in PyTorch. Skipped where there is no PyTorch.
# usage: export.sh EXPORT_FAMILY GOLDEN
set -eu
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
python=
for found in python3 /usr/bin/python3; do
    if "$found" -c 'import numpy, torch' 2>/dev/null; then python=$found && break; fi
done
[ -n "$python" ] || { echo "skipped: there is no PyTorch"; exit 77; }
for family in marian pegasus modernbert; do
    "$1" $family "$folder/$family"
    "$python" "$2/families.py" "$folder/$family"
done
