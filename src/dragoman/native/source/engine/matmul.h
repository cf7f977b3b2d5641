/* Matrix products of activations and packed weights, Y = X Wᵀ + b, with weights in float32, bfloat16 or as 8-bit codes.

   X and Y belong to the caller, and each has a row stride. The result of a row does not depend on the other rows, because
   every tile (tiles.h) sums over the inputs in the same order, and sums of codes are exact. */
#pragma once

#include "matrix.h"
#include "threads.h"
#include "tiles.h"

typedef struct {
    const float *x;
    size_t x_stride;
    const Matrix *matrix;
    float *y;
    size_t y_stride;
    int rows;
    int epilogue;
    int instruction;          /* whether the processor has the instruction for products of bfloat16 */
    QuantizedRows *quantized; /* one per thread */
} Product;

INLINE void tile(const Product *product, const QuantizedRows *quantized, int row, int panel, int rows, int panels) {
    const Matrix *matrix = product->matrix;
    const float *x = product->x + row * product->x_stride;
    float *y = product->y + row * product->y_stride;
    if (matrix->precision == FLOAT32)
        tile_float32(x, product->x_stride, matrix, panel, y, product->y_stride, rows, panels, product->epilogue);
    else if (matrix->precision == BFLOAT16) {
        const uint8_t *halves = quantized->codes + 2 * (size_t)row * matrix->inputs;
        if (product->instruction) tile_bfloat16(halves, matrix, panel, y, product->y_stride, rows, panels, product->epilogue, 1);
        else tile_bfloat16(halves, matrix, panel, y, product->y_stride, rows, panels, product->epilogue, 0);
    } else {
        /* a single row reads weights from outer caches; sequential reads allow the processor to prefetch them */
        int chains = rows == 1 && panels == SINGLE_PANELS ? CHAINS : 1;
        const uint8_t *codes = quantized->codes + (size_t)row * matrix->inputs;
        for (int first = panel; first < panel + panels; first += panels / chains)
            tile_int8(
                codes, quantized->scales + row, matrix, first, y, product->y_stride, rows, panels / chains, chains, product->epilogue
            );
    }
}

/* Defines a function that computes `rows` rows of the panels from `panel` to `end`, `wide` panels at a time. */
#define STRIP(name, rows, wide)                                                                                   \
    static __attribute__((noinline)) void name(const Product *product, const QuantizedRows *quantized, int row, int panel, int end) { \
        for (; panel + (wide) <= end; panel += (wide)) tile(product, quantized, row, panel, rows, wide);              \
        for (; (wide) > 1 && panel < end; panel++) tile(product, quantized, row, panel, rows, 1);                     \
    }

STRIP(strip_tall, TALL, TALL_PANELS)
#if TALL > 4
STRIP(strip_four, 4, TALL_PANELS)
#endif
STRIP(strip_pair, 2, PAIR_PANELS)
STRIP(strip_single, 1, SINGLE_PANELS)

static void product_share(void *context, int thread, int threads) {
    const Product *product = context;
    const Matrix *matrix = product->matrix;
    QuantizedRows *quantized = product->quantized + thread;
    if (matrix->precision == BFLOAT16)
        for (int row = 0; row < product->rows; row++)
            round_row(product->x + row * product->x_stride, quantized->codes + 2 * (size_t)row * matrix->inputs, matrix->inputs);
    if (matrix->precision == INT8)
        for (int row = 0; row < product->rows; row++)
            quantized->scales[row] = quantize_row(
                product->x + row * product->x_stride, quantized->codes + (size_t)row * matrix->inputs, matrix->inputs, matrix->nonnegative
            );
    int panels = matrix->outputs / PANEL;
    int last = (int)((int64_t)panels * (thread + 1) / threads);
    for (int panel = (int)((int64_t)panels * thread / threads); panel < last; panel += BLOCK_PANELS) {
        int end = panel + BLOCK_PANELS < last ? panel + BLOCK_PANELS : last, row = 0;
        for (; row + TALL <= product->rows; row += TALL) strip_tall(product, quantized, row, panel, end);
#if TALL > 4
        for (; row + 4 <= product->rows; row += 4) strip_four(product, quantized, row, panel, end);
#endif
        for (; row + 2 <= product->rows; row += 2) strip_pair(product, quantized, row, panel, end);
        if (row < product->rows) strip_single(product, quantized, row, panel, end);
    }
}

/* Computes y (rows, outputs) = x (rows, inputs) Wᵀ + b with all threads of the team. quantized: one per thread.
   Returns 0 if memory runs out. */
static int matmul(
    Team *team, QuantizedRows *quantized, const Matrix *matrix, const float *x, size_t x_stride, float *y, size_t y_stride, int rows, int epilogue
) {
    if (matrix->precision != FLOAT32)
        for (int thread = 0; thread < team->size; thread++)
            if (!reserve_codes(quantized + thread, (size_t)rows, (size_t)matrix->inputs * (matrix->precision == BFLOAT16 ? 2 : 1))) return 0;
    int instruction = matrix->precision == BFLOAT16 && supports_bfloat16();
    Product product = {x, x_stride, matrix, y, y_stride, rows, epilogue, instruction, quantized};
    parallel_run(team, product_share, &product);
    return 1;
}
