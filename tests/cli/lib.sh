# SPDX-License-Identifier: Apache-2.0
#
# lib.sh: what every test_*.sh of this folder begins with:  . "$2/cli/lib.sh"   (script LATH TESTS_DIR)
# A check that fails prints what it saw and is counted; `finish` fails when one did or when none ran. Each script works in a folder of its own.
set -u
LATH=$1
TESTS=$2
GOLDEN=$TESTS/golden/bert
MODEL=$GOLDEN/mean_norm_gelu
T=$(mktemp -d "${TMPDIR:-/tmp}/lath-cli-XXXXXX") || exit 1
trap 'rm -rf "$T"' EXIT
trap 'exit 1' HUP INT TERM
REAL=${LATH_MODELS-} # where real models are, for the scripts that need one
unset LATH_NO_GPU LATH_MODELS HF_HOME HF_HUB_CACHE HUGGINGFACE_HUB_CACHE XDG_CACHE_HOME
HOME=$T
export HOME
checks=0
failures=0
rc=0
shown=

# run ARGS...: standard output to $T/out, standard error to $T/err, exit code to $rc; standard input is what the caller redirects, else empty
run() {
    shown="lath $*"
    if [ -n "${INPUT+set}" ]; then "$LATH" "$@" <"$INPUT" >"$T/out" 2>"$T/err"; else "$LATH" "$@" </dev/null >"$T/out" 2>"$T/err"; fi
    rc=$?
}

# feed TEXT ARGS...: TEXT (of printf) is standard input
feed() {
    printf "$1" >"$T/in"
    shift
    INPUT=$T/in
    run "$@"
    unset INPUT
}

fail() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n  %s (exit %s)\n' "$1" "$shown" "$rc"
    sed 's/^/  err: /' "$T/err" | head -n 5
    head -c 400 "$T/out" | sed 's/^/  out: /'
}

# check WHAT COMMAND...: the command has to succeed
check() {
    what=$1
    shift
    checks=$((checks + 1))
    "$@" || fail "$what"
}

exit_is() { check "exit code $1" [ "$rc" -eq "$1" ]; }
out_is() { printf "$1" >"$T/want"; check "output is $1" cmp -s "$T/want" "$T/out"; }
out_has() { check "output has $1" grep -q -e "$1" "$T/out"; }
out_lacks() { checks=$((checks + 1)); if grep -q -e "$1" "$T/out"; then fail "output has $1"; fi; }
err_has() { check "stderr has $1" grep -q -e "$1" "$T/err"; }
err_empty() { check "stderr is empty" [ ! -s "$T/err" ]; }
out_empty() { check "output is empty" [ ! -s "$T/out" ]; }
out_lines() { check "$1 lines" [ "$(wc -l <"$T/out")" -eq "$1" ]; }

# fails_with CODE PATTERN: that exit code, nothing on standard output, exactly one line "lath: WHAT: WHY" that has the pattern
fails_with() {
    exit_is "$1"
    out_empty
    check "one line of error" [ "$(wc -l <"$T/err")" -eq 1 ]
    check "error of the form lath: WHAT: WHY" grep -q '^lath: [^:].*: .' "$T/err"
    err_has "$2"
}

finish() {
    if [ "$checks" -eq 0 ]; then echo "FAILED: nothing was checked"; exit 1; fi
    if [ "$failures" -ne 0 ]; then echo "$failures of $checks checks failed"; exit 1; fi
    echo "$checks checks passed"
    exit 0
}
