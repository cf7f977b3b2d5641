/* Matrix products of activations and packed weights, Y = X Wᵀ + b, with weights in float32 or as 8-bit codes.

   Layout. A `Matrix` owns its arrays, all aligned to 64 bytes. Weights are stored in consecutive panels of PANEL = 16
   outputs. In a panel, the 16 weights of one input (float32: (panels, inputs, 16)), of two consecutive inputs (bfloat16:
   (panels, inputs / 2, 16, 2)) or of four consecutive inputs (8-bit: (panels, inputs / 4, 16, 4)) are adjacent. This layout suits products with a single row and with many rows. X and Y
   belong to the caller, and each has a row stride. A `QuantizedRows` contains the codes of all rows of one product,
   (rows, inputs), and one scale per row. Each thread has a separate `QuantizedRows`.

   Independence. The result of a row does not depend on the other rows, because every tile sums over the inputs in the
   same order, and sums of codes are exact.

   Quantization. x ≈ s_x q_x with one s_x per row, computed from the row, and w ≈ s_w q_w with one s_w per output. The
   instructions multiply unsigned by signed numbers. Therefore ZERO_POINT is added to the stored q_x, and ZERO_POINT · Σ
   q_w is subtracted from the sum. If all inputs of a matrix are at least 0, as after ReLU, ZERO_POINT is not added, and
   the step between two codes is half as large. */
#pragma once

#include <stdlib.h>
#if defined(__AVX512F__)
#include <cpuid.h>
#endif

#include "interface.h"
#include "threads.h"
#include "vector.h"

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__) || !defined(__AVX2__)
#define LARGEST_ACTIVATION 127
#define LARGEST_WEIGHT 127
#define LARGEST_NONNEGATIVE 255
#define ZERO_POINT 128
#else
/* 7-bit codes: two sums of two products fit into 16 bits, since 4 · 127 · 64 < 2^15; 8-bit codes would saturate. */
#define LARGEST_ACTIVATION 63
#define LARGEST_WEIGHT 64
#define LARGEST_NONNEGATIVE 127
#define ZERO_POINT 64
#endif

typedef struct {
    int outputs, inputs; /* multiples of PANEL */
    int precision;
    int nonnegative;       /* whether all inputs are at least 0 */
    float *bias;           /* (outputs) */
    float *values;         /* (panels, inputs, 16); NULL unless the precision is float32 */
    uint16_t *halves;      /* (panels, inputs / 2, 16, 2); NULL unless the precision is bfloat16 */
    int8_t *codes;         /* (panels, inputs / 4, 16, 4); NULL unless the precision is int8, as are the following arrays */
    float *scales;         /* (outputs): s_w */
    int32_t *compensation; /* (outputs): ZERO_POINT · Σ q_w, or 0 if all inputs are at least 0 */
} Matrix;

/* The operation applied to a result before it is stored. ADD adds the result to the stored value. */
enum Epilogue { STORE, RELU, GELU, SWISH, ADD, GELU_TANH };

typedef struct {
    uint8_t *codes; /* (rows, inputs), or (rows, inputs, 2) for the two bytes of bfloat16 */
    float *scales;  /* (rows): s_x */
    size_t codes_capacity, scales_capacity;
} QuantizedRows;

/* Returns memory aligned to a cache line of 64 bytes, or NULL if memory runs out. */
static void *allocate(size_t bytes) {
    void *memory = NULL;
    return posix_memalign(&memory, 64, (bytes + 63) / 64 * 64 + 64) ? NULL : memory;
}

/* Grows a buffer to at least `count` floats and discards its content; returns 0 if memory runs out. */
static int reserve(float **memory, size_t *capacity, size_t count) {
    if (count <= *capacity) return 1;
    free(*memory);
    *memory = allocate(count * sizeof(float));
    *capacity = *memory ? count : 0;
    return *memory != NULL;
}

/* Grows the buffers to `rows` rows of `bytes` bytes each; returns 0 if memory runs out. */
static int reserve_codes(QuantizedRows *quantized, size_t rows, size_t bytes) {
    if (rows * bytes > quantized->codes_capacity) {
        free(quantized->codes);
        quantized->codes = allocate(rows * bytes);
        quantized->codes_capacity = quantized->codes ? rows * bytes : 0;
    }
    if (!reserve(&quantized->scales, &quantized->scales_capacity, rows)) return 0;
    return quantized->codes != NULL;
}

static void matrix_free(Matrix *matrix) {
    free(matrix->bias);
    free(matrix->values);
    free(matrix->halves);
    free(matrix->codes);
    free(matrix->scales);
    free(matrix->compensation);
    memset(matrix, 0, sizeof *matrix);
}

/* Rounds to bfloat16, the upper half of float32, to the nearest even number. The value must be finite. */
static uint16_t to_bfloat16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/* Packs weights (outputs, inputs) and a bias (outputs); returns 0 if memory runs out. nonnegative: whether all inputs are
   at least 0. */
static int matrix_pack(
    Matrix *matrix, const float *weights, const float *bias, int outputs, int inputs, int precision, int nonnegative
) {
    memset(matrix, 0, sizeof *matrix);
    matrix->nonnegative = nonnegative;
    matrix->outputs = outputs;
    matrix->inputs = inputs;
    matrix->precision = precision;
    matrix->bias = allocate((size_t)outputs * 4);
    if (!matrix->bias) return 0;
    memcpy(matrix->bias, bias, (size_t)outputs * 4);
    if (precision == FLOAT32) {
        matrix->values = allocate((size_t)outputs * inputs * 4);
        if (!matrix->values) return 0;
        for (int output = 0; output < outputs; output++) {
            float *panel = matrix->values + (size_t)(output / PANEL) * inputs * PANEL + output % PANEL;
            for (int input = 0; input < inputs; input++) panel[input * PANEL] = weights[(size_t)output * inputs + input];
        }
        return 1;
    }
    if (precision == BFLOAT16) {
        matrix->halves = allocate((size_t)outputs * inputs * 2);
        if (!matrix->halves) return 0;
        for (int output = 0; output < outputs; output++) {
            uint16_t *panel = matrix->halves + (size_t)(output / PANEL) * inputs * PANEL + output % PANEL * 2;
            for (int input = 0; input < inputs; input++)
                panel[input / 2 * 2 * PANEL + input % 2] = to_bfloat16(weights[(size_t)output * inputs + input]);
        }
        return 1;
    }
    matrix->codes = allocate((size_t)outputs * inputs);
    matrix->scales = allocate((size_t)outputs * 4);
    matrix->compensation = allocate((size_t)outputs * 4);
    if (!matrix->codes || !matrix->scales || !matrix->compensation) return 0;
    for (int output = 0; output < outputs; output++) {
        const float *row = weights + (size_t)output * inputs;
        int8_t *panel = matrix->codes + (size_t)(output / PANEL) * inputs * PANEL + output % PANEL * 4;
        float largest = 0;
        for (int input = 0; input < inputs; input++) largest = fmaxf(largest, fabsf(row[input]));
        float scale = largest > 0 ? largest / LARGEST_WEIGHT : 1.0f;
        int32_t sum = 0;
        for (int input = 0; input < inputs; input++) {
            int code = (int)lrintf(row[input] / scale);
            code = code > LARGEST_WEIGHT ? LARGEST_WEIGHT : code < -LARGEST_WEIGHT ? -LARGEST_WEIGHT : code;
            panel[input / 4 * 4 * PANEL + input % 4] = (int8_t)code;
            sum += code;
        }
        matrix->scales[output] = scale;
        matrix->compensation[output] = nonnegative ? 0 : ZERO_POINT * sum;
    }
    return 1;
}

/* Writes the codes of a row and returns its scale. nonnegative: whether all values are at least 0. */
static float quantize_row(const float *row, uint8_t *codes, int inputs, int nonnegative) {
    int zero_point = nonnegative ? 0 : ZERO_POINT, largest_code = nonnegative ? LARGEST_NONNEGATIVE : LARGEST_ACTIVATION;
    Vector largest = broadcast(0);
    for (int index = 0; index < inputs; index += LANES) {
        largest = maximum(largest, absolute(load(row + index)));
    }
    float largest_value = horizontal_maximum(largest);
    float inverse_scale = largest_value > 0 ? largest_code / largest_value : 0.0f;
#if defined(__AVX512F__)
    __m512 factors = _mm512_set1_ps(inverse_scale);
    __m512i zero = _mm512_set1_epi32(zero_point);
    for (int index = 0; index < inputs; index += 16) {
        __m512i code = _mm512_add_epi32(_mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(row + index), factors)), zero);
        _mm_storeu_si128((__m128i *)(codes + index), _mm512_cvtepi32_epi8(code));
    }
#else
    int index = 0;
#if defined(__AVX2__)
    __m256 factors = _mm256_set1_ps(inverse_scale);
    __m256i zero = _mm256_set1_epi32(zero_point), order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (; index + 32 <= inputs; index += 32) {
        __m256i code[4];
        for (int each = 0; each < 4; each++)
            code[each] = _mm256_add_epi32(_mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(row + index + 8 * each), factors)), zero);
        __m256i bytes = _mm256_packus_epi16(_mm256_packs_epi32(code[0], code[1]), _mm256_packs_epi32(code[2], code[3]));
        _mm256_storeu_si256((__m256i *)(codes + index), _mm256_permutevar8x32_epi32(bytes, order));
    }
#endif
    for (; index < inputs; index += LANES) {
        Vector rounded = load(row + index) * inverse_scale + 12582912.0f; /* rounds to an integer, as in exponential() */
        Integers code = (Integers)rounded - (0x4B400000 - zero_point);
        for (int lane = 0; lane < LANES; lane++) codes[index + lane] = (uint8_t)code[lane];
    }
#endif
    return largest_value / largest_code;
}

/* Writes a row as bfloat16; both have `inputs` values. */
static void round_row(const float *row, uint8_t *to, int inputs) {
    for (int index = 0; index < inputs; index += LANES) {
        Integers bits = (Integers)load(row + index);
        Integers rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
#if defined(__AVX512F__)
        _mm256_storeu_si256((__m256i *)(to + 2 * index), _mm512_cvtepi32_epi16((__m512i)rounded));
#else
        for (int lane = 0; lane < LANES; lane++) {
            uint16_t half = (uint16_t)rounded[lane];
            memcpy(to + 2 * (index + lane), &half, 2);
        }
#endif
    }
}

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
