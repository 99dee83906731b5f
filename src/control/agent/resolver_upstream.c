/* resolver_upstream.c - see resolver_upstream.h. */
#include "agent/resolver_upstream.h"

#include <ares.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/secret.h"
#include "os/clock.h"
#include "wire/dns.h"

#define TIMEOUT_MS 2000 /* of the first try with a server; c-ares doubles it */
#define TRIES      2    /* with each server */
#define TICK_MS    200  /* how often c-ares looks for what has timed out */

#define OWN_MAX     2
#define SERVERS_MAX 8 /* resolv.conf(5) has three at most */

/** One socket of c-ares', watched for it. Freed when its handle is closed. */
struct watch {
    uv_poll_t poll;
    ares_socket_t fd;
    struct resolver_upstream *owner; /* pinned; NULL: it is being closed */
    struct watch *next;
};

struct resolver_upstream {
    uv_loop_t *loop;       /* pinned */
    const char *path;      /* pinned */
    bool is_open;          /* there is a channel */
    bool is_busy;          /* in a call of c-ares, which may call back: no channel is closed */
    ares_channel channel;  /* owns, while @is_open */
    struct watch *watches; /* owns */
    uv_timer_t tick;       /* runs while anything is under way */
    size_t n_asked;        /* under way */
    struct timespec read_at;
    ino_t inode; /* of the file as it was read */
    struct ip_addr own[OWN_MAX];
    size_t n_own;
};

/** A question that is under way. */
struct question {
    struct resolver_upstream *owner; /* borrowed: it lives as long as its channel */
    resolver_upstream_fn fn;
    void *ctx;
};

/* ---- c-ares on a loop ----------------------------------------------------------------------- */

static void process(struct resolver_upstream *u, ares_socket_t in, ares_socket_t out)
{
    if (!u->is_open)
        return;
    u->is_busy = true;
    ares_process_fd(u->channel, in, out);
    u->is_busy = false;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watch *w = poll->data;
    ares_socket_t in = status < 0 || (events & UV_READABLE) ? w->fd : ARES_SOCKET_BAD;
    ares_socket_t out = status < 0 || (events & UV_WRITABLE) ? w->fd : ARES_SOCKET_BAD;

    if (w->owner)
        process(w->owner, in, out);
}

static void on_tick(uv_timer_t *tick)
{
    process(tick->data, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

static void on_watch_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static struct watch *add_watch(struct resolver_upstream *u, ares_socket_t fd)
{
    struct watch *w = calloc(1, sizeof(*w));

    if (!w || uv_poll_init_socket(u->loop, &w->poll, fd) < 0) {
        free(w);
        return NULL;
    }
    *w = (struct watch){.poll = w->poll, .fd = fd, .owner = u, .next = u->watches};
    w->poll.data = w;
    u->watches = w;
    return w;
}

static void remove_watch(struct resolver_upstream *u, const struct watch *wanted)
{
    for (struct watch **at = &u->watches; *at; at = &(*at)->next) {
        struct watch *w = *at;

        if (w != wanted)
            continue;
        *at = w->next;
        w->owner = NULL;
        uv_close((uv_handle_t *)&w->poll, on_watch_closed);
        return;
    }
}

/* c-ares says what it waits for; nothing: it is about to close the socket. */
static void on_socket(void *ctx, ares_socket_t fd, int readable, int writable)
{
    struct resolver_upstream *u = ctx;
    int events = (readable ? UV_READABLE : 0) | (writable ? UV_WRITABLE : 0);
    struct watch *w = u->watches;

    while (w && w->fd != fd)
        w = w->next;
    if (events == 0) {
        if (w)
            remove_watch(u, w);
        return;
    }
    if (!w)
        w = add_watch(u, fd);
    /* A socket that cannot be watched has its question time out. */
    if (w)
        (void)uv_poll_start(&w->poll, events, on_poll);
}

/* ---- the name servers ----------------------------------------------------------------------- */

static bool is_own(const struct resolver_upstream *u, const struct ip_addr *a)
{
    for (size_t i = 0; i < u->n_own; i++)
        if (ip_addr_equal(&u->own[i], a))
            return true;
    return false;
}

/* Leaves this resolver itself out. Return: false when nobody else is there to ask. */
static bool leave_own_out(struct resolver_upstream *u)
{
    struct ares_addr_port_node kept[SERVERS_MAX];
    struct ares_addr_port_node *all = NULL;
    size_t n = 0;

    if (ares_get_servers_ports(u->channel, &all) != ARES_SUCCESS)
        return false;
    for (const struct ares_addr_port_node *s = all; s && n < SERVERS_MAX; s = s->next) {
        struct ip_addr a = s->family == AF_INET ? ip_addr_v4((const uint8_t *)&s->addr.addr4)
                                                : ip_addr_v6((const uint8_t *)&s->addr.addr6);

        if (is_own(u, &a))
            continue;
        kept[n] = *s;
        kept[n].next = NULL;
        if (n > 0)
            kept[n - 1].next = &kept[n];
        n++;
    }
    ares_free_data(all);
    return n > 0 && ares_set_servers_ports(u->channel, kept) == ARES_SUCCESS;
}

static void close_channel(struct resolver_upstream *u)
{
    if (!u->is_open)
        return;
    u->is_open = false;
    u->is_busy = true;
    ares_destroy(u->channel);
    u->is_busy = false;
}

static void open_channel(struct resolver_upstream *u)
{
    struct ares_options opt = {.timeout = TIMEOUT_MS,
        .tries = TRIES,
        .sock_state_cb = on_socket,
        .sock_state_cb_data = u,
        .resolvconf_path = (char *)(uintptr_t)u->path};
    int mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB | ARES_OPT_RESOLVCONF;

    u->is_open = ares_init_options(&u->channel, &opt, mask) == ARES_SUCCESS;
    if (u->is_open && !leave_own_out(u))
        close_channel(u);
}

/* Has a channel with the servers of the file as it is now. */
static bool refresh(struct resolver_upstream *u)
{
    struct stat st = {0};

    if (u->is_busy)
        return u->is_open;
    (void)stat(u->path, &st);
    if (u->is_open && st.st_ino == u->inode && st.st_mtim.tv_sec == u->read_at.tv_sec &&
        st.st_mtim.tv_nsec == u->read_at.tv_nsec)
        return true;
    close_channel(u);
    u->inode = st.st_ino;
    u->read_at = st.st_mtim;
    open_channel(u);
    return u->is_open;
}

/* ---- questions ------------------------------------------------------------------------------ */

static void on_answer(void *ctx, int status, int timeouts, unsigned char *answer, int len)
{
    struct question *q = ctx;
    struct resolver_upstream *u = q->owner;
    bool has_one = status == ARES_SUCCESS && answer && len >= DNS_HEADER_LEN;

    if (--u->n_asked == 0)
        (void)uv_timer_stop(&u->tick);
    q->fn(q->ctx, has_one ? answer : NULL, has_one ? (size_t)len : 0);
    free(q);
}

struct resolver_upstream *resolver_upstream_new(uv_loop_t *loop, const char *path)
{
    struct resolver_upstream *u = calloc(1, sizeof(*u));

    if (!u || ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS) {
        free(u);
        return NULL;
    }
    u->loop = loop;
    u->path = path;
    (void)uv_timer_init(loop, &u->tick);
    u->tick.data = u;
    return u;
}

void resolver_upstream_set_own(
    struct resolver_upstream *u, const struct ip_addr *addresses, size_t n)
{
    u->n_own = n < OWN_MAX ? n : OWN_MAX;
    memcpy(u->own, addresses, u->n_own * sizeof(*addresses));
    close_channel(u);
}

bool resolver_upstream_ask(struct resolver_upstream *u, const uint8_t *query, size_t len,
    resolver_upstream_fn fn, void *ctx)
{
    uint8_t copy[DNS_QUERY_MAX];
    struct rng rng = rng_kernel();
    struct question *q;
    bool was_busy;

    if (u->n_asked >= RESOLVER_UPSTREAM_MAX || len > sizeof(copy) || !refresh(u))
        return false;
    q = malloc(sizeof(*q));
    if (!q)
        return false;
    *q = (struct question){.owner = u, .fn = fn, .ctx = ctx};
    memcpy(copy, query, len);
    rng_fill(&rng, copy, 2);
    if (u->n_asked++ == 0)
        (void)uv_timer_start(&u->tick, on_tick, TICK_MS, TICK_MS);
    was_busy = u->is_busy;
    u->is_busy = true;
    ares_send(u->channel, copy, (int)len, on_answer, q);
    u->is_busy = was_busy;
    return true;
}

void resolver_upstream_cancel(struct resolver_upstream *u)
{
    if (!u->is_open)
        return;
    u->is_busy = true;
    ares_cancel(u->channel);
    u->is_busy = false;
}

static void on_tick_closed(uv_handle_t *handle)
{
    free(handle->data);
}

struct resolver_upstream *resolver_upstream_free(struct resolver_upstream *u)
{
    if (!u)
        return NULL;
    close_channel(u);
    ares_library_cleanup();
    uv_close((uv_handle_t *)&u->tick, on_tick_closed);
    return NULL;
}
