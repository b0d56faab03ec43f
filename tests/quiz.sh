#!/bin/sh
# quiz.sh: every answer of the quiz is in what its command prints, in both languages; and asking. usage: quiz.sh QKV
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1")
cd "$folder" || exit 1
export LC_ALL=C.UTF-8
unset LANGUAGE

"$qkv" quiz --answers --lang en >en 2>err
"$qkv" quiz --answers --lang zh >zh 2>>err
same "nothing on stderr" "" "$(cat err)"
n=$("$qkv" quiz --list | wc -l | xargs)
check "at least 60 questions: $n" test "$n" -ge 60
same "every question has a model answer" "$n" "$(grep -c '^Model answer: ' en)"
same "and in Chinese" "$n" "$(grep -c '^参考答案：' zh)"
same "and a command" "$n" "$(grep -c '^To see it: qkv ' en)"
same "no English sentence in Chinese" "" "$(grep -v -e '^ ' -e '^运行' zh | grep -E '[a-z]{2,} [a-z]{2,} [a-z]{2,}' | grep -vE '“the the|“one product')"
same "the same numbers in both languages" "$(grep -oE '[0-9]+\.[0-9]{3,}' en | sort)" "$(grep -oE '[0-9]+\.[0-9]{3,}' zh | sort)"

# The answer of each question, and its command and what to look for there, without white space: Chinese lines break anywhere.
# Both the answer and the command's output must have it. usage: look FILE LANGUAGE "ANSWER" "BEFORE" "BETWEEN" "BEHIND"
tab=$(printf '\t')
look() {
    awk -v answers="$3" -v before="$4" -v between="$5" -v behind="$6" '
        index($0, answers) == 1 { answer = ""; on = 1 }
        index($0, before) == 1 { on = 0; gsub(/ /, "", answer); at = index($0, between)
            shows = substr($0, at + length(between)); sub(behind "$", "", shows); gsub(/ /, "", shows)
            print substr($0, length(before) + 1, at - length(before) - 1) "\t" shows "\t" answer }
        on { answer = answer $0 }' "$1" >table
    same "as many rows in $2" "$n" "$(wc -l <table | xargs)"
    while IFS=$tab read -r command shows answer; do
        said=$2_$(echo "$command" | tr ' ' _)
        # shellcheck disable=SC2086
        [ -f "$said" ] || "$qkv" $command $(case $command in learn*) echo --lang "$2" ;; esac) 2>/dev/null | tr -d ' \n' >"$said"
        contains "$2: \"$shows\" is in its answer" "$answer" "$shows"
        contains "$2: \"$shows\" is what qkv $command prints" "$(cat "$said")" "$shows"
    done <table
}
look en en "Model answer: " "To see it: qkv " "   (look for: " "[)]"
look zh zh "参考答案：" "运行 qkv " " 可以看到（在输出中查找：" "）"
same "no English phrase to look for in Chinese" "" "$(cut -f2 table | grep -E '[a-z]{12,}')"

# ---- asking ----
contains "a right choice" "$(echo b | "$qkv" quiz 3 --lang en)" "That is right." "Right: b) d_k" "Var(q . k) = d_k" "Multiple choice: 1 of 1 right."
contains "in capitals" "$(echo ' B) ' | "$qkv" quiz 3 --lang en)" "That is right."
contains "a full-width letter" "$(echo ｂ | "$qkv" quiz 3 --lang en)" "That is right."
contains "a full-width letter and parenthesis" "$(echo Ｂ） | "$qkv" quiz 3 --lang en)" "That is right."
contains "the text of the choice" "$(echo D_K | "$qkv" quiz 3 --lang en)" "That is right."
contains "the Chinese text of the choice" "$(echo "$("$qkv" quiz 5 --answers --lang zh | sed -n 's/.*a) *//p' | head -n 1)" |
    "$qkv" quiz 5 --lang zh)" "答对了。"
contains "more than a letter" "$(echo bc | "$qkv" quiz 3 --lang en)" "That is not it."
contains "a wrong one" "$(echo a | "$qkv" quiz 3 --lang en)" "That is not it." "0 of 1 right."
contains "no letter" "$(echo because | "$qkv" quiz 3 --lang en)" "That is not it."
contains "free text beside the answer" "$(echo 'a weighted mean' | "$qkv" quiz 1 --lang en)" "Your answer: a weighted mean" "Model answer: softmax(Q K^T"
contains "without control characters" "$(printf 'red\033[31m\n' | "$qkv" quiz 1 --lang en)" "Your answer: red [31m"
same "without an answer none is given" 0 "$("$qkv" quiz 3 --lang en </dev/null | grep -c 'Model answer')"
same "a topic" "$("$qkv" quiz --list | awk '$2 == "masks"' | wc -l | xargs)" "$("$qkv" quiz --topic masks --answers | grep -c '^Model answer')"
contains "in Chinese" "$(echo b | "$qkv" quiz 3 --lang zh)" "答对了。" "参考答案："
contains "topics in Chinese" "$("$qkv" quiz --list --lang zh)" "  掩码          " "  模型家族      "
same "which name them too" "$("$qkv" quiz --topic masks --list --lang zh)" "$("$qkv" quiz --topic 掩码 --list --lang zh)"
names="quiz: "
: >in
refused "no such question" 2 "there is no question 999" quiz 999
refused "no such topic" 2 "attention, heads, masks, positions" quiz --topic food
refused "a number and a topic" 2 "do not go together" quiz 3 --topic masks
finish
