#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes all golden data under tests/golden that comes from tiny random models and made-up texts.
# PYTHON names the interpreter of an environment with requirements.txt installed.
set -euo pipefail

cd "$(dirname "$0")"
python=${PYTHON:-python3}
tok=../../tests/golden/tok
export OMP_NUM_THREADS=1

"$python" make_bert_goldens.py
"$python" make_family_goldens.py
"$python" make_rerank_goldens.py
"$python" make_decoder_goldens.py
"$python" make_inside_goldens.py
"$python" make_feature_goldens.py
"$python" make_lm_goldens.py
"$python" make_gguf_models.py
"$python" make_tok_goldens.py
"$python" make_chat_goldens.py ../../tests
for kind in uncased cased; do
    "$python" check_wordpiece.py "$tok/$kind" --write-sample "$tok/wordpiece_$kind.jsonl" 600
done
"$python" make_tok_pipelines.py ../../tests/unit/tok/pipelines.jsonl
"$python" make_bpe_cases.py ../../tests/unit/tok
"$python" make_spm_goldens.py ../../tests/unit/tok/spm
"$python" make_sampler_cases.py ../../tests/unit/engine/sampler.jsonl
"$python" make_tracefiles.py ../../tests/unit/store/tracefile
"$python" make_embrecords.py ../../tests/unit/store/records.bin
