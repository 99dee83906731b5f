/* resolve.c - see resolve.h. */
#include "net/address/resolve.h"

#include <arpa/nameser.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <resolv.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/parse.h"
#include "net/address/sockaddr.h"
#include "os/worker.h"

#define HOST_MAX 253 /* RFC 1035 section 2.3.4, without the root's dot */

/* "HOST:PORT" into its parts; a host with two colons is an IPv6 address without a port. */
static int split(const char *text, char host[HOST_MAX + 1], uint16_t *port, struct err *e)
{
    const char *colon = strrchr(text, ':');
    size_t len = strlen(text);
    uint64_t n;

    if (colon && strchr(text, ':') == colon) {
        if (parse_u64(&n, colon + 1, 1, UINT16_MAX, "port", e) < 0)
            return -EINVAL;
        *port = (uint16_t)n;
        len = (size_t)(colon - text);
    }
    if (len == 0 || len > HOST_MAX)
        return err_set(e, -EINVAL, "\"%.80s\" is not HOST or HOST:PORT", text);
    memcpy(host, text, len);
    host[len] = '\0';
    return 0;
}

static int look_up(const char *host, uint16_t port, struct endpoint *ret, unsigned cap,
    unsigned *ret_n, struct err *e)
{
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_ADDRCONFIG};
    struct addrinfo *list = NULL;
    unsigned n = 0;
    int r = getaddrinfo(host, NULL, &hints, &list);

    if (r != 0)
        return err_set(e, -EHOSTUNREACH, "host \"%s\": %s", host, gai_strerror(r));
    for (struct addrinfo *ai = list; ai && n < cap; ai = ai->ai_next) {
        union sockaddr_inet sa;

        if (ai->ai_addrlen > sizeof(sa))
            continue;
        memcpy(&sa, ai->ai_addr, ai->ai_addrlen);
        if (!sockaddr_to_endpoint(&sa, &ret[n]))
            continue;
        ret[n++].port = port;
    }
    freeaddrinfo(list);
    if (n == 0)
        return err_set(e, -EHOSTUNREACH, "host \"%s\" has no address", host);
    *ret_n = n;
    return 0;
}

/* @text's parts: an address with its port, or only a name and the port. */
static int parse(const char *text, struct endpoint *ret, char host[static HOST_MAX + 1],
    uint16_t *port, struct err *e)
{
    struct endpoint ep = {.port = *port};
    int r;

    if (endpoint_parse(&ep, text, NULL) == 0 && ep.port != 0) {
        *ret = ep;
        return 0;
    }
    r = split(text, host, port, e);
    if (r < 0)
        return r;
    if (ip_addr_parse(&ep.addr, host, NULL) == 0)
        *ret = (struct endpoint){.addr = ep.addr, .port = *port};
    else if (host[strspn(host, "0123456789.")] == '\0')
        /* No name ends in a number (RFC 3696 section 2). */
        return err_set(
            e, -EINVAL, "\"%s\" is not an IPv4 address, which is four numbers from 0 to 255", host);
    return 0;
}

int resolve_check(const char *text, struct ip_addr *ret, struct err *e)
{
    struct endpoint ep = {.port = 0};
    char host[HOST_MAX + 1];
    uint16_t port = 1;
    int r = parse(text, &ep, host, &port, e);

    if (r == 0)
        *ret = ep.addr;
    return r;
}

int resolve_host(const char *text, uint16_t dflt_port, struct endpoint *ret, unsigned cap,
    unsigned *ret_n, struct err *e)
{
    struct endpoint ep = {.port = 0};
    char host[HOST_MAX + 1];
    uint16_t port = dflt_port;
    int r = parse(text, &ep, host, &port, e);

    if (r < 0)
        return r;
    if (ip_addr_is_none(&ep.addr))
        return look_up(host, port, ret, cap, ret_n, e);
    ret[0] = ep;
    *ret_n = 1;
    return 0;
}

unsigned resolve_own(struct ip_addr ret[static 2])
{
    /* Blocks for documentation (RFC 5737, RFC 3849): only the default route leads there. */
    static const char *const far[] = {"198.51.100.1:9", "[2001:db8::1]:9"};
    struct endpoint to;
    unsigned n = 0;

    for (unsigned i = 0; i < 2; i++)
        if (endpoint_parse(&to, far[i], NULL) == 0 && sockaddr_source(&to, 0, &ret[n]) == 0 &&
            (i == 0 || !ip_addr_is_link_local(&ret[n])))
            n++;
    return n;
}

/* ---- does a name lead anywhere ---- */

#define ANSWER_MAX 4096

/* The first address outside the overlay's blocks; false when there is none. */
static bool find_other(
    const struct name_query *q, const struct addrinfo *list, struct ip_addr *ret_where)
{
    for (; list; list = list->ai_next) {
        union sockaddr_inet sa = {.any.sa_family = AF_UNSPEC};
        struct endpoint ep;

        if (list->ai_addrlen <= sizeof(sa))
            memcpy(&sa, list->ai_addr, list->ai_addrlen);
        if (sockaddr_to_endpoint(&sa, &ep) && !ip_prefix_has(&q->ours[0], &ep.addr) &&
            !ip_prefix_has(&q->ours[1], &ep.addr)) {
            *ret_where = ep.addr;
            return true;
        }
    }
    return false;
}

/*
 * One type of record. An answer with the node's own address in it comes from a
 * server that reads our hosts file; where else it might lead cannot be seen.
 */
static enum name_found ask_servers_for(
    struct __res_state *res, const struct name_query *q, int type, const void *own, size_t own_len)
{
    uint8_t answer[ANSWER_MAX];
    int len = res_nsearch(res, q->name, ns_c_in, type, answer, sizeof(answer));

    if (len > (int)sizeof(answer))
        len = (int)sizeof(answer);
    if (len > 0)
        return memmem(answer, (size_t)len, own, own_len) ? NAME_FOUND_NOBODY : NAME_FOUND_SOMEBODY;
    return res->res_h_errno == HOST_NOT_FOUND || res->res_h_errno == NO_DATA ? NAME_FOUND_NOBODY
                                                                             : NAME_FOUND_SILENT;
}

static enum name_found ask_servers(const struct name_query *q)
{
    struct __res_state res = {0};
    enum name_found found;

    if (res_ninit(&res) < 0)
        return NAME_FOUND_SILENT;
    /* An IPv4 address is the last four bytes of its mapped form. */
    found = ask_servers_for(&res, q, ns_t_a, &q->address4.b[12], 4);
    if (found == NAME_FOUND_NOBODY)
        found = ask_servers_for(&res, q, ns_t_aaaa, q->address6.b, sizeof(q->address6.b));
    res_nclose(&res);
    return found;
}

enum name_found name_lookup(const struct name_query *q, struct ip_addr *ret_where)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct ip_addr where = {0};
    struct addrinfo *list = NULL;
    enum name_found found;
    bool is_other;

    switch (getaddrinfo(q->name, NULL, &hints, &list)) {
    case 0:
        break;
    case EAI_NONAME:
    case EAI_NODATA:
        return NAME_FOUND_NOBODY;
    default:
        return NAME_FOUND_SILENT;
    }
    is_other = find_other(q, list, &where);
    freeaddrinfo(list);
    found = is_other ? NAME_FOUND_SOMEBODY : ask_servers(q);
    if (found == NAME_FOUND_SOMEBODY)
        *ret_where = where;
    return found;
}

/* ---- without waiting ---- */

struct resolve_task {
    struct worker *worker; /* the owner's */
    bool is_done;          /* likewise */
    unsigned n;            /* immutable after the start */
    uint16_t dflt_port;    /* likewise */

    /* The thread's until it is done, and then the owner's. */
    struct list link;
    struct resolve_answer answers[RESOLVE_TASK_TEXTS];
};

static void look_all_up(struct worker *w, void *ctx)
{
    struct resolve_task *t = ctx;

    for (unsigned i = 0; i < t->n; i++) {
        struct resolve_answer *a = &t->answers[i];

        if (resolve_host(a->text, t->dflt_port, a->endpoints, RESOLVE_TASK_EACH, &a->n, &a->why) <
            0)
            a->n = 0;
    }
    worker_finish(w, &t->link);
}

int resolve_task_start(struct resolve_task **ret, const char (*texts)[HOST_PORT_MAX + 1],
    unsigned n, uint16_t dflt_port, struct err *e)
{
    struct resolve_task *t = calloc(1, sizeof(*t));
    int r;

    assert(n >= 1 && n <= RESOLVE_TASK_TEXTS);
    if (!t)
        return err_set(e, -ENOMEM, "no memory for looking names up");
    for (t->n = 0; t->n < n; t->n++)
        (void)snprintf(t->answers[t->n].text, sizeof(t->answers[0].text), "%s", texts[t->n]);
    t->dflt_port = dflt_port;
    r = worker_start(&t->worker,
        &(struct worker_config){.name = "resolve", .loop = look_all_up, .release = free, .ctx = t});
    if (r < 0) {
        free(t);
        return err_set(e, r, "no thread to look names up in: %s", strerror(-r));
    }
    *ret = t;
    return 0;
}

unsigned resolve_task_take(struct resolve_task *t, struct resolve_answer *ret)
{
    t->is_done = t->is_done || worker_collect(t->worker);
    if (!t->is_done)
        return 0;
    memcpy(ret, t->answers, t->n * sizeof(*ret));
    return t->n;
}

struct resolve_task *resolve_task_free(struct resolve_task *t)
{
    if (t)
        (void)worker_leave(t->worker);
    return NULL;
}
