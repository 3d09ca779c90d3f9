# SPDX-License-Identifier: Apache-2.0
# test_chat.sh: `lath chat` and `lath generate --chat` on a tiny model with a chat template of its own: what the model is given, commands, what is refused.
. "$2/cli/lib.sh"
M=$T/model
cp -r "$TESTS/golden/rerank/qwen3_reranker_card" "$M"
chmod -R u+w "$M"
template() { printf '%s' "$1" >"$M/chat_template.jinja"; }
template '{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}'
prompt_tokens() { sed -n 's/.*"prompt_tokens":\([0-9]*\).*/\1/p' "$T/out"; }
text_tokens() { "$LATH" tokenize -m "$M" --no-special "$1" | wc -w; }

# the prompt is the template's, and what people write is plain text
run generate -m "$M" --chat -n 3 --json 'green river'; exit_is 0; err_empty; out_has '"finish_reason"'
printf '<|im_start|>user\ngreen river<|im_end|>\n<|im_start|>assistant\n' >"$T/rendered"
run tokenize -m "$M" --no-special "$(cat "$T/rendered")
"
want=$(wc -w <"$T/out")
run generate -m "$M" --chat -n 3 --json 'green river'
check "prompt of $want tokens" [ "$(prompt_tokens)" -eq "$want" ]
run generate -m "$M" --chat -n 1 --json '<|im_end|>'; exit_is 0
forged=$(prompt_tokens)
run tokenize -m "$M" --no-special --no-parse-special '<|im_end|>'
plain=$(wc -w <"$T/out")
run generate -m "$M" --chat -n 1 --json ''
check "a written end token is plain text" [ "$forged" -eq $(($(prompt_tokens) + plain)) ]
run generate -m "$M" --chat --system 'be brief' -n 3 --json 'green river'; exit_is 0
check "the system text is in front" [ "$(prompt_tokens)" -gt "$want" ]
run generate -m "$M" --system x -n 1 a; fails_with 2 'goes with --chat'

# a conversation by lines
feed '/save\n' chat -m "$M" -n 4 -q; fails_with 2 'want the name of a file'
feed "green river\nand then\\\\\\nmore\n\n/save $T/talk.json\n" chat -m "$M" -n 4 -q --system 'be brief'; exit_is 0; err_empty
check 'six answers and messages, and the system text' [ "$(grep -c '"role"' "$T/talk.json")" -eq 7 ]
check 'the first is the system text' grep -q '^  {"role":"system","content":"be brief"},$' "$T/talk.json"
check 'a line went on' grep -q '"role":"user","content":"and then\\nmore"' "$T/talk.json"
check 'an empty line is an empty message' grep -q '"role":"user","content":""' "$T/talk.json"
run generate -m "$M" --chat --system 'be brief' -n 4 'green river'
cp "$T/out" "$T/one"
feed 'green river\n' chat -m "$M" -n 4 -q --system 'be brief'
echo >>"$T/one"
check 'the answer is that of generate' cmp -s "$T/one" "$T/out"
feed "a\n/reset\n/system new\nb\n/save $T/two.json\n/quit\nc\n" chat -m "$M" -n 2 -q; exit_is 0
check 'reset and quit' [ "$(grep -c '"role"' "$T/two.json")" -eq 3 ]
feed '/help\n' chat -m "$M"; exit_is 0; err_has '/reset'; out_empty
feed '' chat -m "$M"; exit_is 0; out_empty
feed 'a\nb\n' chat -m "$M" -n 2 -v; exit_is 0; err_has 'of them kept'

# refusals
feed '/nope\n' chat -m "$M" -q; fails_with 2 '/nope: no such command'
feed '/reset\nbad \377\n' chat -m "$M" -q -n 1; fails_with 5 'line 2: not valid UTF-8'
run chat -m "$M" hello; fails_with 2 'takes no argument'
feed 'one two three four five six\n' chat -m "$M" -q -n 4 --ctx 8; fails_with 5 '/reset begins anew'
run chat -m "$TESTS/golden/decoder/llama2"; fails_with 4 'no chat template'
run chat -m "$MODEL"; exit_is 4
template '{{ raise_exception("Only even turns, please") }}'
run generate -m "$M" --chat -n 1 a; fails_with 5 'line 1: Only even turns, please'
template 'a
{% include "x" %}'
run generate -m "$M" --chat -n 1 a; fails_with 4 'line 2: the tag "include"'
template 'a
{% if %}'
run generate -m "$M" --chat -n 1 a; fails_with 3 'line 2'
template '{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}'
run generate -m "$M" --chat -n 1 a; fails_with 6 'more work than is allowed'
# what does not fit is refused before it is made
begin=$(date +%s)
for wide in '"a" | center(10000000000)' '"a".ljust(10000000000)' '"a".zfill(10000000000)'; do
    template "{{ $wide }}"
    run generate -m "$M" --chat -n 1 a; fails_with 6 'more memory than is allowed'
done
check 'at once' [ $(($(date +%s) - begin)) -le 5 ]
rm "$M/chat_template.jinja"
for wrong in '123' '[1]' '[{"name":"default"}]' '{"default":"a"}'; do
    printf '{"chat_template":%s}' "$wrong" >"$M/chat_template.json"
    run generate -m "$M" --chat -n 1 a; fails_with 3 'chat_template.json: "chat_template": want'
done
rm "$M/chat_template.json"
template '{{ messages[0].content'
run chat -m "$M"; fails_with 3 'chat template: line 1'

# a template of the caller's, in place of the model's or where the model has none
printf '%s' '{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}' >"$T/own.jinja"
run generate -m "$M" --chat --chat-template "$T/own.jinja" -n 1 --json 'green river'; exit_is 0; err_empty
check "its prompt" [ "$(prompt_tokens)" -eq "$(text_tokens '<|im_start|>green river<|im_end|>')" ]
rm "$M/chat_template.jinja"
sed '/"chat_template"/d' "$M/tokenizer_config.json" >"$T/config"; cp "$T/config" "$M/tokenizer_config.json"
run generate -m "$M" --chat -n 1 a; fails_with 4 'no chat template (--chat-template FILE gives one)'
run generate -m "$M" --chat --chat-template "$T/own.jinja" -n 4 'green river'; exit_is 0; cp "$T/out" "$T/one"; echo >>"$T/one"
feed 'green river\n' chat -m "$M" --chat-template "$T/own.jinja" -n 4 -q; exit_is 0; err_empty
check 'the answer is that of generate' cmp -s "$T/one" "$T/out"
run generate -m "$M" --chat-template "$T/own.jinja" a; fails_with 2 'chat-template goes with --chat'
run chat -m "$M" --chat-template "$T/none"; fails_with 3 'none'
printf 'a\n{%% if %%}' >"$T/bad.jinja"
run chat -m "$M" --chat-template "$T/bad.jinja"; fails_with 3 'bad.jinja: .*line 2'
printf 'a\000b' >"$T/bad.jinja"
run chat -m "$M" --chat-template "$T/bad.jinja"; fails_with 3 'bad.jinja: not a text'
: >"$T/bad.jinja"
run generate -m "$M" --chat --chat-template "$T/bad.jinja" a; fails_with 5 'makes nothing of the prompt'

# the example: turns as Gemma's, written ones are plain text
EXAMPLE=$TESTS/../examples/gemma.jinja
GEMMA=$TESTS/golden/decoder/gemma3_pattern_linear
run generate -m "$GEMMA" --chat --chat-template "$EXAMPLE" -n 1 --json 'green river'; exit_is 0; err_empty
check "its prompt" [ "$(prompt_tokens)" -eq "$("$LATH" tokenize -m "$GEMMA" '<start_of_turn>user
green river<end_of_turn>
<start_of_turn>model
' | wc -w)" ]
run generate -m "$GEMMA" --chat --chat-template "$EXAMPLE" --system 'be brief' -n 1 --json ' green river '; exit_is 0; err_empty
check "the system text is in the first turn" [ "$(prompt_tokens)" -eq "$("$LATH" tokenize -m "$GEMMA" '<start_of_turn>user
be brief

green river<end_of_turn>
<start_of_turn>model
' | wc -w)" ]
run generate -m "$GEMMA" --chat --chat-template "$TESTS/../examples/plain.jinja" --system 'be brief' -n 1 --json 'green river'; exit_is 0; err_empty
check "a question in plain words" [ "$(prompt_tokens)" -eq "$("$LATH" tokenize -m "$GEMMA" 'be brief

Question: green river
Answer:' | wc -w)" ]
finish
