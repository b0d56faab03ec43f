# null_calls.awk: from the public headers, a call of every public function with NULL in each of its pointer arguments in turn:
# CALL(); one with each of its option structs of a size that none has: SIZED(); and the name of every option struct: OPTIONS().
# What the other arguments are is said by V_... macros, one for each type, in test_null.c: a new type does not compile there.
{ sub(/^[ \t]*#.*/, ""); text = text $0 "\n" }
function mangled(type) {
    gsub(/[ \t]*\*/, " P", type); gsub(/^[ \t]+|[ \t]+$/, "", type); gsub(/[ \t]+/, "_", type)
    return "V_" type
}
function emit(kind, name, n, types, at, given,    i, call) {
    call = ""
    for (i = 1; i <= n; i++) call = call (i > 1 ? ", " : "") (i == at ? given : mangled(types[i]))
    printf "%s(\"%s, argument %d\", %s, %s(%s))\n", kind, name, at, returns, name, call
}
END {
    while ((i = index(text, "/*")) > 0) { # comments
        j = index(substr(text, i), "*/")
        text = substr(text, 1, i - 1) " " substr(text, i + j + 1)
    }
    gsub(/\n/, " ", text)
    rest = text
    while (match(rest, /struct qkv_[a-z_]+_opts \{/)) {
        type = substr(rest, RSTART + 7, RLENGTH - 9); rest = substr(rest, RSTART + RLENGTH)
        printf "OPTIONS(%s)\n", type
    }
    while ((i = index(text, "QKV_API ")) > 0) {
        text = substr(text, i + 8)
        declaration = substr(text, 1, index(text, ";") - 1)
        sub(/QKV_PRINTF.*/, "", declaration)
        open = index(declaration, "(")
        head = substr(declaration, 1, open - 1); rest = substr(declaration, open + 1); sub(/\)[ \t]*$/, "", rest)
        match(head, /[a-z_0-9]+[ \t]*$/); name = substr(head, RSTART); gsub(/[ \t]/, "", name)
        result = substr(head, 1, RSTART - 1); returns = result ~ /^void[ \t]*$/ ? "NOTHING" : "SOMETHING"
        n = split(rest, parameter, ",")
        for (k = 1; k <= n; k++) {
            p = parameter[k]
            is_array = sub(/\[[^]]*\]/, "", p)
            match(p, /[A-Za-z_0-9]+[ \t]*$/)
            types[k] = substr(p, 1, RSTART - 1) (is_array ? "*" : "")
            pointer[k] = types[k] ~ /\*/ || types[k] ~ /_each|_each_step|qkv_objective_loss/
        }
        for (k = 1; k <= n; k++) if (pointer[k]) emit("CALL", name, n, types, k, "NULL")
        for (k = 1; k <= n; k++)
            if (match(types[k], /qkv_[a-z_]+_opts/) && name !~ /^qkv_config_preset$/) # a name comes first
                emit("SIZED", name, n, types, k, "WRONG_SIZE(" substr(types[k], RSTART, RLENGTH) ")")
    }
}
