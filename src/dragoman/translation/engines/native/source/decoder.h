/* Writes: one step of all hypotheses of all sentences at work.

   A sentence at work has a slot. Keys and values of a token stay where they were put when it was read; a hypothesis
   knows by its `places` which of them are its own, so that reordering a beam moves nothing. */
#pragma once

#include "encoder.h"
#include "hypotheses.h"

#define LOGIT_ROWS 24 /* rows whose logits are held at a time */

typedef struct {
    Hypotheses hypotheses;
    int first_row; /* of its live hypotheses in this step */
    int room;      /* the source's length, filled up */
    float *memory; /* of all layers what they hold of the source and of what was read, layer by layer */
    size_t memory_room;
} Slot;

/* Floats of one layer's part of a slot's memory: the source's keys (heads · key width, room), its values (length,
   heads · value width); keys and values of what was read (limit, beam, heads · (key width + value width)). */
typedef struct {
    size_t source_values, read, size;
} Parts;

INLINE Parts parts_of(const Layer *layer, int length, const Text *text) {
    const Attention *source = &layer->source, *itself = &layer->attention;
    Parts parts;
    parts.source_values = (size_t)source->heads * source->key_width * padded(length);
    parts.read = parts.source_values + (size_t)length * source->heads * source->value_width;
    parts.size = parts.read + (size_t)text->limit * text->beam * itself->heads * (itself->key_width + itself->value_width);
    return parts;
}

/* Gives a slot a sentence, with room for its memory; 0 without memory. */
static int slot_begin(const Stack *stack, Slot *slot, Text *text) {
    size_t size = 0;
    for (int number = 0; number < stack->layers; number++) size += parts_of(stack->layer + number, text->length, text).size;
    slot->room = padded(text->length);
    return enough(&slot->memory, &slot->memory_room, size) && hypotheses_begin(&slot->hypotheses, text);
}

/* What one layer holds of a source: its keys, number by number, and its values. projected: (length, keys + values). */
static void hold(const Slot *slot, const Layer *layer, float *memory, const float *projected) {
    int keys = layer->source.heads * layer->source.key_width, values = layer->source.heads * layer->source.value_width;
    int length = slot->hypotheses.text->length;
    float *held = memory + parts_of(layer, length, slot->hypotheses.text).source_values;
    for (int place = 0; place < length; place++, projected += keys + values) {
        for (int key = 0; key < keys; key++) memory[(size_t)key * slot->room + place] = projected[key];
        memcpy(held + (size_t)place * values, projected + keys, (size_t)values * sizeof(float));
    }
    for (int key = 0; key < keys; key++)
        for (int place = length; place < slot->room; place++) memory[(size_t)key * slot->room + place] = 0;
}

/* Lets the decoder's layers hold the sources that were just encoded, in this order; 0 without memory. */
static int hold_sources(Worker *worker, Slot **slots, const int *starts, int count) {
    const Stack *stack = &worker->model->decoder;
    for (int number = 0; number < stack->layers; number++) {
        const Layer *layer = stack->layer + number;
        size_t width = (size_t)layer->source_projections.outputs;
        if (!enough(&worker->wide, &worker->wide_room, (size_t)starts[count] * width)) return 0;
        if (!worker_multiply(worker, &layer->source_projections, worker->rows, worker->wide, starts[count], STORE)) return 0;
        for (int each = 0; each < count; each++) {
            const Text *text = slots[each]->hypotheses.text;
            size_t offset = 0;
            for (int below = 0; below < number; below++) offset += parts_of(stack->layer + below, text->length, text).size;
            hold(slots[each], layer, slots[each]->memory + offset, worker->wide + (size_t)starts[each] * width);
        }
    }
    return 1;
}

typedef struct {
    Worker *worker;
    const Layer *layer;
    const Positions *positions;
    Slot **slots;
    int *slot_of; /* of each row */
    size_t *offsets; /* of each slot, where this layer's part of its memory begins */
    int rows;
} DecoderAttention;

static void attend_past(void *context, int thread, int threads) {
    const DecoderAttention *task = context;
    const Attention *attention = &task->layer->attention;
    int heads = attention->heads, keys = attention->key_width, values = attention->value_width, each = keys + values;
    float *scores = task->worker->scratch[thread];
    int units = task->rows * heads;
    for (int unit = (int)((int64_t)units * thread / threads); unit < (int)((int64_t)units * (thread + 1) / threads); unit++) {
        int row = unit / heads, head = unit % heads;
        const Slot *slot = task->slots[task->slot_of[row]];
        const Hypotheses *hypotheses = &slot->hypotheses;
        const Text *text = hypotheses->text;
        int place = row - slot->first_row, now = hypotheses->read;
        Parts parts = parts_of(task->layer, text->length, text);
        float *held = slot->memory + task->offsets[task->slot_of[row]] + parts.read + (size_t)head * each;
        size_t of_step = (size_t)text->beam * heads * each, of_place = (size_t)heads * each;
        float *query = task->worker->wide + (size_t)row * heads * (2 * keys + values) + head * keys;
        float *mine = held + now * of_step + place * of_place;
        memcpy(mine, query + heads * keys, (size_t)keys * sizeof(float));
        memcpy(mine + keys, query - head * keys + 2 * heads * keys + head * values, (size_t)values * sizeof(float));
        if (attention->rotary) {
            const float *turns = task->positions->turns + (size_t)now * task->positions->turns_width;
            rotate(query, turns, task->positions->turns_width);
            rotate(mine, turns, task->positions->turns_width);
        }
        const int32_t *places = hypotheses->places[0] + (size_t)place * text->limit;
        for (int step = 0; step <= now; step++) {
            int at = step < now ? places[step] : place;
            scores[step] = dot(query, held + step * of_step + at * of_place, keys) * attention->scale;
            if (attention->slopes) scores[step] -= attention->slopes[head] * (float)(now - step);
        }
        softmax(scores, now + 1);
        float *result = task->worker->context + ((size_t)row * heads + head) * values;
        for (int number = 0; number < values; number += LANES) {
            const float *value = held + keys + number;
            Vector sum = all(0);
            for (int step = 0; step < now; step++) sum += scores[step] * load(value + step * of_step + places[step] * of_place);
            store(result + number, sum + scores[now] * load(value + now * of_step + place * of_place));
        }
    }
}

/* c ← f ⊙ c + (1 − f) ⊙ candidate of each row; what comes out is relu(c). The cell stands where a key would. */
static void recur(void *context, int thread, int threads) {
    const DecoderAttention *task = context;
    size_t width = (size_t)task->layer->attention.key_width;
    for (int row = thread; row < task->rows; row += threads) {
        const Slot *slot = task->slots[task->slot_of[row]];
        const Hypotheses *hypotheses = &slot->hypotheses;
        const Text *text = hypotheses->text;
        int place = row - slot->first_row, now = hypotheses->read;
        float *held = slot->memory + task->offsets[task->slot_of[row]] + parts_of(task->layer, text->length, text).read;
        float *cell = held + ((size_t)now * text->beam + place) * width;
        const int32_t *places = hypotheses->places[0] + (size_t)place * text->limit;
        const float *last = now ? held + ((size_t)(now - 1) * text->beam + places[now - 1]) * width : NULL;
        const float *gate = task->worker->wide + (size_t)row * 2 * width, *candidate = gate + width;
        float *result = task->worker->context + (size_t)row * width;
        for (size_t number = 0; number < width; number += LANES) {
            Vector forget = 1.0f / (1.0f + exponential(-load(gate + number)));
            Vector next = (1.0f - forget) * load(candidate + number);
            if (last) next += forget * load(last + number);
            store(cell + number, next);
            store(result + number, larger(next, all(0)));
        }
    }
}

static void attend_source(void *context, int thread, int threads) {
    const DecoderAttention *task = context;
    const Attention *attention = &task->layer->source;
    int heads = attention->heads, keys = attention->key_width, values = attention->value_width;
    float *scores = task->worker->scratch[thread];
    int units = task->rows * heads;
    for (int unit = (int)((int64_t)units * thread / threads); unit < (int)((int64_t)units * (thread + 1) / threads); unit++) {
        int row = unit / heads, head = unit % heads;
        const Slot *slot = task->slots[task->slot_of[row]];
        const Text *text = slot->hypotheses.text;
        Parts parts = parts_of(task->layer, text->length, text);
        const float *memory = slot->memory + task->offsets[task->slot_of[row]];
        const float *query = task->worker->wide + ((size_t)row * heads + head) * keys;
        scores_by_number(query, memory + (size_t)head * keys * slot->room, keys, slot->room, text->length, attention->scale, scores);
        softmax(scores, text->length);
        float *result = task->worker->context + ((size_t)row * heads + head) * values;
        const float *value = memory + parts.source_values + head * values;
        for (int number = 0; number < values; number += LANES) {
            Vector sum = all(0);
            for (int place = 0; place < text->length; place++) sum += scores[place] * load(value + (size_t)place * heads * values + number);
            store(result + number, sum);
        }
    }
}

#if defined(__AVX512F__)
INLINE int any(Vector a, float than) { return _mm512_cmp_ps_mask((__m512)a, _mm512_set1_ps(than), _CMP_GT_OQ) != 0; }
#elif defined(__AVX__)
INLINE int any(Vector a, float than) { return _mm256_movemask_ps((__m256)(a > than)) != 0; }
#else
INLINE int any(Vector a, float than) {
    Integers where = a > than;
    int found = 0;
    for (int lane = 0; lane < LANES; lane++) found |= where[lane];
    return found != 0;
}
#endif

/* ln Σ e^logit, NaN where a logit is none. */
static float log_sum(const float *logits, int count) {
    Vector most = load(logits);
    Integers wrong = most != most;
    for (int place = LANES; place < count; place += LANES) {
        Vector some = load(logits + place);
        most = larger(most, some);
        wrong |= some != some;
    }
    for (int lane = 0; lane < LANES; lane++)
        if (wrong[lane]) return NAN;
    float largest = largest_of(most);
    Vector sums = all(0);
    for (int place = 0; place < count; place += LANES) sums += exponential(load(logits + place) - largest);
    return largest + logf(sum_of(sums));
}

/* The `wanted` largest above −∞, best first, equal ones by id; how many there are. */
static int best_of(const float *logits, int count, int wanted, Candidate *best) {
    int found = 0;
    float least = -INFINITY;
    for (int block = 0; block < count; block += PANEL) {
        Vector most = load(logits + block);
        for (int place = LANES; place < PANEL; place += LANES) most = larger(most, load(logits + block + place));
        if (!any(most, least)) continue;
        for (int token = block; token < block + PANEL; token++) {
            float value = logits[token];
            if (!(value > least)) continue;
            int place = found < wanted ? found++ : found - 1;
            while (place > 0 && best[place - 1].value < value) best[place] = best[place - 1], place--;
            best[place] = (Candidate){value, token};
            if (found == wanted) least = best[found - 1].value;
        }
    }
    return found;
}

typedef struct {
    Worker *worker;
    Slot **slots;
    int *slot_of;
    int first, rows; /* of these, whose logits are held */
    int end;         /* the id of the end of sentence */
    atomic_int wrong;
} Choosing;

static void choose_tokens(void *context, int thread, int threads) {
    Choosing *task = context;
    const Model *model = task->worker->model;
    int size = model->vocabulary.outputs;
    for (int row = thread; row < task->rows; row += threads) {
        Slot *slot = task->slots[task->slot_of[task->first + row]];
        Hypotheses *hypotheses = &slot->hypotheses;
        const Text *text = hypotheses->text;
        float *logits = task->worker->logits + (size_t)row * size;
        int place = task->first + row - slot->first_row, each = looked_at(text->beam);
        if (hypotheses->read < text->prefix_length) {
            float sum = log_sum(logits, size);
            if (!(fabsf(sum) < INFINITY)) atomic_store(&task->wrong, 1);
            hypotheses->totals[0] += logits[text->prefix[hypotheses->read]] - sum;
            continue;
        }
        float sum = log_sum(logits, size);
        if (!(fabsf(sum) < INFINITY)) atomic_store(&task->wrong, 1);
        for (int number = 0; number < text->forbidden_count; number++) logits[text->forbidden[number]] = -INFINITY;
        if (hypotheses->read < text->minimum) logits[task->end] = -INFINITY;
        Candidate *candidates = hypotheses->candidates + (size_t)place * each;
        int count = best_of(logits, size, each, candidates);
        for (int number = 0; number < count; number++) candidates[number].value -= sum;
        hypotheses->candidate_counts[place] = count;
    }
}

/* Reads a token of every live hypothesis of `count` slots and chooses the next; slots whose search is over have
   `text->found` set. */
static int step(Worker *worker, Slot **slots, int count, const Positions *positions, int begin, int end, int *slot_of, size_t *offsets) {
    const Model *model = worker->model;
    const Stack *stack = &model->decoder;
    int rows = 0, longest = 0;
    for (int number = 0; number < count; number++) {
        Slot *slot = slots[number];
        Hypotheses *hypotheses = &slot->hypotheses;
        slot->first_row = rows;
        offsets[number] = 0;
        if (hypotheses->read + 1 > longest) longest = hypotheses->read + 1;
        if (slot->room > longest) longest = slot->room;
        for (int place = 0; place < hypotheses->live; place++) slot_of[rows++] = number;
    }
    if (!worker_room(worker, stack, rows, (size_t)padded(longest) + PANEL)) return NO_MEMORY;
    if (!enough(&worker->logits, &worker->logits_room, (size_t)LOGIT_ROWS * model->vocabulary.outputs)) return NO_MEMORY;
    for (int row = 0; row < rows; row++) {
        const Slot *slot = slots[slot_of[row]];
        const Hypotheses *hypotheses = &slot->hypotheses;
        const Text *text = hypotheses->text;
        int read = hypotheses->read, id = begin;
        if (read > text->prefix_length) id = hypotheses->tokens[0][(size_t)(row - slot->first_row) * text->limit + read - 1];
        else if (read > 0) id = text->prefix[read - 1];
        const float *token = stack->tokens + (size_t)id * stack->width;
        const float *vector = positions->vectors ? positions->vectors + (size_t)read * stack->width : NULL;
        for (int place = 0; place < stack->width; place += LANES)
            store(worker->rows + (size_t)row * stack->width + place, vector ? load(token + place) + load(vector + place) : load(token + place));
    }
    for (int number = 0; number < stack->layers; number++) {
        const Layer *layer = stack->layer + number;
        DecoderAttention task = {worker, layer, positions, slots, slot_of, offsets, rows};
        const float *x = before(worker, stack, &layer->around_attention, rows);
        if (!worker_multiply(worker, &layer->projections, x, worker->wide, rows, STORE)) return NO_MEMORY;
        if (layer->recurrent) {
            together(worker->team, recur, &task);
            joined(worker, stack, &layer->around_attention, worker->context, rows);
        } else {
            together(worker->team, attend_past, &task);
            if (!behind(worker, stack, &layer->around_attention, &layer->output, worker->context, rows)) return NO_MEMORY;
        }
        x = before(worker, stack, &layer->around_source, rows);
        if (!worker_multiply(worker, &layer->source_query, x, worker->wide, rows, STORE)) return NO_MEMORY;
        together(worker->team, attend_source, &task);
        if (!behind(worker, stack, &layer->around_source, &layer->source_output, worker->context, rows)) return NO_MEMORY;
        if (!feed_forward(worker, stack, layer, rows)) return NO_MEMORY;
        for (int each = 0; each < count; each++)
            offsets[each] += parts_of(layer, slots[each]->hypotheses.text->length, slots[each]->hypotheses.text).size;
    }
    if (stack->pre) normalise(&stack->norm, worker->rows, worker->rows, rows, stack->width);
    for (int first = 0; first < rows; first += LOGIT_ROWS) {
        int some = rows - first < LOGIT_ROWS ? rows - first : LOGIT_ROWS;
        const float *x = worker->rows + (size_t)first * stack->width;
        if (!worker_multiply(worker, &model->vocabulary, x, worker->logits, some, STORE)) return NO_MEMORY;
        Choosing choosing = {worker, slots, slot_of, first, some, end, 0};
        together(worker->team, choose_tokens, &choosing);
        if (atomic_load(&choosing.wrong)) return NOT_A_NUMBER;
    }
    for (int number = 0; number < count; number++) {
        Hypotheses *hypotheses = &slots[number]->hypotheses;
        Text *text = hypotheses->text;
        for (int place = 0; place < hypotheses->live; place++) hypotheses->places[0][(size_t)place * text->limit + hypotheses->read] = place;
        if (hypotheses->read < text->prefix_length) hypotheses->tokens[0][hypotheses->read] = text->prefix[hypotheses->read];
        if (++hypotheses->read > text->prefix_length) advance(hypotheses, end);
    }
    return FINE;
}
