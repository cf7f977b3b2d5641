/* The type of matrices of floats, for matrix.h. */
#define NAME(name) name##_floats
#define ELEMENT float
#define WIDE 1
#define UNIT float
#define SPAN 1
#define TARGET
#if defined(__AVX512F__) || defined(__aarch64__)
#define VECTORS 4
#else
#define VECTORS 2 /* of 16 registers, 12 hold sums */
#endif
#define FACTOR Vector
#define EVERYWHERE(unit) broadcast(unit)
#define LOAD(from) load(from)
#define MULTIPLY_ADD(sum, left, right) ((sum) + (left) * (right))
#define JOINED(upper, lower) (upper)
