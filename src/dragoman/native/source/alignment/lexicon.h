/* A lexicon: for each source word e, a row of the target words f that occur in a pair with it, and t(f | e).

   The row of NULL is the first one and contains every target word, so the entry of target word f is f. */
#pragma once

#include <math.h>
#include <stdlib.h>

#include "pairs.h"

static int compare_words(const void *first, const void *second) {
    int32_t a = *(const int32_t *)first, b = *(const int32_t *)second;
    return (a > b) - (a < b);
}

/* Lists the target words that occur in a pair with each of the source words `first` to `last` − 1.

   order: the positions of all source words in `pairs->source`, sorted by word; occurrences: (words + 1), where each
   word starts in `order`; owner: the pair of each position. marks: (target words), all −1 before and after the call.
   If row_starts is NULL, only the number of target words is stored in `sizes`. Otherwise, the sorted words are stored
   in `targets`, and the entries of all matrix rows of these source words in `slots`. */
static void list_targets(
    const Pairs *pairs, const int64_t *order, const int64_t *occurrences, const int32_t *owner, int64_t first,
    int64_t last, int32_t *marks, const int64_t *row_starts, int64_t *sizes, int32_t *targets, int32_t *slots) {
    for (int64_t word = first; word < last; word++) {
        int64_t size = 0;
        int32_t *row = row_starts ? targets + row_starts[word] : 0;
        for (int64_t index = occurrences[word]; index < occurrences[word + 1]; index++) {
            Pair pair = pair_at(pairs, owner[order[index]]);
            for (int64_t j = 0; j < pair.targets; j++)
                if (marks[pair.target[j]] != (int32_t)word) {
                    marks[pair.target[j]] = (int32_t)word;
                    if (row) row[size] = pair.target[j];
                    size++;
                }
        }
        if (!row) {
            sizes[word] = size;
            continue;
        }
        qsort(row, (size_t)size, sizeof *row, compare_words);
        for (int64_t entry = 0; entry < size; entry++) marks[row[entry]] = (int32_t)(row_starts[word] + entry);
        for (int64_t index = occurrences[word]; index < occurrences[word + 1]; index++) {
            int64_t position = order[index], number = owner[position];
            Pair pair = pair_at(pairs, number);
            int64_t row_number = position - pairs->source_starts[number] + 1;
            int32_t *cells = slots + pairs->cells[number] + row_number * pair.targets;
            for (int64_t j = 0; j < pair.targets; j++) cells[j] = marks[pair.target[j]];
        }
        for (int64_t entry = 0; entry < size; entry++) marks[row[entry]] = -1;
    }
    if (!row_starts)
        for (int64_t word = first; word < last; word++)
            for (int64_t index = occurrences[word]; index < occurrences[word + 1]; index++) {
                Pair pair = pair_at(pairs, owner[order[index]]);
                for (int64_t j = 0; j < pair.targets; j++) marks[pair.target[j]] = -1;
            }
}

/* Finds the entries of the pairs `first` to `last` − 1 by binary search. missing: the entry of unknown words, and of
   words that never occurred in a pair. */
static void find_entries(
    const Pairs *pairs, const int64_t *row_starts, const int32_t *targets, int64_t first, int64_t last, int32_t missing,
    int32_t *slots) {
    for (int64_t number = first; number < last; number++) {
        Pair pair = pair_at(pairs, number);
        int32_t *cells = slots + pairs->cells[number];
        for (int64_t i = 0; i <= pair.sources; i++)
            for (int64_t j = 0; j < pair.targets; j++) {
                int32_t source = i ? pair.source[i - 1] : 0, target = pair.target[j], entry = missing;
                if (source >= 0 && target >= 0) {
                    int64_t low = row_starts[source], high = row_starts[source + 1];
                    while (low < high) {
                        int64_t middle = (low + high) / 2;
                        if (targets[middle] < target)
                            low = middle + 1;
                        else
                            high = middle;
                    }
                    if (low < row_starts[source + 1] && targets[low] == target) entry = (int32_t)low;
                }
                cells[i * pair.targets + j] = entry;
            }
    }
}

/* Adds the posterior probabilities of the pairs `first` to `last` − 1 to the counts of the source words `low` to
   `high` − 1. posteriors: starts with the matrix of pair `first`. */
static void count_entries(
    const Pairs *pairs, const double *posteriors, int64_t first, int64_t last, int32_t low, int32_t high,
    double *counts) {
    for (int64_t number = first; number < last; number++) {
        Pair pair = pair_at(pairs, number);
        const double *matrix = posteriors + (pairs->cells[number] - pairs->cells[first]);
        for (int64_t i = 0; i <= pair.sources; i++) {
            int32_t word = i ? pair.source[i - 1] : 0;
            if (word < low || word >= high) continue;
            for (int64_t j = 0; j < pair.targets; j++)
                counts[pair.slots[i * pair.targets + j]] += matrix[i * pair.targets + j];
        }
    }
}

/* ψ(x) for x > 0: the recurrence ψ(x) = ψ(x + 1) − 1/x up to 10, then the asymptotic series. */
static double digamma(double x) {
    double value = 0;
    for (; x < 10; x++) value -= 1 / x;
    double y = 1 / (x * x);
    double series = 1. / 252 - y * (1. / 240 - y * (1. / 132 - y * 691. / 32760));
    return value + log(x) - 0.5 / x - y * (1. / 12 - y * (1. / 120 - y * series));
}

/* Estimates t(f | e) for the source words `first` to `last` − 1 from expected counts c.

   With prior = 0, t = c / Σ c. Otherwise, the rows have a symmetric Dirichlet prior, and t = exp(ψ(c + prior) −
   ψ(Σ (c + prior))), the update of variational Bayes. divergence: (words) or NULL, receives the Kullback–Leibler
   divergence of each row's posterior from its prior. */
static void estimate_rows(
    const int64_t *row_starts, const double *counts, double prior, int64_t first, int64_t last, double *probabilities,
    double *divergence) {
    for (int64_t word = first; word < last; word++) {
        int64_t start = row_starts[word], end = row_starts[word + 1];
        double total = 0;
        for (int64_t entry = start; entry < end; entry++) total += counts[entry] + prior;
        if (prior == 0) {
            double scale = total > 0 ? 1 / total : 0;
            for (int64_t entry = start; entry < end; entry++) probabilities[entry] = counts[entry] * scale;
            continue;
        }
        double common = end > start ? digamma(total) : 0, unseen = divergence ? lgamma(prior) : 0, difference = 0;
        for (int64_t entry = start; entry < end; entry++) {
            double mean = digamma(counts[entry] + prior) - common;
            probabilities[entry] = exp(mean);
            if (divergence) difference += counts[entry] * mean - lgamma(counts[entry] + prior) + unseen;
        }
        if (divergence)
            divergence[word] = end > start ? difference + lgamma(total) - lgamma(prior * (double)(end - start)) : 0;
    }
}
