/* train_process.c - see train_process.h. */
#include "measure/train_process.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/secret.h"
#include "base/traffic.h"
#include "measure/coordinator.h"
#include "measure/facts.h"
#include "measure/link_test.h"
#include "measure/session.h"
#include "measure/table.h"
#include "mesh/object/fields.h"
#include "os/clock.h"
#include "os/sandbox.h"

/* To connect, and to answer each. */
#define CONNECT_TIME (5 * NSEC_PER_SEC)
/* The user that has nothing. */
#define NOBODY 65534
/* So much over the overlay may be a job's, bit/s. */
#define LIVE_RATE 10000000
/* The session lasts longer than all trains. */
#define SESSION_SECONDS 60
/* So long for the task, which is there already, and for the answer to be read. */
#define LINE_TIME (5 * NSEC_PER_SEC)

/* ---- what is said ---------------------------------------------------------------------------- */

static const struct row task_rows[] = {
    {ROW(TEXT, "interface", struct train_task, interface)},
    {ROW(U32, "port", struct train_task, port), .min = 1, .max = UINT16_MAX},
    {ROW(IPV4, "own", struct train_task, own)},
    {ROW(IPV4, "peer", struct train_task, peer)},
    {ROW(ADDRESS, "underlay", struct train_task, underlay)},
    {ROW(HEX, "key", struct train_task, key)},
    {ROW(U64, "known", struct train_task, known), .max = TRAFFIC_RATE_MAX},
    {.type = ROW_END},
};

static const struct row answer_rows[] = {
    {ROW(U64, "bitsPerSecond", struct train_answer, bits_per_s), .max = TRAFFIC_RATE_MAX},
    {ROW(BOOL, "isLine", struct train_answer, is_line)},
    {ROW(TEXT, "why", struct train_answer, why)},
    {.type = ROW_END},
};

json_t *train_task_encode(const struct train_task *t)
{
    return table_encode(json_object(), task_rows, 0, t);
}

int train_task_decode(struct train_task *ret, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "the hub's task", e);
    struct train_task t = {.port = 0};

    table_decode(&f, task_rows, 0, &t);
    return fields_give(&f, ret, &t, sizeof(t));
}

json_t *train_answer_encode(const struct train_answer *a)
{
    return table_encode(json_object(), answer_rows, 0, a);
}

int train_answer_decode(struct train_answer *ret, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "what trains have come to", e);
    struct train_answer a = {.bits_per_s = 0};

    table_decode(&f, answer_rows, 0, &a);
    return fields_give(&f, ret, &a, sizeof(a));
}

/* ---- sending --------------------------------------------------------------------------------- */

static int prove(void *ctx, const struct order *session, const struct coordinator_link *links,
    size_t n, struct order_proof *ret, bool *ret_has, struct err *e)
{
    const struct train_task *t = ctx;

    for (size_t i = 0; i < n; i++) {
        const struct measure_proof p = order_proof_input(session, &links[i].challenge);

        ret_has[i] = links[i].has_challenge;
        measure_proof_make(ret[i].mac, &t->key, &p);
    }
    return 0;
}

/* Would trains be in the way of a job there, or of what looks like one? */
static bool is_in_the_way(struct coordinator *c)
{
    static const struct order facts = {.kind = ORDER_FACTS};
    const struct order *orders[] = {&facts};
    struct facts *f = malloc(sizeof(*f));
    bool ret = true;

    coordinator_ask(c, orders, clock_now() + CONNECT_TIME);
    if (f && c->items[0].answer && facts_decode(f, c->items[0].answer, NULL) == 0)
        ret = f->jobs > 0 || f->traffic >= LIVE_RATE;
    free(f);
    return ret;
}

/* Trains to a node that is in the session, until it is known what the line carries. */
static void send_trains(
    const struct train_task *t, const struct dial_target *to, struct train_answer *ret)
{
    const struct burst_place place = {.underlay = t->underlay};
    struct train_plan plan;
    struct train_step step;

    train_plan_begin(&plan, t->known);
    while (train_plan_next(&plan, &step)) {
        const struct order o = {.kind = ORDER_BURST,
            .peer = t->peer,
            .ms = step.ms,
            .bytes = step.bytes,
            .underlay = true,
            .is_paced = true,
            .bits_per_s = step.bits_per_s,
            .at_once = step.at_once};
        struct burst b;

        burst_run(&b, to, &o, &place);
        if (b.why[0] != '\0') {
            memcpy(ret->why, b.why, sizeof(ret->why));
            return;
        }
        train_plan_take(&plan, &b.train);
    }
    ret->bits_per_s = plan.bits_per_s;
    ret->is_line = plan.is_line;
    if (ret->bits_per_s == 0)
        (void)snprintf(ret->why, sizeof(ret->why),
            "no train came evenly, or its agent is of an earlier version");
}

void train_task_run(const struct train_task *t, struct train_answer *ret)
{
    const char *interface = t->interface[0] != '\0' ? t->interface : NULL;
    const struct coordinator_hooks hooks = {.own = t->own,
        .interface = interface,
        .port = (uint16_t)t->port,
        .prove = prove,
        .ctx = (void *)t};
    struct order session = {
        .kind = ORDER_SESSION, .purpose = SESSION_IN_BACKGROUND, .seconds = SESSION_SECONDS};
    struct rng rng = rng_kernel();
    struct coordinator c;

    *ret = (struct train_answer){.bits_per_s = 0};
    rng_fill(&rng, session.id.b, sizeof(session.id.b));
    if (coordinator_open(&c, &t->peer, 1, &hooks, &session, clock_now() + CONNECT_TIME) < 0) {
        (void)snprintf(ret->why, sizeof(ret->why), "no memory");
    } else if (!coordinator_has(&c, 0)) {
        (void)snprintf(ret->why, sizeof(ret->why), "%.150s", c.items[0].why);
    } else if (is_in_the_way(&c)) {
        (void)snprintf(ret->why, sizeof(ret->why), "something uses its network");
    } else {
        const struct dial_target to = {
            .peer = t->peer, .port = (uint16_t)t->port, .interface = interface, .id = session.id};

        send_trains(t, &to, ret);
    }
    coordinator_deinit(&c);
}

/* ---- the process ----------------------------------------------------------------------------- */

/* A hub that is root may become another user; in a container root may not, and stays it, without
 * any capability and without files. */
static struct sandbox make_sandbox(void)
{
    bool can_change = geteuid() == 0 && setgroups(0, NULL) == 0;

    return (struct sandbox){.kind = SANDBOX_MEASURE,
        .uid = can_change ? NOBODY : geteuid(),
        .gid = can_change ? NOBODY : getegid()};
}

int train_process_run(int fd, struct err *e)
{
    const struct sandbox sandbox = make_sandbox();
    _cleanup_(line_buffer_deinit) struct line_buffer lb = LINE_BUFFER_NULL;
    json_auto_t *json = NULL;
    json_auto_t *answer = NULL;
    struct train_answer done;
    struct train_task t;
    int r = line_read(&lb, fd, clock_now() + LINE_TIME, &json, e);

    if (r == 0)
        r = train_task_decode(&t, json, e);
    if (r == 0)
        r = sandbox_enter(&sandbox, NULL, e);
    if (r < 0)
        return r;
    (void)signal(SIGPIPE, SIG_IGN);
    train_task_run(&t, &done);
    secret_wipe(&t.key, sizeof(t.key));
    answer = train_answer_encode(&done);
    return line_write(fd, answer, clock_now() + LINE_TIME, e);
}
