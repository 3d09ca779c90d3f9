/* SPDX-License-Identifier: Apache-2.0
 * tok_gguf_split.c: what the names of tokenizer.ggml.pre stand for. The names and what llama.cpp does for them are its
 * own (llama-vocab.cpp); the patterns are those of the models' tokenizer.json files, which llama.cpp rewrites for its
 * regex engine. A text is split by each pattern in turn; what a pattern does not match stays together.
 */
#include "tok/tok_gguf.h"

#include <string.h>

/* clang-format off */
static const char *const split_default[] = {
    "[\\p{P}\\$\\+<=>\\^~\\|]+",
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    "\\p{N}+",
    "[0-9][0-9][0-9]",
    NULL};
static const char *const split_gpt2[] = {
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    NULL};
static const char *const split_digits_gpt2[] = {
    "\\p{N}",
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    NULL};
static const char *const split_falcon[] = {
    "[\\p{P}\\$\\+<=>\\^~\\|`]+",
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    "[0-9][0-9][0-9]",
    NULL};
static const char *const split_llama3[] = {
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*"
    "[\\r\\n]+|\\s+(?!\\S)|\\s+",
    NULL};
static const char *const split_qwen2[] = {
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r"
    "\\n]+|\\s+(?!\\S)|\\s+",
    NULL};
static const char *const split_qwen35[] = {
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r"
    "\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    NULL};
static const char *const split_gpt4o[] = {
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve"
    "|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:"
    "'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    NULL};
static const char *const split_tekken[] = {
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|[^\\r\\n\\p{L}\\"
    "p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r"
    "\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    NULL};
static const char *const split_deepseek_llm[] = {
    "[\\r\\n]",
    "\\s?[A-Za-z\xC2\xB5""\xC3\x80""-\xC3\x96""\xC3\x98""-\xC3\xB6""\xC3\xB8""-\xC6\xBA""\xC6\xBC""-\xC6\xBF"
    "\xC7\x84""-\xCA\x93""\xCA\x95""-\xCA\xAF""\xCD\xB0""-\xCD\xB3""\xCD\xB6""\xCD\xB7""\xCD\xBB""-\xCD\xBD"
    "\xCD\xBF""\xCE\x86""\xCE\x88""-\xCE\x8A""\xCE\x8C""\xCE\x8E""-\xCE\xA1""\xCE\xA3""-\xCF\xB5""\xCF\xB7""-"
    "\xD2\x81""\xD2\x8A""-\xD4\xAF""\xD4\xB1""-\xD5\x96""\xE1\x82\xA0""-\xE1\x83\x85""\xE1\x8E\xA0""-"
    "\xE1\x8F\xB5""\xE1\x8F\xB8""-\xE1\x8F\xBD""\xE1\xB2\x90""-\xE1\xB2\xBA""\xE1\xB2\xBD""-\xE1\xB2\xBF"
    "\xE1\xB4\x80""-\xE1\xB4\xAB""\xE1\xB5\xAB""-\xE1\xB5\xB7""\xE1\xB5\xB9""-\xE1\xB6\x9A""\xE1\xB8\x80""-"
    "\xE1\xBC\x95""\xE1\xBC\x98""-\xE1\xBC\x9D""\xE1\xBC\xA0""-\xE1\xBD\x85""\xE1\xBD\x88""-\xE1\xBD\x8D"
    "\xE1\xBD\x90""-\xE1\xBD\x97""\xE1\xBD\x99""\xE1\xBD\x9B""\xE1\xBD\x9D""\xE1\xBD\x9F""-\xE1\xBD\xBD"
    "\xE1\xBE\x80""-\xE1\xBE\xB4""\xE1\xBE\xB6""-\xE1\xBE\xBC""\xE1\xBE\xBE""\xE1\xBF\x82""-\xE1\xBF\x84"
    "\xE1\xBF\x86""-\xE1\xBF\x8C""\xE1\xBF\x90""-\xE1\xBF\x93""\xE1\xBF\x96""-\xE1\xBF\x9B""\xE1\xBF\xA0""-"
    "\xE1\xBF\xAC""\xE1\xBF\xB2""-\xE1\xBF\xB4""\xE1\xBF\xB6""-\xE1\xBF\xBC""\xE2\x84\x82""\xE2\x84\x87"
    "\xE2\x84\x8A""-\xE2\x84\x93""\xE2\x84\x95""\xE2\x84\x99""-\xE2\x84\x9D""\xE2\x84\xA4""\xE2\x84\xA6"
    "\xE2\x84\xA8""\xE2\x84\xAA""-\xE2\x84\xAD""\xE2\x84\xAF""-\xE2\x84\xB4""\xE2\x84\xB9""\xE2\x84\xBC""-"
    "\xE2\x84\xBF""\xE2\x85\x85""-\xE2\x85\x89""\xE2\x85\x8E""\xE2\x86\x83""\xE2\x86\x84""\xE2\xB0\x80""-"
    "\xE2\xB1\xBB""\xE2\xB1\xBE""-\xE2\xB3\xA4""\xE2\xB3\xAB""-\xE2\xB3\xAE""\xE2\xB3\xB2""\xE2\xB3\xB3"
    "\xEA\x99\x80""-\xEA\x99\xAD""\xEA\x9A\x80""-\xEA\x9A\x9B""\xEA\x9C\xA2""-\xEA\x9D\xAF""\xEA\x9D\xB1""-"
    "\xEA\x9E\x87""\xEA\x9E\x8B""-\xEA\x9E\x8E""\xEA\xAD\xB0""-\xEA\xAE\xBF""\xEF\xAC\x80""-\xEF\xAC\x86"
    "\xEF\xAC\x93""-\xEF\xAC\x97""\xEF\xBC\xA1""-\xEF\xBC\xBA""\xEF\xBD\x81""-\xEF\xBD\x9A""\xF0\x90\x90\x80""-"
    "\xF0\x90\x91\x8F""\xF0\x90\x92\xB0""-\xF0\x90\x93\x93""\xF0\x90\x93\x98""-\xF0\x90\x93\xBB"
    "\xF0\x90\xB2\x80""-\xF0\x90\xB2\xB2""\xF0\x90\xB3\x80""-\xF0\x90\xB3\xB2""\xF0\x91\xA2\xA0""-"
    "\xF0\x91\xA3\x9F""\xF0\x9E\xA4\x80""-\xF0\x9E\xA5\x83""]+",
    "\\s?[!-/:-~\xEF\xBC\x81""-\xEF\xBC\x8F""\xEF\xBC\x9A""-\xEF\xBD\x9E""\xE2\x80\x98""-\xE2\x80\x9F"
    "\xE3\x80\x80""-\xE3\x80\x82""]+",
    "\\s+$",
    "[\xE4\xB8\x80""-\xE9\xBE\xA5""\xE0\xA0\x80""-\xE4\xB8\x80""\xEA\xB0\x80""-\xED\x9F\xBF""]+",
    "\\p{N}+",
    NULL};
static const char *const split_deepseek_coder[] = {
    "[\\r\\n]",
    "\\s?\\p{L}+",
    "\\s?\\p{P}+",
    "[\xE4\xB8\x80""-\xE9\xBE\xA5""\xE0\xA0\x80""-\xE4\xB8\x80""\xEA\xB0\x80""-\xED\x9F\xBF""]+",
    "\\p{N}",
    NULL};
static const char *const split_deepseek3[] = {
    "\\p{N}{1,3}",
    "[\xE4\xB8\x80""-\xE9\xBE\xA5""\xE3\x81\x80""-\xE3\x82\x9F""\xE3\x82\xA0""-\xE3\x83\xBF""]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P"
    "}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    NULL};
static const char *const split_bloom[] = {
    " ?[^(\\s|.,!?\xE2\x80\xA6""\xE3\x80\x82""\xEF\xBC\x8C""\xE3\x80\x81""\xE0\xA5\xA4""\xDB\x94""\xD8\x8C"")]+",
    NULL};
static const char *const split_viking[] = {
    " ?[^(\\s|.,!?\xE2\x80\xA6""\xE3\x80\x82""\xEF\xBC\x8C""\xE3\x80\x81""\xE0\xA5\xA4""\xDB\x94""\xD8\x8C"")]+",
    "\\p{N}",
    NULL};
static const char *const split_tiny_aya[] = {
    "\\d{1,3}(?=(?:\\d{3})*\\b)",
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve"
    "|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:"
    "'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    NULL};
static const char *const split_superbpe[] = {
    "\\p{N}+",
    "(?=(\\d{3})+(?!\\d))",
    NULL};
static const char *const split_bailing[] = {
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|"
    "\\s+(?!\\S)|\\s+",
    NULL};
static const char *const split_seed_coder[] = {
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r"
    "\\n]+|\\s+(?!\\S)|\\s+",
    NULL};
static const char *const split_minicpm5[] = {
    "\\p{N}{1,3}",
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}+| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r"
    "\\n]+|\\s+(?!\\S)|\\s+",
    NULL};
static const char *const split_exaone_moe[] = {
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}| ?[^\\s\\p"
    "{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
    NULL};
/* clang-format on */

enum { BOS = TOK_GGUF_ADD_BOS, WHOLE = TOK_GGUF_IGNORE_MERGES, NFC = TOK_GGUF_NFC, RAW = TOK_GGUF_RAW };

static const char *const split_lines[] = {"[^\\n]+|[\\n]+", NULL};

/* Of names for one thing the one that llama.cpp's converter writes for most models is the first. */
static const tok_gguf_split table[] = {
    {"default", split_default, 0},
    {"llama-bpe", split_llama3, WHOLE | BOS},
    {"llama3", split_llama3, WHOLE | BOS},
    {"llama-v3", split_llama3, WHOLE | BOS},
    {"falcon3", split_llama3, WHOLE | BOS},
    {"falcon-h1", split_llama3, WHOLE | BOS},
    {"pixtral", split_llama3, WHOLE | BOS},
    {"midm-2.0", split_llama3, WHOLE | BOS},
    {"lfm2", split_llama3, WHOLE | BOS},
    {"jina-v5-nano", split_llama3, WHOLE | BOS},
    {"dbrx", split_llama3, 0},
    {"smaug-bpe", split_llama3, 0},
    {"glm4", split_llama3, 0},
    {"chatglm-bpe", split_llama3, 0},
    {"qwen2", split_qwen2, NFC},
    {"deepseek-r1-qwen", split_qwen2, NFC},
    {"kormo", split_qwen2, 0},
    {"f2llmv2", split_qwen2, 0},
    {"megrez", split_qwen2, 0},
    {"stablelm2", split_qwen2, 0},
    {"hunyuan", split_qwen2, 0},
    {"solar-open", split_qwen2, 0},
    {"grok-2", split_qwen2, 0},
    {"qwen35", split_qwen35, NFC},
    {"gpt-2", split_gpt2, 0},
    {"phi-2", split_gpt2, 0},
    {"jina-es", split_gpt2, 0},
    {"jina-de", split_gpt2, 0},
    {"jina-v2-es", split_gpt2, 0},
    {"jina-v2-de", split_gpt2, 0},
    {"jina-v1-en", split_gpt2, 0},
    {"jina-v2-code", split_gpt2, 0},
    {"roberta-bpe", split_gpt2, 0},
    {"gigachat", split_gpt2, 0},
    {"a.x-4.0", split_gpt2, 0},
    {"mellum", split_gpt2, 0},
    {"modern-bert", split_gpt2, NFC},
    {"mpt", split_gpt2, NFC},
    {"olmo", split_gpt2, NFC},
    {"jais", split_gpt2, 0},
    {"trillion", split_gpt2, 0},
    {"granite-docling", split_gpt2, 0},
    {"exaone4", split_gpt2, NFC},
    {"starcoder", split_digits_gpt2, 0},
    {"refact", split_digits_gpt2, 0},
    {"command-r", split_digits_gpt2, NFC},
    {"smollm", split_digits_gpt2, 0},
    {"codeshell", split_digits_gpt2, 0},
    {"exaone", split_digits_gpt2, 0},
    {"minerva-7b", split_digits_gpt2, 0},
    {"mellum2", split_digits_gpt2, 0},
    {"falcon", split_falcon, 0},
    {"gpt-4o", split_gpt4o, 0},
    {"llama4", split_gpt4o, 0},
    {"kanana2", split_gpt4o, 0},
    {"talkie", split_gpt4o, 0},
    {"minimax-m2", split_gpt4o, 0},
    {"tekken", split_tekken, WHOLE | BOS},
    {"deepseek-llm", split_deepseek_llm, 0},
    {"deepseek-coder", split_deepseek_coder, 0},
    {"deepseek-v3", split_deepseek3, 0},
    {"hunyuan-dense", split_deepseek3, 0},
    {"joyai-llm", split_deepseek3, 0},
    {"bloom", split_bloom, 0},
    {"gpt3-finnish", split_bloom, 0},
    {"poro-chat", split_bloom, 0},
    {"viking", split_viking, 0},
    {"tiny_aya", split_tiny_aya, 0},
    {"cohere2moe", split_tiny_aya, 0},
    {"superbpe", split_superbpe, 0},
    {"bailingmoe", split_bailing, 0},
    {"bailingmoe2", split_bailing, 0},
    {"llada-moe", split_bailing, 0},
    {"seed-coder", split_seed_coder, 0},
    {"minicpm5", split_minicpm5, WHOLE},
    {"exaone-moe", split_exaone_moe, 0},
    {"gemma4", split_lines, RAW},
    {"granite-embed-multi-311m", split_lines, RAW},
    {"sarvam-moe", split_lines, RAW},
};

const tok_gguf_split *tok_gguf_split_find(const char *name)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strcmp(table[i].name, name) == 0) return &table[i];
    }
    return NULL;
}

static bool same_patterns(const tok_gguf_split *s, const tok_string *patterns, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *p = s->patterns[i];
        if (!p || strlen(p) != patterns[i].n || memcmp(p, patterns[i].s, patterns[i].n) != 0) return false;
    }
    return !s->patterns[n];
}

const tok_gguf_split *tok_gguf_split_match(const tok_string *patterns, size_t n, int flags, bool *exact)
{
    static const int masks[] = {TOK_GGUF_IGNORE_MERGES | TOK_GGUF_NFC | TOK_GGUF_RAW,
                                TOK_GGUF_IGNORE_MERGES | TOK_GGUF_RAW};
    for (size_t k = 0; k < 2; k++) {
        *exact = k == 0;
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
            if (((table[i].flags ^ flags) & masks[k]) == 0 && same_patterns(&table[i], patterns, n)) return &table[i];
        }
    }
    return NULL;
}
