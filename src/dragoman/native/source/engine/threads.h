/* A team of threads. Its leader starts tasks, and its members claim shares of them.

   A task is a function with as many independent shares as the team has threads. Shares are claimed one at a time. The
   leader claims all shares that no member has claimed, so it never waits for a thread without a core. Members spin while
   the team is awake, and sleep while it is not.

   A `Team` belongs to its leader, the only thread that starts tasks. `task` and `context` are not atomic: the leader
   writes them before it publishes a new task in `claimed` (release), and a member reads them only after it has claimed a
   share of that task (acquire). A task does not end before all of its shares have been completed. */
#pragma once

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "../common/vector.h"

typedef void (*Task)(void *context, int share, int shares);

typedef struct {
    int size;           /* number of threads, including the leader; also the number of shares per task */
    pthread_t *members; /* (size − 1), owned */
    Task task;
    void *context;
    atomic_uint_fast64_t claimed; /* low 32 bits: claimed shares of the current task; high 32 bits: its number */
    atomic_int finished;          /* number of shares that members have completed */
    atomic_int awake;             /* whether members spin, because a task may start at any moment */
    int stopping;                 /* guarded by mutex */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
} Team;

INLINE void pause_briefly(int *spins) {
    if (++*spins > 20000) { /* another thread may need the core */
        sched_yield();
        *spins = 0;
    }
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#define TASK ((uint_fast64_t)1 << 32)

/* Claims a share and returns its index, or −1 if all shares are claimed. No other task starts until the share is
   completed. */
INLINE int claim_share(Team *team) {
    uint_fast64_t claimed = atomic_load_explicit(&team->claimed, memory_order_acquire);
    while ((int)(claimed % TASK) < team->size)
        if (atomic_compare_exchange_weak(&team->claimed, &claimed, claimed + 1)) return (int)(claimed % TASK);
    return -1;
}

static void *member_main(void *argument) {
    Team *team = argument;
    int spins = 0;
    for (;;) {
        int share = claim_share(team);
        if (share >= 0) {
            team->task(team->context, share, team->size);
            atomic_fetch_add_explicit(&team->finished, 1, memory_order_release);
            continue;
        }
        if (!atomic_load_explicit(&team->awake, memory_order_relaxed)) {
            pthread_mutex_lock(&team->mutex);
            while (!atomic_load(&team->awake) && !team->stopping) pthread_cond_wait(&team->wake, &team->mutex);
            int stopping = team->stopping;
            pthread_mutex_unlock(&team->mutex);
            if (stopping) return NULL;
        }
        pause_briefly(&spins);
    }
}

/* Runs a task on the threads of the team; returns when all shares are completed. */
static void parallel_run(Team *team, Task task, void *context) {
    if (team->size == 1) {
        task(context, 0, 1);
        return;
    }
    team->task = task;
    team->context = context;
    atomic_store_explicit(&team->finished, 0, memory_order_relaxed);
    uint_fast64_t number = atomic_load_explicit(&team->claimed, memory_order_relaxed) / TASK;
    atomic_store_explicit(&team->claimed, (number + 1) % TASK * TASK + 1, memory_order_release);
    task(context, 0, team->size); /* always the same share, whose weights are in this core's cache */
    int completed = 1, spins = 0;
    for (int share; (share = claim_share(team)) >= 0; completed++) task(context, share, team->size);
    while (completed + atomic_load_explicit(&team->finished, memory_order_acquire) < team->size) pause_briefly(&spins);
}

static void team_wake(Team *team) {
    if (team->size == 1) return;
    pthread_mutex_lock(&team->mutex);
    atomic_store(&team->awake, 1);
    pthread_cond_broadcast(&team->wake);
    pthread_mutex_unlock(&team->mutex);
}

static void team_sleep(Team *team) { atomic_store(&team->awake, 0); }

static void team_stop(Team *team) {
    pthread_mutex_lock(&team->mutex);
    team->stopping = 1;
    atomic_store(&team->awake, 0);
    pthread_cond_broadcast(&team->wake);
    pthread_mutex_unlock(&team->mutex);
    for (int number = 1; number < team->size; number++) pthread_join(team->members[number - 1], NULL);
    free(team->members);
    pthread_mutex_destroy(&team->mutex);
    pthread_cond_destroy(&team->wake);
}

/* Starts up to `size` − 1 members; returns the number of threads, including the leader, or 0 if memory runs out. */
static int team_start(Team *team, int size) {
    memset(team, 0, sizeof *team);
    pthread_mutex_init(&team->mutex, NULL);
    pthread_cond_init(&team->wake, NULL);
    team->members = calloc((size_t)size, sizeof *team->members);
    if (!team->members) return 0;
    team->size = size;
    atomic_store(&team->claimed, (uint_fast64_t)size); /* no share to claim yet */
    for (int number = 1; number < size; number++)
        if (pthread_create(&team->members[number - 1], NULL, member_main, team)) {
            team->size = number;
            break;
        }
    return team->size;
}
