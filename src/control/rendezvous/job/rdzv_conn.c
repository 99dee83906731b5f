/* rdzv_conn.c - see rdzv_conn.h. */
#include "rdzv_conn.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/clock.h"

/* TCP's keepalive: after a minute of silence the other end is probed, then each half minute; six
 * minutes without an answer end the connection. A client of a store may be silent for hours, and a
 * node may be unreachable for minutes, while its job goes on. */
#define KEEPALIVE_IDLE_S 60
#define KEEPALIVE_EACH_S 30
#define KEEPALIVE_PROBES 10
#define TCP_GIVE_UP_MS   360000

/* Silent connections that are judged in one call. Each takes a walk through its job's. */
#define JUDGED_AT_ONCE 256

void rdzv_conns_init(struct rdzv_conns *conns, struct uv_loop_s *loop, uint64_t seed)
{
    *conns = (struct rdzv_conns){.loop = loop};
    list_init(&conns->silent);
    admission_init(&conns->admission, RDZV_CONNECTIONS_MAX, RDZV_CONNECTIONS_MAX_BY_MEMBER, seed);
}

void rdzv_conns_deinit(struct rdzv_conns *conns)
{
    admission_deinit(&conns->admission);
}

/* The address under which admission.h counts a member. For IPv6 it counts by the first half of an
 * address, which is the same for all members, so the second half is put in its place. */
static struct ip_addr counted(const struct ip_addr *from)
{
    struct ip_addr a = *from;

    if (!ip_addr_is_v4(from))
        memcpy(a.b, from->b + 8, 8);
    return a;
}

/* ---- beginning ------------------------------------------------------------------------------ */

static void set_options(int fd)
{
    static const struct {
        int level;
        int name;
        int value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_EACH_S},
        {IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, TCP_GIVE_UP_MS},
    };

    /* Answers are right without any of these options, so failures are ignored. */
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

/* A member may have more connections while there are many for the others. */
static bool enter(struct rdzv_conns *conns, const struct ip_addr *who)
{
    struct admission *a = &conns->admission;

    a->max_by_address =
        a->n < a->max / 2 ? RDZV_CONNECTIONS_MAX_OF_MANY : RDZV_CONNECTIONS_MAX_BY_MEMBER;
    return admission_enter(a, who);
}

struct rdzv_conn *rdzv_conn_new(
    struct rdzv_conns *conns, struct rdzv_job *job, int fd, const struct ip_addr *from, nsec_t now)
{
    struct ip_addr who = counted(from);
    struct rdzv_conn *c = NULL;
    bool is_in = enter(conns, &who);

    if (is_in)
        c = calloc(1, sizeof(*c));
    if (!c) {
        if (is_in)
            admission_leave(&conns->admission, &who);
        conns->n_hung_up++;
        (void)close(fd);
        return NULL;
    }
    set_options(fd);
    c->conns = conns;
    c->job = job;
    c->fd = fd;
    c->from = *from;
    c->judged_at = now;
    /* Cannot fail on a descriptor that is open and watched by nobody else. */
    (void)uv_poll_init(conns->loop, &c->poll, fd);
    c->poll.data = c;
    list_add_tail(&job->conns, &c->link);
    list_add_tail(&conns->silent, &c->silent);
    job->heard_at = now;
    rdzv_job_changed(job);
    return c;
}

bool rdzv_conn_charge(struct rdzv_conn *c, size_t cost)
{
    if (!rdzv_quota_try(&c->job->jobs->quota, cost, 0)) {
        rdzv_quota_refuse(&c->job->quota, "the network has no room for a connection");
        return false;
    }
    c->charged += cost;
    return true;
}

void rdzv_conn_poll(struct rdzv_conn *c, int events, uv_poll_cb cb)
{
    if (c->events == events || uv_is_closing((uv_handle_t *)&c->poll))
        return;
    c->events = events;
    if (events == 0)
        (void)uv_poll_stop(&c->poll);
    else
        (void)uv_poll_start(&c->poll, events, cb);
}

/* ---- ending --------------------------------------------------------------------------------- */

static void on_conn_closed(uv_handle_t *h)
{
    struct rdzv_conn *c = container_of((uv_poll_t *)h, struct rdzv_conn, poll);

    if (c->protocol)
        c->protocol->free(c);
    if (c->fd >= 0)
        (void)close(c->fd);
    free(c);
}

void rdzv_conn_close(struct rdzv_conn *c)
{
    if (!uv_is_closing((uv_handle_t *)&c->poll))
        uv_close((uv_handle_t *)&c->poll, on_conn_closed);
}

void rdzv_conn_detach(struct rdzv_conn *c)
{
    struct ip_addr who = counted(&c->from);

    if (!c->job)
        return;
    if (c->protocol)
        c->protocol->detach(c);
    rdzv_quota_give(&c->job->jobs->quota, c->charged, 0);
    c->charged = 0;
    list_remove(&c->silent);
    rdzv_job_changed(c->job);
    admission_leave(&c->conns->admission, &who);
    c->job->heard_at = clock_now();
    list_remove(&c->link);
    c->job = NULL;
}

void rdzv_conn_hang_up(struct rdzv_conn *c)
{
    if (!c->job)
        return;
    rdzv_conn_detach(c);
    if (c->protocol && c->protocol->end)
        c->protocol->end(c);
    else
        rdzv_conn_close(c);
}

void rdzv_conn_complain(struct rdzv_conn *c, const char *why)
{
    char text[IP_ADDR_TEXT_MAX];

    c->conns->n_hung_up++;
    log_limited(&c->conns->limit, clock_now(), LOG_LEVEL_INFO,
        "a connection of %s to job \"%s\" is ended: %s", ip_addr_format(&c->from, text),
        c->job->name, why);
}

static bool is_nearly_full(const struct admission *a)
{
    return a->n >= a->max - a->max / 8;
}

/* Has its member no more silent ones than others in the job? */
static bool is_second(const struct rdzv_conn *c)
{
    const struct rdzv_conn *other;
    unsigned n_speaking = 0;
    unsigned n_silent = 1;

    list_foreach(other, &c->job->conns, link) {
        if (other == c || !ip_addr_equal(&other->from, &c->from))
            continue;
        n_speaking += other->protocol != NULL;
        n_silent += !other->protocol && other->charged > 0;
    }
    return n_silent <= n_speaking;
}

static bool may_stay_silent(struct rdzv_conn *c)
{
    return (!is_nearly_full(&c->conns->admission) || is_second(c)) &&
           (c->charged > 0 || rdzv_conn_charge(c, RDZV_COST_CONN));
}

void rdzv_conns_hang_up_silent(struct rdzv_conns *conns, nsec_t now)
{
    struct rdzv_conn *c;

    for (unsigned i = 0; i < JUDGED_AT_ONCE; i++) {
        c = list_first(&conns->silent, struct rdzv_conn, silent);
        if (!c || now - c->judged_at <= RDZV_SILENT_MAX)
            return;
        if (may_stay_silent(c)) {
            c->judged_at = now;
            list_remove(&c->silent);
            list_add_tail(&conns->silent, &c->silent);
            continue;
        }
        conns->n_hung_up++;
        rdzv_conn_hang_up(c);
    }
}

void rdzv_conns_hang_up(struct rdzv_job *job, const struct ip_addr *from)
{
    struct rdzv_conn *c;
    struct rdzv_conn *tmp;

    list_foreach_safe(c, tmp, &job->conns, link) {
        if (!from || ip_addr_equal(&c->from, from))
            rdzv_conn_hang_up(c);
    }
}

struct rdzv_presence rdzv_conns_count(const struct rdzv_job *job)
{
    struct rdzv_presence who = {.n_connections = 0};
    struct rdzv_conn *c;

    list_foreach(c, &job->conns, link) {
        who.n_connections++;
        if (who.n_members == 0)
            who.member = c->from;
        if (who.n_members < 2 && (who.n_members == 0 || !ip_addr_equal(&who.member, &c->from)))
            who.n_members++;
    }
    return who;
}
