/* The library's functions: a model is opened, texts are translated, the model is closed. */
#include "decoder.h"

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

typedef struct {
    Positions source, target;
    int32_t begin, end; /* ids of the beginning and the end of a sentence */
    int32_t workers, batch; /* batch: sentences that a worker has at work at most */
} Plan;

typedef struct {
    Engine *engine;
    Text *texts;
    int count;
    const Plan *plan;
    int batch; /* sentences at work */
    Team *team;
    atomic_int *next, *outcome;
} Share;

#define ENCODED_TOKENS 2048 /* that are read together at most, where a text has no more by itself */

typedef struct {
    Slot *all, **working, **idle;
    Text **texts;
    int *starts, *slot_of;
    int32_t *ids;
    size_t *offsets;
    size_t ids_room;
    int rows_room, at_work;
} Desk;

static void desk_free(Desk *desk, int batch) {
    for (int number = 0; desk->all && number < batch; number++) {
        hypotheses_free(&desk->all[number].hypotheses);
        free(desk->all[number].memory);
    }
    free(desk->all), free(desk->working), free(desk->idle), free(desk->texts);
    free(desk->starts), free(desk->slot_of), free(desk->ids), free(desk->offsets);
}

static int desk_begin(Desk *desk, int batch) {
    memset(desk, 0, sizeof *desk);
    size_t size = (size_t)batch;
    desk->all = calloc(size, sizeof *desk->all);
    desk->working = calloc(size, sizeof *desk->working);
    desk->idle = calloc(size, sizeof *desk->idle);
    desk->texts = calloc(size, sizeof *desk->texts);
    desk->starts = calloc(size + 1, sizeof *desk->starts);
    desk->offsets = calloc(size, sizeof *desk->offsets);
    if (!desk->all || !desk->working || !desk->idle || !desk->texts || !desk->starts || !desk->offsets) return 0;
    for (int number = 0; number < batch; number++) desk->idle[number] = desk->all + number;
    return 1;
}

/* Gives idle slots the next texts; 0 without memory. */
static int take_on(Desk *desk, Worker *worker, const Share *share) {
    const Plan *plan = share->plan;
    int taken = 0, tokens = 0;
    while (desk->at_work + taken < share->batch && tokens < ENCODED_TOKENS) {
        int number = atomic_fetch_add(share->next, 1);
        if (number >= share->count) break;
        desk->texts[taken++] = share->texts + number;
        tokens += share->texts[number].length;
    }
    if (!taken) return 1;
    if ((size_t)tokens > desk->ids_room) {
        free(desk->ids);
        desk->ids = malloc((size_t)tokens * sizeof *desk->ids);
        desk->ids_room = desk->ids ? (size_t)tokens : 0;
        if (!desk->ids) return 0;
    }
    desk->starts[0] = 0;
    for (int number = 0; number < taken; number++) {
        const Text *text = desk->texts[number];
        memcpy(desk->ids + desk->starts[number], text->source, (size_t)text->length * sizeof *desk->ids);
        desk->starts[number + 1] = desk->starts[number] + text->length;
    }
    if (!encode(worker, desk->ids, desk->starts, taken, &plan->source)) return 0;
    Slot **begun = desk->working + desk->at_work;
    for (int number = 0; number < taken; number++) {
        Slot *slot = desk->idle[share->batch - desk->at_work - 1];
        if (!slot_begin(&worker->model->decoder, slot, desk->texts[number])) return 0;
        desk->working[desk->at_work++] = slot;
    }
    return hold_sources(worker, begun, desk->starts, taken);
}

static void translate_share(const Share *share) {
    Worker worker;
    Desk desk;
    const Plan *plan = share->plan;
    int outcome = FINE, there = worker_begin(&worker, &share->engine->model, share->team);
    there = desk_begin(&desk, share->batch) && there;
    if (!there) outcome = NO_MEMORY;
    while (outcome == FINE && atomic_load(share->outcome) == FINE) {
        /* a few sentences at a time would keep the encoder's products from being large */
        int idle = share->batch - desk.at_work;
        if ((4 * idle >= share->batch || !desk.at_work) && !take_on(&desk, &worker, share)) outcome = NO_MEMORY;
        if (outcome != FINE || !desk.at_work) break;
        int rows = 0;
        for (int number = 0; number < desk.at_work; number++) rows += desk.working[number]->hypotheses.live;
        if (rows > desk.rows_room) {
            free(desk.slot_of);
            desk.slot_of = malloc((size_t)rows * 2 * sizeof *desk.slot_of);
            desk.rows_room = desk.slot_of ? 2 * rows : 0;
            if (!desk.slot_of) outcome = NO_MEMORY;
        }
        if (outcome == FINE)
            outcome = step(&worker, desk.working, desk.at_work, &plan->target, plan->begin, plan->end, desk.slot_of, desk.offsets);
        int stays = 0;
        for (int number = 0; number < desk.at_work; number++) {
            Slot *slot = desk.working[number];
            if (slot->hypotheses.text->found < 0) desk.working[stays++] = slot;
            else desk.idle[share->batch - desk.at_work + (number - stays)] = slot;
        }
        desk.at_work = stays;
    }
    if (outcome != FINE) {
        int fine = FINE;
        atomic_compare_exchange_strong(share->outcome, &fine, outcome);
    }
    if (there || worker.team) worker_end(&worker);
    desk_free(&desk, share->batch);
}

static void *share_main(void *argument) {
    translate_share(argument);
    return NULL;
}

/* Rows of 8-bit codes that are best at work: weights of a few megabytes come from a cache fast enough for few rows, and
   what more rows hold would drive them out of it; larger weights must be shared by more rows. */
#define LEAST_CODED_ROWS 20
#define WEIGHTS_OF_A_CODED_ROW 300000

static size_t weights_of(const Matrix *matrix) { return (size_t)matrix->outputs * matrix->inputs; }

/* Weights that a step of the decoder reads. */
static size_t weights_of_step(const Model *model) {
    size_t count = weights_of(&model->vocabulary);
    for (int number = 0; number < model->decoder.layers; number++) {
        const Layer *layer = model->decoder.layer + number;
        count += weights_of(&layer->projections) + weights_of(&layer->output) + weights_of(&layer->source_query) +
                 weights_of(&layer->source_output) + weights_of(&layer->inner) + weights_of(&layer->gate) + weights_of(&layer->outer);
    }
    return count;
}

/* Sentences that a worker has at work: as many as it may, or as are best. */
static int best_batch(const Engine *engine, const Text *texts, int count, const Plan *plan) {
    if (engine->model.vocabulary.precision == FLOAT32) return plan->batch;
    int beam = 1, rows = (int)(weights_of_step(&engine->model) / WEIGHTS_OF_A_CODED_ROW);
    for (int number = 0; number < count; number++)
        if (texts[number].beam > beam) beam = texts[number].beam;
    if (rows < LEAST_CODED_ROWS) rows = LEAST_CODED_ROWS;
    int best = rows / beam > 1 ? rows / beam : 1;
    return best < plan->batch ? best : plan->batch;
}

/* Translates all texts, whose results are put where they say; an `Outcome`. One call at a time. */
int dragoman_translate(Engine *engine, Text *texts, int32_t count, const Plan *plan) {
    atomic_int next, outcome;
    atomic_init(&next, 0);
    atomic_init(&outcome, FINE);
    int batch = best_batch(engine, texts, count, plan);
    if (plan->workers <= 1) {
        Share share = {engine, texts, count, plan, batch, &engine->team, &next, &outcome};
        team_wake(&engine->team);
        translate_share(&share);
        team_rest(&engine->team);
        return atomic_load(&outcome);
    }
    Team alone = {.size = 1};
    pthread_t threads[plan->workers];
    Share share = {engine, texts, count, plan, batch, &alone, &next, &outcome};
    int started = 1;
    while (started < plan->workers && !pthread_create(threads + started, NULL, share_main, &share)) started++;
    translate_share(&share);
    for (int number = 1; number < started; number++) pthread_join(threads[number], NULL);
    return atomic_load(&outcome);
}

/* What the Python side must find as it describes it: sizes of the structures in bytes, and the bits of codes. */
void dragoman_layout(int32_t sizes[4]) {
    sizes[0] = sizeof(ModelSource), sizes[1] = sizeof(LayerSource), sizes[2] = sizeof(Text), sizes[3] = sizeof(Plan);
}
