/* Tiles of a matrix product: the results of a few rows and panels, in float32, bfloat16 and 8-bit codes.

   Every tile sums over the inputs in the same order, whatever its size. */
#pragma once

#if defined(__AVX512F__)
#include <cpuid.h>
#endif

#include "matrix.h"
#include "../common/vector.h"

#define PARTS (PANEL / LANES) /* registers per panel of 16 outputs */

#if LANES == 16
#define TALL 6
#define TALL_PANELS 4
#define PAIR_PANELS 4
#define SINGLE_PANELS 8
#elif LANES == 8
#define TALL 6
#define TALL_PANELS 1
#define PAIR_PANELS 2
#define SINGLE_PANELS 4
#else
#define TALL 3
#define TALL_PANELS 1
#define PAIR_PANELS 1
#define SINGLE_PANELS 2
#endif
#define BLOCK_PANELS 8
/* The number of independent sums per output, each over every CHAINS-th group of inputs, to hide instruction latency. */
#define CHAINS (SINGLE_PANELS < 4 || ZERO_POINT == 64 ? 2 : 4) /* for a single row; all chains together process at most 16 inputs at a time */

INLINE void store_result(Vector result, float *to, int epilogue) {
    if (epilogue == RELU) result = maximum(result, broadcast(0));
    if (epilogue == GELU) result = result * 0.5f * (1.0f + error_function(result * 0.70710678118654752f));
    if (epilogue == SWISH) result = result / (1.0f + exponential(-result));
    if (epilogue == GELU_TANH) /* x/2 · (1 + tanh(u)) = x / (1 + e^(−2u)) with u = √(2/π) · (x + 0.044715 x³) */
        result = result / (1.0f + exponential(-1.5957691216057308f * (result + 0.044715f * result * result * result)));
    if (epilogue == ADD) result += load(to);
    store(to, result);
}

/* Computes a float32 tile of `rows` rows by `panels` panels; both numbers are compile-time constants at every call. */
INLINE void tile_float32(
    const float *x, size_t x_stride, const Matrix *matrix, int panel, float *y, size_t y_stride, int rows, int panels, int epilogue
) {
    Vector sums[TALL][SINGLE_PANELS * PARTS];
    int inputs = matrix->inputs;
    const float *weights = matrix->values + (size_t)panel * inputs * PANEL;
#pragma GCC unroll 8
    for (int row = 0; row < rows; row++)
#pragma GCC unroll 32
        for (int part = 0; part < panels * PARTS; part++) sums[row][part] = load(matrix->bias + panel * PANEL + part * LANES);
    for (int input = 0; input < inputs; input++) {
        Vector panel_weights[SINGLE_PANELS * PARTS];
#pragma GCC unroll 32
        for (int part = 0; part < panels * PARTS; part++)
            panel_weights[part] = load(weights + (size_t)(part / PARTS) * inputs * PANEL + input * PANEL + part % PARTS * LANES);
#pragma GCC unroll 8
        for (int row = 0; row < rows; row++) {
            Vector value = broadcast(x[row * x_stride + input]);
#pragma GCC unroll 32
            for (int part = 0; part < panels * PARTS; part++) sums[row][part] += value * panel_weights[part];
        }
    }
#pragma GCC unroll 8
    for (int row = 0; row < rows; row++)
#pragma GCC unroll 32
        for (int part = 0; part < panels * PARTS; part++)
            store_result(sums[row][part], y + row * y_stride + panel * PANEL + part * LANES, epilogue);
}

#if defined(__AVX512F__) && (defined(__clang__) || __GNUC__ >= 10) /* older assemblers lack the instruction */
#define HAS_BFLOAT16_INSTRUCTION 1
/* Returns whether the processor has the instruction for products of bfloat16, which not every AVX-512 processor has. */
static int supports_bfloat16(void) {
    unsigned int a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && a >> 5 & 1;
}
#else
#define HAS_BFLOAT16_INSTRUCTION 0
static int supports_bfloat16(void) { return 0; }
#endif

/* Adds products of bfloat16 to sums in float32: two inputs, the same in every lane, times two weights per lane. The
   instruction is written in assembly because the library is compiled for processors that lack it as well. */
INLINE Vector add_pairs(Vector sums, Integers pair, Integers weights, int instruction) {
#if HAS_BFLOAT16_INSTRUCTION
    if (instruction) {
        __asm__("vdpbf16ps %2, %1, %0" : "+v"(sums) : "v"(weights), "v"(pair));
        return sums;
    }
#endif
    (void)instruction;
    sums += (Vector)(pair << 16) * (Vector)(weights << 16);
    return sums + (Vector)(pair & ~0xFFFF) * (Vector)(weights & ~0xFFFF);
}

/* Computes a tile in bfloat16. x: rows of bfloat16. instruction: whether the processor has the instruction. */
INLINE void tile_bfloat16(
    const uint8_t *x, const Matrix *matrix, int panel, float *y, size_t y_stride, int rows, int panels, int epilogue, int instruction
) {
    Vector sums[TALL][SINGLE_PANELS * PARTS];
    int inputs = matrix->inputs;
    const uint16_t *weights = matrix->halves + (size_t)panel * inputs * PANEL;
#pragma GCC unroll 8
    for (int row = 0; row < rows; row++)
#pragma GCC unroll 32
        for (int part = 0; part < panels * PARTS; part++) sums[row][part] = load(matrix->bias + panel * PANEL + part * LANES);
    for (int input = 0; input < inputs; input += 2) {
        Integers panel_weights[SINGLE_PANELS * PARTS];
#pragma GCC unroll 32
        for (int part = 0; part < panels * PARTS; part++)
            memcpy(
                &panel_weights[part], weights + (size_t)(part / PARTS) * inputs * PANEL + input * PANEL + part % PARTS * 2 * LANES,
                sizeof(Integers)
            );
#pragma GCC unroll 8
        for (int row = 0; row < rows; row++) {
            int32_t both;
            memcpy(&both, x + 2 * ((size_t)row * inputs + input), 4);
            Integers pair = (Integers){0} + both;
#pragma GCC unroll 32
            for (int part = 0; part < panels * PARTS; part++)
                sums[row][part] = add_pairs(sums[row][part], pair, panel_weights[part], instruction);
        }
    }
#pragma GCC unroll 8
    for (int row = 0; row < rows; row++)
#pragma GCC unroll 32
        for (int part = 0; part < panels * PARTS; part++)
            store_result(sums[row][part], y + row * y_stride + panel * PANEL + part * LANES, epilogue);
}

/* Adds products to 32-bit sums: four unsigned codes, the same in every lane, times four signed codes per lane. */
INLINE Integers multiply_add(Integers sums, const uint8_t *x, const int8_t *weights) {
    int32_t four;
    memcpy(&four, x, 4);
#if defined(__AVX512VNNI__)
    return (Integers)_mm512_dpbusd_epi32((__m512i)sums, _mm512_set1_epi32(four), _mm512_loadu_si512(weights));
#elif defined(__AVXVNNI__)
    return (Integers)_mm256_dpbusd_avx_epi32((__m256i)sums, _mm256_set1_epi32(four), _mm256_loadu_si256((const void *)weights));
#else
    for (int lane = 0; lane < LANES; lane++)
        for (int each = 0; each < 4; each++) sums[lane] += (int32_t)x[each] * weights[lane * 4 + each];
    return sums;
#endif
}

/* Adds products to sums: the next INPUTS_AT_ONCE codes of a row times the weights of one register of outputs. */
#if defined(__AVX2__) && ZERO_POINT == 64
#define INPUTS_AT_ONCE 8
INLINE Integers add_products(Integers sums, const uint8_t *x, const int8_t *weights) {
    int32_t fours[2];
    memcpy(fours, x, 8);
    __m256i first = _mm256_loadu_si256((const void *)weights), second = _mm256_loadu_si256((const void *)(weights + 4 * PANEL));
    __m256i both = _mm256_add_epi16(
        _mm256_maddubs_epi16(_mm256_set1_epi32(fours[0]), first), _mm256_maddubs_epi16(_mm256_set1_epi32(fours[1]), second)
    );
    return sums + (Integers)_mm256_madd_epi16(both, _mm256_set1_epi16(1));
}
#else
#define INPUTS_AT_ONCE 4
INLINE Integers add_products(Integers sums, const uint8_t *x, const int8_t *weights) { return multiply_add(sums, x, weights); }
#endif

/* Computes an 8-bit tile. chains: the number of independent sums per output, each over every chains-th group of
   inputs. */
INLINE void tile_int8(
    const uint8_t *x, const float *scales, const Matrix *matrix, int panel, float *y, size_t y_stride, int rows, int panels, int chains,
    int epilogue
) {
    Integers sums[TALL][SINGLE_PANELS * PARTS];
    int inputs = matrix->inputs, parts = panels * PARTS;
    const int8_t *weights = matrix->codes + (size_t)panel * inputs * PANEL;
#pragma GCC unroll 8
    for (int row = 0; row < rows; row++)
#pragma GCC unroll 32
        for (int sum = 0; sum < parts * chains; sum++) sums[row][sum] = (Integers){0};
    for (int input = 0; input < inputs; input += INPUTS_AT_ONCE * chains) {
#pragma GCC unroll 32
        for (int sum = 0; sum < parts * chains; sum++) {
            int first_input = input + sum / parts * INPUTS_AT_ONCE, part = sum % parts;
            const int8_t *from = weights + (size_t)(part / PARTS) * inputs * PANEL + first_input * PANEL + part % PARTS * 4 * LANES;
#pragma GCC unroll 8
            for (int row = 0; row < rows; row++) sums[row][sum] = add_products(sums[row][sum], x + (size_t)row * inputs + first_input, from);
        }
    }
#pragma GCC unroll 8
    for (int row = 0; row < rows; row++)
#pragma GCC unroll 32
        for (int part = 0; part < parts; part++) {
            int output = panel * PANEL + part * LANES;
#pragma GCC unroll 8
            for (int chain = 1; chain < chains; chain++) sums[row][part] += sums[row][chain * parts + part];
            Integers compensation;
            memcpy(&compensation, matrix->compensation + output, sizeof compensation);
            Vector exact = __builtin_convertvector(sums[row][part] - compensation, Vector);
            Vector result = exact * (scales[row] * load(matrix->scales + output)) + load(matrix->bias + output);
            store_result(result, y + row * y_stride + output, epilogue);
        }
}
