/* Elements of tensors in bfloat16 or float32, read and written as vectors of floats.

   A bfloat16 is the upper half of a float. `wide` is a constant in every caller: whether the elements are float32. All
   functions count in elements. */
#pragma once

#include "../common/vector.h"

typedef uint16_t Halves __attribute__((vector_size(2 * LANES)));
typedef uint32_t Words __attribute__((vector_size(4 * LANES)));

INLINE Vector widened(Halves halves) { return (Vector)(__builtin_convertvector(halves, Words) << 16); }

/* Rounds to the nearest bfloat16, and to the even one of two; not a number stays not a number. */
INLINE Halves narrowed(Vector vector) {
    Words bits = (Words)vector;
    Words nearest = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    Words numbers = (Words)(vector == vector);
    return __builtin_convertvector((nearest & numbers) | (~numbers & 0x7FC0), Halves);
}

/* Reads LANES elements. */
INLINE Vector read(const void *from, int64_t place, int wide) {
    if (wide) return load((const float *)from + place);
    Halves halves;
    memcpy(&halves, (const uint16_t *)from + place, sizeof halves);
    return widened(halves);
}

/* Writes LANES elements. */
INLINE void write(void *to, int64_t place, Vector vector, int wide) {
    if (wide) {
        store((float *)to + place, vector);
    } else {
        Halves halves = narrowed(vector);
        memcpy((uint16_t *)to + place, &halves, sizeof halves);
    }
}

/* Reads the first `count` of LANES elements; the others are zeros. */
INLINE Vector read_some(const void *from, int64_t place, int64_t count, int wide) {
    if (count >= LANES) return read(from, place, wide);
    uint8_t bytes[4 * LANES] = {0};
    memcpy(bytes, (const uint8_t *)from + place * (wide ? 4 : 2), (size_t)count * (wide ? 4 : 2));
    return read(bytes, 0, wide);
}

/* Writes the first `count` of LANES elements. */
INLINE void write_some(void *to, int64_t place, Vector vector, int64_t count, int wide) {
    if (count >= LANES) {
        write(to, place, vector, wide);
    } else {
        uint8_t bytes[4 * LANES];
        write(bytes, 0, vector, wide);
        memcpy((uint8_t *)to + place * (wide ? 4 : 2), bytes, (size_t)count * (wide ? 4 : 2));
    }
}

/* Returns the lanes before `count`, and zeros in the others. */
INLINE Vector first_lanes(Vector vector, int64_t count) {
    if (count >= LANES) return vector;
    Integers lanes;
    for (int lane = 0; lane < LANES; lane++) lanes[lane] = lane;
    return (Vector)((Integers)vector & (lanes < (int32_t)count));
}
