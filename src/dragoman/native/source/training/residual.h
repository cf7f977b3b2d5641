/* Dropout, residual connection and layer normalisation in one pass over memory each way. */
#pragma once

#include <stdlib.h>

#include "numbers.h"

/* A dropout whose random numbers are hashes of the seed and the element's index, so that the backward pass computes
   them again instead of reading a mask. The same as in nn/kernels/gpu/residual.py. */
typedef struct {
    int64_t seed;
    float rate;
} Dropout;

/* The finaliser `lowbias32` of Wellons, "Prospecting for hash functions" (2018). */
INLINE Words mixed(Words value) {
    value = (value ^ (value >> 16)) * 0x7FEB352Du;
    value = (value ^ (value >> 15)) * 0x846CA68Bu;
    return value ^ (value >> 16);
}

/* Returns 1 / (1 − rate) with probability 1 − rate, otherwise 0, for LANES elements from `place` on. */
INLINE Vector kept(Dropout dropout, int64_t place) {
    Words places;
    for (int lane = 0; lane < LANES; lane++) places[lane] = (uint32_t)lane;
    places += (uint32_t)place;
    Words bits = mixed(mixed(places ^ (uint32_t)dropout.seed) + (uint32_t)((uint64_t)dropout.seed >> 32));
    Vector uniform = __builtin_convertvector((Integers)(bits >> 8), Vector) * (1.0f / 16777216.0f);
    return (Vector)((Integers)broadcast(1.0f / (1.0f - dropout.rate)) & (uniform >= dropout.rate));
}

/* out = states + dropout(values); states may be NULL. */
INLINE void drop(const void *states, const void *values, void *out, int64_t size, Dropout dropout, int wide) {
    for (int64_t place = 0; place < size; place += LANES) {
        Vector value = read_some(values, place, size - place, wide);
        if (dropout.rate > 0) value *= kept(dropout, place);
        if (states != NULL) value += read_some(states, place, size - place, wide);
        write_some(out, place, value, size - place, wide);
    }
}

/* out = norm(sums) with sums = states + dropout(result), which is rounded once; result may be NULL, then sums = states.

   states, result, sums, out: (rows, width). weight, bias: (width). means, deviations: (rows), the mean and 1/√(variance +
   ε) of each row of the sums. */
INLINE void normalise_rows(
    const void *states, const void *result, void *sums, void *out, const void *weight, const void *bias, float *means,
    float *deviations, int64_t rows, int64_t width, float epsilon, Dropout dropout, int wide
) {
    for (int64_t row = 0; row < rows; row++) {
        int64_t start = row * width;
        Vector total = {0}, squares = {0};
        for (int64_t at = 0; at < width; at += LANES) {
            Vector value = read_some(states, start + at, width - at, wide);
            if (result != NULL) {
                Vector other = read_some(result, start + at, width - at, wide);
                if (dropout.rate > 0) other *= kept(dropout, start + at);
                write_some(sums, start + at, value + other, width - at, wide);
                value = read_some(sums, start + at, width - at, wide);
            }
            total += value;
        }
        const void *read_from = result != NULL ? sums : states;
        float mean = horizontal_sum(total) / (float)width;
        for (int64_t at = 0; at < width; at += LANES) {
            Vector centred = first_lanes(read_some(read_from, start + at, width - at, wide) - mean, width - at);
            squares += centred * centred;
        }
        float deviation = 1.0f / sqrtf(horizontal_sum(squares) / (float)width + epsilon);
        for (int64_t at = 0; at < width; at += LANES) {
            Vector value = (read_some(read_from, start + at, width - at, wide) - mean) * deviation;
            value = value * read_some(weight, at, width - at, wide) + read_some(bias, at, width - at, wide);
            write_some(out, start + at, value, width - at, wide);
        }
        means[row] = mean;
        deviations[row] = deviation;
    }
}

/* The gradients of `normalise_rows` with respect to states, result, weight and bias. result_gradients may be NULL. */
INLINE int32_t differentiate_norm(
    const void *gradients, const void *sums, const void *weight, const float *means, const float *deviations,
    void *state_gradients, void *result_gradients, void *weight_gradient, void *bias_gradient, int64_t rows,
    int64_t width, Dropout dropout, int wide
) {
    int64_t columns = (width + LANES - 1) / LANES * LANES;
    float *weight_sum = calloc((size_t)(2 * columns), sizeof(float)), *bias_sum = weight_sum + columns;
    if (weight_sum == NULL) return 1;
    for (int64_t row = 0; row < rows; row++) {
        int64_t start = row * width;
        Vector total = {0}, products = {0};
        for (int64_t at = 0; at < width; at += LANES) {
            Vector gradient = read_some(gradients, start + at, width - at, wide);
            Vector value = read_some(sums, start + at, width - at, wide);
            Vector normalised = (value - means[row]) * deviations[row];
            store(weight_sum + at, load(weight_sum + at) + gradient * normalised);
            store(bias_sum + at, load(bias_sum + at) + gradient);
            Vector scaled = gradient * read_some(weight, at, width - at, wide);
            total += scaled;
            products += scaled * normalised;
        }
        float mean = horizontal_sum(total) / (float)width, slope = horizontal_sum(products) / (float)width;
        for (int64_t at = 0; at < width; at += LANES) {
            Vector scaled = read_some(gradients, start + at, width - at, wide) * read_some(weight, at, width - at, wide);
            Vector normalised = (read_some(sums, start + at, width - at, wide) - means[row]) * deviations[row];
            Vector change = (scaled - mean - normalised * slope) * deviations[row];
            write_some(state_gradients, start + at, change, width - at, wide);
            if (result_gradients != NULL)
                write_some(result_gradients, start + at, change * kept(dropout, start + at), width - at, wide);
        }
    }
    for (int64_t at = 0; at < width; at += LANES) {
        write_some(weight_gradient, at, load(weight_sum + at), width - at, wide);
        write_some(bias_gradient, at, load(bias_sum + at), width - at, wide);
    }
    free(weight_sum);
    return 0;
}
