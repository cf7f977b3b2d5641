/* The type of matrices in bfloat16 whose pairs the instruction VDPBF16PS multiplies, for matrix.h. */
#define NAME(name) name##_pairs
#define ELEMENT uint16_t
#define WIDE 0
#define UNIT uint32_t
#define SPAN 2
#define TARGET __attribute__((target("avx512bf16")))
#define VECTORS 4
#define FACTOR __m512bh
#define EVERYWHERE(unit) ((__m512bh)_mm512_set1_epi32((int)(unit)))
#define LOAD(from) ((__m512bh)_mm512_loadu_si512(from))
#define MULTIPLY_ADD(sum, left, right) ((Vector)_mm512_dpbf16_ps((__m512)(sum), left, right))
#define JOINED(upper, lower) ((upper) | (uint32_t)(lower) << 16)
