# cases.sh: read by the shell tests. A case prints "ok - name" or "not ok - name"; finish gives the result.
failures=0
export LC_ALL=C.UTF-8 # whatever the language of who runs them
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

ok() { echo "ok - $1"; }
not_ok() {
    echo "not ok - $1"
    shift
    [ $# -eq 0 ] || printf '%s\n' "$@" | sed 's/^/    /'
    failures=$((failures + 1))
}
skipped() { echo "skipped - $1"; }

# check NAME COMMAND...: the command succeeds.
check() {
    case_name=$1
    shift
    if said=$("$@" 2>&1); then ok "$case_name"; else not_ok "$case_name" "$* failed:" "$said"; fi
}

# refuse NAME COMMAND...: the command fails.
refuse() {
    case_name=$1
    shift
    if said=$("$@" 2>&1); then not_ok "$case_name" "$* succeeded:" "$said"; else ok "$case_name"; fi
}

# same NAME WANTED GOT
same() {
    if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "wanted: $2" "got:    $3"; fi
}

# contains NAME TEXT PIECE...: every piece is in the text.
contains() {
    case_name=$1 text=$2
    shift 2
    for piece in "$@"; do
        case $text in
            *"$piece"*) ;;
            *) not_ok "$case_name" "missing: $piece" "in: $text"; return ;;
        esac
    done
    ok "$case_name"
}

# near NAME "wanted numbers" "numbers" TOLERANCE
near() {
    if echo "$2 | $3" | awk -F'|' -v t="$4" '{ n = split($1, a, " "); m = split($2, b, " "); if (n != m) exit 1
        for (i = 1; i <= n; i++) { d = a[i] - b[i]; if (!(d <= t && d >= -t)) exit 1 } }'; then ok "$1"
    else not_ok "$1" "wanted: $2" "got:    $3"; fi
}

# npy FILE: its numbers, a line each
npy() { od -An -v -w4 -t f4 -j $((10 + $(od -An -t u2 -j 8 -N 2 "$1"))) "$1"; }
# tensor FILE NAME: those of a safetensors file
tensor() {
    header=$(od -An -t u8 -N 8 "$1" | tr -d ' ')
    range=$(tail -c +9 "$1" | head -c "$header" | sed "s/.*\"$2\":{[^}]*\"data_offsets\":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/")
    od -An -v -w4 -t f4 -j $((8 + header + ${range% *})) -N $((${range#* } - ${range% *})) "$1"
}

# The next ones run $qkv in the current folder.

# run STATUS PIECE ARGUMENTS...: exit status, and PIECE on stderr ("" for nothing there); from the file in to the file out.
run() {
    wanted=$1 piece=$2
    shift 2
    "$qkv" "$@" <in >out 2>err
    status=$?
    [ "$status" = "$wanted" ] || { echo "status $status, wanted $wanted: $(cat err)"; return 1; }
    [ -n "$piece" ] || [ ! -s err ] || { echo "it said: $(cat err)"; return 1; }
    grep -qF -- "$piece" err || [ -z "$piece" ] || { echo "\"$piece\" is missing in: $(cat err)"; return 1; }
}
# refused NAME STATUS PIECE ARGUMENTS...: as run, with one sentence, which starts with $names, and no result.
names=
refused() {
    case_name=$1
    shift
    if problem=$(run "$@") && [ "$(wc -l <err)" = 1 ] && grep -q "^qkv: $names" err && [ ! -s out ]; then ok "$case_name"
    else not_ok "$case_name" "$problem" "$(cat err)" "$(cat out)"; fi
}

# fails NAME STATUS PIECE ARGUMENTS...: exit status, one sentence "qkv: ...PIECE..." on stderr, nothing on stdout, no file written.
fails() {
    case_name=$1 wanted=$2 piece=$3
    shift 3
    before=$(ls)
    "$qkv" "$@" >"$folder.out" 2>"$folder.err"
    status=$?
    problem=
    [ "$status" = "$wanted" ] || problem="status $status, wanted $wanted"
    [ ! -s "$folder.out" ] || problem="$problem; it printed results"
    [ "$(wc -l <"$folder.err")" = 1 ] || problem="$problem; not one sentence"
    grep -q '^qkv: ' "$folder.err" || problem="$problem; no name"
    grep -qF -- "$piece" "$folder.err" || problem="$problem; \"$piece\" is missing"
    [ "$(ls)" = "$before" ] || problem="$problem; it wrote a file"
    if [ -z "$problem" ]; then ok "$case_name"; else not_ok "$case_name" "$problem" "$(cat "$folder.err")"; fi
    rm -f "$folder.out" "$folder.err"
}

finish() { [ "$failures" = 0 ]; }
