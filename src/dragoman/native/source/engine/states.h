/* The states of texts, for models with a head instead of a decoder.

   Consecutive texts are encoded in groups of about `batch` tokens. All threads of the team share the products of a single
   group if it takes long enough. Of several groups, each thread encodes one at a time, with a workspace of its own. The states of a text do not
   depend on its group or on the number of threads. */
#pragma once

#include "encoder.h"

typedef struct {
    const Model *model;
    const EncoderCall *call;
    const int *groups; /* (count + 1): the first text of each group */
    int count;
    atomic_int next, outcome; /* next: the first group that no thread has claimed */
} GroupsTask;

/* Returns whether all values of a row are finite. */
static int is_finite(const float *row, int width) {
    Vector sum = broadcast(0);
    for (int i = 0; i < width; i += LANES) sum += load(row + i) * 0.0f; /* NaN for NaN and for infinity */
    return horizontal_sum(sum) == 0;
}

/* Encodes the texts first … last − 1 and copies their states to the caller's array; returns an `Outcome`. */
static int encode_group(Workspace *space, const EncoderCall *call, int first, int last) {
    int width = space->model->encoder.width;
    if (!encode(space, call->tokens, call->segments, call->starts + first, last - first, &call->positions)) return NO_MEMORY;
    const float *row = space->rows;
    for (int text = first; text < last; text++) {
        float *to = call->states + (size_t)text * call->stride * call->width;
        for (int token = call->starts[text]; token < call->starts[text + 1]; token++, row += width, to += call->width) {
            if (!is_finite(row, width)) return NOT_A_NUMBER;
            memcpy(to, row, (size_t)call->width * sizeof *to);
        }
    }
    return SUCCESS;
}

/* Encodes groups until all are claimed, another thread has failed, or the caller cancels the call. */
static void encode_groups(void *context, int share, int shares) {
    (void)share, (void)shares;
    GroupsTask *task = context;
    Team single_thread = {.size = 1};
    Workspace space;
    int outcome = workspace_init(&space, task->model, &single_thread) ? SUCCESS : NO_MEMORY, group;
    while (outcome == SUCCESS && atomic_load(&task->outcome) == SUCCESS && (group = atomic_fetch_add(&task->next, 1)) < task->count)
        outcome = __atomic_load_n(&task->call->cancelled, __ATOMIC_RELAXED)
                      ? CANCELLED
                      : encode_group(&space, task->call, task->groups[group], task->groups[group + 1]);
    if (outcome != SUCCESS) atomic_store(&task->outcome, outcome);
    workspace_free(&space);
}

/* Divides the texts into groups of at most `batch` tokens, or of a single text; returns their number.
   groups: receives the first text of each group, and the number of texts: at most (texts + 1) numbers. */
static int divide_into_groups(const EncoderCall *call, int *groups) {
    int count = 0;
    for (int text = 0; text < call->texts; text++)
        if (!text || call->starts[text + 1] - call->starts[groups[count - 1]] > call->batch) groups[count++] = text;
    groups[count] = call->texts;
    return count;
}

/* The number of multiplications, about one millisecond in float32, from which several threads are faster. For fewer, waking
   them takes longer than they save, and more so if other programs use the processor. */
#define MIN_SHARED_PRODUCTS 60000000

static int is_worth_sharing(const Stack *stack, const EncoderCall *call) {
    int64_t products = stack->weights * (call->starts[call->texts] - call->starts[0]);
    return products >= MIN_SHARED_PRODUCTS * (stack->layer->inner.precision == INT8 ? 4 : 1); /* int8 is as much faster */
}

/* Encodes all texts of a call; returns an `Outcome`. */
static int encode_texts(const Model *model, Team *team, const EncoderCall *call) {
    int *groups = malloc(((size_t)call->texts + 1) * sizeof *groups);
    if (!groups) return NO_MEMORY;
    int count = divide_into_groups(call, groups), outcome;
    Team single_thread = {.size = 1};
    if (count <= 1 && !is_worth_sharing(&model->encoder, call)) team = &single_thread;
    team_wake(team);
    if (count > 1) {
        GroupsTask task = {model, call, groups, count, 0, SUCCESS};
        parallel_run(team, encode_groups, &task);
        outcome = atomic_load(&task.outcome);
    } else {
        Workspace space;
        outcome = !workspace_init(&space, model, team) ? NO_MEMORY : count ? encode_group(&space, call, 0, call->texts) : SUCCESS;
        workspace_free(&space);
    }
    team_sleep(team);
    free(groups);
    return outcome;
}
