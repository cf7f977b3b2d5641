/* Translates random sources with random weights, the same on every machine, and prints the results.

   Compiled for another processor and run under an emulator, it shows that the engine gives the same results there. The
   same requests are then translated in a session, in pieces, by several workers: with ThreadSanitizer, which cannot look
   into Python, it shows that threads do not race. The sources are also encoded alone, by all threads. */
#include <stdio.h>

#include "engine.c"

static uint32_t state = 12345;

static uint32_t draw(uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

static float *draw_floats(size_t count, float scale) {
    float *drawn = malloc(count * sizeof *drawn);
    for (size_t i = 0; i < count; i++) drawn[i] = ((int)draw(2001) - 1000) * scale / 1000;
    return drawn;
}

enum { WIDTH = 32, HEADS = 2, HEAD = 16, INNER = 48, SIZE = 80, REQUESTS = 6, LIMIT = 14, BEAM = 4 };

static MatrixSource matrix(int outputs, int inputs) {
    return (MatrixSource){draw_floats((size_t)outputs * inputs, 0.5f), draw_floats((size_t)outputs, 0.2f), outputs, inputs, outputs};
}

static NormSource norm(int kind) {
    float *gain = draw_floats(WIDTH, 0.5f);
    for (int i = 0; i < WIDTH; i++) gain[i] += 1;
    return (NormSource){gain, draw_floats(WIDTH, 0.1f), 1e-5f, kind, WIDTH, WIDTH};
}

static LayerSource layer(int activation, int kind) {
    LayerSource drawn;
    memset(&drawn, 0, sizeof drawn);
    drawn.attention = drawn.source = (AttentionSource){HEADS, HEAD, HEAD, 0, 0.25f, NULL};
    drawn.projections = matrix(3 * HEADS * HEAD, WIDTH), drawn.output = matrix(WIDTH, HEADS * HEAD);
    drawn.source_query = matrix(HEADS * HEAD, WIDTH), drawn.source_projections = matrix(2 * HEADS * HEAD, WIDTH);
    drawn.source_output = matrix(WIDTH, HEADS * HEAD);
    drawn.inner = matrix(INNER, WIDTH), drawn.gate = matrix(INNER, WIDTH), drawn.outer = matrix(WIDTH, INNER);
    drawn.around_attention = norm(kind), drawn.around_source = norm(kind), drawn.around_feedforward = norm(kind);
    drawn.activation = activation;
    return drawn;
}

/* Returns the request with its own memory for results. */
static Request with_results(Request request) {
    request.tokens = malloc(LIMIT * sizeof(int32_t)), request.lengths = malloc(sizeof(int32_t));
    request.log_probabilities = malloc(sizeof(float)), request.scores = malloc(sizeof(double)), request.finished = malloc(1);
    request.hypothesis_count = -1;
    return request;
}

static int equal(const Request *one, const Request *other) {
    return *one->lengths == *other->lengths && *one->scores == *other->scores && *one->finished == *other->finished &&
           !memcmp(one->tokens, other->tokens, (size_t)*one->lengths * sizeof(int32_t));
}

/* Returns whether a session of three workers gives the same results when requests come three at a time. */
static int session_finds_the_same(Engine *engine, const Request *expected, Options options) {
    options.workers = 3, options.batch = 2;
    Session *session = dragoman_session_begin(engine, &options);
    Request requests[REQUESTS];
    int completed = 0, same = session != NULL;
    for (int number = 0; number < REQUESTS; number++) requests[number] = with_results(expected[number]);
    for (int number = 0; same && number < REQUESTS; number += 3) {
        dragoman_session_submit(session, requests + number, 3);
        for (int last = number + 3 == REQUESTS, polls = 0; last ? completed < REQUESTS : polls < 1; polls++) {
            int32_t outcome, waiting;
            Request *done = dragoman_session_completed(session, 1, &outcome, &waiting);
            if (outcome != SUCCESS) return 0;
            for (; done; done = done->next) {
                same &= equal(done, expected + (done - requests));
                completed++;
            }
        }
    }
    if (session) {
        for (int number = 0; number < REQUESTS; number++) requests[number] = with_results(expected[number]);
        dragoman_session_submit(session, requests, REQUESTS);
        dragoman_session_end(session); /* with most of them dropped */
    }
    return same;
}

/* Returns whether texts have the same states in one group and in many, which three threads share. */
static int states_are_the_same(Engine *engine, const Request *requests, const float *vectors) {
    static int32_t tokens[REQUESTS * 64], starts[REQUESTS + 1];
    static float together[REQUESTS * 64 * WIDTH], apart[REQUESTS * 64 * WIDTH];
    for (int number = 0; number < REQUESTS; number++) {
        memcpy(tokens + starts[number], requests[number].source, (size_t)requests[number].length * sizeof *tokens);
        starts[number + 1] = starts[number] + requests[number].length;
    }
    EncoderCall call = {tokens, NULL, starts, together, {vectors, NULL, 0, 64}, REQUESTS, 64, WIDTH, REQUESTS * 64, 0};
    if (dragoman_encode(engine, &call) != SUCCESS) return 0;
    call.states = apart, call.batch = 30;
    if (dragoman_encode(engine, &call) != SUCCESS) return 0;
    call.cancelled = 1;
    return dragoman_encode(engine, &call) == CANCELLED && !memcmp(together, apart, sizeof together);
}

int main(void) {
    for (int variant = 0; variant < 6; variant++) {
        LayerSource layers[2] = {layer(variant % 4, variant % 2), layer(variant % 4, variant % 2)};
        StackSource stack = {draw_floats(SIZE * WIDTH, 1), norm(variant % 2), 1, 1, 2, 2, WIDTH, SIZE, variant % 2};
        ModelSource source = {stack, stack, matrix(SIZE, WIDTH), variant / 3};
        Model *model = dragoman_open(&source);
        for (int number = 0; model && number < 4; number++)
            if (dragoman_add_layer(model, number / 2, layers + number % 2) != SUCCESS) return 1;
        Engine *engine = model ? dragoman_start(model, 3) : NULL;
        float *vectors = draw_floats(64 * WIDTH, 0.5f);
        Request requests[REQUESTS];
        memset(requests, 0, sizeof requests);
        static int32_t forbidden[] = {0, 1, 2}, odd[SIZE / 2];
        for (int i = 0; i < SIZE / 2; i++) odd[i] = 2 * i + 1;
        for (int number = 0; number < REQUESTS; number++) {
            Request *request = requests + number;
            int32_t *source = malloc(64 * sizeof *source);
            request->length = 1 + (int)draw(40);
            for (int i = 0; i < request->length; i++) source[i] = 4 + (int32_t)draw(SIZE - 4);
            request->source = source, request->prefix = source, request->prefix_length = (int)draw(3);
            request->forbidden = forbidden, request->forbidden_count = 3;
            request->beam = 1 + (int)draw(BEAM), request->nbest = 1, request->limit = LIMIT;
            request->penalty = GNMT_PENALTY, request->alpha = 0.6;
            if (number % 3 == 0) request->shortlist = odd, request->shortlist_count = SIZE / 2, request->prefix_length = 0;
            *request = with_results(*request);
        }
        Options options = {{vectors, NULL, 0, 64}, {vectors, NULL, 0, 64}, 1, 3, 1 + variant % 2, 5};
        if (!engine || dragoman_translate(engine, requests, REQUESTS, &options) != SUCCESS) return 1;
        for (int number = 0; number < REQUESTS; number++) {
            printf("%d %d %d %.3f", variant, number, *requests[number].finished, *requests[number].scores);
            for (int i = 0; i < *requests[number].lengths; i++) printf(" %d", requests[number].tokens[i]);
            printf("\n");
        }
        if (!session_finds_the_same(engine, requests, options)) return 2;
        if (!states_are_the_same(engine, requests, vectors)) return 3;
        dragoman_stop(engine);
        dragoman_close(model);
    }
    return 0;
}
