/* Vectors of floats that fill one register of the processor, based on the vector types of GCC and Clang.

   A `Vector` has LANES floats, and an `Integers` has LANES 32-bit integers. The compiler chooses the instructions.
   `load` and `store` do not require aligned memory. Every array that is read as vectors is padded to a multiple of PANEL
   floats, so no loop has a remainder. A comparison of two vectors returns an `Integers` mask, in which all bits of a lane
   are set if the comparison is true. */
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif

/* The number of floats in the widest register. Widths are padded with zeros to multiples of it. */
#define PANEL 16

#define INLINE static inline __attribute__((always_inline, unused))

typedef float Vector __attribute__((vector_size(4 * LANES)));
typedef int32_t Integers __attribute__((vector_size(4 * LANES)));

/* Rounds up to a multiple of PANEL. */
INLINE int padded(int count) { return (count + PANEL - 1) / PANEL * PANEL; }

INLINE Vector load(const float *from) {
    Vector vector;
    memcpy(&vector, from, sizeof vector);
    return vector;
}

INLINE void store(float *to, Vector vector) { memcpy(to, &vector, sizeof vector); }

INLINE Vector broadcast(float value) { return value - (Vector){0}; }

INLINE Vector blend(Integers mask, Vector yes, Vector no) {
    return (Vector)((mask & (Integers)yes) | (~mask & (Integers)no));
}

INLINE Vector absolute(Vector x) { return (Vector)((Integers)x & 0x7FFFFFFF); }

/* Returns a > b ? a : b for each lane. As in the processors' instructions, the result is b if either value is NaN. */
INLINE Vector maximum(Vector a, Vector b) {
#if defined(__AVX512F__)
    return (Vector)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX__)
    return (Vector)_mm256_max_ps((__m256)a, (__m256)b);
#else
    return blend(a > b, a, b);
#endif
}

INLINE Vector minimum(Vector a, Vector b) {
#if defined(__AVX512F__)
    return (Vector)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(__AVX__)
    return (Vector)_mm256_min_ps((__m256)a, (__m256)b);
#else
    return blend(a < b, a, b);
#endif
}

/* Returns the sum of the lanes. The order is fixed: halves are added until one number is left. */
INLINE float horizontal_sum(Vector vector) {
#if defined(__AVX__)
#if defined(__AVX512F__)
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256((__m512)vector), _mm512_extractf32x8_ps((__m512)vector, 1));
#else
    __m256 eight = (__m256)vector;
#endif
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
#else
    float lanes[LANES];
    store(lanes, vector);
    for (int width = LANES / 2; width; width /= 2)
        for (int lane = 0; lane < width; lane++) lanes[lane] += lanes[lane + width];
    return lanes[0];
#endif
}

INLINE float horizontal_maximum(Vector vector) {
#if defined(__AVX__)
#if defined(__AVX512F__)
    __m256 eight = _mm256_max_ps(_mm512_castps512_ps256((__m512)vector), _mm512_extractf32x8_ps((__m512)vector, 1));
#else
    __m256 eight = (__m256)vector;
#endif
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
#else
    float largest = vector[0];
    for (int lane = 1; lane < LANES; lane++) largest = vector[lane] > largest ? vector[lane] : largest;
    return largest;
#endif
}

/* Returns e^x with an error of about 2 units in the last place. x is clamped to [-87.3, 88]. */
INLINE Vector exponential(Vector x) {
    x = minimum(maximum(x, broadcast(-87.3f)), broadcast(88.0f));
    Vector rounded = x * 1.44269504088896341f + 12582912.0f; /* 1.5 · 2^23: adding it rounds to an integer */
    Vector power = rounded - 12582912.0f;
    Vector remainder = x - power * 0.693359375f;
    remainder = remainder - power * -2.12194440e-4f;
    Vector sum = broadcast(1.9875691500e-4f);
    sum = sum * remainder + 1.3981999507e-3f;
    sum = sum * remainder + 8.3334519073e-3f;
    sum = sum * remainder + 4.1665795894e-2f;
    sum = sum * remainder + 1.6666665459e-1f;
    sum = sum * remainder + 5.0000001201e-1f;
    sum = sum * remainder * remainder + remainder + 1.0f;
    Integers exponent = (__builtin_convertvector(power, Integers) + 127) << 23;
    return sum * (Vector)exponent;
}

/* Returns erf(x) with an absolute error of at most 1.5e-7 (Abramowitz & Stegun 1964, 7.1.26). */
INLINE Vector error_function(Vector x) {
    Vector positive = absolute(x);
    Vector t = 1.0f / (positive * 0.3275911f + 1.0f);
    Vector sum = broadcast(1.061405429f);
    sum = sum * t - 1.453152027f;
    sum = sum * t + 1.421413741f;
    sum = sum * t - 0.284496736f;
    sum = sum * t + 0.254829592f;
    Vector result = 1.0f - sum * t * exponential(-positive * positive);
    return blend(x < 0.0f, -result, result);
}
