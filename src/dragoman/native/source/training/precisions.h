/* Conversions between float32 and bfloat16 of whole tensors. */
#pragma once

#include "numbers.h"

/* Rounds `count` tensors of `sizes` elements to bfloat16. */
static void narrow(const float *const *from, uint16_t *const *to, const int64_t *sizes, int64_t count) {
    for (int64_t tensor = 0; tensor < count; tensor++)
        for (int64_t at = 0; at < sizes[tensor]; at += LANES) {
            int64_t left = sizes[tensor] - at;
            write_some(to[tensor], at, read_some(from[tensor], at, left, 1), left, 0);
        }
}

/* out = the sum of `count` tensors of `size` elements in bfloat16, in their order. */
static void sum_widened(const uint16_t *const *parts, int64_t count, float *out, int64_t size) {
    for (int64_t at = 0; at < size; at += LANES) {
        Vector sum = read_some(parts[0], at, size - at, 0);
        for (int64_t part = 1; part < count; part++) sum += read_some(parts[part], at, size - at, 0);
        write_some(out, at, sum, size - at, 1);
    }
}
