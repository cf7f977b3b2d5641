/* Products of matrices in bfloat16 with sums in float32, by the instruction VDPBF16PS, which multiplies pairs.

   A matrix is addressed in pairs: two bfloat16 that are neighbours along the summed dimension. The right factor is packed
   in panels of PANEL_COLUMNS columns: for each pair of rows, the pairs of all columns of the panel. */
#pragma once

#include <stdlib.h>

#include "numbers.h"

#if defined(__x86_64__) && defined(__AVX512F__)
#define HAS_PAIRS 1
#define PAIRS __attribute__((target("avx512bf16")))
#define PANEL_COLUMNS 64

/* Numbers of pairs and panels that cover a number of rows and columns. */
INLINE int64_t pairs_of(int64_t rows) { return (rows + 1) / 2; }
INLINE int64_t panels_of(int64_t columns) { return (columns + PANEL_COLUMNS - 1) / PANEL_COLUMNS; }
INLINE int64_t packed_size(int64_t rows, int64_t columns) {
    return panels_of(columns) * pairs_of(rows) * PANEL_COLUMNS * (int64_t)sizeof(uint32_t);
}

/* Packs a matrix (rows, columns), whose rows are `stride` elements apart, as a right factor. */
static void pack(uint32_t *to, const uint16_t *from, int64_t rows, int64_t columns, int64_t stride) {
    int64_t pairs = pairs_of(rows);
    for (int64_t panel = 0; panel < panels_of(columns); panel++) {
        int64_t first = panel * PANEL_COLUMNS;
        int64_t count = columns - first < PANEL_COLUMNS ? columns - first : PANEL_COLUMNS;
        for (int64_t pair = 0; pair < pairs; pair++, to += PANEL_COLUMNS) {
            const uint16_t *upper = from + 2 * pair * stride + first;
            const uint16_t *lower = 2 * pair + 1 < rows ? upper + stride : NULL;
            if (count == PANEL_COLUMNS && lower != NULL)
                for (int64_t at = 0; at < PANEL_COLUMNS; at++) to[at] = upper[at] | (uint32_t)lower[at] << 16;
            else
                for (int64_t at = 0; at < PANEL_COLUMNS; at++)
                    to[at] = at >= count ? 0 : upper[at] | (lower == NULL ? 0 : (uint32_t)lower[at] << 16);
        }
    }
}

/* Packs the transpose of a matrix (columns, rows) as a right factor. The number of rows is even. */
static void pack_transposed(uint32_t *to, const uint16_t *from, int64_t rows, int64_t columns, int64_t stride) {
    int64_t pairs = pairs_of(rows);
    for (int64_t panel = 0; panel < panels_of(columns); panel++) {
        int64_t first = panel * PANEL_COLUMNS;
        uint32_t *start = to + panel * pairs * PANEL_COLUMNS;
        for (int64_t block = 0; block < pairs; block += 16) {
            int64_t last = block + 16 < pairs ? block + 16 : pairs;
            for (int64_t at = 0; at < PANEL_COLUMNS; at++) {
                uint32_t words[16] = {0};
                if (first + at < columns)
                    memcpy(words, from + (first + at) * stride + 2 * block, (size_t)(last - block) * sizeof(uint32_t));
                for (int64_t pair = block; pair < last; pair++) start[pair * PANEL_COLUMNS + at] = words[pair - block];
            }
        }
    }
}

/* What happens to the sums of a product before they are written. */
typedef struct {
    const float *bias;     /* added to each row, or NULL */
    int relu;              /* whether negative values become zeros */
    const uint16_t *added; /* (rows, columns) with the stride of the result, times `factor`; or NULL */
    float factor, scale;   /* the sums are multiplied by `scale` */
} Finish;

#define ROWS(COUNT)                                                                                                    \
    PAIRS static inline void rows_##COUNT(                                                                             \
        uint16_t *out, int64_t out_stride, const uint32_t *a, int64_t row, int64_t step, const uint32_t *b,           \
        int64_t pairs, int64_t columns, int64_t first, const Finish *finish                                            \
    ) {                                                                                                                \
        __m512 sums[COUNT][4];                                                                                         \
        for (int i = 0; i < COUNT; i++)                                                                                \
            for (int j = 0; j < 4; j++) sums[i][j] = _mm512_setzero_ps();                                              \
        for (int64_t pair = 0; pair < pairs; pair++, b += PANEL_COLUMNS) {                                             \
            __m512bh right[4];                                                                                         \
            for (int j = 0; j < 4; j++) right[j] = (__m512bh)_mm512_loadu_si512(b + 16 * j);                           \
            for (int i = 0; i < COUNT; i++) {                                                                          \
                __m512bh left = (__m512bh)_mm512_set1_epi32((int)a[i * row + pair * step]);                            \
                for (int j = 0; j < 4; j++) sums[i][j] = _mm512_dpbf16_ps(sums[i][j], left, right[j]);                 \
            }                                                                                                          \
        }                                                                                                              \
        for (int i = 0; i < COUNT; i++)                                                                                \
            for (int j = 0; j < 4; j++) {                                                                              \
                int64_t column = first + 16 * j, left = columns - column;                                              \
                if (left <= 0) break;                                                                                  \
                Vector value = (Vector)sums[i][j] * finish->scale;                                                     \
                if (finish->bias != NULL) value += read_some(finish->bias, column, left, 1);                           \
                if (finish->added != NULL)                                                                             \
                    value += finish->factor * read_some(finish->added, i * out_stride + column, left, 0);              \
                if (finish->relu) value = maximum(value, (Vector){0});                                                 \
                write_some(out, i * out_stride + column, value, left, 0);                                              \
            }                                                                                                          \
    }
ROWS(6)
ROWS(4)
ROWS(2)
ROWS(1)
#undef ROWS

/* out (rows, columns) = finish(a · b). a: the pair of row i and summed pair k is at i · row + k · step. b: packed.

   symmetric: only the panels on and below the diagonal are computed, which suffices for a symmetric result (mirror). */
PAIRS static void multiply_pairs(
    uint16_t *out, int64_t out_stride, const uint32_t *a, int64_t row, int64_t step, const uint32_t *b, int64_t rows,
    int64_t pairs, int64_t columns, Finish finish, int symmetric
) {
    const uint16_t *added = finish.added;
    for (int64_t panel = 0; panel < panels_of(columns); panel++) {
        int64_t first = panel * PANEL_COLUMNS;
        const uint32_t *right = b + panel * pairs * PANEL_COLUMNS;
        for (int64_t i = symmetric ? first : 0, count; i < rows; i += count) {
            int64_t left = rows - i;
            count = left >= 6 ? 6 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
            uint16_t *to = out + i * out_stride;
            const uint32_t *from = a + i * row;
            if (added != NULL) finish.added = added + i * out_stride;
            if (count == 6) rows_6(to, out_stride, from, row, step, right, pairs, columns, first, &finish);
            else if (count == 4) rows_4(to, out_stride, from, row, step, right, pairs, columns, first, &finish);
            else if (count == 2) rows_2(to, out_stride, from, row, step, right, pairs, columns, first, &finish);
            else rows_1(to, out_stride, from, row, step, right, pairs, columns, first, &finish);
        }
    }
}
#endif
