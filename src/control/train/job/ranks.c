/* ranks.c - see ranks.h. */
#include "train/job/ranks.h"

#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/rng.h"
#include "net/address/sockaddr.h"
#include "os/fd_cleanup.h"
#include "os/rng_kernel.h"
#include "train/job/job_store.h"

/* The directory. */
#define RANKS "ranks"

/* Rank 0's port is below those that the kernel gives to connections, where it stays free until the
 * script listens there. */
#define PORT_FIRST    20000
#define PORTS_END     28000
#define PORT_ATTEMPTS 64

/** "NODE ADDRESS PORT", as a key has it. */
struct entry {
    char node[NAME_MAX_LEN + 1];
    char address[IP_ADDR_TEXT_MAX];
    uint16_t port;
};

/* What another node has written is read as a stranger's: false if it is no entry. */
static bool parse_entry(struct entry *ret, const char *text)
{
    struct entry entry;
    char port[8];
    uint64_t number;
    struct ip_addr address;
    const char *first = text ? strchr(text, ' ') : NULL;
    const char *second = first ? strchr(first + 1, ' ') : NULL;

    if (!second || first - text > NAME_MAX_LEN ||
        second - first - 1 >= (ptrdiff_t)sizeof(entry.address))
        return false;
    (void)snprintf(entry.node, sizeof(entry.node), "%.*s", (int)(first - text), text);
    (void)snprintf(
        entry.address, sizeof(entry.address), "%.*s", (int)(second - first - 1), first + 1);
    (void)snprintf(port, sizeof(port), "%s", second + 1);
    if (parse_name(entry.node, "node", NULL) != 0 ||
        ip_addr_parse(&address, entry.address, NULL) != 0 ||
        parse_u64(&number, port, 1, UINT16_MAX, "port", NULL) != 0)
        return false;
    entry.port = (uint16_t)number;
    *ret = entry;
    return true;
}

/* ---- who has come --------------------------------------------------------------------------- */

/* What the directory says. Of a node that has come twice its first key counts. */
struct arrivals {
    unsigned n;         /* nodes */
    bool has_own;       /* this one is among them */
    unsigned own;       /* its place */
    struct entry first; /* with @n > 0 */
};

static void take_arrivals(struct arrivals *ret, const json_t *nodes, const char *own)
{
    _Static_assert(NAME_MAX_LEN <= 63, "a name is a key");
    json_t *seen = json_object();
    const json_t *node;
    size_t i;

    *ret = (struct arrivals){0};
    json_array_foreach(nodes, i, node) {
        struct entry entry;

        if (!parse_entry(&entry, json_string_value(json_object_get(node, "value"))) ||
            json_object_get(seen, entry.node))
            continue;
        (void)json_object_set_new(seen, entry.node, json_true());
        if (ret->n == 0)
            ret->first = entry;
        if (strcmp(entry.node, own) == 0) {
            ret->has_own = true;
            ret->own = ret->n;
        }
        ret->n++;
    }
    json_decref(seen);
}

static int list(struct job_store *s, const char *own, struct arrivals *ret, struct err *e)
{
    json_t *node = NULL;
    int status = job_store_ask(s, "GET", RANKS "?sorted=true", NULL, &node, e);

    take_arrivals(ret, json_object_get(node, "nodes"), own);
    json_decref(node);
    if (status < 0)
        return status;
    return status == JOB_STORE_OK || status == JOB_STORE_ABSENT ? 0 : job_store_refuse(status, e);
}

/* Is it free for a server on that address? */
static bool is_free(const struct ip_addr *address, uint16_t port)
{
    const struct endpoint at = {.addr = *address, .port = port};
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, &at);
    _cleanup_(closep) int fd = socket(sa.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return fd >= 0 && bind(fd, &sa.any, len) == 0;
}

static int find_port(const struct ranks_wish *wish, uint16_t *ret, struct err *e)
{
    unsigned end = wish->first_port > PORT_FIRST && wish->first_port < PORTS_END ? wish->first_port
                                                                                 : PORTS_END;
    struct rng rng = rng_kernel();
    struct ip_addr address;
    int r = ip_addr_parse(&address, wish->address4, e);

    for (unsigned i = 0; i < PORT_ATTEMPTS && r == 0; i++) {
        uint16_t port = (uint16_t)(PORT_FIRST + rng_u32(&rng) % (end - PORT_FIRST));

        if (is_free(&address, port)) {
            *ret = port;
            return 0;
        }
    }
    return r != 0 ? r
                  : err_set(e, -EADDRINUSE, "of %u ports of %s from %u to %u none is free",
                        PORT_ATTEMPTS, wish->address4, PORT_FIRST, end - 1);
}

static int come(struct job_store *s, const struct ranks_wish *wish, struct err *e)
{
    char form[NAME_MAX_LEN + IP_ADDR_TEXT_MAX + 32];
    uint16_t port = 0;
    int status;
    int r = find_port(wish, &port, e);

    if (r != 0)
        return r;
    (void)snprintf(
        form, sizeof(form), "value=%.*s+%s+%u", NAME_MAX_LEN, wish->node, wish->address4, port);
    status = job_store_ask(s, "POST", RANKS, form, NULL, e);
    if (status < 0)
        return status;
    return status == JOB_STORE_MADE || status == JOB_STORE_OK ? 0 : job_store_refuse(status, e);
}

static int find(
    struct job_store *s, const struct ranks_wish *wish, struct arrivals *ret, struct err *e)
{
    int r = list(s, wish->node, ret, e);

    if (r != 0 || ret->has_own || !wish->starts)
        return r;
    r = come(s, wish, e);
    if (r == 0)
        r = list(s, wish->node, ret, e);
    if (r == 0 && !ret->has_own)
        r = err_set(e, -EPROTO, "the job's store at the hub has forgotten this node");
    return r;
}

int ranks_find(const struct ranks_wish *wish, struct ranks *ret, struct err *e)
{
    struct arrivals arrivals;
    struct job_store s;
    int r = job_store_open(&s, wish->meeting, e);

    if (r != 0)
        return r;
    r = find(&s, wish, &arrivals, e);
    job_store_close(&s);
    if (r != 0)
        return r;
    *ret = (struct ranks){.is_known = true, .rank = arrivals.has_own ? arrivals.own : arrivals.n};
    (void)snprintf(ret->address, sizeof(ret->address), "%s",
        arrivals.n > 0 ? arrivals.first.address : wish->address4);
    ret->port = arrivals.n > 0 ? arrivals.first.port : 0;
    return 0;
}
