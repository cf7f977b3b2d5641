/* The functions of the library that other programs call. */
#include "ngrams.h"

#define EXPORT __attribute__((visibility("default")))

/* See `ngram_score`. The arguments have no types, so that a decoder can call the function by its address. */
EXPORT double dragoman_ngram_score(const void *model, const void *before, int32_t token, void *after) {
    return ngram_score(model, before, token, after);
}

/* Score `count` texts. tokens: the tokens of all texts. ends: (count), the end of each text in `tokens`. scores: the
   natural log-probability of each token after the preceding tokens of its text, 0 for the first token of a text. */
EXPORT void dragoman_ngram_score_texts(const NgramModel *model, const int32_t *tokens, const int64_t *ends, int64_t count,
                                       double *scores) {
    int64_t position = 0;
    for (int64_t text = 0; text < count; text++) {
        NgramState states[2] = {{0}, {0}};
        int current = 0;
        for (int64_t first = position; position < ends[text]; position++, current = !current) {
            double score = ngram_score(model, &states[current], tokens[position], &states[!current]);
            scores[position] = position == first ? 0.0 : score;
        }
    }
}
