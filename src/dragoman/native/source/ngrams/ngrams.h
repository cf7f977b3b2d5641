/* n-gram language models: a trie of n-grams, and the log-probability of one token after a context.

   `statistical/ngrams/query.py` declares the same structures. All arrays belong to the caller, are C-ordered and must outlive the
   model. The n-grams of an order are sorted by their tokens, so those that extend an n-gram are adjacent. */
#pragma once

#include <stdint.h>
#include <string.h>

enum { NGRAM_MAX_ORDER = 16, NGRAM_MISSING = -1, NGRAM_UNKNOWN = 3 };

static const double NGRAM_LN10 = 2.302585092994045684;

typedef struct {
    const int32_t *tokens;      /* (N): the last tokens; NULL for order 1, whose n-gram number i is the token i */
    const float *probabilities; /* (N): log10 p(last token | preceding tokens) */
    const float *backoffs;      /* (N): log10 of the back-off weights; NULL for the highest order */
    const int64_t *firsts;      /* (N + 1): number of the first n-gram of the next order that extends each; NULL for the highest */
} NgramOrder;

typedef struct {
    int32_t order, vocabulary;
    NgramOrder orders[NGRAM_MAX_ORDER]; /* orders[k - 1]: the n-grams of k tokens */
} NgramModel;

/* The context after a text: numbers[k - 1] is the number of its last k tokens among the n-grams of order k, or
   NGRAM_MISSING. length: the longest context that can affect a later score; the numbers after it are 0. Contexts with
   the same bytes have the same scores for all continuations. The empty context consists of zeros. */
typedef struct {
    int32_t length;
    int32_t numbers[NGRAM_MAX_ORDER - 1];
} NgramState;

/* Return the number of the n-gram that extends n-gram `number` of order `order` by a token, or NGRAM_MISSING. */
static inline int32_t ngram_find(const NgramModel *model, int order, int32_t number, int32_t token) {
    const NgramOrder *from = &model->orders[order - 1];
    const int32_t *tokens = model->orders[order].tokens;
    int64_t low = from->firsts[number], high = from->firsts[number + 1];
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (tokens[middle] < token)
            low = middle + 1;
        else
            high = middle;
    }
    return low < from->firsts[number + 1] && tokens[low] == token ? (int32_t)low : NGRAM_MISSING;
}

/* Return whether n-gram `number` of order `order` can affect a score as a context. */
static inline int ngram_matters(const NgramModel *model, int order, int32_t number) {
    const NgramOrder *of = &model->orders[order - 1];
    return number >= 0 && (of->firsts[number] < of->firsts[number + 1] || of->backoffs[number] != 0.0f);
}

/* Return the natural log-probability of a token after the context `before`, and set the context after the token.
   A token outside the vocabulary is treated as NGRAM_UNKNOWN. `after` must not be `before`. */
static inline double ngram_score(const NgramModel *model, const NgramState *before, int32_t token, NgramState *after) {
    if (token < 0 || token >= model->vocabulary)
        token = NGRAM_UNKNOWN;
    double score = model->orders[0].probabilities[token];
    memset(after, 0, sizeof *after);
    int longest = model->order - 1;
    if (longest)
        after->numbers[0] = token;
    int length = longest ? 1 : 0;
    for (int k = 1; k <= before->length; k++) {
        int32_t context = before->numbers[k - 1];
        int32_t found = context < 0 ? NGRAM_MISSING : ngram_find(model, k, context, token);
        if (found >= 0)
            score = model->orders[k].probabilities[found];
        else if (context >= 0)
            score += model->orders[k - 1].backoffs[context];
        if (k < longest) {
            after->numbers[k] = found;
            length = k + 1;
        }
    }
    while (length && !ngram_matters(model, length, after->numbers[length - 1]))
        after->numbers[--length] = 0;
    after->length = length;
    return score * NGRAM_LN10;
}
