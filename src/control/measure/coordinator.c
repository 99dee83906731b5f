/* coordinator.c - see coordinator.h. */
#include "measure/coordinator.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "measure/dial.h"
#include "net/address/sockaddr.h"
#include "net/socket/socket.h"
#include "net/socket/unix_socket.h"
#include "os/clock.h"
#include "os/file.h"

#define WRITE_TIME (2 * NSEC_PER_SEC)

static void lose_link(struct coordinator_link *k, const char *why)
{
    closep(&k->fd);
    (void)snprintf(k->why, sizeof(k->why), "%.*s", COORDINATOR_WHY_MAX - 1, why);
}

void coordinator_deinit(struct coordinator *c)
{
    for (size_t i = 0; i < c->n; i++) {
        closep(&c->items[i].fd);
        line_buffer_deinit(&c->items[i].in);
        json_decref(c->items[i].answer);
    }
    free(c->items);
    *c = (struct coordinator){0};
}

bool coordinator_has(const struct coordinator *c, size_t i)
{
    return c->items[i].fd >= 0;
}

/* ---- opening ------------------------------------------------------------------------------- */

static int open_local(const char *path, struct err *e)
{
    int fd = unix_socket_connect(path, SOCK_STREAM);

    return fd < 0 ? err_set(e, fd, "no measuring service at %s: %s", path, strerror(-fd)) : fd;
}

/* Begins to connect. The connection is established when the socket becomes writable. */
static int open_remote(
    const struct ip_addr *address, uint16_t port, const char *interface, struct err *e)
{
    struct endpoint ep = {.addr = *address, .port = port};
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, &ep);
    _cleanup_(closep) int fd =
        socket(sa.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || dial_bind_device(fd, interface) < 0)
        return err_set(e, -errno, "no socket: %s", strerror(errno));
    if (connect(fd, &sa.any, len) < 0 && errno != EINPROGRESS)
        return err_set(e, -errno, "no connection: %s", strerror(errno));
    return TAKE_FD(fd);
}

/* Is it known by @deadline how connecting has ended? What is known is seen after it, too. */
static bool has_ended_connecting(int fd, nsec_t deadline)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    return socket_wait(fd, POLLOUT, deadline) == 0 || poll(&p, 1, 0) > 0;
}

/* Waits for all connections together. A member that is not connected by @deadline is lost; the
 * others are not, even where it has used up the time. */
static void finish_connecting(struct coordinator *c, nsec_t deadline)
{
    for (size_t i = 0; i < c->n; i++) {
        struct coordinator_link *k = &c->items[i];
        int error = 0;
        socklen_t len = sizeof(error);

        if (k->fd < 0)
            continue;
        if (!has_ended_connecting(k->fd, deadline))
            lose_link(k, "it does not answer");
        else if (getsockopt(k->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error == ETIMEDOUT ||
                 error == EHOSTUNREACH)
            lose_link(k, "it does not answer");
        else if (error != 0)
            lose_link(k, "it has no measuring service: its agent does not run, is older, only "
                         "relays, or was started with --no-measure");
    }
}

/* Gives SESSION @o once more, with proofs, to those who want one. @proven: room for all of them. */
static int give_proven(struct coordinator *c, const struct coordinator_hooks *hooks,
    const struct order *o, struct order *proven, nsec_t deadline)
{
    _cleanup_(freep) const struct order **orders = calloc(c->n + 1, sizeof(*orders));
    _cleanup_(freep) struct order_proof *proofs = calloc(c->n + 1, sizeof(*proofs));
    _cleanup_(freep) bool *has = calloc(c->n + 1, sizeof(*has));
    struct err e = ERR_NULL;
    size_t n = 0;

    if (!orders || !proofs || !has)
        return -ENOMEM;
    for (size_t i = 0; i < c->n; i++)
        n += c->items[i].fd >= 0 && c->items[i].has_challenge;
    if (n == 0 || !hooks->prove)
        return 0;
    if (hooks->prove(hooks->ctx, o, c->items, c->n, proofs, has, &e) != 0) {
        for (size_t i = 0; i < c->n; i++)
            if (c->items[i].has_challenge)
                lose_link(&c->items[i], err_text(&e));
        return 0;
    }
    for (size_t i = 0; i < c->n; i++) {
        if (!has[i])
            continue;
        proven[i] = *o;
        proven[i].has_proof = true;
        proven[i].proof = proofs[i];
        orders[i] = &proven[i];
    }
    coordinator_ask(c, orders, deadline);
    return 0;
}

int coordinator_open(struct coordinator *c, const struct ip_addr *addresses, size_t n,
    const struct coordinator_hooks *hooks, const struct order *o, nsec_t deadline)
{
    _cleanup_(freep) const struct order **orders = calloc(n + 1, sizeof(*orders));
    _cleanup_(freep) struct order *proven = calloc(n + 1, sizeof(*proven));
    nsec_t time = deadline - clock_now();
    int r;

    *c = (struct coordinator){.items = calloc(n + 1, sizeof(*c->items)), .n = n, .id = o->id};
    if (!orders || !proven || !c->items) {
        free(c->items);
        *c = (struct coordinator){0};
        return -ENOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        bool is_own = hooks->socket_path && ip_addr_equal(&addresses[i], &hooks->own);
        struct err e = ERR_NULL;

        c->items[i].address = addresses[i];
        c->items[i].fd = is_own ? open_local(hooks->socket_path, &e)
                                : open_remote(&addresses[i], hooks->port, hooks->interface, &e);
        if (c->items[i].fd < 0)
            lose_link(&c->items[i], err_text(&e));
        orders[i] = o;
    }
    finish_connecting(c, deadline);
    /* A member that has used up the time of connecting leaves the others theirs to answer. */
    coordinator_ask(c, orders, clock_now() + time);
    r = give_proven(c, hooks, o, proven, clock_now() + time);
    for (size_t i = 0; i < n; i++)
        if (!c->items[i].answer)
            closep(&c->items[i].fd);
    return r;
}

/* ---- asking -------------------------------------------------------------------------------- */

static void link_send_order(struct coordinator_link *k, const struct order *o)
{
    json_t *json = order_encode(o);
    struct err e = ERR_NULL;

    json_decref(k->answer);
    k->answer = NULL;
    k->why[0] = '\0';
    k->has_challenge = false;
    if (line_write(k->fd, json, clock_now() + WRITE_TIME, &e) < 0)
        lose_link(k, err_text(&e));
    json_decref(json);
}

/* Return: true when the answer is complete, or the connection is lost. */
static bool link_take_answer(struct coordinator_link *k)
{
    struct err e = ERR_NULL;
    json_t *json = NULL;
    int r = line_fill(&k->in, k->fd, &e);

    if (r == 0)
        r = line_take(&k->in, &json, &e);
    if (r == -EAGAIN)
        return false;
    if (r < 0) {
        lose_link(k, err_text(&e));
        return true;
    }
    if (line_check_answer(json, &e) < 0) {
        (void)snprintf(k->why, sizeof(k->why), "%.*s", COORDINATOR_WHY_MAX - 1, err_text(&e));
        k->has_challenge = order_challenge_decode(&k->challenge, json);
        json_decref(json);
        return true;
    }
    k->answer = json;
    return true;
}

/* Waits once, for at most @left nanoseconds. @waits: whose answers are awaited; updated. @fds: room
 * for all members. Return: how many answers are still awaited. */
static size_t wait_once(struct coordinator *c, struct pollfd *fds, bool *waits, nsec_t left)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++)
        fds[i] = (struct pollfd){.fd = waits[i] ? c->items[i].fd : -1, .events = POLLIN};
    (void)poll(fds, c->n, (int)(left / NSEC_PER_MSEC + 1));
    for (size_t i = 0; i < c->n; i++) {
        if (waits[i] && fds[i].revents && link_take_answer(&c->items[i]))
            waits[i] = false;
        n += waits[i];
    }
    return n;
}

void coordinator_ask(struct coordinator *c, const struct order *const orders[], nsec_t deadline)
{
    _cleanup_(freep) struct pollfd *fds = calloc(c->n + 1, sizeof(*fds));
    _cleanup_(freep) bool *waits = calloc(c->n + 1, sizeof(*waits));
    size_t n = 0;

    for (size_t i = 0; i < c->n && fds && waits; i++) {
        if (!orders[i] || c->items[i].fd < 0)
            continue;
        link_send_order(&c->items[i], orders[i]);
        waits[i] = c->items[i].fd >= 0;
        n += waits[i];
    }
    while (n > 0 && clock_now() < deadline)
        n = wait_once(c, fds, waits, deadline - clock_now());
    for (size_t i = 0; i < c->n && n > 0; i++)
        if (waits[i])
            lose_link(&c->items[i], "it has stopped answering");
}
