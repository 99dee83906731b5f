/* isolate.c - see isolate.h. */
#include "train/job/isolate.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "net/socket/socket.h"
#include "os/child.h"
#include "os/clock.h"
#include "train/job/rendezvous.h"
#include "train/job/run.h"

#define LOOK_EACH (NSEC_PER_SEC / 4)

/* What has not changed is said again. */
#define SAY_EACH (5 * NSEC_PER_SEC)

/* How long the hub and the agent may take until the job is isolated here. */
#define BEGIN_FOR     (15 * NSEC_PER_SEC)
#define BEGIN_EACH_MS 50

/* Sockets of the job's processes that are looked at. */
#define OWN_MAX 16384

/* ---- which sockets listen, and whose they are ------------------------------------------------ */

static int compare_socket(const void *a, const void *b)
{
    const struct isolate_socket *x = a;
    const struct isolate_socket *y = b;

    if (x->inode != y->inode)
        return x->inode > y->inode ? 1 : -1;
    return (x->port > y->port) - (x->port < y->port);
}

static int compare_inode(const void *a, const void *b)
{
    const uint32_t *x = a;
    const uint32_t *y = b;

    return (*x > *y) - (*x < *y);
}

/** Sockets while they are listed. */
struct listing {
    struct isolate_socket *items; /* ISOLATE_SOCKETS_MAX of them */
    size_t n;
};

/* A listener_fn. */
static void take_listener(void *ctx, uint16_t port, uint64_t inode)
{
    struct listing *l = ctx;

    if (l->n < ISOLATE_SOCKETS_MAX)
        l->items[l->n++] = (struct isolate_socket){.inode = inode, .port = port};
}

/** The sockets of the job's processes. */
struct own_sockets {
    uint32_t *items; /* OWN_MAX of them */
    unsigned n;
};

/* A descendants_fn. */
static bool take_own(void *ctx, int pid)
{
    struct own_sockets *own = ctx;

    own->n += descendants_sockets(pid, own->items + own->n, OWN_MAX - own->n);
    return own->n < OWN_MAX;
}

static void add_port(struct job_port_list *l, size_t max, uint16_t port)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->items[i] == port)
            return;
    if (l->n < max)
        l->items[l->n++] = port;
}

static int compare_port(const void *a, const void *b)
{
    const uint16_t *x = a;
    const uint16_t *y = b;

    return (*x > *y) - (*x < *y);
}

bool isolate_sort(const struct isolate_socket *all, size_t n, const uint32_t *own, size_t n_own,
    struct job_ports_word *ret)
{
    struct local_ports chosen = local_ports_read();
    struct job_ports_word w = {
        .own.items = calloc(JOB_PORTS_OWN_MAX, sizeof(*w.own.items)),
        .others.items = calloc(JOB_PORTS_OTHERS_MAX, sizeof(*w.others.items)),
        .first = chosen.first < JOB_PORTS_FIRST ? JOB_PORTS_FIRST : chosen.first,
        .last = chosen.last < JOB_PORTS_FIRST ? JOB_PORTS_FIRST : chosen.last,
    };

    if (!w.own.items || !w.others.items) {
        job_ports_word_deinit(&w);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t inode = (uint32_t)all[i].inode;

        if (all[i].port < JOB_PORTS_FIRST)
            continue;
        if (n_own > 0 && bsearch(&inode, own, n_own, sizeof(*own), compare_inode))
            add_port(&w.own, JOB_PORTS_OWN_MAX, all[i].port);
        else
            add_port(&w.others, JOB_PORTS_OTHERS_MAX, all[i].port);
    }
    qsort(w.own.items, w.own.n, sizeof(*w.own.items), compare_port);
    qsort(w.others.items, w.others.n, sizeof(*w.others.items), compare_port);
    *ret = w;
    return true;
}

/* Whose they are. False: no memory. */
static bool find_owners(const struct listing *l, struct job_ports_word *ret)
{
    _cleanup_(freep) uint32_t *items = calloc(OWN_MAX, sizeof(*items));
    struct own_sockets own = {.items = items};

    if (!items)
        return false;
    descendants_walk(getpid(), take_own, &own);
    qsort(items, own.n, sizeof(*items), compare_inode);
    return isolate_sort(l->items, l->n, items, own.n, ret);
}

/* Looks which sockets listen. True: they are others than before. */
static bool list_sockets(struct isolate *i)
{
    struct listing l = {.items = calloc(ISOLATE_SOCKETS_MAX, sizeof(*l.items))};
    struct job_ports_word word;

    if (!l.items)
        return false;
    listeners_list(take_listener, &l);
    qsort(l.items, l.n, sizeof(*l.items), compare_socket);
    if ((i->before && l.n == i->n_before &&
            memcmp(l.items, i->before, l.n * sizeof(*l.items)) == 0) ||
        !find_owners(&l, &word)) {
        free(l.items);
        return false;
    }
    free(i->before);
    i->before = l.items;
    i->n_before = l.n;
    if (job_ports_word_equal(&i->word, &word)) {
        job_ports_word_deinit(&word);
        return false;
    }
    job_ports_word_deinit(&i->word);
    i->word = word;
    return true;
}

/* ---- the agent is told ---------------------------------------------------------------------- */

static int say(struct isolate *i, bool *ret_enforced, struct err *e)
{
    int r = rendezvous_say_ports(
        i->run->socket_path, i->run->job, job_ports_word_encode(&i->word), ret_enforced, e);

    i->said_at = r == 0 ? clock_now() : 0;
    return r;
}

int isolate_begin(struct isolate *i, const struct run *run, struct err *e)
{
    nsec_t until = clock_now() + BEGIN_FOR;
    bool is_enforced = false;
    int r = 0;

    *i = (struct isolate){.run = run, .word = JOB_PORTS_WORD_NULL, .look_at = NSEC_NEVER};
    if (!run->is_isolated)
        return 0;
    while (!is_enforced && r == 0 && clock_now() < until) {
        (void)list_sockets(i);
        r = say(i, &is_enforced, e);
        if (r == 0 && !is_enforced)
            (void)poll(NULL, 0, BEGIN_EACH_MS);
    }
    if (r == 0 && !is_enforced)
        r = err_set(e, -ETIME,
            "--isolate: the agent has not heard from its hub that the job %s is isolated",
            run->job);
    i->look_at = r == 0 ? clock_now() : NSEC_NEVER;
    return r;
}

int isolate_await(const struct run *run, struct err *e)
{
    struct isolate i;
    int r = isolate_begin(&i, run, e);

    isolate_deinit(&i);
    return r;
}

void isolate_look(struct isolate *i)
{
    bool is_enforced;
    nsec_t now = clock_now();

    if (now < i->look_at)
        return;
    i->look_at = now + LOOK_EACH;
    if (!list_sockets(i) && i->said_at != 0 && now - i->said_at < SAY_EACH)
        return;
    /* An agent that is away is told when it is back. */
    if (say(i, &is_enforced, NULL) != 0)
        i->look_at = now + NSEC_PER_SEC;
}

void isolate_deinit(struct isolate *i)
{
    free(i->before);
    job_ports_word_deinit(&i->word);
    *i = (struct isolate){.look_at = NSEC_NEVER};
}
