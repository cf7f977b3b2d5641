/* Translation options of a sentence: the phrase pairs of each of its spans, and the estimated cost of uncovered words. */
#pragma once

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "interface.h"

typedef struct {
    double score;                 /* weighted features that do not depend on the context */
    double estimate;              /* score, and the language model's score without context */
    double reordering[REORDERINGS]; /* weighted log p of the orientations of the previous and of the next phrase */
    const int32_t *words;         /* target words; a single negative number for a copied source word */
    int64_t pair;                 /* -1 for a copied source word */
    int32_t length, start, end;   /* length: number of target words; start, end: source span */
} Option;

/* options: those of the span of `length` words from `start` are spans[start * max_length + length - 1]. */
typedef struct {
    Option *options;
    int32_t count;
} Span;

typedef struct {
    const PhraseTable *table;
    const LanguageModel *language_model;
    const SearchSettings *settings;
    const int32_t *source;
    Span *spans;                  /* (length, max_length) */
    double *future;               /* (length, window): estimated score of each span of at most `window` words */
    double *suffix;               /* (length + 1): estimated score of all words from a position */
    int32_t *copies;              /* (length): the words of options that copy a source word */
    int32_t length, max_length, window, feature_count;
} Sentence;

static inline double weight(const SearchSettings *settings, int32_t feature) { return settings->weights[feature]; }

/* Returns the sum of the language model's scores of an option's words, and advances the state. state: MAX_STATE bytes. */
static double score_words(const LanguageModel *model, const Option *option, uint8_t *state) {
    if (model->score == NULL) return 0;
    uint8_t next[MAX_STATE] = {0};
    double sum = 0;
    for (int32_t j = 0; j < option->length; j++) {
        int32_t word = option->words[j] < 0 ? model->unknown : option->words[j];
        sum += model->score(model->model, state, word, next);
        memcpy(state, next, (size_t)model->state_size);
    }
    return sum;
}

static void estimate_option(const Sentence *sentence, Option *option) {
    uint8_t state[MAX_STATE] = {0};
    const LanguageModel *model = sentence->language_model;
    if (model->score != NULL) memcpy(state, model->empty, (size_t)model->state_size);
    option->estimate = option->score + weight(sentence->settings, 0) * score_words(model, option, state);
}

/* Orders options by falling estimate. */
static int compare_options(const void *left, const void *right) {
    const Option *a = left, *b = right;
    if (a->estimate != b->estimate) return a->estimate < b->estimate ? 1 : -1;
    return a->pair < b->pair ? -1 : a->pair > b->pair;
}

/* Fills the options of a span from the phrase pairs of a node. Returns zero if memory is exhausted. */
static int fill_span(Sentence *sentence, Span *span, int32_t node, int32_t start, int32_t end) {
    const PhraseTable *table = sentence->table;
    const SearchSettings *settings = sentence->settings;
    int32_t first = table->pair_starts[node], count = table->pair_starts[node + 1] - first, features = table->table_features;
    if (count == 0) return 1;
    Option *options = malloc((size_t)count * sizeof(Option));
    if (options == NULL) return 0;
    for (int32_t k = 0; k < count; k++) {
        Option *option = &options[k];
        int64_t pair = first + k;
        int32_t target = table->targets[pair];
        option->pair = pair;
        option->words = table->target_words + table->target_starts[target];
        option->length = table->target_starts[target + 1] - table->target_starts[target];
        option->start = start;
        option->end = end;
        option->score = weight(settings, features + 1) * option->length + weight(settings, features + 2);
        for (int32_t f = 0; f < features; f++)
            option->score += weight(settings, f + 1) * table->features[pair * features + f];
        for (int32_t r = 0; r < REORDERINGS; r++)
            option->reordering[r] = table->reordering == NULL ? 0
                : weight(settings, features + 4 + r) * table->reordering[pair * REORDERINGS + r];
        estimate_option(sentence, option);
    }
    qsort(options, (size_t)count, sizeof(Option), compare_options);
    span->options = options;
    span->count = settings->options > 0 && count > settings->options ? settings->options : count;
    return 1;
}

/* Adds an option that copies a source word. */
static int copy_word(Sentence *sentence, Span *span, int32_t position) {
    Option *option = calloc(1, sizeof(Option));
    if (option == NULL) return 0;
    sentence->copies[position] = -1 - position;
    option->pair = -1;
    option->words = &sentence->copies[position];
    option->length = 1;
    option->start = position;
    option->end = position + 1;
    int32_t features = sentence->table->table_features;
    option->score = weight(sentence->settings, features + 1) + weight(sentence->settings, features + 2);
    estimate_option(sentence, option);
    span->options = option;
    span->count = 1;
    return 1;
}

/* Returns the child of a trie node with a word, or −1. */
static int32_t find_child(const PhraseTable *table, int32_t node, int32_t word) {
    int32_t low = table->child_starts[node], high = table->child_starts[node + 1];
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (table->words[middle] < word) low = middle + 1;
        else high = middle;
    }
    return low < table->child_starts[node + 1] && table->words[low] == word ? low : -1;
}

static double best_estimate(const Sentence *sentence, int32_t start, int32_t length) {
    if (length > sentence->max_length) return -DBL_MAX;
    const Span *span = &sentence->spans[(size_t)start * sentence->max_length + length - 1];
    return span->count ? span->options[0].estimate : -DBL_MAX;
}

/* Computes the best sum of estimates for every span of at most `window` words and for every suffix. */
static void estimate_future(Sentence *sentence) {
    int32_t length = sentence->length, window = sentence->window;
    for (int32_t size = 1; size <= window; size++)
        for (int32_t start = 0; start + size <= length; start++) {
            double best = best_estimate(sentence, start, size);
            for (int32_t first = 1; first < size && first <= sentence->max_length; first++) {
                double sum = best_estimate(sentence, start, first);
                if (sum == -DBL_MAX) continue;
                sum += sentence->future[(size_t)(start + first) * window + size - first - 1];
                if (sum > best) best = sum;
            }
            sentence->future[(size_t)start * window + size - 1] = best;
        }
    sentence->suffix[length] = 0;
    for (int32_t start = length - 1; start >= 0; start--) {
        sentence->suffix[start] = -DBL_MAX;
        for (int32_t size = 1; size <= sentence->max_length && start + size <= length; size++) {
            double sum = best_estimate(sentence, start, size);
            if (sum == -DBL_MAX) continue;
            sum += sentence->suffix[start + size];
            if (sum > sentence->suffix[start]) sentence->suffix[start] = sum;
        }
    }
}

static void close_sentence(Sentence *sentence) {
    if (sentence->spans != NULL)
        for (size_t k = 0; k < (size_t)sentence->length * sentence->max_length; k++) free(sentence->spans[k].options);
    free(sentence->spans);
    free(sentence->future);
    free(sentence->suffix);
    free(sentence->copies);
}

/* Collects the options of a sentence. Returns zero if memory is exhausted. */
static int open_sentence(Sentence *sentence, const PhraseTable *table, const LanguageModel *model,
                         const SearchSettings *settings, const int32_t *source, int32_t length) {
    int32_t window = settings->distortion + table->max_length;
    *sentence = (Sentence){.table = table, .language_model = model, .settings = settings, .source = source,
                           .length = length, .max_length = table->max_length, .window = window < 1 ? 1 : window,
                           .feature_count = table->table_features + 4 + (table->reordering ? REORDERINGS : 0)};
    size_t words = (size_t)length + 1;
    sentence->spans = calloc(words * sentence->max_length, sizeof(Span));
    sentence->future = malloc(words * sentence->window * sizeof(double));
    sentence->suffix = malloc(words * sizeof(double));
    sentence->copies = malloc(words * sizeof(int32_t));
    if (!sentence->spans || !sentence->future || !sentence->suffix || !sentence->copies) goto failed;
    for (int32_t start = 0; start < length; start++) {
        Span *spans = &sentence->spans[(size_t)start * sentence->max_length];
        int32_t node = 0;
        for (int32_t end = start + 1; end <= length && end - start <= sentence->max_length; end++) {
            node = find_child(table, node, source[end - 1]);
            if (node < 0) break;
            if (!fill_span(sentence, &spans[end - start - 1], node, start, end)) goto failed;
        }
        if (spans[0].count == 0 && !copy_word(sentence, &spans[0], start)) goto failed;
    }
    estimate_future(sentence);
    return 1;
failed:
    close_sentence(sentence);
    return 0;
}
