/* The operations of training that PyTorch computes in many passes over memory, for one thread each. The Python
   declarations are in native/training.py.

   wide: whether the elements are float32; otherwise they are bfloat16. Sums are float32. Functions that return an
   int32_t return 0, or 1 if there is not enough memory. */

#include "attention.h"
#include "muon_step.h"
#include "precisions.h"
#include "residual.h"
#include "rotation.h"
#include "rows.h"

#include "floats.h"
#include "matrix.h"
#include "muon.h"
#include "no_type.h"

#if defined(__x86_64__) && defined(__AVX512F__)
#define HAS_PAIRS 1
#include "pairs.h"
#include "matrix.h"
#include "muon.h"
#include "no_type.h"
#endif

/* See `attend`. */
int32_t dragoman_training_attend(
    const Rows *rows, const void *queries, const void *keys, const void *values, void *out, int32_t wide
) {
    return wide ? attend(rows, queries, keys, values, out, 1) : attend(rows, queries, keys, values, out, 0);
}

/* See `differentiate_attention`. */
int32_t dragoman_training_differentiate_attention(
    const Rows *rows, const void *queries, const void *keys, const void *values, const void *gradients,
    void *query_gradients, void *key_gradients, void *value_gradients, int32_t wide
) {
    if (wide)
        return differentiate_attention(
            rows, queries, keys, values, gradients, query_gradients, key_gradients, value_gradients, 1
        );
    return differentiate_attention(
        rows, queries, keys, values, gradients, query_gradients, key_gradients, value_gradients, 0
    );
}

/* See `rotate`. */
void dragoman_training_rotate(
    void *vectors, const float *factors, const int64_t *positions, int64_t rows, int64_t stride, int64_t heads,
    int64_t width, int32_t inverse, int32_t wide
) {
    float sign = inverse ? -1.0f : 1.0f;
    if (wide) rotate(vectors, factors, positions, rows, stride, heads, width, sign, 1);
    else rotate(vectors, factors, positions, rows, stride, heads, width, sign, 0);
}

/* See `drop`. */
void dragoman_training_drop(
    const void *states, const void *values, void *out, int64_t size, int64_t seed, float rate, int32_t wide
) {
    Dropout dropout = {seed, rate};
    if (wide) drop(states, values, out, size, dropout, 1);
    else drop(states, values, out, size, dropout, 0);
}

/* See `normalise_rows`. */
void dragoman_training_normalise(
    const void *states, const void *result, void *sums, void *out, const void *weight, const void *bias, float *means,
    float *deviations, int64_t rows, int64_t width, float epsilon, int64_t seed, float rate, int32_t wide
) {
    Dropout dropout = {seed, rate};
    if (wide)
        normalise_rows(
            states, result, sums, out, weight, bias, means, deviations, rows, width, epsilon, dropout, 1
        );
    else
        normalise_rows(
            states, result, sums, out, weight, bias, means, deviations, rows, width, epsilon, dropout, 0
        );
}

/* See `differentiate_norm`. */
int32_t dragoman_training_differentiate_norm(
    const void *gradients, const void *sums, const void *weight, const float *means, const float *deviations,
    void *state_gradients, void *result_gradients, void *weight_gradient, void *bias_gradient, int64_t rows,
    int64_t width, int64_t seed, float rate, int32_t wide
) {
    Dropout dropout = {seed, rate};
    if (wide)
        return differentiate_norm(
            gradients, sums, weight, means, deviations, state_gradients, result_gradients, weight_gradient,
            bias_gradient, rows, width, dropout, 1
        );
    return differentiate_norm(
        gradients, sums, weight, means, deviations, state_gradients, result_gradients, weight_gradient, bias_gradient,
        rows, width, dropout, 0
    );
}

/* See `sum_rows`. */
int32_t dragoman_training_sum_rows(
    const void *gradients, const void *activations, void *out, void *sums, int64_t rows, int64_t width, int32_t wide
) {
    return wide ? sum_rows(gradients, activations, out, sums, rows, width, 1)
                : sum_rows(gradients, activations, out, sums, rows, width, 0);
}

/* See `differentiate_entropy`. */
int32_t dragoman_training_differentiate_entropy(
    void *logits, const int64_t *labels, const float *weights, float *losses, float *label_logits, int64_t rows,
    int64_t size, float smoothing, int32_t wide
) {
    return wide ? differentiate_entropy(logits, labels, weights, losses, label_logits, rows, size, smoothing, 1)
                : differentiate_entropy(logits, labels, weights, losses, label_logits, rows, size, smoothing, 0);
}

/* Returns whether this processor multiplies pairs of bfloat16 (AVX-512 BF16). */
int32_t dragoman_training_has_pairs(void) {
#ifdef HAS_PAIRS
    return __builtin_cpu_supports("avx512bf16") != 0;
#else
    return 0;
#endif
}

/* See `muon`. wide: whether products are those of floats; if not, the processor must multiply pairs. */
int32_t dragoman_training_muon(
    float *weight, const float *gradient, float *mean, int64_t rows, int64_t columns, int32_t tall,
    const MuonStep *step, int32_t wide
) {
#ifdef HAS_PAIRS
    if (!wide) return muon_pairs(weight, gradient, mean, rows, columns, tall, step);
#endif
    (void)wide;
    return muon_floats(weight, gradient, mean, rows, columns, tall, step);
}

/* See `narrow`. */
void dragoman_training_narrow(const float *const *from, uint16_t *const *to, const int64_t *sizes, int64_t count) {
    narrow(from, to, sizes, count);
}

/* See `sum_widened`. */
void dragoman_training_sum_widened(const uint16_t *const *parts, int64_t count, float *out, int64_t size) {
    sum_widened(parts, count, out, size);
}
