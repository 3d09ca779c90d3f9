#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ask.sh EMBEDDER LM CORPUS QUESTION   answers a question from the three nearest passages of CORPUS, one a line: search and generation put together
# $LATH is the program (lath), $INDEX where vectors are kept (CORPUS.lath), $TEMPLATE a chat template: without it the model's own, as models for
# dialogues have it; plain.jinja beside this file is one for base models, whose answers end with the line.
set -eu
[ $# = 4 ] || {
    sed -n '3,5s/^# //p' "$0" >&2
    exit 2
}
lath=${LATH:-lath} index=${INDEX:-$3.lath}
found=$("$lath" search -q -m "$1" --corpus "$3" --index "$index" --query "$4" --top-k 3)
# A line is: rank, score, [number of the passage], text.
passages=$(printf '%s\n' "$found" | sed 's/^ *[0-9]*  *[-0-9.]*  *\[[0-9]*\]  *//')
set -- -m "$2" --chat --system "Answers are found in these passages.
$passages" "$4"
case ${TEMPLATE-} in
'') ;;
*plain.jinja) set -- "$@" --chat-template "$TEMPLATE" --stop '
' ;;
*) set -- "$@" --chat-template "$TEMPLATE" ;;
esac
exec "$lath" generate -n 300 "$@"
