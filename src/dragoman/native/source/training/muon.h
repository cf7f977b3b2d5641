/* One step of Muon (Jordan et al. 2024) for a matrix, with products in bfloat16. The algorithm is that of
   training/optimisers/muon.py, which says where its constants come from.

   A step X ← (aI + P)X with P = bA + cA² and A = XXᵀ. The first two steps are one: after the first, A becomes
   (aI + P)A(aI + P), so that only (rows, rows) matrices are multiplied, and X is multiplied once by (dI + P₂)(aI + P₁).
   In bfloat16, three such steps in one would be inaccurate. Products of matrices that commute are symmetric, so only
   one half of them is computed. */
#pragma once

#include "matrix.h"

#ifdef HAS_PAIRS
typedef struct {
    float linear, cubic, quintic;
} Quintic;

/* The constants of a step. W ← keep · W − rate · orthogonal((1 − momentum) · G + momentum · M). */
typedef struct {
    float momentum, keep, rate, margin;
    Quintic steps[3];
} MuonStep;

/* A square, symmetric matrix, and the same packed as a right factor. */
typedef struct {
    uint16_t *values;
    uint32_t *packed;
} Square;

static float norm_of(const uint16_t *values, int64_t size) {
    Vector sum = {0};
    for (int64_t at = 0; at < size; at += LANES) {
        Vector value = read_some(values, at, size - at, 0);
        sum += value * value;
    }
    return fmaxf(sqrtf(horizontal_sum(sum)), 1.17549435e-38f);
}

static void rescale(uint16_t *values, int64_t size, float factor) {
    for (int64_t at = 0; at < size; at += LANES)
        write_some(values, at, read_some(values, at, size - at, 0) * factor, size - at, 0);
}

/* out = scale · left · right + factor · added, all symmetric and (rows, rows). */
PAIRS static void multiply_squares(
    Square out, const uint16_t *left, const uint32_t *right, const uint16_t *added, float factor, float scale,
    int64_t rows, int64_t width, int64_t stride
) {
    Finish finish = {NULL, 0, added, factor, scale};
    multiply_pairs(
        out.values, rows, (const uint32_t *)left, stride / 2, 1, right, rows, pairs_of(width), rows, finish, 1
    );
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = (row / PANEL_COLUMNS + 1) * PANEL_COLUMNS; column < rows; column++)
            out.values[row * rows + column] = out.values[column * rows + row];
}

static void pack_square(Square square, int64_t rows) { pack(square.packed, square.values, rows, rows, rows); }

/* X ← factor · X + square · X for X (rows, columns); the result is in `out`. */
PAIRS static void apply_square(
    uint16_t *out, Square square, const uint16_t *x, uint32_t *packed, float factor, int64_t rows, int64_t columns
) {
    pack(packed, x, rows, columns, columns);
    Finish finish = {NULL, 0, x, factor, 1.0f};
    multiply_pairs(
        out, columns, (const uint32_t *)square.values, rows / 2, 1, packed, rows, pairs_of(rows), columns, finish, 0
    );
}

/* Updates a weight and its running mean of gradients, both (rows, columns), rows ≤ columns unless `tall`, in which case
   the matrices are (columns, rows). Rows and columns are even. Returns 0, or 1 if there is not enough memory. */
PAIRS static int32_t muon(
    float *weight, const float *gradient, float *mean, int64_t rows, int64_t columns, int32_t tall, const MuonStep *step
) {
    int64_t size = rows * columns, square = (rows * rows * 2 + 63) / 64 * 64, rectangle = (size * 2 + 63) / 64 * 64;
    int64_t square_packed = packed_size(rows, rows);
    int64_t largest = packed_size(rows, columns) > packed_size(columns, rows) ? packed_size(rows, columns)
                                                                              : packed_size(columns, rows);
    uint8_t *memory = aligned_alloc(64, (size_t)(2 * rectangle + 4 * square + 2 * square_packed + largest)), *next = memory;
    if (memory == NULL) return 1;
    uint16_t *x = (uint16_t *)next, *y = (uint16_t *)(next += rectangle);
    next += rectangle;
    Square a, p, q, b;
    a.values = (uint16_t *)next;
    p.values = (uint16_t *)(next += square);
    q.values = (uint16_t *)(next += square);
    b.values = (uint16_t *)(next += square);
    a.packed = b.packed = (uint32_t *)(next += square);
    p.packed = q.packed = (uint32_t *)(next += square_packed);
    uint32_t *packed = (uint32_t *)(next += square_packed);

    Vector squares = {0};
    for (int64_t at = 0; at < size; at += LANES) {
        Vector new = read_some(gradient, at, size - at, 1), old = read_some(mean, at, size - at, 1);
        old += (1 - step->momentum) * (new - old);
        write_some(mean, at, old, size - at, 1);
        Vector direction = new + step->momentum * (old - new);
        squares += direction * direction;
    }
    float scale = 1.0f / fmaxf(sqrtf(horizontal_sum(squares)), 1.17549435e-38f);
    for (int64_t at = 0; at < size; at += LANES) {
        Vector new = read_some(gradient, at, size - at, 1), old = read_some(mean, at, size - at, 1);
        write_some(tall ? y : x, at, (new + step->momentum * (old - new)) * scale, size - at, 0);
    }
    if (tall)
        for (int64_t row = 0; row < rows; row++)
            for (int64_t column = 0; column < columns; column++) x[row * columns + column] = y[column * rows + row];

    const Quintic *first = step->steps, *second = first + 1, *third = first + 2;
    pack_transposed(packed, x, columns, rows, columns);
    multiply_squares(a, x, packed, NULL, 0, 1, rows, columns, columns);
    float bound = norm_of(a.values, rows * rows) * step->margin;
    rescale(a.values, rows * rows, 1 / bound);
    rescale(x, size, 1 / sqrtf(bound));
    pack_square(a, rows);
    multiply_squares(p, a.values, a.packed, a.values, first->cubic, first->quintic, rows, rows, rows); /* P₁ */
    multiply_squares(b, p.values, a.packed, a.values, first->linear, 1, rows, rows, rows);
    pack_square(p, rows);
    multiply_squares(a, b.values, p.packed, b.values, first->linear, 1, rows, rows, rows); /* A after the first step */
    pack_square(a, rows);
    multiply_squares(q, a.values, a.packed, a.values, second->cubic, second->quintic, rows, rows, rows); /* P₂ */
    for (int64_t at = 0; at < rows * rows; at += LANES) {
        Vector sum = second->linear * read_some(p.values, at, rows * rows - at, 0);
        sum += first->linear * read_some(q.values, at, rows * rows - at, 0);
        write_some(a.values, at, sum, rows * rows - at, 0);
    }
    multiply_squares(b, q.values, p.packed, a.values, 1, 1, rows, rows, rows);
    apply_square(y, b, x, packed, first->linear * second->linear, rows, columns);
    pack_transposed(packed, y, columns, rows, columns);
    multiply_squares(a, y, packed, NULL, 0, 1, rows, columns, columns);
    pack_square(a, rows);
    multiply_squares(p, a.values, a.packed, a.values, third->cubic, third->quintic, rows, rows, rows);
    apply_square(x, p, y, packed, third->linear, rows, columns);

    if (tall) {
        for (int64_t row = 0; row < rows; row++)
            for (int64_t column = 0; column < columns; column++) y[column * rows + row] = x[row * columns + column];
        x = y;
    }
    for (int64_t at = 0; at < size; at += LANES) {
        Vector value = step->keep * read_some(weight, at, size - at, 1) - step->rate * read_some(x, at, size - at, 0);
        write_some(weight, at, value, size - at, 1);
    }
    free(memory);
    return 0;
}
#endif
