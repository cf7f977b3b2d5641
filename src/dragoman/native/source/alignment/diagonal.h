/* The positions of the diagonal model (Dyer et al. 2013): a(i | j, I, J) ∝ exp(−tension · |i / I − j / J|). */
#pragma once

#include <math.h>

#include "mixture.h"

INLINE double diagonal_feature(int64_t i, int64_t j, int64_t sources, int64_t targets) {
    return -fabs((double)i / (double)sources - (double)j / (double)targets);
}

/* Fills the matrices (I + 1, J) of all shapes. sizes: (shapes, 2), I and J. null: p(NULL). */
static void diagonal_positions(
    const int32_t *sizes, const int64_t *starts, int64_t shapes, double tension, double null, double *probabilities) {
    for (int64_t shape = 0; shape < shapes; shape++) {
        int64_t sources = sizes[2 * shape], targets = sizes[2 * shape + 1];
        double *matrix = probabilities + starts[shape];
        for (int64_t j = 1; j <= targets; j++) {
            double sum = 0;
            for (int64_t i = 1; i <= sources; i++) {
                double weight = exp(tension * diagonal_feature(i, j, sources, targets));
                matrix[i * targets + j - 1] = weight;
                sum += weight;
            }
            matrix[j - 1] = sources ? null : 1;
            for (int64_t i = 1; i <= sources; i++) matrix[i * targets + j - 1] *= (1 - null) / sum;
        }
    }
}

/* Computes the first two derivatives of Σ c(i, j) log a(i | j, I, J) with respect to the tension.

   counts: expected numbers of links c, in matrices (I + 1, J) of all shapes. moments: (2), the derivatives. */
static void diagonal_moments(
    const int32_t *sizes, const int64_t *starts, int64_t shapes, double tension, const double *counts,
    double *moments) {
    moments[0] = moments[1] = 0;
    for (int64_t shape = 0; shape < shapes; shape++) {
        int64_t sources = sizes[2 * shape], targets = sizes[2 * shape + 1];
        const double *matrix = counts + starts[shape];
        for (int64_t j = 1; j <= targets; j++) {
            double sum = 0, mean = 0, square = 0, links = 0, observed = 0;
            for (int64_t i = 1; i <= sources; i++) {
                double feature = diagonal_feature(i, j, sources, targets), weight = exp(tension * feature);
                double count = matrix[i * targets + j - 1];
                sum += weight;
                mean += weight * feature;
                square += weight * feature * feature;
                links += count;
                observed += count * feature;
            }
            if (!(sum > 0)) continue;
            mean /= sum;
            moments[0] += observed - links * mean;
            moments[1] -= links * (square / sum - mean * mean);
        }
    }
}
