/* The library's functions: a model is opened, texts are translated, the model is closed. */
#include "desk.h"

typedef struct {
    Model model;
    Team team;
} Engine;

typedef struct {
    const float *weights, *bias; /* (outputs, inputs), (outputs) */
    int32_t outputs, inputs;
} MatrixSource;

typedef struct {
    const float *gain, *offset;
    float epsilon;
    int32_t kind, width, padded;
} NormSource;

typedef struct {
    int32_t heads, key_width, value_width, rotary;
    float scale;
    const float *slopes;
} AttentionSource;

typedef struct {
    AttentionSource attention, source;
    MatrixSource projections, output, source_query, source_projections, source_output, inner, gate, outer;
    NormSource around_attention, around_source, around_feedforward;
    int32_t activation, recurrent;
} LayerSource;

typedef struct {
    const LayerSource *layer;
    const float *tokens; /* (size, width) */
    NormSource norm;
    int32_t layers, width, size, pre;
} StackSource;

typedef struct {
    StackSource encoder, decoder;
    MatrixSource vocabulary;
    int32_t precision, threads;
} ModelSource;

static int copied(float **to, const float *from, size_t count) {
    *to = NULL;
    if (!from) return 1;
    *to = aligned(count * sizeof(float));
    if (*to) memcpy(*to, from, count * sizeof(float));
    return *to != NULL;
}

static int open_matrix(Matrix *matrix, const MatrixSource *source, int precision) {
    memset(matrix, 0, sizeof *matrix);
    return !source->weights || matrix_pack(matrix, source->weights, source->bias, source->outputs, source->inputs, precision);
}

static int open_norm(Norm *norm, const NormSource *source) {
    norm->kind = source->kind, norm->width = source->width, norm->epsilon = source->epsilon;
    return copied(&norm->gain, source->gain, (size_t)source->padded) & copied(&norm->offset, source->offset, (size_t)source->padded);
}

static int open_attention(Attention *attention, const AttentionSource *source) {
    attention->heads = source->heads, attention->key_width = source->key_width, attention->value_width = source->value_width;
    attention->rotary = source->rotary, attention->scale = source->scale;
    return copied(&attention->slopes, source->slopes, (size_t)source->heads);
}

static int open_layer(Layer *layer, const LayerSource *source, int precision) {
    layer->activation = source->activation, layer->recurrent = source->recurrent;
    return open_attention(&layer->attention, &source->attention) & open_attention(&layer->source, &source->source) &
           open_matrix(&layer->projections, &source->projections, precision) & open_matrix(&layer->output, &source->output, precision) &
           open_matrix(&layer->source_query, &source->source_query, precision) &
           open_matrix(&layer->source_projections, &source->source_projections, precision) &
           open_matrix(&layer->source_output, &source->source_output, precision) & open_matrix(&layer->inner, &source->inner, precision) &
           open_matrix(&layer->gate, &source->gate, precision) & open_matrix(&layer->outer, &source->outer, precision) &
           open_norm(&layer->around_attention, &source->around_attention) & open_norm(&layer->around_source, &source->around_source) &
           open_norm(&layer->around_feedforward, &source->around_feedforward);
}

static int widest(int widest, const Matrix *matrix) {
    int wider = matrix->outputs > matrix->inputs ? matrix->outputs : matrix->inputs;
    return wider > widest ? wider : widest;
}

static int open_stack(Stack *stack, const StackSource *source, int precision) {
    stack->width = source->width, stack->size = source->size, stack->pre = source->pre;
    if (!copied(&stack->tokens, source->tokens, (size_t)source->size * source->width) || !open_norm(&stack->norm, &source->norm)) return 0;
    stack->layer = calloc((size_t)source->layers, sizeof *stack->layer);
    if (!stack->layer) return 0;
    for (; stack->layers < source->layers; stack->layers++) {
        Layer *layer = stack->layer + stack->layers;
        if (!open_layer(layer, source->layer + stack->layers, precision)) {
            stack->layers++; /* what is there of it is freed too */
            return 0;
        }
        const Matrix *matrices[] = {&layer->projections, &layer->output, &layer->source_query, &layer->source_projections,
                                    &layer->source_output, &layer->inner, &layer->gate, &layer->outer};
        for (size_t number = 0; number < sizeof matrices / sizeof *matrices; number++)
            stack->longest_inner = widest(stack->longest_inner, matrices[number]);
    }
    return 1;
}

static void close_norm(Norm *norm) { free(norm->gain), free(norm->offset); }

static void close_stack(Stack *stack) {
    for (int number = 0; number < stack->layers; number++) {
        Layer *layer = stack->layer + number;
        free(layer->attention.slopes), free(layer->source.slopes);
        matrix_free(&layer->projections), matrix_free(&layer->output), matrix_free(&layer->source_query);
        matrix_free(&layer->source_projections), matrix_free(&layer->source_output);
        matrix_free(&layer->inner), matrix_free(&layer->gate), matrix_free(&layer->outer);
        close_norm(&layer->around_attention), close_norm(&layer->around_source), close_norm(&layer->around_feedforward);
    }
    close_norm(&stack->norm);
    free(stack->layer), free(stack->tokens);
}

void dragoman_close(Engine *engine) {
    if (!engine) return;
    if (engine->team.size) team_end(&engine->team);
    close_stack(&engine->model.encoder), close_stack(&engine->model.decoder);
    matrix_free(&engine->model.vocabulary);
    free(engine);
}

/* NULL without memory. */
Engine *dragoman_open(const ModelSource *source) {
    Engine *engine = calloc(1, sizeof *engine);
    if (!engine) return NULL;
    if (open_stack(&engine->model.encoder, &source->encoder, source->precision) &&
        open_stack(&engine->model.decoder, &source->decoder, source->precision) &&
        open_matrix(&engine->model.vocabulary, &source->vocabulary, source->precision) && team_begin(&engine->team, source->threads))
        return engine;
    dragoman_close(engine);
    return NULL;
}

/* Translates all texts, whose results are put where they say; an `Outcome`. One call at a time. */
int dragoman_translate(Engine *engine, Text *texts, int32_t count, const Plan *plan) {
    Queue queue;
    int workers = plan->workers > 1 ? plan->workers : 1, started = 1;
    queue_begin(&queue, workers);
    queue_put(&queue, texts, count);
    queue_close(&queue, FINE);
    if (workers == 1) {
        Share share = {&engine->model, plan, &engine->team, &queue};
        team_wake(&engine->team);
        work(&share);
        team_rest(&engine->team);
    } else {
        Team alone = {.size = 1};
        Share share = {&engine->model, plan, &alone, &queue};
        pthread_t threads[workers];
        while (started < workers && !pthread_create(threads + started, NULL, work_main, &share)) started++;
        for (int number = started; number < workers; number++) queue_leave(&queue, FINE);
        work(&share);
        for (int number = 1; number < started; number++) pthread_join(threads[number], NULL);
    }
    queue_end(&queue);
    return queue.outcome;
}

/* Workers that texts are handed to while they work. */
typedef struct {
    Plan plan;
    Team alone;
    Share share;
    Queue queue;
    int started;
    pthread_t threads[];
} Session;

/* NULL without memory or threads. While it is open the engine translates nothing else. */
Session *dragoman_begin(Engine *engine, const Plan *plan) {
    Session *session = calloc(1, sizeof *session + (size_t)plan->workers * sizeof(pthread_t));
    if (!session) return NULL;
    session->plan = *plan;
    session->alone.size = 1;
    session->share = (Share){&engine->model, &session->plan, &session->alone, &session->queue};
    queue_begin(&session->queue, plan->workers);
    while (session->started < plan->workers && !pthread_create(session->threads + session->started, NULL, work_main, &session->share))
        session->started++;
    for (int number = session->started; number < plan->workers; number++) queue_leave(&session->queue, FINE);
    if (session->started) return session;
    queue_end(&session->queue);
    free(session);
    return NULL;
}

/* The texts, and what they point to, must live until they are found or the session has ended. */
void dragoman_put(Session *session, Text *texts, int32_t count) { queue_put(&session->queue, texts, count); }

/* Those that are done, linked; NULL where none is after so many milliseconds. outcome: an `Outcome`; waiting: texts that
   no worker has begun with. */
Text *dragoman_found(Session *session, int32_t milliseconds, int32_t *outcome, int32_t *waiting) {
    return queue_found(&session->queue, milliseconds, outcome, waiting);
}

/* What is not done is given up. */
void dragoman_end(Session *session) {
    queue_close(&session->queue, GIVEN_UP);
    for (int number = 0; number < session->started; number++) pthread_join(session->threads[number], NULL);
    queue_end(&session->queue);
    free(session);
}

/* What the Python side must find as it describes it: sizes of the structures in bytes, and the bits of codes. */
void dragoman_layout(int32_t sizes[4]) {
    sizes[0] = sizeof(ModelSource), sizes[1] = sizeof(LayerSource), sizes[2] = sizeof(Text), sizes[3] = sizeof(Plan);
}
