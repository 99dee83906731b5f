/*
 * run_exec.c - run_exec() of run.h: runs the command with the plan's variables until its end.
 *
 * While a job waits for its nodes, this also says which are missing: torchrun waits for ten minutes
 * and says nothing meanwhile. And it says which network NCCL took (nccl_watch.h).
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/launch.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "os/child.h"
#include "os/clock.h"
#include "train/job/nccl_watch.h"
#include "train/job/rendezvous.h"
#include "train/job/run.h"
#include "train/profile/profile.h"

_Static_assert(RUN_E_CUT_OFF > CHILD_E_NOT_EXECUTABLE && RUN_E_MOVED > CHILD_E_NOT_EXECUTABLE &&
                   RUN_E_KILLED > CHILD_E_NOT_EXECUTABLE &&
                   CHILD_E_NOT_EXECUTABLE > CHILD_E_NOT_FOUND,
    "run_exec() returns any of them");

/* How long run_exec() waits for a lost hub, in ms. */
#define HUB_PATIENCE_MS (10 * 60 * 1000)

/* Milliseconds from the start to the first report of who is missing, and between later reports. */
#define WAIT_FIRST_MS  20000
#define WAIT_AGAIN_MS  60000
#define ASK_TIMEOUT_MS 3000

/*
 * Milliseconds between two looks at what has become of the job's meeting. The nodes of a large job
 * look less often, so that one hub has at most some ten of these requests a second of it.
 */
#define LOOK_EACH_MS     3000
#define LOOK_A_NODE_MS   40
#define LOOK_EACH_MAX_MS 12000

/* A command that was killed by a signal has exited with more than this, as shells say it. */
#define STATUS_KILLED 128

/* Milliseconds between two looks at NCCL's logs, before and after one has said what it uses. */
#define LOG_EACH_MS       1000
#define LOG_EACH_LATER_MS 10000

#define NAMES_MAX 8 /* at most so many nodes are named in a list */

/* ---- who is missing -------------------------------------------------------------------------- */

static bool has_name(const json_t *names, const char *name)
{
    const json_t *item;
    size_t i;

    json_array_foreach(names, i, item)
        if (json_is_string(item) && strcmp(json_string_value(item), name) == 0)
            return true;
    return false;
}

static void add_name(struct str *out, size_t *n, const char *name)
{
    if (*n < NAMES_MAX)
        str_addf(out, "%s%s", *n == 0 ? "" : ", ", name);
    else if (*n == NAMES_MAX)
        str_add(out, ", ...");
    (*n)++;
}

/* Appends the names of the peers that have not come. Return: the number of these peers. */
static size_t list_missing(struct str *out, const json_t *status, const json_t *present)
{
    const json_t *peer;
    size_t n = 0;
    size_t i;

    json_array_foreach(json_object_get(status, "peers"), i, peer) {
        const char *name = json_string_value(json_object_get(peer, "name"));

        if (name && !has_name(present, name))
            add_name(out, &n, name);
    }
    return n;
}

static void tell(const struct run *run, const json_t *present, const json_t *status)
{
    struct str here = STR_NULL;
    struct str missing = STR_NULL;
    const json_t *item;
    size_t n = 0;
    size_t i;

    json_array_foreach(present, i, item)
        add_name(&here, &n, json_is_string(item) ? json_string_value(item) : "?");
    if (list_missing(&missing, status, present) > 0)
        str_add(&missing, ": start the same command there");
    else
        str_add(&missing, "no other node of the network: are there enough?");
    (void)fprintf(stderr,
        "weft run: still waiting: %zu of %u nodes %s come to the job %s (%s); not yet: %s\n",
        json_array_size(present), run->min_nodes, n == 1 ? "has" : "have", run->meeting.id,
        str_text(&here), str_text(&missing));
    str_deinit(&here);
    str_deinit(&missing);
}

/*
 * Says on standard error which nodes have not come. Return: in how many ms it is to be called
 * again; 0: never, because the job has enough nodes or the hub does not say.
 */
static unsigned report_missing(const struct run *run)
{
    json_t *present = rendezvous_members(run->socket_path, run->job, run->meeting.id);
    json_t *status = NULL;
    bool waits = present && json_array_size(present) < run->min_nodes;

    if (waits &&
        launch_ask(run->socket_path, "GET", "/v1/status", ASK_TIMEOUT_MS, &status, NULL) == 0)
        tell(run, present, status);
    json_decref(status);
    json_decref(present);
    return waits ? WAIT_AGAIN_MS : 0;
}

/* ---- NCCL's log ------------------------------------------------------------------------------ */

/* Says what the logs say that is new. */
static void report_nccl(const struct run *run, struct nccl_watch *w)
{
    enum nccl_watch_news news;

    while ((news = nccl_watch_look(w)) != NCCL_WATCH_NOTHING)
        if (news == NCCL_WATCH_OTHER || !run->is_quiet)
            (void)fprintf(
                stderr, "weft run: %s%s\n", news == NCCL_WATCH_OTHER ? "note: " : "", w->said);
}

/* Begins to watch the logs that the job will write. Return: NULL when none are to be read. */
static struct nccl_watch *watch_nccl(const struct run *run)
{
    const struct env_entry *level = env_plan_find(&run->plan, "NCCL_DEBUG");
    const struct env_entry *file = env_plan_find(&run->plan, "NCCL_DEBUG_FILE");
    struct nccl_watch *w;

    /* The lines that are needed are of the level INFO. Without a file they are in the job's own
     * output, which goes to whom it is meant for. */
    if (!level || !file || file->value[0] == '\0' ||
        (strcasecmp(level->value, "INFO") != 0 && strcasecmp(level->value, "TRACE") != 0))
        return NULL;
    w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    w->is_ours = run->dir[0] != '\0' && strncmp(file->value, run->dir, strlen(run->dir)) == 0;
    w->wanted = run->uses_fabric ? profile_of(&run->fabric) : profile_plain();
    w->n_devices = fabric_count_serving(&run->fabric);
    w->interface = run->node.interface;
    nccl_watch_init(w, file->value);
    return w;
}

/* The logs stay when the job has failed by itself or NCCL took another network: somebody will want
 * them. */
static void end_nccl(const struct run *run, struct nccl_watch *w, bool has_failed)
{
    bool stays = false;

    if (w) {
        report_nccl(run, w);
        if (has_failed && nccl_watch_explain_failure(w))
            (void)fprintf(stderr, "weft run: note: %s\n", w->said);
        stays = w->is_ours && w->n_files > 0 && (has_failed || w->is_other);
        nccl_watch_deinit(w);
        free(w);
    }
    if (stays)
        (void)fprintf(stderr, "weft run: NCCL's logs are in %s\n", run->dir);
    else
        run_dir_remove(run->dir);
}

/* ---- while it runs --------------------------------------------------------------------------- */

/* What is looked at while the command runs, and when. */
struct watching {
    const struct run *run;
    nsec_t report_at;        /* time of the next report of who is missing; NSEC_NEVER: none */
    nsec_t look_at;          /* time of the next look at the job's meeting; NSEC_NEVER: none */
    nsec_t log_at;           /* time of the next look at NCCL's logs; NSEC_NEVER: none */
    struct nccl_watch *nccl; /* owns; NULL: no logs are read */
};

static nsec_t after_ms(unsigned ms)
{
    return ms > 0 ? clock_now() + ms * NSEC_PER_MSEC : NSEC_NEVER;
}

static unsigned next_ms(const struct watching *w)
{
    nsec_t due = nsec_min(w->log_at, nsec_min(w->report_at, w->look_at));

    return due == NSEC_NEVER ? 0 : (unsigned)(nsec_max(due - clock_now(), 0) / NSEC_PER_MSEC + 1);
}

static unsigned look_each_ms(const struct run *run)
{
    unsigned ms = run->min_nodes * LOOK_A_NODE_MS;

    if (ms < LOOK_EACH_MS)
        return LOOK_EACH_MS;
    return ms < LOOK_EACH_MAX_MS ? ms : LOOK_EACH_MAX_MS;
}

/* Does the command wait in vain where it is? */
static bool is_left_behind(const struct run *run)
{
    switch (rendezvous_look(run->socket_path, run->job, &run->meeting)) {
    case RENDEZVOUS_STATE_BROKEN:
        return true;
    case RENDEZVOUS_STATE_MOVED:
        return !run->follows_hub;
    case RENDEZVOUS_STATE_SAME:
    case RENDEZVOUS_STATE_UNKNOWN:
        break;
    }
    return false;
}

/* The fn of a struct child_watch. */
static struct child_order watch_job(void *ctx)
{
    struct watching *w = ctx;
    const struct run *run = w->run;
    bool stops = false;

    if (clock_now() >= w->report_at)
        w->report_at = after_ms(report_missing(run));
    if (clock_now() >= w->log_at) {
        report_nccl(run, w->nccl);
        w->log_at = after_ms(nccl_watch_has_verdict(w->nccl) ? LOG_EACH_LATER_MS : LOG_EACH_MS);
    }
    if (clock_now() >= w->look_at) {
        stops = is_left_behind(run);
        w->look_at = stops ? NSEC_NEVER : after_ms(look_each_ms(run));
    }
    return (struct child_order){.next_ms = next_ms(w), .stops = stops};
}

/* ---- the command ----------------------------------------------------------------------------- */

/* This process's environment and the plan's variables. Owns the array and the added texts. */
struct environment {
    char **entries;        /* "NAME=VALUE"; ends with NULL */
    char *added[ENV_ROOM]; /* the entries that the plan added */
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
    /* The plan sets no variable that is set already, so no name occurs twice. */
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

/*
 * Did the command end because its meeting was lost? If the hub was lost, waits for it. Return: true
 * if there is a hub to meet at.
 */
static bool was_cut_off(const struct run *run)
{
    if (rendezvous_look(run->socket_path, run->job, &run->meeting) == RENDEZVOUS_STATE_SAME)
        return false;
    return rendezvous_wait(run->socket_path, run->job, HUB_PATIENCE_MS);
}

/* What is to be done after the command's end: 0: nothing; or a RUN_E_. */
static int judge(const struct run *run, const struct child_end *end)
{
    if (!run->can_begin_again || end->was_told)
        return 0;
    if (end->was_stopped)
        return RUN_E_MOVED;
    if (end->status == 0)
        return 0;
    if (was_cut_off(run))
        return RUN_E_CUT_OFF;
    return end->status > STATUS_KILLED && !run->is_elastic ? RUN_E_KILLED : 0;
}

/* Runs the command as a child, and finds out why it has ended. */
static int run_child(const struct run *run, char *const words[], char *const env[],
    const struct watching *w, int *ret_status, struct err *e)
{
    const struct child_watch watch = {.fn = watch_job, .ctx = (void *)w, .first_ms = next_ms(w)};
    struct child_end end = {0};
    int r = child_run(words, env, &watch, &end, e);

    end_nccl(run, w->nccl, r == 0 && end.status != 0 && !end.was_told && !end.was_stopped);
    if (r == 0) {
        *ret_status = end.status;
        r = judge(run, &end);
    }
    if (run->meeting.id[0] != '\0' && r != RUN_E_CUT_OFF && r != RUN_E_MOVED && r != RUN_E_KILLED)
        rendezvous_end(run->socket_path, run->job);
    return r;
}

static int make_dir(struct run *run, struct err *e)
{
    int r = run->dir[0] != '\0' && !run->has_dir ? run_dir_make(run->dir, e) : 0;

    run->has_dir |= r == 0 && run->dir[0] != '\0';
    return r;
}

int run_exec(struct run *run, char *const words[], int *ret_status, struct err *e)
{
    _cleanup_(environment_deinit) struct environment env = {0};
    /* What lasts of an elastic job is left in peace where its client finds the hub by itself. */
    bool looks =
        run->can_begin_again && (!run->is_elastic || (run->node.has_hubs && !run->follows_hub));
    struct watching w = {.run = run,
        .report_at = after_ms(run->min_nodes > 1 ? WAIT_FIRST_MS : 0),
        .look_at = after_ms(looks ? look_each_ms(run) : 0),
        .nccl = watch_nccl(run)};
    int r = environment_init(&env, &run->plan);

    w.log_at = after_ms(w.nccl ? LOG_EACH_MS : 0);
    if (r < 0)
        (void)err_set(e, r, "no memory for the environment");
    else
        r = make_dir(run, e);
    if (r < 0) {
        end_nccl(run, w.nccl, false);
        return r;
    }
    if (run->meeting.id[0] == '\0' && run->dir[0] == '\0' && !w.nccl)
        return child_become(words, env.entries, e);
    return run_child(run, words, env.entries, &w, ret_status, e);
}

void run_give_up(const struct run *run)
{
    run_dir_remove(run->dir);
    if (run->meeting.id[0] != '\0')
        rendezvous_end(run->socket_path, run->job);
}
