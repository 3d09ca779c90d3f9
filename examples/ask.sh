#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ask.sh EMBEDDER LM CORPUS QUESTION   answers a question from the three nearest passages of CORPUS (one a line): search and generation put together.
# $LATH is the program (lath), $INDEX where vectors are kept (CORPUS.lath), $TEMPLATE the chat template (plain.jinja beside this file, for
# base models; TEMPLATE= takes the model's own).
set -eu
[ $# = 4 ] || {
    sed -n '3,5s/^# //p' "$0" >&2
    exit 2
}
lath=${LATH:-lath}
template=${TEMPLATE-$(dirname -- "$0")/plain.jinja}

# The line is: rank, score, [number of the passage], text.
passages=$("$lath" search -q -m "$1" --corpus "$3" --query "$4" --top-k 3 ${INDEX:+--index "$INDEX"} | sed 's/^ *[0-9]*  *[-0-9.]*  *\[[0-9]*\]  *//')
exec "$lath" generate -m "$2" --chat ${template:+--chat-template "$template"} --system "$passages" -n 200 --stop '
' "$4"
