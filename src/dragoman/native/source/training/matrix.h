/* Products of matrices of one type, with sums in float32. Included after floats.h or pairs.h, which define the type.

   A matrix is addressed in units of SPAN elements that are neighbours along the summed dimension: a float, or a pair of
   bfloat16. The right factor is packed in panels of VECTORS vectors of columns: for each row of units, the units of all
   columns of the panel. */
#include <stdlib.h>

#include "numbers.h"

#define COLUMNS (VECTORS * LANES)

/* Numbers of units and panels that cover a number of rows and columns, and the size of a packed factor in bytes. */
INLINE int64_t NAME(units_of)(int64_t rows) { return (rows + SPAN - 1) / SPAN; }
INLINE int64_t NAME(panels_of)(int64_t columns) { return (columns + COLUMNS - 1) / COLUMNS; }
INLINE int64_t NAME(packed_size)(int64_t rows, int64_t columns) {
    return NAME(panels_of)(columns) * NAME(units_of)(rows) * COLUMNS * (int64_t)sizeof(UNIT);
}

/* Packs a matrix (rows, columns) as a right factor. */
static void NAME(pack)(UNIT *to, const ELEMENT *from, int64_t rows, int64_t columns) {
    for (int64_t first = 0; first < columns; first += COLUMNS)
        for (int64_t row = 0; row < rows; row += SPAN, to += COLUMNS) {
            const ELEMENT *upper = from + row * columns + first, *lower = row + SPAN <= rows ? upper + columns : NULL;
            int64_t count = columns - first < COLUMNS ? columns - first : COLUMNS;
            if (count == COLUMNS && (SPAN == 1 || lower != NULL))
                for (int64_t at = 0; at < COLUMNS; at++) to[at] = JOINED(upper[at], lower[at]);
            else
                for (int64_t at = 0; at < COLUMNS; at++)
                    to[at] = at >= count ? 0 : JOINED(upper[at], SPAN == 1 || lower == NULL ? 0 : lower[at]);
        }
}

/* Packs the transpose of a matrix (columns, rows) as a right factor. The number of rows is a multiple of SPAN. */
static void NAME(pack_transposed)(UNIT *to, const ELEMENT *from, int64_t rows, int64_t columns) {
    int64_t units = NAME(units_of)(rows);
    for (int64_t first = 0; first < columns; first += COLUMNS, to += units * COLUMNS)
        for (int64_t block = 0; block < units; block += 16) {
            int64_t last = block + 16 < units ? block + 16 : units;
            for (int64_t at = 0; at < COLUMNS; at++) {
                UNIT some[16] = {0};
                if (first + at < columns)
                    memcpy(some, from + (first + at) * rows + SPAN * block, (size_t)(last - block) * sizeof(UNIT));
                for (int64_t unit = block; unit < last; unit++) to[unit * COLUMNS + at] = some[unit - block];
            }
        }
}

/* What is added to a product: `factor` times a matrix with the rows of the result, or nothing if it is NULL. The sums
   are multiplied by `scale`. */
typedef struct {
    const ELEMENT *added;
    float factor, scale;
} NAME(Finish);

/* Reads and writes the elements of a row from a column on, which may be outside. */
INLINE Vector NAME(read_column)(const ELEMENT *row, int64_t column, int64_t columns) {
    return column < columns ? read_some(row, column, columns - column, WIDE) : (Vector){0};
}
INLINE void NAME(write_column)(ELEMENT *row, int64_t column, int64_t columns, Vector value) {
    if (column < columns) write_some(row, column, value, columns - column, WIDE);
}

#define ROWS(COUNT)                                                                                                    \
    TARGET static inline void NAME(rows_##COUNT)(                                                                      \
        ELEMENT *out, const UNIT *a, const UNIT *b, int64_t units, int64_t columns, int64_t first,                    \
        const NAME(Finish) * finish                                                                                    \
    ) {                                                                                                                \
        Vector sums[COUNT][VECTORS]; /* set in a loop, because memory that is set at once stays memory */              \
        for (int i = 0; i < COUNT; i++)                                                                                \
            for (int j = 0; j < VECTORS; j++) sums[i][j] = (Vector){0};                                                \
        for (int64_t unit = 0; unit < units; unit++, b += COLUMNS) {                                                   \
            FACTOR right[VECTORS];                                                                                     \
            for (int j = 0; j < VECTORS; j++) right[j] = LOAD(b + LANES * j);                                          \
            for (int i = 0; i < COUNT; i++) {                                                                          \
                FACTOR left = EVERYWHERE(a[i * units + unit]);                                                         \
                for (int j = 0; j < VECTORS; j++) sums[i][j] = MULTIPLY_ADD(sums[i][j], left, right[j]);               \
            }                                                                                                          \
        }                                                                                                              \
        for (int i = 0; i < COUNT; i++)                                                                                \
            for (int j = 0; j < VECTORS; j++) sums[i][j] *= finish->scale;                                             \
        if (finish->added != NULL)                                                                                     \
            for (int i = 0; i < COUNT; i++)                                                                            \
                for (int j = 0; j < VECTORS; j++) {                                                                    \
                    const ELEMENT *row_added = finish->added + i * columns;                                            \
                    sums[i][j] += finish->factor * NAME(read_column)(row_added, first + LANES * j, columns);           \
                }                                                                                                      \
        for (int i = 0; i < COUNT; i++)                                                                                \
            for (int j = 0; j < VECTORS; j++)                                                                          \
                NAME(write_column)(out + i * columns, first + LANES * j, columns, sums[i][j]);                         \
    }
ROWS(6)
ROWS(4)
ROWS(2)
ROWS(1)
#undef ROWS

/* out (rows, columns) = scale · a · b + factor · added. a: (rows, depth). b: packed.

   symmetric: only the panels on and below the diagonal are computed, which suffices for a symmetric result. */
TARGET static void NAME(multiply)(
    ELEMENT *out, const UNIT *a, const UNIT *b, int64_t rows, int64_t depth, int64_t columns, NAME(Finish) finish,
    int symmetric
) {
    const ELEMENT *added = finish.added;
    int64_t units = NAME(units_of)(depth);
    for (int64_t first = 0; first < columns; first += COLUMNS, b += units * COLUMNS)
        for (int64_t i = symmetric ? first : 0, count; i < rows; i += count) {
            int64_t left = rows - i;
            count = left >= 6 ? 6 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
            ELEMENT *to = out + i * columns;
            const UNIT *from = a + i * units;
            if (added != NULL) finish.added = added + i * columns;
            if (count == 6) NAME(rows_6)(to, from, b, units, columns, first, &finish);
            else if (count == 4) NAME(rows_4)(to, from, b, units, columns, first, &finish);
            else if (count == 2) NAME(rows_2)(to, from, b, units, columns, first, &finish);
            else NAME(rows_1)(to, from, b, units, columns, first, &finish);
        }
}
