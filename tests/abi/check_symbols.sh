#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_symbols.sh LIB LIST: the shared library exports exactly the symbols of LIST (sorted, one a line), and its SONAME is liblath.so.0. A symbol
# that goes or comes is a change of the interface: it belongs in LIST, in include/lath/lath.h and in CHANGELOG.md.
set -eu

if [ $# -ne 2 ]; then
    echo "usage: $0 LIB LIST" >&2
    exit 2
fi
lib=$1
list=$2
LC_ALL=C
export LC_ALL
have=$(mktemp)
trap 'rm -f "$have"' EXIT INT TERM

# Names without their version; the version itself is an absolute symbol (A). Sanitizers and coverage bring symbols of their own (weak, or __ in front).
nm -D --defined-only "$lib" | awk '$2 != "A" && $2 !~ /^[wWvV]$/ && $3 !~ /^__/ { sub(/@.*/, "", $3); print $3 }' | sort >"$have"
failed=0
if [ ! -s "$have" ]; then
    echo "$lib: no exported symbols could be read" >&2
    exit 1
fi
if ! sort -c -u "$list"; then
    echo "$list: not sorted, or a name is there twice" >&2
    failed=1
fi
if ! diff -u "$list" "$have" >&2; then
    echo "$lib: exported symbols (+) differ from $list (-)" >&2
    failed=1
fi
soname=$(readelf -d "$lib" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
if [ "$soname" != liblath.so.0 ]; then
    echo "$lib: SONAME is \"$soname\", want liblath.so.0" >&2
    failed=1
fi
[ $failed = 0 ] && echo "$(wc -l <"$have" | tr -d ' ') symbols, $soname"
exit $failed
