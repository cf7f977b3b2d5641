/* Attention of one query and one head over keys that lie together. */
#pragma once

#include "model.h"

/* Turns pairs of neighbours by the angles of a position; turns: cosines, then sines, (width / 2) of each. */
static void rotate(float *vector, const float *turns, int width) {
    const float *cosines = turns, *sines = turns + width / 2;
    for (int pair = 0; pair < width / 2; pair++) {
        float even = vector[2 * pair], odd = vector[2 * pair + 1];
        vector[2 * pair] = even * cosines[pair] - odd * sines[pair];
        vector[2 * pair + 1] = even * sines[pair] + odd * cosines[pair];
    }
}

/* Scores of a query with keys that are stored number by number, (width, stride): the first `count` rounded up. */
static void scores_by_number(const float *query, const float *keys, int width, int stride, int count, float scale, float *scores) {
    for (int key = 0; key < count; key += LANES) {
        Vector sums[4] = {all(0), all(0), all(0), all(0)};
        for (int number = 0; number < width; number += 4)
            for (int each = 0; each < 4; each++)
                sums[each] += query[number + each] * load(keys + (size_t)(number + each) * stride + key);
        store(scores + key, ((sums[0] + sums[1]) + (sums[2] + sums[3])) * scale);
    }
}

INLINE float dot(const float *a, const float *b, int width) {
    Vector sums = all(0);
    for (int place = 0; place < width; place += LANES) sums += load(a + place) * load(b + place);
    return sum_of(sums);
}

/* Scores become weights that sum to 1; there is room for a register more behind the last. */
static void softmax(float *scores, int count) {
    for (int place = count; place < (count + LANES - 1) / LANES * LANES; place++) scores[place] = -INFINITY;
    Vector most = load(scores);
    for (int place = LANES; place < count; place += LANES) most = larger(most, load(scores + place));
    float largest = largest_of(most);
    Vector sums = all(0);
    for (int place = 0; place < count; place += LANES) {
        Vector weight = exponential(load(scores + place) - largest);
        store(scores + place, weight);
        sums += weight;
    }
    float factor = 1.0f / sum_of(sums);
    for (int place = 0; place < count; place += LANES) store(scores + place, load(scores + place) * factor);
}
