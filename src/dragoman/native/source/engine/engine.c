/* The library's functions: opening and closing a model, encoding texts, and translating requests in a single call or in
   a session.

   An `Engine` owns its team, and supports one call or one session at a time. Several engines may share a model. The
   caller keeps ownership of all arguments. Their required lifetimes are specified in interface.h. */
#include "batch.h"
#include "states.h"

typedef struct {
    const Model *model;
    Team team;
} Engine;

/* Copies an array, which may be NULL; returns 0 if memory runs out. */
static int copy_array(float **to, const float *from, size_t count) {
    *to = NULL;
    if (!from) return 1;
    *to = allocate(count * sizeof(float));
    if (*to) memcpy(*to, from, count * sizeof(float));
    return *to != NULL;
}

static int open_matrix(Matrix *matrix, const MatrixSource *source, int precision) {
    memset(matrix, 0, sizeof *matrix);
    return !source->weights || matrix_pack(matrix, source, precision, 0);
}

/* Opens the second matrix of a feed-forward network, whose inputs are at least 0 after ReLU. */
static int open_outer(Matrix *matrix, const LayerSource *layer, int precision) {
    return matrix_pack(matrix, &layer->outer, precision, layer->activation == ACTIVATION_RELU);
}

static int open_norm(Norm *norm, const NormSource *source) {
    norm->kind = source->kind, norm->width = source->width, norm->epsilon = source->epsilon;
    return copy_array(&norm->gain, source->gain, (size_t)source->padded) & copy_array(&norm->offset, source->offset, (size_t)source->padded);
}

static int open_attention(Attention *attention, const AttentionSource *source) {
    attention->heads = source->heads, attention->key_width = source->key_width, attention->value_width = source->value_width;
    attention->rotary = source->rotary, attention->scale = source->scale;
    return copy_array(&attention->slopes, source->slopes, (size_t)source->heads);
}

static int open_layer(Layer *layer, const LayerSource *source, int precision) {
    layer->activation = source->activation, layer->recurrent = source->recurrent;
    return open_attention(&layer->attention, &source->attention) & open_attention(&layer->source, &source->source) &
           open_matrix(&layer->projections, &source->projections, precision) & open_matrix(&layer->output, &source->output, precision) &
           open_matrix(&layer->source_query, &source->source_query, precision) &
           open_matrix(&layer->source_projections, &source->source_projections, precision) &
           open_matrix(&layer->source_output, &source->source_output, precision) & open_matrix(&layer->inner, &source->inner, precision) &
           open_matrix(&layer->gate, &source->gate, precision) & open_outer(&layer->outer, source, precision) &
           open_norm(&layer->around_attention, &source->around_attention) & open_norm(&layer->around_source, &source->around_source) &
           open_norm(&layer->around_feedforward, &source->around_feedforward);
}

/* Returns the largest of a width and the inputs and outputs of a matrix. */
static int widest(int width, const Matrix *matrix) {
    int wider = matrix->outputs > matrix->inputs ? matrix->outputs : matrix->inputs;
    return wider > width ? wider : width;
}

static int open_stack(Stack *stack, const StackSource *source) {
    stack->width = source->width, stack->size = source->size, stack->pre = source->pre, stack->causal = source->causal;
    stack->tokens = source->tokens, stack->segments = source->segments, stack->scale = source->scale;
    stack->begin = source->begin, stack->replaced = source->replaced;
    stack->layer = calloc((size_t)source->layers + 1, sizeof *stack->layer); /* + 1: NULL only if memory runs out */
    return open_norm(&stack->norm, &source->norm) & open_norm(&stack->embedding_norm, &source->embedding_norm) && stack->layer;
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
    close_norm(&stack->norm), close_norm(&stack->embedding_norm);
    free(stack->layer);
}

/* Frees a model that no engine uses any longer. */
void dragoman_close(Model *model) {
    if (!model) return;
    close_stack(&model->encoder), close_stack(&model->decoder);
    matrix_free(&model->vocabulary);
    free(model);
}

/* Packs a model without its layers; returns NULL if memory runs out. */
Model *dragoman_open(const ModelSource *source) {
    Model *model = calloc(1, sizeof *model);
    if (!model) return NULL;
    model->precision = source->precision;
    if (open_stack(&model->encoder, &source->encoder) && open_stack(&model->decoder, &source->decoder) &&
        open_matrix(&model->vocabulary, &source->vocabulary, source->precision))
        return model;
    dragoman_close(model);
    return NULL;
}

/* Packs the next layer of the encoder or of the decoder, of at most `StackSource.layers`; returns an `Outcome`. */
int32_t dragoman_add_layer(Model *model, int32_t decoder, const LayerSource *source) {
    Stack *stack = decoder ? &model->decoder : &model->encoder;
    Layer *layer = stack->layer + stack->layers++; /* an incomplete layer is freed with the others */
    if (!open_layer(layer, source, model->precision)) return NO_MEMORY;
    const Matrix *matrices[] = {&layer->projections, &layer->output, &layer->source_query, &layer->source_projections,
                                &layer->source_output, &layer->inner, &layer->gate, &layer->outer};
    for (size_t number = 0; number < sizeof matrices / sizeof *matrices; number++) {
        stack->widest = widest(stack->widest, matrices[number]);
        stack->weights += (int64_t)matrices[number]->outputs * matrices[number]->inputs;
    }
    return SUCCESS;
}

/* Starts an engine for a model, which must outlive it; returns NULL if memory runs out or no thread can be started.
   threads: the number of threads that a single worker uses for a batch. */
Engine *dragoman_start(const Model *model, int32_t threads) {
    Engine *engine = calloc(1, sizeof *engine);
    if (!engine) return NULL;
    engine->model = model;
    if (team_start(&engine->team, threads)) return engine;
    free(engine);
    return NULL;
}

void dragoman_stop(Engine *engine) {
    if (engine->team.size) team_stop(&engine->team);
    free(engine);
}

/* Encodes the texts of a call and writes their states; returns an `Outcome`. */
int32_t dragoman_encode(Engine *engine, const EncoderCall *call) { return encode_texts(engine->model, &engine->team, call); }

/* Translates all requests and writes their results; returns an `Outcome`. */
int dragoman_translate(Engine *engine, Request *requests, int32_t count, const Options *options) {
    Queue queue;
    int workers = options->workers > 1 ? options->workers : 1, started = 1;
    queue_init(&queue, workers);
    queue_submit(&queue, requests, count);
    queue_close(&queue, SUCCESS);
    if (workers == 1) {
        WorkerContext context = {engine->model, options, &engine->team, &queue};
        team_wake(&engine->team);
        run_worker(&context);
        team_sleep(&engine->team);
    } else {
        Team single_thread = {.size = 1};
        WorkerContext context = {engine->model, options, &single_thread, &queue};
        pthread_t threads[workers];
        while (started < workers && !pthread_create(threads + started, NULL, worker_main, &context)) started++;
        for (int number = started; number < workers; number++) queue_leave(&queue, SUCCESS);
        run_worker(&context);
        for (int number = 1; number < started; number++) pthread_join(threads[number], NULL);
    }
    queue_destroy(&queue);
    return queue.outcome;
}

/* A session, whose workers admit new requests while they decode. */
typedef struct {
    Options options;
    Team single_thread;
    WorkerContext context;
    Queue queue;
    int started;
    pthread_t threads[];
} Session;

/* Starts the workers of a session; returns NULL if memory runs out or no thread can be started. */
Session *dragoman_session_begin(Engine *engine, const Options *options) {
    Session *session = calloc(1, sizeof *session + (size_t)options->workers * sizeof(pthread_t));
    if (!session) return NULL;
    session->options = *options;
    session->single_thread.size = 1;
    session->context = (WorkerContext){engine->model, &session->options, &session->single_thread, &session->queue};
    queue_init(&session->queue, options->workers);
    while (session->started < options->workers &&
           !pthread_create(session->threads + session->started, NULL, worker_main, &session->context))
        session->started++;
    for (int number = session->started; number < options->workers; number++) queue_leave(&session->queue, SUCCESS);
    if (session->started) return session;
    queue_destroy(&session->queue);
    free(session);
    return NULL;
}

/* Queues requests, which must live until they are completed or the session has ended. */
void dragoman_session_submit(Session *session, Request *requests, int32_t count) { queue_submit(&session->queue, requests, count); }

/* Returns a linked list of the requests completed since the last call, or NULL if no request is completed within
   `milliseconds`. outcome: receives an `Outcome`. waiting: receives the number of requests that no worker has started. */
Request *dragoman_session_completed(Session *session, int32_t milliseconds, int32_t *outcome, int32_t *waiting) {
    return queue_completed(&session->queue, milliseconds, outcome, waiting);
}

/* Ends a session and drops requests that are not completed. */
void dragoman_session_end(Session *session) {
    queue_close(&session->queue, CANCELLED);
    for (int number = 0; number < session->started; number++) pthread_join(session->threads[number], NULL);
    queue_destroy(&session->queue);
    free(session);
}

/* Returns the number of bits of the codes in int8, which depends on the instruction set. */
int32_t dragoman_code_bits(void) { return ZERO_POINT == 64 ? 7 : 8; }

/* Returns the layout of the shared structures as `count` entries, which stay valid while the library is loaded. */
const LayoutEntry *dragoman_layout(int32_t *count) {
    *count = sizeof LAYOUT / sizeof *LAYOUT;
    return LAYOUT;
}
