# cases.sh: read by the shell tests. A case prints "ok - name" or "not ok - name"; finish gives the result.
failures=0
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

finish() { [ "$failures" = 0 ]; }
