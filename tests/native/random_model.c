/* Translates texts of random ids with random weights, the same on every machine, and prints what it finds.

   Compiled for another processor and run under an emulator, it shows that the engine does there what it does here. */
#include <stdio.h>

#include "engine.c"

static uint32_t chance = 12345;

static uint32_t drawn(uint32_t below) {
    chance = chance * 1664525u + 1013904223u;
    return (chance >> 8) % below;
}

static float *numbers(size_t count, float scale) {
    float *made = malloc(count * sizeof *made);
    for (size_t place = 0; place < count; place++) made[place] = ((int)drawn(2001) - 1000) * scale / 1000;
    return made;
}

enum { WIDTH = 32, HEADS = 2, HEAD = 16, INNER = 48, SIZE = 80, TEXTS = 12, LIMIT = 14, BEAM = 4 };

static MatrixSource matrix(int outputs, int inputs) {
    return (MatrixSource){numbers((size_t)outputs * inputs, 0.5f), numbers((size_t)outputs, 0.2f), outputs, inputs};
}

static NormSource norm(int kind) {
    float *gain = numbers(WIDTH, 0.5f);
    for (int place = 0; place < WIDTH; place++) gain[place] += 1;
    return (NormSource){gain, numbers(WIDTH, 0.1f), 1e-5f, kind, WIDTH, WIDTH};
}

static LayerSource layer(int activation, int kind) {
    LayerSource made;
    memset(&made, 0, sizeof made);
    made.attention = made.source = (AttentionSource){HEADS, HEAD, HEAD, 0, 0.25f, NULL};
    made.projections = matrix(3 * HEADS * HEAD, WIDTH), made.output = matrix(WIDTH, HEADS * HEAD);
    made.source_query = matrix(HEADS * HEAD, WIDTH), made.source_projections = matrix(2 * HEADS * HEAD, WIDTH);
    made.source_output = matrix(WIDTH, HEADS * HEAD);
    made.inner = matrix(INNER, WIDTH), made.gate = matrix(INNER, WIDTH), made.outer = matrix(WIDTH, INNER);
    made.around_attention = norm(kind), made.around_source = norm(kind), made.around_feedforward = norm(kind);
    made.activation = activation;
    return made;
}

int main(void) {
    for (int variant = 0; variant < 6; variant++) {
        LayerSource layers[2] = {layer(variant % 4, variant % 2), layer(variant % 4, variant % 2)};
        StackSource stack = {layers, numbers(SIZE * WIDTH, 1), norm(variant % 2), 2, WIDTH, SIZE, variant % 2};
        ModelSource model = {stack, stack, matrix(SIZE, WIDTH), variant / 3, 2};
        Engine *engine = dragoman_open(&model);
        float *vectors = numbers(64 * WIDTH, 0.5f);
        Text texts[TEXTS];
        memset(texts, 0, sizeof texts);
        static int32_t forbidden[] = {0, 1, 2};
        for (int number = 0; number < TEXTS; number++) {
            Text *text = texts + number;
            int32_t *source = malloc(64 * sizeof *source);
            text->length = 1 + (int)drawn(40);
            for (int place = 0; place < text->length; place++) source[place] = 4 + (int32_t)drawn(SIZE - 4);
            text->source = source, text->prefix = source, text->prefix_length = (int)drawn(3);
            text->forbidden = forbidden, text->forbidden_count = 3;
            text->beam = 1 + (int)drawn(BEAM), text->wanted = 1, text->limit = LIMIT, text->penalty = GNMT_PENALTY, text->alpha = 0.6;
            text->tokens = malloc(LIMIT * sizeof(int32_t)), text->lengths = malloc(sizeof(int32_t));
            text->log_probabilities = malloc(sizeof(float)), text->scores = malloc(sizeof(double)), text->finished = malloc(1);
            text->found = -1;
        }
        Plan plan = {{vectors, NULL, 0}, {vectors, NULL, 0}, 1, 3, 1 + variant % 2, 5};
        if (!engine || dragoman_translate(engine, texts, TEXTS, &plan) != FINE) return 1;
        for (int number = 0; number < TEXTS; number++) {
            printf("%d %d %d %.3f", variant, number, *texts[number].finished, *texts[number].scores);
            for (int place = 0; place < *texts[number].lengths; place++) printf(" %d", texts[number].tokens[place]);
            printf("\n");
        }
        dragoman_close(engine);
    }
    return 0;
}
