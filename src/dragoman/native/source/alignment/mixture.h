/* Models whose target words are aligned independently: IBM models 1 and 2, and the diagonal model.

   p(f, i | e) = a(i | j, I, J) t(f_j | e_i), where e_0 is NULL. */
#pragma once

#include <float.h>

#include "lexicon.h"

/* The shape of a pair is (I, J). Pairs of the same shape share the probabilities a(i | j, I, J). */
typedef struct {
    const int32_t *shapes;       /* (pairs): the number of each pair's shape */
    const int64_t *starts;       /* (shapes + 1): where the matrix (I + 1, J) of each shape starts */
    const double *probabilities; /* a, or NULL for the uniform distribution 1 / (I + 1) */
} PositionTable;

/* Computes p(i | j, pair) for the pairs `first` to `last` − 1, and log p(f | e) of each pair.

   posteriors: starts with the matrix of pair `first`. log_likelihoods: (last − first). Returns 0 if memory runs out. */
static int expect_mixture(
    const Pairs *pairs, const double *lexicon, const PositionTable *table, int64_t first, int64_t last,
    double *posteriors, double *log_likelihoods) {
    int64_t longest = 0;
    for (int64_t number = first; number < last; number++) {
        int64_t targets = pairs->target_starts[number + 1] - pairs->target_starts[number];
        if (targets > longest) longest = targets;
    }
    double *sums = malloc(sizeof *sums * (size_t)(longest + 1));
    if (!sums) return 0;
    for (int64_t number = first; number < last; number++) {
        Pair pair = pair_at(pairs, number);
        int64_t targets = pair.targets;
        double *matrix = posteriors + (pairs->cells[number] - pairs->cells[first]);
        const double *positions = table->probabilities;
        if (positions) positions += table->starts[table->shapes[number]];
        double uniform = 1 / (double)(pair.sources + 1), total = 0;
        for (int64_t j = 0; j < targets; j++) sums[j] = 0;
        for (int64_t i = 0; i <= pair.sources; i++)
            for (int64_t j = 0; j < targets; j++) {
                int64_t cell = i * targets + j;
                double joint = lexicon[pair.slots[cell]] * (positions ? positions[cell] : uniform);
                matrix[cell] = joint;
                sums[j] += joint;
            }
        for (int64_t j = 0; j < targets; j++) {
            total += log(sums[j] > DBL_MIN ? sums[j] : DBL_MIN);
            sums[j] = sums[j] > DBL_MIN ? 1 / sums[j] : 0;
        }
        for (int64_t i = 0; i <= pair.sources; i++)
            for (int64_t j = 0; j < targets; j++) {
                double *cell = &matrix[i * targets + j];
                *cell = sums[j] > 0 ? *cell * sums[j] : uniform;
            }
        log_likelihoods[number - first] = total;
    }
    free(sums);
    return 1;
}

/* Adds the posterior probabilities of the pairs `first` to `last` − 1 to the counts of the shapes `low` to `high` − 1.

   posteriors: starts with the matrix of pair `first`. */
static void count_positions(
    const Pairs *pairs, const PositionTable *table, const double *posteriors, int64_t first, int64_t last, int32_t low,
    int32_t high, double *counts) {
    for (int64_t number = first; number < last; number++) {
        int32_t shape = table->shapes[number];
        if (shape < low || shape >= high) continue;
        const double *matrix = posteriors + (pairs->cells[number] - pairs->cells[first]);
        double *sums = counts + table->starts[shape];
        int64_t size = pairs->cells[number + 1] - pairs->cells[number];
        for (int64_t cell = 0; cell < size; cell++) sums[cell] += matrix[cell];
    }
}
