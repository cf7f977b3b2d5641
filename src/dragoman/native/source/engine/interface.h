/* The structures that Python shares with the library. `library.py` declares the same fields.

   All pointers refer to memory of the caller. `dragoman_open` and `dragoman_add_layer` copy the arrays that they are
   given, except the vectors of tokens and segments, which must outlive the model. The arrays of `Positions`, `Options` and
   `Request` must outlive the call or the session to which they are passed. Arrays are C-ordered and contiguous; shapes are
   written as (rows, columns). All widths except `NormSource.width` are multiples of PANEL. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum Outcome { SUCCESS = 0, NO_MEMORY = 1, NOT_A_NUMBER = 2, CANCELLED = 3 }; /* the outcome of a call or a session */
enum Precision { FLOAT32 = 0, INT8 = 1, BFLOAT16 = 2 };
enum NormKind { LAYER_NORM = 0, RMS_NORM = 1 };
enum Activation { ACTIVATION_RELU = 0, ACTIVATION_GELU = 1, ACTIVATION_SWISH = 2, ACTIVATION_SWIGLU = 3, ACTIVATION_GELU_TANH = 4 };
enum Penalty { NO_PENALTY = 0, GNMT_PENALTY = 1, MEAN_PENALTY = 2 }; /* the divisor of scores */

typedef struct {
    const float *weights, *bias; /* (rows, inputs), (outputs); weights are NULL if the matrix does not exist */
    int32_t outputs, inputs, rows; /* rows: at most the outputs; the weights of the others are zeros */
} MatrixSource;

typedef struct {
    const float *gain, *offset; /* (padded), or NULL */
    float epsilon;
    int32_t kind, width, padded; /* width: number of normalised values; the remaining values are zeros */
} NormSource;

typedef struct {
    int32_t heads, key_width, value_width, rotary; /* widths of one head; rotary: whether queries and keys are rotated */
    float scale;
    const float *slopes; /* (heads): ALiBi slopes, or NULL */
} AttentionSource;

typedef struct {
    AttentionSource attention, source; /* source: the cross-attention of a decoder layer */
    MatrixSource projections, output, source_query, source_projections, source_output, inner, gate, outer;
    NormSource around_attention, around_source, around_feedforward;
    int32_t activation, recurrent;
} LayerSource;

typedef struct {
    const float *tokens;      /* (size, width): times `scale`, the inputs of the first layer, without positions */
    NormSource norm;
    float scale;
    int32_t begin, replaced;  /* the id `begin` has the vector of the id `replaced` */
    int32_t layers, width, size, pre;
    int32_t segment_count;
    int32_t causal;           /* whether a token of an encoder attends only to itself and earlier tokens */
    const float *segments;    /* (segments, width): added to the vectors of the tokens of each segment, or NULL */
    NormSource embedding_norm; /* of the inputs of the first layer of an encoder; width 0: none */
} StackSource;

typedef struct {
    StackSource encoder, decoder; /* the decoder has no layers if only the states of the encoder are computed */
    MatrixSource vocabulary;
    int32_t precision;
} ModelSource;

/* Tables for `length` positions. A table that the model does not need is NULL. */
typedef struct {
    const float *vectors; /* (length, width): added to the token vectors */
    const float *angles;  /* (length, angles_width): cosines followed by sines, for rotary positions */
    int32_t angles_width, length;
} Positions;

typedef struct {
    Positions source, target;
    int32_t begin, end;     /* the ids of the beginning and end of sentence */
    int32_t workers, batch; /* batch: the maximum number of sequences that a worker decodes together */
} Options;

/* Texts to encode, packed without padding: the tokens of text t are starts[t] … starts[t + 1] − 1. */
typedef struct {
    const int32_t *tokens;   /* (starts[texts]): ids */
    const int32_t *segments; /* (starts[texts]): the segment of each token, or NULL */
    const int32_t *starts;   /* (texts + 1) */
    float *states;           /* (texts, stride, width): receives the states; padding remains unchanged */
    Positions positions;
    int32_t texts, stride, width; /* width: that of the model, without padding */
    int32_t batch;                /* the maximum number of tokens that are encoded together, unless one text has more */
    int32_t cancelled;            /* the caller may set it at any time; no further texts are then encoded */
} EncoderCall;

#define TOKEN_KINDS 4 /* a token's kind: whether it begins and ends with a word character, see `automaton.KINDS` */

/* A state of the automaton that tracks the required phrases of an output (`dragoman.decode.constraints.states`).

   banks: the number of phrase tokens in the output after a token. needs: the number of tokens that are then still needed.
   The arrays contain the values for tokens that begin or continue a phrase; the values for all other tokens are those of
   their kinds. */
typedef struct {
    const int32_t *tokens, *banks, *needs; /* (count), sorted by token */
    int32_t count;
    int32_t complete; /* whether the output may end */
    int32_t other_banks[TOKEN_KINDS], other_needs[TOKEN_KINDS];
} ConstraintState;

/* Replaces each of `count` states by the state after a token. Returns 0 if an error ends the search. */
typedef int32_t (*FollowTokens)(const ConstraintState **states, const int32_t *tokens, int32_t count);

/* A source to translate, its search settings, and memory for the results.

   Only a request with constraints has a `start`. Its beam is larger than the requested one, so that each bank has a
   slot. */
typedef struct Request {
    const int32_t *source;    /* (length): ids, including the end of sentence */
    const int32_t *prefix;    /* (prefix_length): the first ids of every output */
    const int32_t *forbidden; /* (forbidden_count): ids that never follow the prefix */
    const int32_t *shortlist; /* (shortlist_count): the ids that an output may contain, ascending; NULL for all ids */
    int32_t length, prefix_length, forbidden_count, shortlist_count;
    int32_t beam, nbest, limit, minimum; /* limit: maximum output length, including the end of sentence */
    int32_t penalty;
    double alpha;
    const ConstraintState *start; /* the state after the prefix, or NULL */
    const uint8_t *kinds;         /* (vocabulary): the kind of each token */
    FollowTokens follow;
    int32_t requested_beam, phrase_tokens; /* phrase_tokens: number of tokens of all phrases in their shortest forms */
    int32_t max_phrase_tokens;             /* the maximum of `ConstraintState.count` */
    int32_t *tokens;  /* (nbest, limit) */
    int32_t *lengths; /* (nbest): lengths without the end of sentence; the following arrays have the same shape */
    float *log_probabilities;
    double *scores;
    uint8_t *finished;
    struct Request *next; /* the next request in its list */
    int32_t hypothesis_count; /* number of hypotheses; −1 until the request is completed; 0 if it was cancelled */
    int32_t cancelled;        /* the caller may set it at any time; the request is then completed before its next step */
} Request;

/* The offset and size of a field or of a whole structure, which Python compares with its declarations. */
typedef struct {
    const char *structure, *field; /* field: "" for the whole structure */
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
    FIELD(MatrixSource, "Matrix", rows),
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
    FIELD(StackSource, "Stack", tokens),
    FIELD(StackSource, "Stack", norm),
    FIELD(StackSource, "Stack", scale),
    FIELD(StackSource, "Stack", begin),
    FIELD(StackSource, "Stack", replaced),
    FIELD(StackSource, "Stack", layers),
    FIELD(StackSource, "Stack", width),
    FIELD(StackSource, "Stack", size),
    FIELD(StackSource, "Stack", pre),
    FIELD(StackSource, "Stack", segment_count),
    FIELD(StackSource, "Stack", causal),
    FIELD(StackSource, "Stack", segments),
    FIELD(StackSource, "Stack", embedding_norm),
    WHOLE(ModelSource, "Model"),
    FIELD(ModelSource, "Model", encoder),
    FIELD(ModelSource, "Model", decoder),
    FIELD(ModelSource, "Model", vocabulary),
    FIELD(ModelSource, "Model", precision),
    WHOLE(Positions, "Positions"),
    FIELD(Positions, "Positions", vectors),
    FIELD(Positions, "Positions", angles),
    FIELD(Positions, "Positions", angles_width),
    FIELD(Positions, "Positions", length),
    WHOLE(EncoderCall, "EncoderCall"),
    FIELD(EncoderCall, "EncoderCall", tokens),
    FIELD(EncoderCall, "EncoderCall", segments),
    FIELD(EncoderCall, "EncoderCall", starts),
    FIELD(EncoderCall, "EncoderCall", states),
    FIELD(EncoderCall, "EncoderCall", positions),
    FIELD(EncoderCall, "EncoderCall", texts),
    FIELD(EncoderCall, "EncoderCall", stride),
    FIELD(EncoderCall, "EncoderCall", width),
    FIELD(EncoderCall, "EncoderCall", batch),
    FIELD(EncoderCall, "EncoderCall", cancelled),
    WHOLE(Options, "Options"),
    FIELD(Options, "Options", source),
    FIELD(Options, "Options", target),
    FIELD(Options, "Options", begin),
    FIELD(Options, "Options", end),
    FIELD(Options, "Options", workers),
    FIELD(Options, "Options", batch),
    WHOLE(ConstraintState, "ConstraintState"),
    FIELD(ConstraintState, "ConstraintState", tokens),
    FIELD(ConstraintState, "ConstraintState", banks),
    FIELD(ConstraintState, "ConstraintState", needs),
    FIELD(ConstraintState, "ConstraintState", count),
    FIELD(ConstraintState, "ConstraintState", complete),
    FIELD(ConstraintState, "ConstraintState", other_banks),
    FIELD(ConstraintState, "ConstraintState", other_needs),
    WHOLE(Request, "Request"),
    FIELD(Request, "Request", source),
    FIELD(Request, "Request", prefix),
    FIELD(Request, "Request", forbidden),
    FIELD(Request, "Request", shortlist),
    FIELD(Request, "Request", length),
    FIELD(Request, "Request", prefix_length),
    FIELD(Request, "Request", forbidden_count),
    FIELD(Request, "Request", shortlist_count),
    FIELD(Request, "Request", beam),
    FIELD(Request, "Request", nbest),
    FIELD(Request, "Request", limit),
    FIELD(Request, "Request", minimum),
    FIELD(Request, "Request", penalty),
    FIELD(Request, "Request", alpha),
    FIELD(Request, "Request", start),
    FIELD(Request, "Request", kinds),
    FIELD(Request, "Request", follow),
    FIELD(Request, "Request", requested_beam),
    FIELD(Request, "Request", phrase_tokens),
    FIELD(Request, "Request", max_phrase_tokens),
    FIELD(Request, "Request", tokens),
    FIELD(Request, "Request", lengths),
    FIELD(Request, "Request", log_probabilities),
    FIELD(Request, "Request", scores),
    FIELD(Request, "Request", finished),
    FIELD(Request, "Request", next),
    FIELD(Request, "Request", hypothesis_count),
    FIELD(Request, "Request", cancelled),
};
#undef WHOLE
#undef FIELD
