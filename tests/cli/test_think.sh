# SPDX-License-Identifier: Apache-2.0
# test_think.sh: models that think: --think, --no-think, --reasoning-budget, where thoughts are shown and kept, /think, a grammar behind a thought. The tiny
# model is random: a budget is what ends its thoughts; generation that follows a script is in tests/unit/engine/test_think.c.
. "$2/cli/lib.sh"
M=$T/model
cp -r "$TESTS/golden/rerank/qwen3_reranker_card" "$M"
chmod -R u+w "$M"
# The prompt begins the block, or closes it at once; of past thoughts only those behind the last question stay.
cat >"$M/chat_template.jinja" <<'END'
{%- for m in messages %}
    {{- '<|im_start|>' + m.role + '\n' }}
    {%- if m.reasoning_content is string %}{{ '[' + m.reasoning_content + ']' }}{% endif %}
    {{- m.content + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n<think>\n' }}
    {%- if enable_thinking is defined and not enable_thinking %}{{ '\n</think>\n\n' }}{% endif %}
{%- endif %}
END
number() { sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" "$T/out"; }
field() { sed -n "s/.*\"$1\":\"\(\([^\"\\\\]\|\\\\.\)*\)\".*/\1/p" "$T/out"; }
count() { "$LATH" tokenize -m "$M" --no-special "$1" | wc -w; }
open='<|im_start|>user
q<|im_end|>
<|im_start|>assistant
<think>
'

# apart: in JSON beside the text, in lines, on standard error between the markers, or not at all
run generate -m "$M" --chat --json -n 30 --reasoning-budget 6 q; exit_is 0; err_empty
check 'the prompt begins the block' [ "$(number prompt_tokens)" -eq "$(count "$open")" ]
# six of the thought, then the newline and the marker of its end
check 'tokens of the thought' [ "$(number reasoning_tokens)" -eq 8 ]
check 'all tokens count' [ "$(number completion_tokens)" -eq "$(sed 's/.*"token_ids":\[\([^]]*\)\].*/\1/' "$T/out" | tr , '\n' | wc -l)" ]
close=$("$LATH" tokenize -m "$M" --no-special '
</think>

' | tr ' ' ,)
check "the end is written by its tokens: $close" grep -E -q "\"token_ids\":\[([0-9]+,){6}$close,[0-9]" "$T/out"
thought=$(field reasoning_content)
text=$(field text)
check 'something is thought' [ -n "$thought" ]
check 'and answered' [ -n "$text" ]
run generate -m "$M" --chat --jsonl -n 30 --reasoning-budget 6 q; exit_is 0; err_empty
check 'lines have what is thought' [ "$(head -n 6 "$T/out" | grep -c '"text":"","reasoning_content":"')" -ge 5 ]
run generate -m "$M" --chat -n 30 --reasoning-budget 6 q; exit_is 0
check 'first the begin marker' [ "$(head -n 1 "$T/err")" = '<think>' ]
check 'last the end marker' [ "$(tail -n 1 "$T/err")" = '</think>' ]
out_lacks 'think'
cp "$T/out" "$T/answer"
for quiet in --hide-reasoning -q; do
    run generate -m "$M" --chat -n 30 --reasoning-budget 6 $quiet q; exit_is 0; err_empty
    check 'the same answer' cmp -s "$T/answer" "$T/out"
done
# without a budget a random model thinks until it is cut
run generate -m "$M" --chat --json -n 5 q; exit_is 0; out_has '"text":"","reasoning_content":"..*","token_ids":\[[0-9,]*\],"finish_reason":"length"'
check 'all of it is thought' [ "$(number reasoning_tokens)" -eq 5 ]

# not to think: the template says it
for off in --no-think '--reasoning-budget 0'; do
    run generate -m "$M" --chat --json -n 5 $off q; exit_is 0; err_empty; out_has '"reasoning_content":"","token_ids"'; out_has '"reasoning_tokens":0'
    check 'the prompt closes the block' [ "$(number prompt_tokens)" -eq "$(count "$open
</think>

")" ]
done
run generate -m "$M" --chat --json -n 5 --think q; exit_is 0; err_empty
check 'the prompt begins the block' [ "$(number prompt_tokens)" -eq "$(count "$open")" ]
# a template that has no such switch: the block is ended where it begins
printf '%s' "{% for m in messages %}{{ m.content }}{% endfor %}<think>
" >"$T/always.jinja"
for off in --no-think '--reasoning-budget 0'; do
    run generate -m "$M" --chat --chat-template "$T/always.jinja" --json -n 8 $off q; exit_is 0; err_empty; out_has '"reasoning_content":"","token_ids":\[303,'
done
run generate -m "$M" --chat --chat-template "$T/always.jinja" --json -n 8 --think q; exit_is 0; err_empty; out_has '"text":""'
# a model that does not think
GEMMA="-m $TESTS/golden/decoder/gemma3_pattern_linear --chat --chat-template $TESTS/../examples/gemma.jinja -n 1"
run generate $GEMMA --json q; exit_is 0; err_empty; out_lacks reasoning
run generate $GEMMA --no-think q; exit_is 0; err_has '^lath: --no-think: this model is not known to think: nothing is changed$'
run generate $GEMMA --reasoning-budget 3 q; exit_is 0; err_has '^lath: --reasoning-budget: this model is not known'
run generate $GEMMA --no-think -q q; exit_is 0; err_empty
run generate $GEMMA --think q; fails_with 4 'not known to think'

# the form of the answer is not that of the thought
printf '{"type":"object","properties":{"n":{"enum":[1,2]}},"required":["n"]}' >"$T/schema.json"
for seed in 1 2 3; do
    run generate -m "$M" --chat --json --json-schema "$T/schema.json" --reasoning-budget 7 --temp 2 --seed $seed -n 300 q; exit_is 0; out_has '"finish_reason":"stop"'
    check "seed $seed: $(field text)" sh -c 'printf %s "$1" | tr -d " \n\t" | sed "s/\\\\[nt]//g" | grep -x -q "{.\"n.\":[12]}"' sh "$(field text)"
    check 'something is thought' [ -n "$(field reasoning_content)" ]
done
run generate -m "$M" --chat --json --json-schema "$T/schema.json" --no-think -n 300 q; exit_is 0; out_has '"reasoning_tokens":0'; out_has '"finish_reason":"stop"'
# stop strings do not match in a thought
first=$(printf %s "$thought" | head -c 1)
run generate -m "$M" --chat --json -n 30 --reasoning-budget 6 --stop "$first" q; exit_is 0
check 'the thought is whole' [ "$(field reasoning_content)" = "$thought" ]

# a conversation: thoughts are handed to the template apart
feed "q\n/think off\nr\n/think on\ns\n/save $T/talk.json\n" chat -m "$M" -n 20 --reasoning-budget 4; exit_is 0
check 'shown with two answers' [ "$(grep -c '^<think>$' "$T/err")" -eq 2 ]
check 'kept with two answers' [ "$(grep -c '"role":"assistant","content":".*","reasoning_content":"..*"' "$T/talk.json")" -eq 2 ]
check 'six messages' [ "$(grep -c '"role"' "$T/talk.json")" -eq 6 ]
feed 'q\nr\n' chat -m "$M" -n 20 --reasoning-budget 4 --hide-reasoning; exit_is 0; err_empty
# the template refuses an answer that has a thought in it, and one that has none
printf '%s' "{% for m in messages %}{% if m.role == 'assistant' and (m.reasoning_content is not string or '</think>' in m.content) %}{{ raise_exception('mixed') }}{% endif %}{{ m.content }}{% endfor %}<think>
" >"$T/strict.jinja"
feed 'q\nr\n' chat -m "$M" --chat-template "$T/strict.jinja" -n 20 --reasoning-budget 4 -q; exit_is 0; err_empty
feed '/think maybe\n' chat -m "$M"; fails_with 2 'want on or off'
feed '/think on\n' chat -m "$TESTS/golden/decoder/gemma3_pattern_linear" --chat-template "$TESTS/../examples/gemma.jinja"; fails_with 4 'not known to think'

# what ends a text: the union of what the files say, the inner configuration of a model that sees images included
E=$T/ends
cp -r "$TESTS/golden/decoder/gemma3_with_images" "$E"
chmod -R u+w "$E"
ends() { "$LATH" info -m "$E" --json | sed -n 's/.*"end_ids":\[\([0-9,]*\)\].*/\1/p'; }
before=$(ends)
printf '{"eos_token_id":[41,42]}' >"$E/generation_config.json"
sed 's/"text_config": *{/&"eos_token_id":[42,43],/' "$E/config.json" >"$T/config" && cp "$T/config" "$E/config.json"
check "all of them: $(ends)" [ "$(ends | tr , '\n' | grep -c -x -e 41 -e 42 -e 43)" -eq 3 ]
check "none was there before: $before" [ "$(echo "$before" | tr , '\n' | grep -c -x -e 41 -e 42 -e 43)" -eq 0 ]

# refusals
for o in --think --no-think '--reasoning-budget 3' --hide-reasoning; do
    run generate -m "$M" $o q; fails_with 2 'goes with --chat'
done
run generate -m "$M" --chat --think --no-think q; fails_with 2 'think: not together with --no-think'
run generate -m "$M" --chat --think --reasoning-budget 0 q; fails_with 2 'think: not together with --reasoning-budget 0'
run generate -m "$M" --chat --reasoning-budget -1 q; fails_with 2 'reasoning-budget'
finish
