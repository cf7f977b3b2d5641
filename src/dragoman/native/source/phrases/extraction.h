/* Extraction of phrase pairs that are consistent with word alignments (Och and Ney 2004; Koehn et al. 2003), with
   lexical weights and word-based orientations (Koehn et al. 2005). */
#pragma once

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "interface.h"

/* One word-aligned sentence pair. linked: (source_length, target_length), the number of the link plus one, or zero. */
typedef struct {
    const AlignedCorpus *corpus;
    int64_t source_start, target_start, first_link;
    int32_t source_length, target_length;
    int32_t *linked;
    int32_t *least, *most;   /* (source_length): range of the target words that a source word is linked to */
    int32_t *first, *last;   /* (target_length): range of the source words that a target word is linked to */
} AlignedPair;

static void free_pair(AlignedPair *pair) {
    free(pair->linked);
    free(pair->least);
}

/* Prepares sentence s. Returns zero if memory is exhausted. */
static int prepare_pair(AlignedPair *pair, const AlignedCorpus *corpus, int32_t s) {
    pair->corpus = corpus;
    pair->source_start = corpus->source_starts[s];
    pair->target_start = corpus->target_starts[s];
    pair->source_length = (int32_t)(corpus->source_starts[s + 1] - pair->source_start);
    pair->target_length = (int32_t)(corpus->target_starts[s + 1] - pair->target_start);
    pair->first_link = corpus->link_starts[s];
    size_t lengths = (size_t)pair->source_length + (size_t)pair->target_length;
    pair->linked = calloc((size_t)pair->source_length * (size_t)pair->target_length + 1, sizeof(int32_t));
    pair->least = malloc((2 * lengths + 1) * sizeof(int32_t));
    if (pair->linked == NULL || pair->least == NULL) {
        free_pair(pair);
        return 0;
    }
    pair->most = pair->least + pair->source_length;
    pair->first = pair->most + pair->source_length;
    pair->last = pair->first + pair->target_length;
    for (int32_t i = 0; i < pair->source_length; i++) pair->least[i] = INT32_MAX, pair->most[i] = -1;
    for (int32_t j = 0; j < pair->target_length; j++) pair->first[j] = INT32_MAX, pair->last[j] = -1;
    for (int64_t link = pair->first_link; link < corpus->link_starts[s + 1]; link++) {
        int32_t i = corpus->links[2 * link], j = corpus->links[2 * link + 1];
        pair->linked[(size_t)i * pair->target_length + j] = (int32_t)(link - pair->first_link) + 1;
        if (j < pair->least[i]) pair->least[i] = j;
        if (j > pair->most[i]) pair->most[i] = j;
        if (i < pair->first[j]) pair->first[j] = i;
        if (i > pair->last[j]) pair->last[j] = i;
    }
    return 1;
}

/* Returns whether two words are linked. The positions before the first words are linked, and those after the last. */
static int is_linked(const AlignedPair *pair, int32_t i, int32_t j) {
    if (i < 0 || j < 0) return i < 0 && j < 0;
    if (i >= pair->source_length || j >= pair->target_length)
        return i == pair->source_length && j == pair->target_length;
    return pair->linked[(size_t)i * pair->target_length + j] != 0;
}

static int8_t orientation(int monotone, int swap) { return monotone ? MONOTONE : swap ? SWAP : DISCONTINUOUS; }

/* Returns the logarithm of the lexical weight of one side: the product over its words of the mean w(word | linked
   words), or of w(word | null) for a word without links (Koehn et al. 2003, section 4.3). */
static float lexical_weight(const AlignedPair *pair, int32_t i1, int32_t i2, int32_t j1, int32_t j2, int of_target) {
    const AlignedCorpus *corpus = pair->corpus;
    const float *weights = of_target ? corpus->target_given_source : corpus->source_given_target;
    double logarithm = 0;
    int32_t begin = of_target ? j1 : i1, end = of_target ? j2 : i2;
    for (int32_t word = begin; word <= end; word++) {
        double sum = 0;
        int32_t count = 0;
        for (int32_t other = of_target ? i1 : j1; other <= (of_target ? i2 : j2); other++) {
            int32_t i = of_target ? other : word, j = of_target ? word : other;
            int32_t link = pair->linked[(size_t)i * pair->target_length + j];
            if (link) sum += weights[pair->first_link + link - 1], count++;
        }
        if (count) sum /= count;
        else sum = of_target ? corpus->target_given_null[pair->target_start + word]
                             : corpus->source_given_null[pair->source_start + word];
        logarithm += log(sum);
    }
    return (float)logarithm;
}

static void store_phrase(const AlignedPair *pair, const PhraseOccurrences *out, int64_t number, int32_t i1, int32_t i2,
                         int32_t j1, int32_t j2) {
    out->source[number] = pair->source_start + i1;
    out->target[number] = pair->target_start + j1;
    out->source_length[number] = (int8_t)(i2 - i1 + 1);
    out->target_length[number] = (int8_t)(j2 - j1 + 1);
    out->previous[number] = orientation(is_linked(pair, i1 - 1, j1 - 1), is_linked(pair, i2 + 1, j1 - 1));
    out->next[number] = orientation(is_linked(pair, i2 + 1, j2 + 1), is_linked(pair, i1 - 1, j2 + 1));
    out->source_given_target[number] = lexical_weight(pair, i1, i2, j1, j2, 0);
    out->target_given_source[number] = lexical_weight(pair, i1, i2, j1, j2, 1);
}

/* Extracts the phrase pairs of a sentence pair and returns their number. out: NULL to count them only. */
static int64_t extract_pair(const AlignedPair *pair, const PhraseOccurrences *out, int64_t number) {
    int32_t longest = pair->corpus->max_length;
    int64_t before = number;
    for (int32_t i1 = 0; i1 < pair->source_length; i1++) {
        int32_t least = INT32_MAX, most = -1;
        for (int32_t i2 = i1; i2 < pair->source_length && i2 < i1 + longest; i2++) {
            if (pair->least[i2] < least) least = pair->least[i2];
            if (pair->most[i2] > most) most = pair->most[i2];
            if (most < 0 || most - least >= longest) continue;
            int consistent = 1;
            for (int32_t j = least; consistent && j <= most; j++)
                consistent = pair->last[j] < 0 || (pair->first[j] >= i1 && pair->last[j] <= i2);
            if (!consistent) continue;
            /* The target side also extends over adjacent words without links. */
            for (int32_t j1 = least; j1 >= 0 && most - j1 < longest && (j1 == least || pair->last[j1] < 0); j1--)
                for (int32_t j2 = most;
                     j2 < pair->target_length && j2 - j1 < longest && (j2 == most || pair->last[j2] < 0); j2++) {
                    if (out != NULL) store_phrase(pair, out, number, i1, i2, j1, j2);
                    number++;
                }
        }
    }
    return number - before;
}
