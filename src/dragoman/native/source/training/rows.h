/* Passes over the rows of a matrix in the backward pass of linear layers and of the cross-entropy. */
#pragma once

#include <stdlib.h>

#include "numbers.h"

/* sums = the sum of the rows of the gradients (rows, width). If there are activations of a ReLU, the gradients are zero
   where these are, and `out` receives them. */
INLINE int32_t sum_rows(
    const void *gradients, const void *activations, void *out, void *sums, int64_t rows, int64_t width, int wide
) {
    int64_t columns = (width + LANES - 1) / LANES * LANES;
    float *totals = calloc((size_t)columns, sizeof(float));
    if (totals == NULL) return 1;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t at = 0; at < width; at += LANES) {
            Vector gradient = read_some(gradients, row * width + at, width - at, wide);
            if (activations != NULL) {
                Integers active = read_some(activations, row * width + at, width - at, wide) > 0.0f;
                gradient = (Vector)((Integers)gradient & active);
                write_some(out, row * width + at, gradient, width - at, wide);
            }
            store(totals + at, load(totals + at) + gradient);
        }
    for (int64_t at = 0; at < width; at += LANES) write_some(sums, at, load(totals + at), width - at, wide);
    free(totals);
    return 0;
}

/* Replaces logits (rows, size) by weight · (softmax(logits) − (1 − smoothing) · onehot(label)).

   weights: (rows), the weight of each row. losses, label_logits: (rows), receive −weight · ln softmax(logits)[label] and
   weight · logits[label]. */
INLINE int32_t differentiate_entropy(
    void *logits, const int64_t *labels, const float *weights, float *losses, float *label_logits, int64_t rows,
    int64_t size, float smoothing, int wide
) {
    float *powers = malloc((size_t)(size + LANES) * sizeof(float));
    if (powers == NULL) return 1;
    for (int64_t row = 0; row < rows; row++) {
        int64_t start = row * size, label = start + labels[row], whole = size / LANES * LANES;
        Vector largest = broadcast(-INFINITY), sum = {0};
        for (int64_t at = 0; at < whole; at += LANES) largest = maximum(read(logits, start + at, wide), largest);
        float top = horizontal_maximum(largest);
        for (int64_t at = whole; at < size; at++) {
            float logit = read_some(logits, start + at, 1, wide)[0];
            top = logit > top ? logit : top;
        }
        for (int64_t at = 0; at < size; at += LANES) {
            Vector power = exponential(read_some(logits, start + at, size - at, wide) - top);
            power = first_lanes(power, size - at);
            store(powers + at, power);
            sum += power;
        }
        float total = horizontal_sum(sum), weight = weights[row];
        float label_logit = read_some(logits, label, 1, wide)[0];
        float label_power = powers[labels[row]];
        losses[row] = (logf(total) + top - label_logit) * weight;
        label_logits[row] = label_logit * weight;
        float factor = weight / total;
        for (int64_t at = 0; at < size; at += LANES)
            write_some(logits, start + at, load(powers + at) * factor, size - at, wide);
        write_some(logits, label, broadcast(label_power * factor - (1.0f - smoothing) * weight), 1, wide);
    }
    free(powers);
    return 0;
}
