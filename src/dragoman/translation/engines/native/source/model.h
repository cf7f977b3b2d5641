/* A Transformer's weights as this engine holds them. All widths but `Norm.width` are multiples of 16. */
#pragma once

#include "products.h"

enum NormKind { LAYER_NORM = 0, RMS_NORM = 1 };
enum Activation { ACTIVATION_RELU = 0, ACTIVATION_GELU = 1, ACTIVATION_SWISH = 2, ACTIVATION_SWIGLU = 3 };

typedef struct {
    int kind, width; /* numbers that are normalised; the row behind them is filled up with zeros */
    float epsilon;
    float *gain, *offset; /* NULL for none */
} Norm;

typedef struct {
    int heads, key_width, value_width; /* of a head */
    float scale;                       /* of the dot products */
    int rotary;                        /* whether queries and keys are turned by their positions */
    float *slopes;                     /* of ALiBi, one a head, or NULL */
} Attention;

typedef struct {
    Attention attention, source; /* source: of a decoder's layer over the memory */
    Matrix projections, output;  /* queries, keys and values one behind the other */
    Matrix source_query, source_projections, source_output;
    Matrix inner, gate, outer;
    int activation;
    int recurrent; /* an SSRU in the place of self-attention: `projections` are its forget gate and its candidate */
    Norm around_attention, around_source, around_feedforward;
} Layer;

typedef struct {
    int layers, width, size; /* size: of the vocabulary */
    int pre;                 /* whether norms stand before the sublayers, and one at the end */
    float *tokens;           /* (size, width), all that is done to them before positions come done already */
    Layer *layer;
    Norm norm;
    int longest_inner; /* the widest row that a layer makes */
} Stack;

typedef struct {
    Stack encoder, decoder;
    Matrix vocabulary;
} Model;

static void normalise(const Norm *norm, const float *from, float *to, int rows, int width) {
    for (int row = 0; row < rows; row++, from += width, to += width) {
        Vector sums = all(0), squares = all(0);
        float mean = 0;
        if (norm->kind == LAYER_NORM) {
            for (int place = 0; place < width; place += LANES) sums += load(from + place);
            mean = sum_of(sums) / norm->width;
        }
        for (int place = 0; place < width; place += LANES) {
            Vector distance = load(from + place) - mean;
            squares += distance * distance;
        }
        float square = sum_of(squares) - (float)(width - norm->width) * mean * mean; /* of what fills the row up */
        float factor = 1.0f / sqrtf(square / norm->width + norm->epsilon);
        for (int place = 0; place < width; place += LANES) {
            Vector result = (load(from + place) - mean) * factor;
            if (norm->gain) result *= load(norm->gain + place);
            if (norm->offset) result += load(norm->offset + place);
            store(to + place, result);
        }
        for (int place = norm->width; place < width; place++) to[place] = 0;
    }
}
