/* A Transformer's packed weights.

   A `Model` owns all of its arrays but the vectors of tokens and segments. It is built from a `ModelSource` and its layers
   (interface.h) and does not change afterwards, so threads and engines share it without locks. All widths except `Norm.width` are padded with zeros to multiples of PANEL.
   Activations are rows of floats, (rows, width), aligned to 64 bytes. */
#pragma once

#include "matmul.h"

typedef struct {
    int kind, width; /* width: number of normalised values per row; the remaining values are padding and stay zero */
    float epsilon;
    float *gain, *offset; /* (padded width), or NULL */
} Norm;

typedef struct {
    int heads, key_width, value_width; /* widths of one head */
    float scale;                       /* the factor of the dot products */
    int rotary;                        /* whether queries and keys are rotated by their positions */
    float *slopes;                     /* (heads): ALiBi slopes, or NULL */
} Attention;

typedef struct {
    Attention attention, source; /* source: the cross-attention of a decoder layer */
    Matrix projections, output;  /* outputs of `projections`: queries, then keys, then values, each ordered by head */
    Matrix source_query, source_projections, source_output;
    Matrix inner, gate, outer;
    int activation;
    int recurrent; /* whether self-attention is an SSRU, whose forget gate and candidate are `projections` */
    Norm around_attention, around_source, around_feedforward;
} Layer;

typedef struct {
    int layers, width, size; /* size: the vocabulary size */
    int pre;                 /* whether norms are applied before the sublayers and after the last layer */
    int causal;              /* whether a token of an encoder attends only to itself and earlier tokens */
    const float *tokens;     /* (size, width): times `scale`, the inputs of the first layer, without positions and segments */
    const float *segments;   /* (segments, width): added to the vectors of the tokens of each segment, or NULL */
    float scale;
    int begin, replaced;     /* the id `begin` has the vector of the id `replaced` */
    Layer *layer;            /* (layers) */
    Norm norm;
    Norm embedding_norm;     /* of the inputs of the first layer of an encoder; width 0: none */
    int widest;      /* the width of the widest row that a layer computes */
    int64_t weights; /* the number of weights of all layers, without embeddings */
} Stack;

typedef struct {
    Stack encoder, decoder;
    Matrix vocabulary;
    int precision;
} Model;

/* Normalises rows of `width` floats, of which the first `norm->width` are values and the rest is padding. */
static void normalise(const Norm *norm, const float *from, float *to, int rows, int width) {
    for (int row = 0; row < rows; row++, from += width, to += width) {
        Vector sums = broadcast(0), squares = broadcast(0);
        float mean = 0;
        if (norm->kind == LAYER_NORM) {
            for (int i = 0; i < width; i += LANES) sums += load(from + i);
            mean = horizontal_sum(sums) / norm->width;
        }
        for (int i = 0; i < width; i += LANES) {
            Vector distance = load(from + i) - mean;
            squares += distance * distance;
        }
        float square = horizontal_sum(squares) - (float)(width - norm->width) * mean * mean; /* without the padding */
        float factor = 1.0f / sqrtf(square / norm->width + norm->epsilon);
        for (int i = 0; i < width; i += LANES) {
            Vector result = (load(from + i) - mean) * factor;
            if (norm->gain) result *= load(norm->gain + i);
            if (norm->offset) result += load(norm->offset + i);
            store(to + i, result);
        }
        for (int i = norm->width; i < width; i++) to[i] = 0;
    }
}
