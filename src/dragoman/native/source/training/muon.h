/* One step of Muon (Jordan et al. 2024) for a matrix of one type. Included after matrix.h. The algorithm is that of
   training/optimisers/muon.py, which says where its constants come from.

   A step is X ← (aI + P)X with P = bA + cA² and A = XXᵀ, after which A is (aI + P)A(aI + P). So several steps multiply
   only matrices (rows, rows), and then X once by (dI + P₂)(aI + P₁): all three steps of floats, and two of bfloat16, in
   which three would be inaccurate. Products of matrices that commute are symmetric, so one half of them is computed. */

/* A symmetric matrix (rows, rows), and memory for a packed one. */
typedef struct {
    ELEMENT *a, *p, *q, *sum, *product;
    UNIT *packed_a, *packed_p;
    int64_t rows;
} NAME(Squares);

static float NAME(norm_of)(const ELEMENT *values, int64_t size) {
    Vector sum = {0};
    for (int64_t at = 0; at < size; at += LANES) {
        Vector value = read_some(values, at, size - at, WIDE);
        sum += value * value;
    }
    return fmaxf(sqrtf(horizontal_sum(sum)), 1.17549435e-38f);
}

static void NAME(rescale)(ELEMENT *values, int64_t size, float factor) {
    for (int64_t at = 0; at < size; at += LANES)
        write_some(values, at, read_some(values, at, size - at, WIDE) * factor, size - at, WIDE);
}

/* to (columns, rows) = the transpose of `from`, in blocks that fit into the cache. */
static void NAME(transpose)(ELEMENT *to, const ELEMENT *from, int64_t rows, int64_t columns) {
    for (int64_t top = 0; top < rows; top += 16)
        for (int64_t left = 0; left < columns; left += 16)
            for (int64_t row = top; row < rows && row < top + 16; row++)
                for (int64_t column = left; column < columns && column < left + 16; column++)
                    to[column * rows + row] = from[row * columns + column];
}

/* out = scale · left · right + factor · added, all symmetric; left has rows of `depth` elements. right: packed. */
TARGET static void NAME(square)(
    ELEMENT *out, const ELEMENT *left, const UNIT *right, const ELEMENT *added, float factor, float scale, int64_t rows,
    int64_t depth
) {
    NAME(Finish) finish = {added, factor, scale};
    NAME(multiply)(out, (const UNIT *)left, right, rows, depth, rows, finish, 1);
    for (int64_t top = 0; top < rows; top += 16)
        for (int64_t row = top; row < rows && row < top + 16; row++)
            for (int64_t column = (row / COLUMNS + 1) * COLUMNS; column < rows; column++)
                out[row * rows + column] = out[column * rows + row];
}

/* p = bA + cA². Also packs A. */
TARGET static void NAME(polynomial)(const NAME(Squares) * s, ELEMENT *p, Quintic step) {
    NAME(pack)(s->packed_a, s->a, s->rows, s->rows);
    NAME(square)(p, s->a, s->packed_a, s->a, step.cubic, step.quintic, s->rows, s->rows);
}

/* A ← (aI + p)A(aI + p), given the packed A; p is packed. between: memory for a square. */
TARGET static void NAME(advance)(const NAME(Squares) * s, const ELEMENT *p, ELEMENT *between, float linear) {
    NAME(square)(between, p, s->packed_a, s->a, linear, 1, s->rows, s->rows);
    NAME(pack)(s->packed_p, p, s->rows, s->rows);
    NAME(square)(s->a, between, s->packed_p, between, linear, 1, s->rows, s->rows);
}

/* out with (dI + q)(aI + p) = daI + out, given the packed p. */
TARGET static void NAME(combine)(
    const NAME(Squares) * s, ELEMENT *out, const ELEMENT *p, float a, const ELEMENT *q, float d
) {
    int64_t size = s->rows * s->rows;
    for (int64_t at = 0; at < size; at += LANES) {
        Vector sum = d * read_some(p, at, size - at, WIDE) + a * read_some(q, at, size - at, WIDE);
        write_some(s->sum, at, sum, size - at, WIDE);
    }
    NAME(square)(out, q, s->packed_p, s->sum, 1, 1, s->rows, s->rows);
}

/* out = factor · X + square · X for X (rows, columns). */
TARGET static void NAME(apply)(
    ELEMENT *out, const ELEMENT *square, const ELEMENT *x, UNIT *packed, float factor, int64_t rows, int64_t columns
) {
    NAME(Finish) finish = {x, factor, 1.0f};
    NAME(pack)(packed, x, rows, columns);
    NAME(multiply)(out, (const UNIT *)square, packed, rows, rows, columns, finish, 0);
}

/* A = XXᵀ. */
TARGET static void NAME(gram)(const NAME(Squares) * s, const ELEMENT *x, UNIT *packed, int64_t columns) {
    NAME(pack_transposed)(packed, x, columns, s->rows);
    NAME(square)(s->a, x, packed, NULL, 0, 1, s->rows, columns);
}

/* Updates a weight and its running mean of gradients, both (rows, columns), rows ≤ columns unless `tall`, in which case
   the matrices are (columns, rows). Rows and columns are multiples of SPAN. Returns 0, or 1 if there is not enough
   memory. */
TARGET static int32_t NAME(muon)(
    float *weight, const float *gradient, float *mean, int64_t rows, int64_t columns, int32_t tall, const MuonStep *step
) {
    int64_t size = rows * columns, element = (int64_t)sizeof(ELEMENT);
    int64_t square = (rows * rows * element + 63) / 64 * 64, rectangle = (size * element + 63) / 64 * 64;
    int64_t square_packed = NAME(packed_size)(rows, rows);
    int64_t wide = NAME(packed_size)(rows, columns), high = NAME(packed_size)(columns, rows);
    int64_t packed_bytes = wide > high ? wide : high;
    uint8_t *memory = aligned_alloc(64, (size_t)(2 * rectangle + 5 * square + 2 * square_packed + packed_bytes));
    if (memory == NULL) return 1;
    uint8_t *next = memory + 2 * rectangle, *rest = next + 5 * square;
    ELEMENT *x = (ELEMENT *)memory, *y = (ELEMENT *)(memory + rectangle);
    NAME(Squares) s = {
        (ELEMENT *)next, (ELEMENT *)(next + square), (ELEMENT *)(next + 2 * square), (ELEMENT *)(next + 3 * square),
        (ELEMENT *)(next + 4 * square), (UNIT *)rest, (UNIT *)(rest + square_packed), rows,
    };
    UNIT *packed = (UNIT *)(rest + 2 * square_packed);

    Vector squares = {0};
    for (int64_t at = 0; at < size; at += LANES) {
        Vector new = read_some(gradient, at, size - at, 1), old = read_some(mean, at, size - at, 1);
        old += (1 - step->momentum) * (new - old);
        write_some(mean, at, old, size - at, 1);
        Vector direction = new + step->momentum * (old - new);
        squares += direction * direction;
    }
    float scale = 1.0f / fmaxf(sqrtf(horizontal_sum(squares)), 1.17549435e-38f);
    for (int64_t at = 0; at < size; at += LANES) {
        Vector new = read_some(gradient, at, size - at, 1), old = read_some(mean, at, size - at, 1);
        write_some(tall ? y : x, at, (new + step->momentum * (old - new)) * scale, size - at, WIDE);
    }
    if (tall) NAME(transpose)(x, y, columns, rows);

    const Quintic *first = step->steps, *second = first + 1, *third = first + 2;
    NAME(gram)(&s, x, packed, columns);
    float bound = NAME(norm_of)(s.a, rows * rows) * step->margin, linear = first->linear * second->linear;
    NAME(rescale)(s.a, rows * rows, 1 / bound);
    NAME(rescale)(x, size, 1 / sqrtf(bound));
    NAME(polynomial)(&s, s.p, *first);
    NAME(advance)(&s, s.p, s.product, first->linear);
    NAME(polynomial)(&s, s.q, *second);
    NAME(combine)(&s, s.product, s.p, first->linear, s.q, second->linear);
    if (WIDE) {
        NAME(advance)(&s, s.q, s.p, second->linear);
        NAME(polynomial)(&s, s.q, *third);
        NAME(pack)(s.packed_p, s.product, rows, rows);
        NAME(combine)(&s, s.p, s.product, linear, s.q, third->linear);
        NAME(apply)(y, s.p, x, packed, linear * third->linear, rows, columns);
    } else {
        NAME(apply)(y, s.product, x, packed, linear, rows, columns);
        NAME(gram)(&s, y, packed, columns);
        NAME(polynomial)(&s, s.p, *third);
        NAME(apply)(x, s.p, y, packed, third->linear, rows, columns);
    }
    ELEMENT *result = WIDE ? y : x, *other = WIDE ? x : y;
    if (tall) {
        NAME(transpose)(other, result, rows, columns);
        result = other;
    }
    for (int64_t at = 0; at < size; at += LANES) {
        Vector value = step->keep * read_some(weight, at, size - at, 1);
        write_some(weight, at, value - step->rate * read_some(result, at, size - at, WIDE), size - at, 1);
    }
    free(memory);
    return 0;
}
