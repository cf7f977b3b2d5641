/* As many floats at a time as a register of the processor holds: GCC's and Clang's vector types. */
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

/* Every width is filled up with zeros to a multiple of it, so that no loop has a rest. */
#define PANEL 16

#define INLINE static inline __attribute__((always_inline, unused))

typedef float Vector __attribute__((vector_size(4 * LANES)));
typedef int32_t Integers __attribute__((vector_size(4 * LANES)));

/* A multiple of sixteen that is not smaller. */
INLINE int padded(int count) { return (count + PANEL - 1) / PANEL * PANEL; }

INLINE Vector load(const float *from) {
    Vector vector;
    memcpy(&vector, from, sizeof vector);
    return vector;
}

INLINE void store(float *to, Vector vector) { memcpy(to, &vector, sizeof vector); }

INLINE Vector all(float value) { return value - (Vector){0}; }

INLINE Vector choose(Integers where, Vector yes, Vector no) {
    return (Vector)((where & (Integers)yes) | (~where & (Integers)no));
}

INLINE Vector magnitude(Vector x) { return (Vector)((Integers)x & 0x7FFFFFFF); }

/* a > b ? a : b, so that b is taken where one of them is NaN: what the processors' instructions do. */
INLINE Vector larger(Vector a, Vector b) {
#if defined(__AVX512F__)
    return (Vector)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX__)
    return (Vector)_mm256_max_ps((__m256)a, (__m256)b);
#else
    return choose(a > b, a, b);
#endif
}

INLINE Vector smaller(Vector a, Vector b) {
#if defined(__AVX512F__)
    return (Vector)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(__AVX__)
    return (Vector)_mm256_min_ps((__m256)a, (__m256)b);
#else
    return choose(a < b, a, b);
#endif
}

/* The sum of the lanes, always in the same order: halves are added to each other. */
INLINE float sum_of(Vector vector) {
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

INLINE float largest_of(Vector vector) {
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

/* e^x to about 2 units in the last place between e^-87 and e^88, which stand for all beyond. */
INLINE Vector exponential(Vector x) {
    x = smaller(larger(x, all(-87.3f)), all(88.0f));
    Vector rounded = x * 1.44269504088896341f + 12582912.0f; /* 1.5 · 2^23: adding it rounds to a whole number */
    Vector power = rounded - 12582912.0f;
    Vector rest = x - power * 0.693359375f;
    rest = rest - power * -2.12194440e-4f;
    Vector sum = all(1.9875691500e-4f);
    sum = sum * rest + 1.3981999507e-3f;
    sum = sum * rest + 8.3334519073e-3f;
    sum = sum * rest + 4.1665795894e-2f;
    sum = sum * rest + 1.6666665459e-1f;
    sum = sum * rest + 5.0000001201e-1f;
    sum = sum * rest * rest + rest + 1.0f;
    Integers exponent = (__builtin_convertvector(power, Integers) + 127) << 23;
    return sum * (Vector)exponent;
}

/* erf(x) to 1.5e-7 (Abramowitz & Stegun 1964, 7.1.26). */
INLINE Vector error_function(Vector x) {
    Vector positive = magnitude(x);
    Vector t = 1.0f / (positive * 0.3275911f + 1.0f);
    Vector sum = all(1.061405429f);
    sum = sum * t - 1.453152027f;
    sum = sum * t + 1.421413741f;
    sum = sum * t - 0.284496736f;
    sum = sum * t + 0.254829592f;
    Vector result = 1.0f - sum * t * exponential(-positive * positive);
    return choose(x < 0.0f, -result, result);
}
