/* Products of small matrices of floats, as in the attention of one head of one sentence. */
#pragma once

#include "../common/vector.h"

/* out = a · b for ROWS rows and VECTORS vectors of columns. a: its elements are `row` and `step` floats apart. */
#define BLOCK(ROWS, VECTORS)                                                                                          \
    INLINE void block_##ROWS##_##VECTORS(                                                                             \
        float *out, int64_t width, const float *a, int64_t row, int64_t step, const float *b, int64_t depth           \
    ) {                                                                                                               \
        Vector sums[ROWS][VECTORS] = {{{0}}};                                                                         \
        for (int64_t k = 0; k < depth; k++)                                                                           \
            for (int i = 0; i < ROWS; i++) {                                                                          \
                Vector factor = broadcast(a[i * row + k * step]);                                                     \
                for (int j = 0; j < VECTORS; j++) sums[i][j] += factor * load(b + k * width + j * LANES);             \
            }                                                                                                         \
        for (int i = 0; i < ROWS; i++)                                                                                \
            for (int j = 0; j < VECTORS; j++) store(out + i * width + j * LANES, sums[i][j]);                         \
    }
BLOCK(4, 4)
BLOCK(4, 2)
BLOCK(4, 1)
BLOCK(1, 4)
BLOCK(1, 2)
BLOCK(1, 1)
#undef BLOCK

/* out (rows, width) = a (rows, depth) · b (depth, width). The width is a multiple of LANES.

   a: the element (i, k) is at i · row + k · step, so that a may be transposed. The sums do not depend on other rows. */
static void multiply(
    float *out, const float *a, int64_t row, int64_t step, const float *b, int64_t rows, int64_t depth, int64_t width
) {
    for (int64_t column = 0, vectors; column < width; column += vectors * LANES) {
        int64_t left = (width - column) / LANES;
        vectors = left >= 4 ? 4 : left >= 2 ? 2 : 1;
        for (int64_t i = 0, count; i < rows; i += count) {
            count = rows - i >= 4 ? 4 : 1;
            float *to = out + i * width + column;
            const float *from = a + i * row;
            if (count == 4 && vectors == 4) block_4_4(to, width, from, row, step, b + column, depth);
            else if (count == 4 && vectors == 2) block_4_2(to, width, from, row, step, b + column, depth);
            else if (count == 4) block_4_1(to, width, from, row, step, b + column, depth);
            else if (vectors == 4) block_1_4(to, width, from, row, step, b + column, depth);
            else if (vectors == 2) block_1_2(to, width, from, row, step, b + column, depth);
            else block_1_1(to, width, from, row, step, b + column, depth);
        }
    }
}
