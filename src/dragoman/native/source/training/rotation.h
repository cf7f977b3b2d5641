/* The rotation of vectors by their positions (Su et al. 2021). */
#pragma once

#include "numbers.h"

/* Rotates the first `heads` vectors of `width` elements of each row, in place: with imaginary unit j, the pairs x + jy are
   multiplied by e^(jθ), or by e^(−jθ) if `inverse`.

   vectors: (rows, stride). factors: (positions, width), cosine and sine of each pair. positions: (rows). */
INLINE void rotate(
    void *vectors, const float *factors, const int64_t *positions, int64_t rows, int64_t stride, int64_t heads,
    int64_t width, float sign, int wide
) {
    for (int64_t row = 0; row < rows; row++) {
        const float *angles = factors + positions[row] * width;
        for (int64_t head = 0; head < heads; head++) {
            int64_t start = row * stride + head * width;
            for (int64_t at = 0; at < width; at += LANES) {
                int64_t left = width - at;
                float value[LANES], factor[LANES], result[LANES];
                store(value, read_some(vectors, start + at, left, wide));
                store(factor, read_some(angles, at, left, 1));
                for (int lane = 0; lane < LANES; lane += 2) {
                    float cosine = factor[lane], sine = sign * factor[lane + 1];
                    result[lane] = value[lane] * cosine - value[lane + 1] * sine;
                    result[lane + 1] = value[lane + 1] * cosine + value[lane] * sine;
                }
                write_some(vectors, start + at, load(result), left, wide);
            }
        }
    }
}
