/* Sentence pairs as numbers, and the places of a lexicon where the probabilities of their words are stored. */
#pragma once

#include <stdint.h>

#define INLINE static inline __attribute__((unused))

/* N sentence pairs. Source word 0 is NULL and occurs in no text; −1 is an unknown word of either language. */
typedef struct {
    const int32_t *source;        /* the words of all sources, from 1 */
    const int32_t *target;        /* the words of all targets, from 0 */
    const int64_t *source_starts; /* (N + 1): where each source starts in `source` */
    const int64_t *target_starts; /* (N + 1) */
    const int64_t *cells;         /* (N + 1): where the matrix (I + 1, J) of each pair starts; its first row is NULL */
    const int32_t *slots;         /* (cells): the lexicon's entry for the source word of the row and the target word */
} Pairs;

/* A view of one pair. */
typedef struct {
    int64_t sources, targets; /* I and J */
    const int32_t *source, *target;
    const int32_t *slots; /* (I + 1, J) */
} Pair;

INLINE Pair pair_at(const Pairs *pairs, int64_t number) {
    int64_t source = pairs->source_starts[number], target = pairs->target_starts[number];
    Pair pair = {
        .sources = pairs->source_starts[number + 1] - source,
        .targets = pairs->target_starts[number + 1] - target,
        .source = pairs->source + source,
        .target = pairs->target + target,
        .slots = pairs->slots ? pairs->slots + pairs->cells[number] : 0,
    };
    return pair;
}
