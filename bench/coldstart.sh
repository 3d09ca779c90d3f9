#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# coldstart.sh: from process start to the first vector, one sentence, the model in the page cache; and memory after it.
#
#     bench/coldstart.sh MODEL [BUILD [MODEL.onnx PYTHON]]
#
# BUILD (default: build) has lath and bench_embed. With a graph and a Python that has onnxruntime and tokenizers the peer runs in
# turn with lath, round by round, so both meet the same minutes; the ratio is of medians. Set ROUNDS (default 15), THREADS (1 or 2...).
set -eu

[ $# -ge 1 ] || {
    sed -n '3,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
model=$1
build=${2:-$here/../build}
onnx=${3:-}
python=${4:-python3}
rounds=${ROUNDS:-15}
threads=${THREADS:-2}
text='The cat sat on the mat and watched the rain.'
times=$(mktemp -d)
trap 'rm -rf "$times"' EXIT
trap 'exit 130' INT TERM

now() { date +%s%N; }
timed() { # FILE COMMAND...: appends milliseconds
    file=$1
    shift
    t0=$(now)
    "$@" >/dev/null
    t1=$(now)
    echo "$t0 $t1" | awk '{ printf "%.2f\n", ($2 - $1) / 1e6 }' >>"$file"
}
median() { sort -n "$1" | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'; }
best() { sort -n "$1" | head -n 1; }
lath() { "$build/lath" embed -m "$model" -t "$threads" -q "$text"; }
peer() { "$python" "$here/cold_ort.py" "$model" "$onnx" "$threads"; }

find "$model" -maxdepth 1 -type f -exec cat {} + >/dev/null # into the page cache
lath >/dev/null
if [ -n "$onnx" ]; then peer >/dev/null; fi
i=0
while [ "$i" -lt "$rounds" ]; do
    timed "$times/lath" lath
    timed "$times/shell" true
    if [ -n "$onnx" ]; then timed "$times/peer" peer; fi
    i=$((i + 1))
done
echo "lath embed: median $(median "$times/lath") ms, best $(best "$times/lath") ms (a command that does nothing: $(median "$times/shell") ms)"
if [ -n "$onnx" ]; then
    echo "onnxruntime from Python: median $(median "$times/peer") ms, best $(best "$times/peer") ms"
    echo "$(median "$times/lath") $(median "$times/peer")" | awk '{ printf "lath takes %.3f of the time (%.1f times as fast)\n", $1 / $2, $2 / $1 }'
fi
"$build/bench_embed" "$model" --threads "$threads" --rss
if [ -n "$onnx" ]; then "$python" "$here/cold_ort.py" "$model" "$onnx" "$threads" --rss; fi
