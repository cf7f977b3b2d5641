/* Attention of one query and one head.

   Keys are stored in two layouts. The keys of a source are transposed, (width, stride), so that the scores of LANES keys
   are computed at the same time. The keys of output tokens, which are added one at a time, have one row per key. The
   caller passes the array of scores, with space up to the next multiple of LANES. These functions allocate no memory. */
#pragma once

#include "model.h"

/* Rotates pairs of neighbouring numbers. angles: (width / 2) cosines followed by (width / 2) sines of one position. */
static void rotate(float *vector, const float *angles, int width) {
    const float *cosines = angles, *sines = angles + width / 2;
    for (int pair = 0; pair < width / 2; pair++) {
        float even = vector[2 * pair], odd = vector[2 * pair + 1];
        vector[2 * pair] = even * cosines[pair] - odd * sines[pair];
        vector[2 * pair + 1] = even * sines[pair] + odd * cosines[pair];
    }
}

/* Computes the scores of a query (width) with the first `count` transposed keys (width, stride), rounded up to a
   multiple of LANES. */
static void score_transposed_keys(
    const float *query, const float *keys, int width, int stride, int count, float scale, float *scores
) {
    for (int key = 0; key < count; key += LANES) {
        Vector sums[4] = {broadcast(0), broadcast(0), broadcast(0), broadcast(0)};
        for (int i = 0; i < width; i += 4)
            for (int each = 0; each < 4; each++) sums[each] += query[i + each] * load(keys + (size_t)(i + each) * stride + key);
        store(scores + key, ((sums[0] + sums[1]) + (sums[2] + sums[3])) * scale);
    }
}

INLINE float dot(const float *a, const float *b, int width) {
    Vector sums = broadcast(0);
    for (int i = 0; i < width; i += LANES) sums += load(a + i) * load(b + i);
    return horizontal_sum(sums);
}

/* Converts `count` scores to weights that sum to 1, in place. The array has space up to the next multiple of LANES. */
static void softmax(float *scores, int count) {
    for (int i = count; i < (count + LANES - 1) / LANES * LANES; i++) scores[i] = -INFINITY;
    Vector maxima = load(scores);
    for (int i = LANES; i < count; i += LANES) maxima = maximum(maxima, load(scores + i));
    float largest = horizontal_maximum(maxima);
    Vector sums = broadcast(0);
    for (int i = 0; i < count; i += LANES) {
        Vector weight = exponential(load(scores + i) - largest);
        store(scores + i, weight);
        sums += weight;
    }
    float factor = 1.0f / horizontal_sum(sums);
    for (int i = 0; i < count; i += LANES) store(scores + i, load(scores + i) * factor);
}
