/* lost.c - see lost.h. */
#include "train/job/lost.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/interrupt.h"
#include "train/job/missing.h"
#include "train/job/run.h"

#define LOOK_EACH_MS     3000
#define LOOK_A_NODE_MS   40
#define LOOK_EACH_MAX_MS 12000

/* While nothing else is done, it is looked more often. */
#define HURRY 6

/* Longest wait, while the hub answers, for a word of each other node, or for it to be missed; the
 * hub misses one after three looks and six seconds. */
#define JUDGE_MAX (60 * NSEC_PER_SEC)

/* So many looks in a row have to show it. */
#define LOOKS 2

bool lost_is_watched(const struct run *run)
{
    return run->can_begin_again && !run->is_elastic && run->command_id[0] != '\0';
}

bool lost_is_said(const struct run *run)
{
    return run->meeting.id[0] != '\0' && !run->is_elastic && run->command_id[0] != '\0';
}

unsigned lost_each_ms(const struct run *run)
{
    unsigned ms = run->min_nodes * LOOK_A_NODE_MS;

    if (ms < LOOK_EACH_MS)
        return LOOK_EACH_MS;
    return ms < LOOK_EACH_MAX_MS ? ms : LOOK_EACH_MAX_MS;
}

/* False: a person does not want to wait. */
static bool pause_a_little(const struct run *run, struct interrupt *i)
{
    return !interrupt_wait(i, lost_each_ms(run) / HURRY);
}

enum rendezvous_state lost_say(const struct run *run, bool ended, struct rendezvous_presence *ret)
{
    const struct rendezvous_word word = {
        .command = run->command_id, .every_s = lost_each_ms(run) / 1000, .ended = ended};

    if (lost_is_said(run))
        return rendezvous_say(run->socket_path, run->job, &run->meeting, &word, ret);
    *ret = (struct rendezvous_presence){0};
    return rendezvous_look(run->socket_path, run->job, &run->meeting);
}

bool lost_is_own(
    const struct run *run, const struct rendezvous_presence *presence, struct lost_looks *looks)
{
    bool is_named = false;

    for (unsigned i = 0; i < presence->lost.n; i++)
        is_named = is_named || strcmp(presence->lost.names[i], run->node.name) == 0;
    looks->n_own = is_named ? looks->n_own + 1 : 0;
    if (looks->n_own == LOOKS)
        (void)fprintf(stderr,
            "weft run: an earlier command of this node was lost with the run %s of the job\n",
            run->meeting.id);
    return looks->n_own >= LOOKS;
}

/* The others have ended, so this node would wait for them without a word. */
static void tell_ended_without(const struct run *run, const struct rendezvous_presence *p)
{
    struct str names = STR_NULL;

    if (p->ended_without.n_all == 0)
        return;
    rendezvous_format_nodes(&names, &p->ended_without);
    (void)fprintf(stderr,
        "weft run: note: this node was lost, and the run %s of the job has ended without it, on "
        "%s: the job begins when the same command is started there, too\n",
        p->run_without[0] != '\0' ? p->run_without : run->meeting.id, str_text(&names));
    str_deinit(&names);
}

bool lost_is_before(const struct run *run)
{
    struct rendezvous_presence presence;
    struct lost_looks looks = {0};

    if (!lost_is_watched(run))
        return false;
    while (lost_say(run, false, &presence) == RENDEZVOUS_STATE_SAME) {
        if (lost_is_own(run, &presence, &looks))
            return true;
        if (looks.n_own == 0) {
            tell_ended_without(run, &presence);
            return false;
        }
        (void)poll(NULL, 0, (int)lost_each_ms(run));
    }
    return false;
}

static void tell_lost(const struct run *run, const struct rendezvous_presence *p)
{
    struct str names = STR_NULL;

    rendezvous_format_nodes(&names, &p->lost);
    (void)fprintf(stderr,
        "weft run: lost of the job %s: %s, whose command has not ended and is not heard any more\n",
        run->meeting.id, str_text(&names));
    str_deinit(&names);
}

bool lost_is_idle(const struct run *run, const struct rendezvous_presence *presence, bool is_idle,
    struct lost_looks *looks)
{
    bool waits = is_idle && presence->lost.n > 0 && run->wait_lost > 0;

    looks->n_idle = waits ? looks->n_idle + 1 : 0;
    if (looks->n_idle == LOOKS)
        tell_lost(run, presence);
    return looks->n_idle >= LOOKS;
}

/* How long it is asked after others. */
static nsec_t judge_max(const struct run *run, enum rendezvous_state state)
{
    return state == RENDEZVOUS_STATE_UNKNOWN ? nsec_max(JUDGE_MAX, run->wait_lost) : JUDGE_MAX;
}

static void tell_silence(const struct run *run, nsec_t waited)
{
    char time[32];

    (void)fprintf(stderr,
        "weft run: the hub has not said for %s whether another node of the job %s was lost\n",
        format_duration(waited / NSEC_PER_SEC * NSEC_PER_SEC, time), run->meeting.id);
}

int lost_judge(const struct run *run, struct interrupt *i)
{
    nsec_t begun_at = clock_now();
    nsec_t waited;
    enum rendezvous_state state;
    struct rendezvous_presence p;

    if (!lost_is_watched(run) || run->wait_lost == 0)
        return 0;
    do {
        state = lost_say(run, false, &p);
        waited = clock_now() - begun_at;
        if (state == RENDEZVOUS_STATE_BROKEN || state == RENDEZVOUS_STATE_MOVED)
            return RUN_E_CUT_OFF;
        if (state == RENDEZVOUS_STATE_SAME && p.lost.n > 0) {
            tell_lost(run, &p);
            return RUN_E_LOST;
        }
        if (state == RENDEZVOUS_STATE_SAME && (!p.is_known || p.silent_for < waited))
            return 0;
    } while (waited < judge_max(run, state) && pause_a_little(run, i));
    if (i->signal == 0)
        tell_silence(run, waited);
    return 0;
}

/* Another node has ended its command while all wait: it will not be there. */
static int refuse_ended(const struct run *run, const struct rendezvous_presence *p, struct err *e)
{
    struct str names = STR_NULL;
    int r;

    rendezvous_format_nodes(&names, &p->ended);
    r = err_set(e, LOST_E_ENDED, "the command of the job %s has ended on %s", run->meeting.id,
        str_text(&names));
    str_deinit(&names);
    return r;
}

int lost_await(const struct run *run, nsec_t deadline, struct interrupt *i, struct err *e)
{
    nsec_t report_at = clock_now() + MISSING_FIRST_MS * NSEC_PER_MSEC;
    struct rendezvous_presence p;
    enum rendezvous_state state;

    if (!lost_is_watched(run))
        return 0;
    do {
        state = lost_say(run, false, &p);
        if (state == RENDEZVOUS_STATE_BROKEN || state == RENDEZVOUS_STATE_MOVED)
            return LOST_E_AGAIN;
        if (state == RENDEZVOUS_STATE_SAME && (!p.is_known || p.n_present >= run->min_nodes))
            return 0;
        if (state == RENDEZVOUS_STATE_SAME && p.ended.n_all > 0)
            return refuse_ended(run, &p, e);
        if (clock_now() >= deadline)
            return err_set(e, LOST_E_ALONE, "%u of the %u nodes of the job %s are there",
                p.n_present, run->min_nodes, run->meeting.id);
        if (clock_now() >= report_at) {
            unsigned ms = missing_report(run);

            report_at = ms > 0 ? clock_now() + ms * NSEC_PER_MSEC : NSEC_NEVER;
        }
    } while (pause_a_little(run, i));
    return LOST_E_INTERRUPTED;
}

void lost_give_up(const struct run *run)
{
    struct rendezvous_presence unused;

    if (run->meeting.id[0] != '\0')
        (void)lost_say(run, true, &unused);
}
