/* Softmax attention over packed rows: the sentences follow each other without padding.

   The scores of one head of one sentence stay in the processor's cache, and are computed again in the backward pass. */
#pragma once

#include <stdlib.h>

#include "numbers.h"
#include "product.h"

/* The rows and heads of an attention. As in native/training.py.

   query_starts, key_starts: the first row of each sentence, and the number of rows of all sentences, (sentences + 1).
   query_rows, key_rows: the numbers of rows including filler, whose results are zeros. Strides: from one row to the
   next, in elements. key_width, value_width: of one head. */
typedef struct {
    const int32_t *query_starts, *key_starts;
    int64_t sentences, query_rows, key_rows;
    int64_t query_stride, key_stride, value_stride, out_stride;
    int32_t heads, key_width, value_width, causal;
    float scale;
} Rows;

/* One head of one sentence. Matrices of floats; rows of `keys` and so on are padded to multiples of PANEL. */
typedef struct {
    int64_t queries, keys;                  /* numbers of rows */
    int64_t columns, key_width, value_width; /* padded: number of keys, widths */
    float *query, *key, *key_transposed, *value, *weights, *context;
    float *gradient, *value_transposed, *weight_gradients, *query_gradient, *key_gradient, *value_gradient;
} Head;

static int64_t longest(const int32_t *starts, int64_t sentences) {
    int64_t found = 1;
    for (int64_t each = 0; each < sentences; each++)
        if (starts[each + 1] - starts[each] > found) found = starts[each + 1] - starts[each];
    return found;
}

/* Returns memory for the matrices of any head, or NULL; the caller frees it. */
static float *reserve(Head *head, const Rows *rows, int backward) {
    int64_t queries = longest(rows->query_starts, rows->sentences), keys = longest(rows->key_starts, rows->sentences);
    int64_t columns = padded((int)keys), key = padded(rows->key_width), value = padded(rows->value_width);
    int64_t sizes[] = {queries * key, keys * key, key * columns, keys * value, queries * columns, queries * value,
                       queries * value, value * columns, queries * columns, queries * key, keys * key, keys * value};
    float **places[] = {&head->query, &head->key, &head->key_transposed, &head->value, &head->weights, &head->context,
                        &head->gradient, &head->value_transposed, &head->weight_gradients, &head->query_gradient,
                        &head->key_gradient, &head->value_gradient};
    int count = backward ? 12 : 6;
    int64_t total = 0;
    for (int each = 0; each < count; each++) total += sizes[each];
    float *memory = malloc((size_t)total * sizeof(float)), *next = memory;
    for (int each = 0; each < count && memory != NULL; each++) {
        *places[each] = next;
        next += sizes[each];
    }
    head->key_width = key;
    head->value_width = value;
    return memory;
}

/* Copies one head of some rows to a matrix whose rows are padded with zeros. */
INLINE void gather(
    float *to, int64_t padded_width, const void *from, int64_t first, int64_t rows, int64_t stride, int64_t offset,
    int64_t width, int wide
) {
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < padded_width; column += LANES) {
            int64_t left = width - column, place = (first + row) * stride + offset + column;
            store(to + row * padded_width + column, left > 0 ? read_some(from, place, left, wide) : (Vector){0});
        }
}

INLINE void scatter(
    const float *from, int64_t padded_width, void *to, int64_t first, int64_t rows, int64_t stride, int64_t offset,
    int64_t width, int wide
) {
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < width; column += LANES)
            write_some(
                to, (first + row) * stride + offset + column, load(from + row * padded_width + column), width - column, wide
            );
}

static void transpose(float *to, int64_t to_width, const float *from, int64_t rows, int64_t width) {
    for (int64_t column = 0; column < width; column++) {
        for (int64_t row = 0; row < rows; row++) to[column * to_width + row] = from[row * width + column];
        for (int64_t row = rows; row < to_width; row++) to[column * to_width + row] = 0.0f;
    }
}

/* Sets some rows of one head to zeros. */
INLINE void clear(void *to, int64_t first, int64_t last, int64_t stride, int64_t offset, int64_t width, int wide) {
    int64_t size = wide ? 4 : 2;
    for (int64_t row = first; row < last; row++)
        memset((uint8_t *)to + (row * stride + offset) * size, 0, (size_t)(width * size));
}

/* Replaces the scores of a row by their softmax. Entries from `count` on become zeros. */
static void normalise(float *scores, int64_t count, int64_t columns, float scale) {
    float largest = -INFINITY;
    for (int64_t at = 0; at < count; at++) largest = scores[at] * scale > largest ? scores[at] * scale : largest;
    Vector sum = {0};
    for (int64_t at = 0; at < columns; at += LANES) {
        Vector power = count > at ? first_lanes(exponential(load(scores + at) * scale - largest), count - at) : (Vector){0};
        sum += power;
        store(scores + at, power);
    }
    float total = horizontal_sum(sum);
    for (int64_t at = 0; at < columns; at += LANES) store(scores + at, load(scores + at) / total);
}

/* Reads a head and computes its attention weights. Returns whether there is anything to compute. */
INLINE int weigh(
    Head *head, const Rows *rows, int64_t sentence, int64_t number, const void *queries, const void *keys,
    const void *values, int wide
) {
    int64_t first = rows->query_starts[sentence], key_first = rows->key_starts[sentence];
    head->queries = rows->query_starts[sentence + 1] - first;
    head->keys = rows->key_starts[sentence + 1] - key_first;
    head->columns = padded((int)head->keys);
    int64_t key_offset = number * rows->key_width, value_offset = number * rows->value_width;
    gather(
        head->query, head->key_width, queries, first, head->queries, rows->query_stride, key_offset, rows->key_width, wide
    );
    gather(
        head->key, head->key_width, keys, key_first, head->keys, rows->key_stride, key_offset, rows->key_width, wide
    );
    gather(
        head->value, head->value_width, values, key_first, head->keys, rows->value_stride, value_offset,
        rows->value_width, wide
    );
    if (head->queries == 0 || head->keys == 0) return 0;
    transpose(head->key_transposed, head->columns, head->key, head->keys, head->key_width);
    multiply(
        head->weights, head->query, head->key_width, 1, head->key_transposed, head->queries, head->key_width,
        head->columns
    );
    for (int64_t query = 0; query < head->queries; query++) {
        int64_t count = rows->causal && query + 1 < head->keys ? query + 1 : head->keys;
        normalise(head->weights + query * head->columns, count, head->columns, rows->scale);
    }
    return 1;
}

INLINE int32_t attend(
    const Rows *rows, const void *queries, const void *keys, const void *values, void *out, int wide
) {
    Head head;
    float *memory = reserve(&head, rows, 0);
    if (memory == NULL) return 1;
    for (int64_t number = 0; number < rows->heads; number++) {
        int64_t offset = number * rows->value_width;
        for (int64_t sentence = 0; sentence < rows->sentences; sentence++) {
            int64_t first = rows->query_starts[sentence];
            if (!weigh(&head, rows, sentence, number, queries, keys, values, wide)) {
                clear(out, first, first + head.queries, rows->out_stride, offset, rows->value_width, wide);
                continue;
            }
            multiply(
                head.context, head.weights, head.columns, 1, head.value, head.queries, head.keys, head.value_width
            );
            scatter(
                head.context, head.value_width, out, first, head.queries, rows->out_stride, offset, rows->value_width,
                wide
            );
        }
        clear(
            out, rows->query_starts[rows->sentences], rows->query_rows, rows->out_stride, offset, rows->value_width, wide
        );
    }
    free(memory);
    return 0;
}

/* Computes the gradients with respect to queries, keys and values, which have the strides of these. `gradients` has the
   stride of `out`. */
INLINE int32_t differentiate_attention(
    const Rows *rows, const void *queries, const void *keys, const void *values, const void *gradients,
    void *query_gradients, void *key_gradients, void *value_gradients, int wide
) {
    Head head;
    float *memory = reserve(&head, rows, 1);
    if (memory == NULL) return 1;
    int64_t last = rows->query_starts[rows->sentences], key_last = rows->key_starts[rows->sentences];
    for (int64_t number = 0; number < rows->heads; number++) {
        int64_t key_offset = number * rows->key_width, value_offset = number * rows->value_width;
        for (int64_t sentence = 0; sentence < rows->sentences; sentence++) {
            int64_t first = rows->query_starts[sentence], key_first = rows->key_starts[sentence];
            if (!weigh(&head, rows, sentence, number, queries, keys, values, wide)) {
                clear(
                    query_gradients, first, first + head.queries, rows->query_stride, key_offset, rows->key_width, wide
                );
                clear(
                    key_gradients, key_first, key_first + head.keys, rows->key_stride, key_offset, rows->key_width, wide
                );
                clear(
                    value_gradients, key_first, key_first + head.keys, rows->value_stride, value_offset,
                    rows->value_width, wide
                );
                continue;
            }
            gather(
                head.gradient, head.value_width, gradients, first, head.queries, rows->out_stride, value_offset,
                rows->value_width, wide
            );
            transpose(head.value_transposed, head.columns, head.value, head.keys, head.value_width);
            multiply(
                head.weight_gradients, head.gradient, head.value_width, 1, head.value_transposed, head.queries,
                head.value_width, head.columns
            );
            multiply(
                head.value_gradient, head.weights, 1, head.columns, head.gradient, head.keys, head.queries,
                head.value_width
            );
            for (int64_t query = 0; query < head.queries; query++) {
                float *weights = head.weights + query * head.columns;
                float *changes = head.weight_gradients + query * head.columns;
                Vector sum = {0};
                for (int64_t at = 0; at < head.columns; at += LANES) sum += load(weights + at) * load(changes + at);
                float mean = horizontal_sum(sum);
                for (int64_t at = 0; at < head.columns; at += LANES)
                    store(changes + at, load(weights + at) * (load(changes + at) - mean) * rows->scale);
            }
            multiply(
                head.query_gradient, head.weight_gradients, head.columns, 1, head.key, head.queries, head.keys,
                head.key_width
            );
            multiply(
                head.key_gradient, head.weight_gradients, 1, head.columns, head.query, head.keys, head.queries,
                head.key_width
            );
            scatter(
                head.query_gradient, head.key_width, query_gradients, first, head.queries, rows->query_stride,
                key_offset, rows->key_width, wide
            );
            scatter(
                head.key_gradient, head.key_width, key_gradients, key_first, head.keys, rows->key_stride, key_offset,
                rows->key_width, wide
            );
            scatter(
                head.value_gradient, head.value_width, value_gradients, key_first, head.keys, rows->value_stride,
                value_offset, rows->value_width, wide
            );
        }
        clear(query_gradients, last, rows->query_rows, rows->query_stride, key_offset, rows->key_width, wide);
        clear(key_gradients, key_last, rows->key_rows, rows->key_stride, key_offset, rows->key_width, wide);
        clear(value_gradients, key_last, rows->key_rows, rows->value_stride, value_offset, rows->value_width, wide);
    }
    free(memory);
    return 0;
}
