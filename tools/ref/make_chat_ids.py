#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/chat/ids.jsonl: token ids of conversations as apply_chat_template of transformers gives them, for the real tokenizers in MODELS
(tokenizer-qwen3, tokenizer-gemma3, tokenizer-llama3_1). Ids and lengths only: the texts belong to the models.

usage: make_chat_ids.py MODELS TESTS_DIR
"""
import json
import os
import sys

from transformers import AutoTokenizer

from chat_reference import ADD, CONVERSATIONS, WEATHER

NAMES = ["tokenizer-qwen3", "tokenizer-gemma3", "tokenizer-llama3_1"]
LEFT_OUT = {"special", "nothing"}  # a special token in what people write is plain text to lath only; no message is refused before the template


def cases(tokenizer):
    for name, messages in CONVERSATIONS.items():
        if name in LEFT_OUT:
            continue
        for more in ({}, {"tools": [WEATHER, ADD]}, {"add_generation_prompt": False}, {"enable_thinking": False}, {"continue_final_message": True}):
            v = {"add_generation_prompt": not more.get("continue_final_message"), **more}
            try:
                text = tokenizer.apply_chat_template(messages, tokenize=False, **v)
                ids = tokenizer.apply_chat_template(messages, tokenize=True, return_dict=False, **v)
            except Exception:
                yield {"name": name, "messages": messages, "more": more, "error": True}
                continue
            yield {"name": name, "messages": messages, "more": more, "bytes": len(text.encode("utf-8")), "ids": ids}


def main():
    with open(os.path.join(sys.argv[2], "golden", "chat", "ids.jsonl"), "w", encoding="utf-8", newline="\n") as f:
        for name in NAMES:
            tokenizer = AutoTokenizer.from_pretrained(os.path.join(sys.argv[1], name))
            for case in cases(tokenizer):
                if case["name"] not in ("one", "turns", "two calls") and case["more"].get("tools"):
                    continue
                f.write(json.dumps({"tokenizer": name, **case}, ensure_ascii=False) + "\n")


main()
