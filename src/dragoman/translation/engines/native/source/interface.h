/* The structures that Python shares with the library, field by field as `library.py` declares them.

   All pointers are to memory of the caller. What `ModelSource` points to is copied by `dragoman_open`; what `Positions`,
   `Options` and `Request` point to must outlive the call that they are passed to, or the session. Arrays are C-ordered and
   contiguous; shapes are given as (rows, columns). All widths but `NormSource.width` are multiples of PANEL. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum Outcome { FINE = 0, NO_MEMORY = 1, NOT_A_NUMBER = 2, GIVEN_UP = 3 }; /* of a translation or a session */
enum Precision { FLOAT32 = 0, INT8 = 1 };
enum NormKind { LAYER_NORM = 0, RMS_NORM = 1 };
enum Activation { ACTIVATION_RELU = 0, ACTIVATION_GELU = 1, ACTIVATION_SWISH = 2, ACTIVATION_SWIGLU = 3 };
enum Penalty { NO_PENALTY = 0, GNMT_PENALTY = 1, MEAN_PENALTY = 2 }; /* the divisor of scores */

typedef struct {
    const float *weights, *bias; /* (outputs, inputs), (outputs); NULL weights for no matrix */
    int32_t outputs, inputs;
} MatrixSource;

typedef struct {
    const float *gain, *offset; /* (padded), or NULL if there are none */
    float epsilon;
    int32_t kind, width, padded; /* width: values that are normalised; the rest of `padded` are zeros */
} NormSource;

typedef struct {
    int32_t heads, key_width, value_width, rotary; /* widths of one head; whether queries and keys are rotated */
    float scale;
    const float *slopes; /* (heads) of ALiBi, or NULL */
} AttentionSource;

typedef struct {
    AttentionSource attention, source; /* source: cross-attention, in a decoder's layer */
    MatrixSource projections, output, source_query, source_projections, source_output, inner, gate, outer;
    NormSource around_attention, around_source, around_feedforward;
    int32_t activation, recurrent;
} LayerSource;

typedef struct {
    const LayerSource *layer; /* (layers) */
    const float *tokens;      /* (size, width): the input of the first layer without positions */
    NormSource norm;
    int32_t layers, width, size, pre;
} StackSource;

typedef struct {
    StackSource encoder, decoder;
    MatrixSource vocabulary;
    int32_t precision, threads;
} ModelSource;

/* Tables for `length` positions; NULL if the model has none. */
typedef struct {
    const float *vectors; /* (length, width): added to the token vectors */
    const float *angles;  /* (length, angles_width): cosines, then sines, of rotary positions */
    int32_t angles_width, length;
} Positions;

typedef struct {
    Positions source, target;
    int32_t begin, end;     /* ids of beginning and end of sentence */
    int32_t workers, batch; /* batch: the largest number of sequences that a worker decodes together */
} Options;

/* A source to translate, the settings of its search, and memory for the results. */
typedef struct Request {
    const int32_t *source;    /* (length): ids with the end of sentence */
    const int32_t *prefix;    /* (prefix_length): ids that outputs start with */
    const int32_t *forbidden; /* (forbidden_count): ids that never follow the prefix */
    int32_t length, prefix_length, forbidden_count;
    int32_t beam, nbest, limit, minimum; /* limit: maximum output tokens, including the end; larger than the prefix */
    int32_t penalty;
    double alpha;
    int32_t *tokens;  /* (nbest, limit) */
    int32_t *lengths; /* (nbest): tokens without the end; the following arrays have the same shape */
    float *log_probabilities;
    double *scores;
    uint8_t *finished;
    struct Request *next; /* the next request in its list */
    int32_t found;        /* hypotheses; −1 until the request is completed */
} Request;

/* Every field of the structures above, and each structure as a whole, for Python to compare with its own. */
typedef struct {
    const char *structure, *field; /* field: "" for the whole */
    int32_t offset, size;
} LayoutEntry;

#define WHOLE(type, name) {name, "", 0, sizeof(type)}
#define FIELD(type, name, field) {name, #field, offsetof(type, field), sizeof(((type *)0)->field)}

static const LayoutEntry LAYOUT[] = {
    WHOLE(MatrixSource, "Matrix"),
    FIELD(MatrixSource, "Matrix", weights),
    FIELD(MatrixSource, "Matrix", bias),
    FIELD(MatrixSource, "Matrix", outputs),
    FIELD(MatrixSource, "Matrix", inputs),
    WHOLE(NormSource, "Norm"),
    FIELD(NormSource, "Norm", gain),
    FIELD(NormSource, "Norm", offset),
    FIELD(NormSource, "Norm", epsilon),
    FIELD(NormSource, "Norm", kind),
    FIELD(NormSource, "Norm", width),
    FIELD(NormSource, "Norm", padded),
    WHOLE(AttentionSource, "Attention"),
    FIELD(AttentionSource, "Attention", heads),
    FIELD(AttentionSource, "Attention", key_width),
    FIELD(AttentionSource, "Attention", value_width),
    FIELD(AttentionSource, "Attention", rotary),
    FIELD(AttentionSource, "Attention", scale),
    FIELD(AttentionSource, "Attention", slopes),
    WHOLE(LayerSource, "Layer"),
    FIELD(LayerSource, "Layer", attention),
    FIELD(LayerSource, "Layer", source),
    FIELD(LayerSource, "Layer", projections),
    FIELD(LayerSource, "Layer", output),
    FIELD(LayerSource, "Layer", source_query),
    FIELD(LayerSource, "Layer", source_projections),
    FIELD(LayerSource, "Layer", source_output),
    FIELD(LayerSource, "Layer", inner),
    FIELD(LayerSource, "Layer", gate),
    FIELD(LayerSource, "Layer", outer),
    FIELD(LayerSource, "Layer", around_attention),
    FIELD(LayerSource, "Layer", around_source),
    FIELD(LayerSource, "Layer", around_feedforward),
    FIELD(LayerSource, "Layer", activation),
    FIELD(LayerSource, "Layer", recurrent),
    WHOLE(StackSource, "Stack"),
    FIELD(StackSource, "Stack", layer),
    FIELD(StackSource, "Stack", tokens),
    FIELD(StackSource, "Stack", norm),
    FIELD(StackSource, "Stack", layers),
    FIELD(StackSource, "Stack", width),
    FIELD(StackSource, "Stack", size),
    FIELD(StackSource, "Stack", pre),
    WHOLE(ModelSource, "Model"),
    FIELD(ModelSource, "Model", encoder),
    FIELD(ModelSource, "Model", decoder),
    FIELD(ModelSource, "Model", vocabulary),
    FIELD(ModelSource, "Model", precision),
    FIELD(ModelSource, "Model", threads),
    WHOLE(Positions, "Positions"),
    FIELD(Positions, "Positions", vectors),
    FIELD(Positions, "Positions", angles),
    FIELD(Positions, "Positions", angles_width),
    FIELD(Positions, "Positions", length),
    WHOLE(Options, "Options"),
    FIELD(Options, "Options", source),
    FIELD(Options, "Options", target),
    FIELD(Options, "Options", begin),
    FIELD(Options, "Options", end),
    FIELD(Options, "Options", workers),
    FIELD(Options, "Options", batch),
    WHOLE(Request, "Request"),
    FIELD(Request, "Request", source),
    FIELD(Request, "Request", prefix),
    FIELD(Request, "Request", forbidden),
    FIELD(Request, "Request", length),
    FIELD(Request, "Request", prefix_length),
    FIELD(Request, "Request", forbidden_count),
    FIELD(Request, "Request", beam),
    FIELD(Request, "Request", nbest),
    FIELD(Request, "Request", limit),
    FIELD(Request, "Request", minimum),
    FIELD(Request, "Request", penalty),
    FIELD(Request, "Request", alpha),
    FIELD(Request, "Request", tokens),
    FIELD(Request, "Request", lengths),
    FIELD(Request, "Request", log_probabilities),
    FIELD(Request, "Request", scores),
    FIELD(Request, "Request", finished),
    FIELD(Request, "Request", next),
    FIELD(Request, "Request", found),
};
#undef WHOLE
#undef FIELD
