/* Packed weights and rounded activations: matrices and rows in float32, in bfloat16 or as 8-bit codes.

   Layout. A `Matrix` owns its arrays, all aligned to 64 bytes. Weights are stored in consecutive panels of PANEL = 16
   outputs. In a panel, the 16 weights of one input (float32: (panels, inputs, 16)), of two consecutive inputs (bfloat16:
   (panels, inputs / 2, 16, 2)) or of four consecutive inputs (8-bit: (panels, inputs / 4, 16, 4)) are adjacent. This
   layout suits products with a single row and with many rows. A `QuantizedRows` contains the codes of all rows of one
   product, (rows, inputs), and one scale per row. Each thread has a separate `QuantizedRows`.

   Quantization. x ≈ s_x q_x with one s_x per row, computed from the row, and w ≈ s_w q_w with one s_w per output. The
   instructions multiply unsigned by signed numbers. Therefore ZERO_POINT is added to the stored q_x, and ZERO_POINT · Σ
   q_w is subtracted from the sum. If all inputs of a matrix are at least 0, as after ReLU, ZERO_POINT is not added, and
   the step between two codes is half as large. */
#pragma once

#include <stdlib.h>

#include "interface.h"
#include "../common/vector.h"

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

/* Returns the weights of a matrix as words of four bytes, (panels, words per output, 16). */
static unsigned char *matrix_words(const Matrix *matrix) {
    if (matrix->precision == FLOAT32) return (unsigned char *)matrix->values;
    return matrix->precision == BFLOAT16 ? (unsigned char *)matrix->halves : (unsigned char *)matrix->codes;
}

/* Allocates the arrays of a matrix; returns 0 if memory runs out. */
static int matrix_allocate(Matrix *matrix, int outputs, int inputs, int precision, int nonnegative) {
    size_t count = (size_t)outputs * inputs, each = (size_t)outputs * 4;
    *matrix = (Matrix){.outputs = outputs, .inputs = inputs, .precision = precision, .nonnegative = nonnegative};
    matrix->bias = allocate(each);
    if (precision == FLOAT32) matrix->values = allocate(count * 4);
    if (precision == BFLOAT16) matrix->halves = allocate(count * 2);
    if (precision == INT8) {
        matrix->codes = allocate(count);
        matrix->scales = allocate(each);
        matrix->compensation = allocate(each);
        if (!matrix->scales || !matrix->compensation) return 0;
    }
    return matrix->bias && matrix_words(matrix);
}

/* Packs the weights of an output as codes. */
static void pack_codes(Matrix *matrix, const float *row, int output) {
    int inputs = matrix->inputs;
    int8_t *codes = matrix->codes + (size_t)(output / PANEL) * inputs * PANEL + output % PANEL * 4;
    float largest = 0;
    for (int input = 0; input < inputs; input++) largest = fmaxf(largest, fabsf(row[input]));
    float scale = largest > 0 ? largest / LARGEST_WEIGHT : 1.0f;
    int32_t sum = 0;
    for (int input = 0; input < inputs; input++) {
        int code = (int)lrintf(row[input] / scale);
        code = code > LARGEST_WEIGHT ? LARGEST_WEIGHT : code < -LARGEST_WEIGHT ? -LARGEST_WEIGHT : code;
        codes[input / 4 * 4 * PANEL + input % 4] = (int8_t)code;
        sum += code;
    }
    matrix->scales[output] = scale;
    matrix->compensation[output] = matrix->nonnegative ? 0 : ZERO_POINT * sum;
}

/* Packs a matrix; returns 0 if memory runs out. nonnegative: whether all inputs are at least 0. */
static int matrix_pack(Matrix *matrix, const MatrixSource *source, int precision, int nonnegative) {
    int outputs = source->outputs, inputs = source->inputs;
    if (!matrix_allocate(matrix, outputs, inputs, precision, nonnegative)) return 0;
    float *zeros = calloc((size_t)inputs, sizeof *zeros);
    if (!zeros) return 0;
    memcpy(matrix->bias, source->bias, (size_t)outputs * 4);
    for (int output = 0; output < outputs; output++) {
        const float *row = output < source->rows ? source->weights + (size_t)output * inputs : zeros;
        size_t panel = (size_t)(output / PANEL) * inputs * PANEL;
        if (precision == FLOAT32) {
            float *values = matrix->values + panel + output % PANEL;
            for (int input = 0; input < inputs; input++) values[input * PANEL] = row[input];
        } else if (precision == BFLOAT16) {
            uint16_t *halves = matrix->halves + panel + output % PANEL * 2;
            for (int input = 0; input < inputs; input++) halves[input / 2 * 2 * PANEL + input % 2] = to_bfloat16(row[input]);
        } else {
            pack_codes(matrix, row, output);
        }
    }
    free(zeros);
    return 1;
}

/* Copies `count` outputs of a matrix, and fills the last panel with outputs whose bias is −∞. `to` grows up to `capacity`
   outputs without an allocation. Returns 0 if memory runs out. */
static int matrix_select(Matrix *to, int *capacity, const Matrix *from, const int32_t *outputs, int count) {
    int padded_count = (count + PANEL - 1) / PANEL * PANEL;
    if (padded_count > *capacity) {
        *capacity = 0;
        matrix_free(to);
        if (!matrix_allocate(to, padded_count, from->inputs, from->precision, from->nonnegative)) return 0;
        *capacity = padded_count;
    }
    to->outputs = padded_count;
    size_t words = (size_t)from->inputs / (from->precision == FLOAT32 ? 1 : from->precision == BFLOAT16 ? 2 : 4);
    for (int first = 0; first < padded_count; first += PANEL) {
        const unsigned char *source[PANEL];
        unsigned char *panel = matrix_words(to) + (size_t)first * words * 4;
        for (int lane = 0; lane < PANEL; lane++) {
            int exists = first + lane < count, output = outputs[exists ? first + lane : 0];
            source[lane] = matrix_words(from) + ((size_t)(output / PANEL) * words * PANEL + output % PANEL) * 4;
            to->bias[first + lane] = exists ? from->bias[output] : -INFINITY;
            if (from->precision != INT8) continue;
            to->scales[first + lane] = from->scales[output];
            to->compensation[first + lane] = from->compensation[output];
        }
        for (size_t word = 0; word < words; word++, panel += PANEL * 4)
            for (int lane = 0; lane < PANEL; lane++) memcpy(panel + lane * 4, source[lane] + word * PANEL * 4, 4);
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
