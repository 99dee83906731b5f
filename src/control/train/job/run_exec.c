/*
 * run_exec.c - run_exec() of run.h: runs the command with the plan's variables until its end.
 *
 * Meanwhile it says which nodes are missing (lost.h), tells the hub that this one is there
 * (lost.h) and what the command does (samples.h), says which network NCCL took (nccl_watch.h), and
 * looks whether the command meets another node (lost.h).
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "os/child.h"
#include "os/clock.h"
#include "os/interrupt.h"
#include "train/job/isolate.h"
#include "train/job/lost.h"
#include "train/job/nccl_watch.h"
#include "train/job/rendezvous.h"
#include "train/job/script_reports.h"
#include "train/job/run.h"
#include "train/job/samples.h"
#include "train/profile/profile.h"

/* The hosts file is looked for so often. */
#define RUN_ISLAND_EACH_MS 2000
/* Exit status of a command that has used torch, ended well, and met no other node of the job. */
#define RUN_STATUS_STRAYED 3

_Static_assert(RUN_E_CUT_OFF > CHILD_E_NOT_EXECUTABLE && CHILD_E_NOT_EXECUTABLE > CHILD_E_NOT_FOUND,
    "run_exec() returns any of them");

bool run_is_again(int r)
{
    return r == RUN_E_CUT_OFF || r == RUN_E_MOVED || r == RUN_E_KILLED || r == RUN_E_LOST;
}

/* How long run_exec() waits for a lost hub, in ms. */
#define HUB_PATIENCE_MS (10 * 60 * 1000)

/*
 * How long a command may take to end that is to begin again. torchrun does not hear of a signal
 * while its client of c10d waits for a hub that has vanished, which takes a quarter of an hour.
 */
#define STOP_MS 8000

/* A command that was killed by a signal has exited with more than this, as shells say it. */
#define STATUS_KILLED 128

/* Milliseconds between two looks at NCCL's logs, before and after one has said what it uses. */
#define LOG_EACH_MS      1000
#define LOG_EACH_THEN_MS 3000

/* ---- NCCL's log ------------------------------------------------------------------------------ */

/* Tells the hub, for weft jobs, and the agent, for weft status. */
static void publish_nccl(const struct run *run, const struct nccl_watch *w)
{
    static const char *const verdicts[] = {
        [NCCL_LOG_UNKNOWN] = "unknown", [NCCL_LOG_WANTED] = "wanted", [NCCL_LOG_OTHER] = "other"};

    if (run->rendezvous.id[0] != '\0')
        rendezvous_say_nccl(run->socket_path, run->job,
            json_pack("{s:s, s:s, s:s, s:s, s:s}", "run", run->rendezvous.id, "verdict",
                verdicts[w->verdict], "profile", w->wanted->name, "network", w->network, "text",
                w->said));
}

/* Says what the logs say that is new. @ended_well: the command, so what looked wrong to NCCL at its
 * end was not. */
static void report_nccl(const struct run *run, struct nccl_watch *w, bool ended_well)
{
    enum nccl_watch_event event;

    while ((event = nccl_watch_look(w)) != NCCL_WATCH_NOTHING) {
        if (event == NCCL_WATCH_FAULT) {
            if (!ended_well)
                (void)fprintf(stderr, "weft run: note: NCCL says \"%s\"\n", w->fault);
            continue;
        }
        if (event == NCCL_WATCH_OTHER || !run->is_quiet)
            (void)fprintf(
                stderr, "weft run: %s%s\n", event == NCCL_WATCH_OTHER ? "note: " : "", w->said);
        /* That one process of several took another network is what matters of this machine. */
        if (event == NCCL_WATCH_OTHER || !w->is_other)
            publish_nccl(run, w);
    }
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
    w->interface = run->uses_fabric && run->island_interface[0] != '\0' ? run->island_interface
                                                                        : run->node.interface;
    nccl_watch_init(w, file->value);
    return w;
}

/* The logs stay when the job has failed by itself or NCCL took another network, and what PyTorch's
 * flight recorder has written when the job has failed: somebody will want them. */
static void end_logs(
    const struct run *run, struct nccl_watch *w, struct samples *samples, bool has_failed)
{
    bool has_records = has_failed && samples && samples_has_records(samples);
    bool stays = false;

    if (w) {
        if (has_failed && nccl_watch_explain_failure(w)) {
            (void)fprintf(stderr, "weft run: note: %s\n", w->said);
            publish_nccl(run, w);
        }
        stays = w->is_ours && w->n_files > 0 && (has_failed || w->is_other);
        nccl_watch_deinit(w);
        free(w);
    }
    if (stays)
        (void)fprintf(stderr, "weft run: NCCL's logs are in %s\n", run->dir);
    if (has_records)
        (void)fprintf(stderr,
            "weft run: what PyTorch's flight recorder has written is in %s/" FLIGHT_WATCH_FILE
            "RANK\n",
            run->dir);
    if (!stays && !has_records)
        run_dir_remove(run->dir);
}

/* ---- while it runs --------------------------------------------------------------------------- */

/* What is looked at while the command runs, and when. */
struct watching {
    const struct run *run;
    nsec_t report_at;        /* time of the next report of who is missing; NSEC_NEVER: none */
    nsec_t look_at;          /* time of the next look at the job's meeting; NSEC_NEVER: none */
    struct lost_looks looks; /* what they have shown */
    bool is_lost;            /* the command was stopped because a node is lost */
    nsec_t log_at;           /* time of the next look at NCCL's logs; NSEC_NEVER: none */
    nsec_t island_at;        /* time of the next look at the job's hosts file; NSEC_NEVER: none */
    struct isolate isolate;  /* owns; where it listens */
    struct met met;          /* owns; has it met another node? */
    struct samples samples;  /* owns; what it moves, and how its processes are */
    struct nccl_watch *nccl; /* owns; NULL: no logs are read */
};

static nsec_t after_ms(unsigned ms)
{
    return ms > 0 ? clock_now() + ms * NSEC_PER_MSEC : NSEC_NEVER;
}

static unsigned next_ms(const struct watching *w)
{
    nsec_t due = nsec_min(nsec_min(w->log_at, w->island_at), nsec_min(w->report_at, w->look_at));

    due = nsec_min(due, nsec_min(w->met.look_at, w->samples.look_at));
    due = nsec_min(due, w->isolate.look_at);
    return due == NSEC_NEVER ? 0 : (unsigned)(nsec_max(due - clock_now(), 0) / NSEC_PER_MSEC + 1);
}

/* Does the command wait in vain where it is? */
static bool is_left_behind(struct watching *w, int pid)
{
    struct rendezvous_presence presence;
    enum rendezvous_state state = lost_say(w->run, false, &presence);

    lost_tell_drained(w->run, &presence, &w->looks);
    if (!w->run->can_begin_again)
        return false;
    switch (state) {
    case RENDEZVOUS_STATE_BROKEN:
        return true;
    case RENDEZVOUS_STATE_MOVED:
        return !w->run->follows_hub;
    case RENDEZVOUS_STATE_SAME:
        w->is_lost = lost_is_own(w->run, &presence, &w->looks) ||
                     lost_is_idle(w->run, &presence, !child_has_children(pid), &w->looks);
        return w->is_lost;
    case RENDEZVOUS_STATE_UNKNOWN:
        break;
    }
    return false;
}

/* The fn of a struct child_watch. */
static struct child_order watch_job(void *ctx, int pid)
{
    struct watching *w = ctx;
    const struct run *run = w->run;
    bool stops = false;

    if (clock_now() >= w->report_at)
        w->report_at = after_ms(missing_report(run));
    if (clock_now() >= w->log_at) {
        report_nccl(run, w->nccl, false);
        w->log_at = after_ms(nccl_watch_has_verdict(w->nccl) ? LOG_EACH_THEN_MS : LOG_EACH_MS);
    }
    if (clock_now() >= w->island_at) {
        run_keep_island(run);
        w->island_at = after_ms(RUN_ISLAND_EACH_MS);
    }
    if (clock_now() >= w->look_at) {
        stops = is_left_behind(w, pid);
        w->look_at = stops ? NSEC_NEVER : after_ms(lost_each_ms(run));
    }
    isolate_look(&w->isolate);
    met_look(&w->met);
    samples_look(&w->samples);
    return (struct child_order){.next_ms = next_ms(w), .stops = stops};
}

/* ---- the command ----------------------------------------------------------------------------- */

/* This process's environment and the plan's variables. Owns the array and the added texts. */
struct environment {
    char **entries;        /* "NAME=VALUE"; ends with NULL */
    char *added[ENV_SIZE]; /* the entries that the plan added */
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

/* What is to be done after the command's end: 0: nothing; or a RUN_E_. */
static int assess(
    const struct run *run, const struct child_end *end, bool is_lost, struct interrupt *i)
{
    if (!run->can_begin_again || end->was_signalled)
        return 0;
    if (end->was_stopped)
        return is_lost ? RUN_E_LOST : RUN_E_MOVED;
    if (end->status == 0)
        return 0;
    /* Its meeting was lost. If the hub was, it is waited for: there is one to meet at again. */
    if (rendezvous_look(run->socket_path, run->job, &run->rendezvous) != RENDEZVOUS_STATE_SAME &&
        rendezvous_wait(run->socket_path, run->job, HUB_PATIENCE_MS, i))
        return RUN_E_CUT_OFF;
    if (run->is_elastic)
        return 0;
    return end->status > STATUS_KILLED ? RUN_E_KILLED : lost_assess(run, i);
}

/* The command has ended by itself, and is not started again: says if it has met nobody. Return: the
 * status to end with. */
static int assess_met(struct met *met, int status)
{
    const struct run *run = met->run;
    enum met_verdict verdict = met_end(met);
    _cleanup_(str_deinit) struct str others = STR_NULL;

    if (verdict == MET_VERDICT_MET)
        return status;
    (void)missing_unmet(run, &others);
    if (verdict == MET_VERDICT_STRAYED && status == 0)
        (void)fprintf(stderr,
            "weft run: %s has used torch and has ended alone: it has exchanged nothing with "
            "another node of the job %s (%s), so the exit status is %d\n",
            run->command.program, run->rendezvous.id, str_text(&others), RUN_STATUS_STRAYED);
    else
        (void)fprintf(stderr,
            "weft run: note: %s has ended, and has exchanged nothing with another node of the job "
            "%s (%s)\n",
            run->command.program, run->rendezvous.id, str_text(&others));
    return verdict == MET_VERDICT_STRAYED && status == 0 ? RUN_STATUS_STRAYED : status;
}

/* The command is not started again: tells the hub, and by it the other nodes. */
static void say_end(const struct run *run, const struct child_end *end, struct interrupt *i)
{
    /* Who is told to end by another signal than a person's at a terminal has been taken away, as
     * when the machine is started anew: the others may wait for it. */
    if (!end->was_signalled || end->is_by_person)
        lost_end(run, end->was_signalled ? NULL : i);
    rendezvous_end(run->socket_path, run->job);
}

/* Runs the command as a child, and finds out why it has ended. */
static int run_child(const struct run *run, char *const words[], char *const env[],
    struct watching *w, int *ret_status, struct err *e)
{
    const struct child_watch watch = {
        .fn = watch_job, .ctx = w, .first_ms = next_ms(w), .stop_ms = STOP_MS};
    struct child_end end = {0};
    struct interrupt i;
    bool ended_well;
    int r = child_run(words, env, &watch, &end, e);

    /* The others are told before a person's signal ends this process. */
    interrupt_begin(&i);
    ended_well = r == 0 && end.status == 0;
    if (w->nccl)
        report_nccl(run, w->nccl, ended_well);
    if (!ended_well)
        samples_end(&w->samples);
    end_logs(run, w->nccl, &w->samples,
        r == 0 && end.status != 0 && !end.was_signalled && !end.was_stopped);
    if (r == 0) {
        *ret_status = end.status;
        r = assess(run, &end, w->is_lost, &i);
    }
    if (r == 0 && !end.was_signalled)
        *ret_status = assess_met(&w->met, end.status);
    if (run->rendezvous.id[0] != '\0' && !run_is_again(r))
        say_end(run, &end, &i);
    interrupt_end(&i);
    return r;
}

int run_exec(struct run *run, char *const words[], int *ret_status, struct err *e)
{
    _cleanup_(environment_deinit) struct environment env = {0};
    _cleanup_(script_reports_close) struct script_reports reports = SCRIPT_REPORTS_NULL;
    /* What lasts of an elastic job is left in peace where its client finds the hub by itself. */
    bool looks = lost_is_said(run) || (run->can_begin_again && run->is_elastic &&
                                          run->node.has_hubs && !run->follows_hub);
    struct watching w = {.run = run,
        .report_at = after_ms(run->min_nodes > 1 ? MISSING_FIRST_MS : 0),
        .look_at = !looks                 ? NSEC_NEVER
                   : run->can_begin_again ? after_ms(lost_each_ms(run))
                                          : clock_now(),
        .island_at = after_ms(run->has_island_hosts ? RUN_ISLAND_EACH_MS : 0),
        .isolate = {.look_at = NSEC_NEVER},
        .met = {.look_at = NSEC_NEVER, .tcp = TCP_WATCH_NULL},
        .samples = SAMPLES_NULL,
        .nccl = watch_nccl(run)};
    int r;

    /* Where there is no socket, the script says nothing. */
    if (run->rendezvous.id[0] != '\0' && script_reports_open(&reports) == 0)
        run_give(run, "WEFT_REPORT", reports.name);
    r = environment_init(&env, &run->plan);
    w.log_at = after_ms(w.nccl ? LOG_EACH_MS : 0);
    if (r < 0)
        (void)err_set(e, r, "no memory for the environment");
    else
        r = run->dir[0] != '\0' ? run_make_dir(run, e) : 0;
    if (r < 0) {
        end_logs(run, w.nccl, NULL, false);
        return r;
    }
    if (run->rendezvous.id[0] == '\0' && run->dir[0] == '\0' && !w.nccl)
        return child_become(words, env.entries, e);
    if (lost_is_before(run)) {
        end_logs(run, w.nccl, NULL, false);
        return RUN_E_LOST;
    }
    r = isolate_begin(&w.isolate, run, e);
    if (r != 0) {
        isolate_deinit(&w.isolate);
        end_logs(run, w.nccl, NULL, false);
        run_give_up(run);
        return r;
    }
    met_begin(&w.met, run);
    samples_begin(&w.samples, run, &reports);
    w.samples.nccl = w.nccl ? &w.nccl->faults : NULL;
    r = run_child(run, words, env.entries, &w, ret_status, e);
    run->has_met |= w.met.has_met;
    met_deinit(&w.met);
    isolate_deinit(&w.isolate);
    samples_deinit(&w.samples);
    return r;
}

void run_give_up(const struct run *run)
{
    const struct child_end end = {0};

    run_dir_remove(run->dir);
    if (run->rendezvous.id[0] != '\0')
        say_end(run, &end, NULL);
}

/* ==== a command is begun again =============================================================== */

/*
 * A command that was killed is begun again this often. One that has run for longer than LIVED
 * before is begun again anew.
 */
#define KILLED_MAX 3
#define LIVED      (60 * NSEC_PER_SEC)

/* The next run is asked for again and again, for at least this time. */
#define TRY_MIN (60 * NSEC_PER_SEC)

#define PAUSE_FIRST_MS 1000u
#define PAUSE_MAX_MS   30000u

enum again_verdict again_decide(struct again *a, int r, nsec_t lasted)
{
    if (lasted > LIVED)
        a->n_killed = 0;
    a->n_killed += r == RUN_E_KILLED;
    if (a->n_killed > KILLED_MAX)
        return AGAIN_VERDICT_KILLED;
    if (a->n >= a->max)
        return AGAIN_VERDICT_USED_UP;
    a->n++;
    return AGAIN_VERDICT_GO;
}

unsigned again_pause_ms(unsigned n)
{
    unsigned ms = n > 0 && n < 6 ? PAUSE_FIRST_MS << (n - 1) : PAUSE_MAX_MS;

    return ms < PAUSE_MAX_MS ? ms : PAUSE_MAX_MS;
}

static int prepare_once(struct run *run, struct run_options *opt, struct err *e)
{
    char broken[sizeof(run->rendezvous.id)];
    bool has_met = run->has_met;
    int r;

    (void)snprintf(broken, sizeof(broken), "%s", run_broken(run) ? run_broken(run) : "");
    opt->broken_run = broken[0] ? broken : NULL;
    r = run_prepare(run, opt, e);
    opt->broken_run = NULL;
    run->has_met = has_met;
    return r;
}

/* The time is over: adds to the words how long it was. */
static int give_up_after(nsec_t waited, struct err *e)
{
    const struct err why = *e;
    char time[32];

    return err_set(e, LOST_E_ALONE, "%s after %s", err_text(&why),
        format_duration(waited / NSEC_PER_SEC * NSEC_PER_SEC, time));
}

/* Prepares the next run until that works, or it is @until. */
static int prepare_until(
    struct run *run, struct run_options *opt, nsec_t until, struct interrupt *i, struct err *e)
{
    nsec_t begun_at = clock_now();
    unsigned n = 0;
    char time[32];
    int r;

    while ((r = prepare_once(run, opt, e)) != 0) {
        if (r == RENDEZVOUS_E_OVER)
            return r;
        if (clock_now() >= until)
            return give_up_after(clock_now() - begun_at, e);
        if (n++ == 0)
            (void)fprintf(stderr, "weft run: %s: trying again for up to %s\n", err_text(e),
                format_duration(
                    (until - begun_at + NSEC_PER_SEC / 2) / NSEC_PER_SEC * NSEC_PER_SEC, time));
        if (interrupt_wait(i, again_pause_ms(n)))
            return LOST_E_INTERRUPTED;
    }
    return 0;
}

/* For how long a run that cannot be prepared is tried again. */
static nsec_t patience_of(const struct run_options *opt)
{
    return nsec_max(opt->wait_lost, TRY_MIN);
}

int again_await_hub(
    struct run *ret, const struct run_options *opt, struct interrupt *i, struct err *e)
{
    nsec_t patience = patience_of(opt);
    nsec_t begun_at = clock_now();
    unsigned n = 0;
    char time[32];
    int r;

    (void)fprintf(stderr, "weft run: %s: waiting for the hub, for up to %s\n", err_text(e),
        format_duration(patience, time));
    do {
        if (interrupt_wait(i, again_pause_ms(++n)))
            return LOST_E_INTERRUPTED;
        r = run_prepare(ret, opt, e);
    } while (r == RENDEZVOUS_E_AWAY && clock_now() - begun_at < patience);
    return r == RENDEZVOUS_E_AWAY ? give_up_after(clock_now() - begun_at, e) : r;
}

int again_prepare(struct run *run, struct run_options *opt, struct interrupt *i, struct err *e)
{
    nsec_t begun_at = clock_now();
    int r;

    for (;;) {
        r = prepare_until(run, opt, begun_at + patience_of(opt), i, e);
        if (r != 0 || opt->wait_lost == 0)
            return r;
        r = lost_await(run, begun_at + opt->wait_lost, i, e);
        if (r == LOST_E_ALONE)
            return give_up_after(opt->wait_lost, e);
        if (r != LOST_E_AGAIN)
            return r;
        run_dir_remove(run->dir);
    }
}

void again_give_up(struct run *run, struct run_options *opt)
{
    bool is_watched = lost_is_watched(run);
    int r = is_watched ? prepare_once(run, opt, NULL) : 0;

    if (!is_watched || r == RENDEZVOUS_E_OVER)
        run_give_up(run);
    else if (r == 0)
        lost_give_up(run);
    run_dir_remove(run->dir);
}
