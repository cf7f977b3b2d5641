/* Word alignment of parallel texts by expectation maximisation and by Gibbs sampling.

   Every function is single-threaded and processes a range of pairs or words. The caller runs ranges on several threads.
   Ranges do not depend on the number of threads, so neither do the results. */
#include "diagonal.h"
#include "fertility.h"
#include "hmm.h"
#include "mixture.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void dragoman_list_targets(
    const Pairs *pairs, const int64_t *order, const int64_t *occurrences, const int32_t *owner, int64_t first,
    int64_t last, int32_t *marks, const int64_t *row_starts, int64_t *sizes, int32_t *targets, int32_t *slots) {
    list_targets(pairs, order, occurrences, owner, first, last, marks, row_starts, sizes, targets, slots);
}

EXPORT void dragoman_find_entries(
    const Pairs *pairs, const int64_t *row_starts, const int32_t *targets, int64_t first, int64_t last, int32_t missing,
    int32_t *slots) {
    find_entries(pairs, row_starts, targets, first, last, missing, slots);
}

EXPORT void dragoman_count_entries(
    const Pairs *pairs, const double *posteriors, int64_t first, int64_t last, int32_t low, int32_t high,
    double *counts) {
    count_entries(pairs, posteriors, first, last, low, high, counts);
}

EXPORT void dragoman_estimate_rows(
    const int64_t *row_starts, const double *counts, double prior, int64_t first, int64_t last, double *probabilities,
    double *divergence) {
    estimate_rows(row_starts, counts, prior, first, last, probabilities, divergence);
}

EXPORT int32_t dragoman_expect_mixture(
    const Pairs *pairs, const double *lexicon, const PositionTable *table, int64_t first, int64_t last,
    double *posteriors, double *log_likelihoods) {
    return expect_mixture(pairs, lexicon, table, first, last, posteriors, log_likelihoods);
}

EXPORT void dragoman_count_positions(
    const Pairs *pairs, const PositionTable *table, const double *posteriors, int64_t first, int64_t last, int32_t low,
    int32_t high, double *counts) {
    count_positions(pairs, table, posteriors, first, last, low, high, counts);
}

EXPORT int32_t dragoman_expect_hmm(
    const Pairs *pairs, const double *lexicon, const Jumps *jumps, int64_t first, int64_t last, double *posteriors,
    double *log_likelihoods, JumpCounts *counts) {
    return expect_hmm(pairs, lexicon, jumps, first, last, posteriors, log_likelihoods, counts);
}

EXPORT void dragoman_diagonal_positions(
    const int32_t *sizes, const int64_t *starts, int64_t shapes, double tension, double null, double *probabilities) {
    diagonal_positions(sizes, starts, shapes, tension, null, probabilities);
}

EXPORT void dragoman_diagonal_moments(
    const int32_t *sizes, const int64_t *starts, int64_t shapes, double tension, const double *counts,
    double *moments) {
    diagonal_moments(sizes, starts, shapes, tension, counts, moments);
}

EXPORT int32_t dragoman_count_links(
    const Pairs *pairs, const Sampler *sampler, const SamplerSettings *settings, int64_t size, int32_t stage) {
    (void)stage;
    return count_links(pairs, sampler, settings, size);
}

EXPORT int32_t dragoman_draw_links(
    const Pairs *pairs, const Sampler *sampler, const SamplerSettings *settings, int64_t size, int32_t stage) {
    (void)stage;
    draw_links(pairs, sampler, settings, size);
    return 1;
}

EXPORT int32_t dragoman_sample_links(
    const Pairs *pairs, const Sampler *sampler, const SamplerSettings *settings, int64_t size, int32_t stage) {
    return sample_links(pairs, sampler, settings, size, stage);
}

EXPORT int32_t dragoman_expect_fertility(
    const Pairs *pairs, const FertilityModel *model, int64_t first, int64_t last, double *posteriors,
    double *log_likelihoods) {
    return expect_fertility(pairs, model, first, last, posteriors, log_likelihoods);
}

EXPORT void dragoman_find_likelihoods(
    const Pairs *pairs, const FertilityModel *model, int64_t first, int64_t last, double *log_likelihoods) {
    find_likelihoods(pairs, model, first, last, log_likelihoods);
}

/* Links each target word of the pairs `first` to `last` − 1 with its most probable source word, counted from 0, or −1
   for NULL. Among equally probable source words, the first one is chosen, and NULL only if it is more probable. */
EXPORT void dragoman_choose_links(
    const Pairs *pairs, const double *posteriors, int64_t first, int64_t last, int32_t *links) {
    for (int64_t number = first; number < last; number++) {
        Pair pair = pair_at(pairs, number);
        const double *matrix = posteriors + (pairs->cells[number] - pairs->cells[first]);
        int32_t *row = links + (pairs->target_starts[number] - pairs->target_starts[first]);
        for (int64_t j = 0; j < pair.targets; j++) {
            double best = matrix[j];
            row[j] = -1;
            for (int64_t i = 1; i <= pair.sources; i++) {
                double posterior = matrix[i * pair.targets + j];
                if (posterior > best || (row[j] < 0 && posterior == best)) {
                    best = posterior;
                    row[j] = (int32_t)(i - 1);
                }
            }
        }
    }
}
