/* How the threads of a pass share its work. */
#pragma once
#include "nouns.h"

/* A stage of the pass: tasks are handed out by `next` and counted when `done`. */
typedef struct {
    _Alignas(64) atomic_int next;
    atomic_int done;
} Stage;

static int take(Stage *stage) { return atomic_fetch_add_explicit(&stage->next, 1, memory_order_relaxed); }

/* Takes neighbouring tasks, `*first` and those behind it, and says how many: many at first and fewer towards
 * the end, so that memory is read in long runs and no thread waits long for another's last task. */
static int take_run(Stage *stage, int tasks, int threads, int *first) {
    int next = atomic_load_explicit(&stage->next, memory_order_relaxed), count;
    do {
        if (next >= tasks) return 0;
        count = (tasks - next + 2 * threads - 1) / (2 * threads);
    } while (!atomic_compare_exchange_weak_explicit(&stage->next, &next, next + count, memory_order_relaxed,
                                                    memory_order_relaxed));
    *first = next;
    return count;
}

static void finished_run(Stage *stage, int count) {
    atomic_fetch_add_explicit(&stage->done, count, memory_order_release);
}

static void finished(Stage *stage) { finished_run(stage, 1); }

/* Waits until a stage's tasks are done, not until every thread has come by: on a busy machine a thread
 * that was put to sleep between tasks holds nobody up. */
static void await_tasks(Stage *stage, int tasks) {
    for (int spins = 0; atomic_load_explicit(&stage->done, memory_order_acquire) < tasks; spins++) {
        if (spins < 2000) _mm_pause();
        else sched_yield();
    }
}
