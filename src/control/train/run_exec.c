/* run_exec.c - run_exec() of run.h: from the plan to the command, and to its end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "os/child.h"
#include "train/rendezvous.h"
#include "train/run.h"
#include "train/run_wait.h"

_Static_assert(RUN_E_CUT_OFF != CHILD_E_NOT_FOUND && RUN_E_CUT_OFF != CHILD_E_NOT_EXECUTABLE,
    "run_exec() returns any of them");

/* A hub that stays away for longer is not waited for. */
#define HUB_PATIENCE_MS (10 * 60 * 1000)

/* Ours, and what the plan adds to it. The array owns nothing but itself and the texts added. */
struct environment {
    char **entries;
    char *added[ENV_ROOM];
    size_t n_added;
};

static void environment_deinit(struct environment *env)
{
    for (size_t i = 0; i < env->n_added; i++)
        free(env->added[i]);
    free(env->entries);
    *env = (struct environment){0};
}

static int environment_init(struct environment *env, const struct env_plan *plan)
{
    size_t n = 0;

    while (environ[n])
        n++;
    env->entries = calloc(n + plan->n + 1, sizeof(*env->entries));
    if (!env->entries)
        return -ENOMEM;
    /* What is set is never in the plan to be set, so no name comes twice. */
    memcpy(env->entries, environ, n * sizeof(*environ));
    for (size_t i = 0; i < plan->n; i++) {
        const struct env_entry *entry = &plan->entries[i];

        if (entry->verdict != ENV_VERDICT_SET)
            continue;
        if (asprintf(&env->added[env->n_added], "%s=%s", entry->name, entry->value) < 0)
            return -ENOMEM;
        env->entries[n++] = env->added[env->n_added++];
    }
    return 0;
}

/* Did it end because the hub was lost? Waits for the hub then, and says whether it is back. */
static bool was_cut_off(const struct run *run)
{
    if (!run->is_elastic || rendezvous_has_epoch(run->socket_path, run->job, run->meeting.epoch))
        return false;
    return rendezvous_wait(run->socket_path, run->job, HUB_PATIENCE_MS);
}

int run_exec(const struct run *run, char *const words[], int *ret_status, struct err *e)
{
    _cleanup_(environment_deinit) struct environment env = {0};
    const struct child_watch watch = {.fn = run_wait_look,
        .ctx = (void *)run,
        .first_ms = run->min_nodes > 1 ? RUN_WAIT_FIRST_MS : 0};
    struct child_end end = {0};
    int r = environment_init(&env, &run->plan);

    if (r < 0)
        return err_set(e, r, "no memory for the environment");
    if (run->meeting.id[0] == '\0')
        return child_become(words, env.entries, e);
    r = child_run(words, env.entries, &watch, &end, e);
    if (r == 0)
        *ret_status = end.status;
    if (r == 0 && end.status != 0 && !end.was_told && was_cut_off(run))
        return RUN_E_CUT_OFF;
    rendezvous_end(run->socket_path, run->job);
    return r;
}
