/*
 * service_state.c - what the service's threads share: the references to it, the list of members,
 * and the port outside the overlay, which is open while a session needs it.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "measure/service_internal.h"
#include "net/address/sockaddr.h"
#include "os/fd_cleanup.h"
#include "os/wakeup.h"

#define BACKLOG 64

/* ---- references ---------------------------------------------------------------------------- */

void service__ref(struct service *s)
{
    (void)pthread_mutex_lock(&s->lock);
    s->users++;
    (void)pthread_mutex_unlock(&s->lock);
}

void service__unref(struct service *s)
{
    bool last;

    (void)pthread_mutex_lock(&s->lock);
    last = --s->users == 0;
    (void)pthread_mutex_unlock(&s->lock);
    if (!last)
        return;
    session_deinit(&s->session);
    (void)pthread_mutex_destroy(&s->lock);
    (void)close(s->wake_fd);
    free(s->members);
    free(s);
}

bool service__is_stopping(struct service *s)
{
    bool yes;

    (void)pthread_mutex_lock(&s->lock);
    yes = s->is_stopping;
    (void)pthread_mutex_unlock(&s->lock);
    return yes;
}

/* ---- members --------------------------------------------------------------------------------- */

static int compare_members(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct ip_addr));
}

_Static_assert(offsetof(struct service_member, address) == 0, "compare_members() relies on it");

void service_set_members(
    struct service *s, const struct ip_addr *own, const struct service_member *members, size_t n)
{
    struct service_member *copy = malloc((n + 1) * sizeof(*copy));

    /* Without memory the former members stay. */
    if (!copy)
        return;
    memcpy(copy, members, n * sizeof(*copy));
    qsort(copy, n, sizeof(*copy), compare_members);
    (void)pthread_mutex_lock(&s->lock);
    free(s->members);
    s->members = copy;
    s->n_members = n;
    s->own = *own;
    wakeup_signal(s->wake_fd);
    (void)pthread_mutex_unlock(&s->lock);
}

bool service__find_member(
    struct service *s, const struct ip_addr *address, struct service_member *ret)
{
    const struct service_member *found = NULL;

    (void)pthread_mutex_lock(&s->lock);
    if (s->n_members > 0)
        found = bsearch(address, s->members, s->n_members, sizeof(*s->members), compare_members);
    if (found)
        *ret = *found;
    (void)pthread_mutex_unlock(&s->lock);
    return found != NULL;
}

/* ---- the port outside the overlay ------------------------------------------------------------ */

/* Listens on all addresses of a family, not bound to the overlay's interface. */
static int listen_on_family(int family)
{
    union sockaddr_inet sa = {.any.sa_family = (sa_family_t)family};
    socklen_t len = family == AF_INET6 ? sizeof(sa.v6) : sizeof(sa.v4);
    _cleanup_(closep) int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int off = 0;

    if (fd < 0)
        return -errno;
    if (family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(fd, &sa.any, len) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    return TAKE_FD(fd);
}

/* One IPv6 socket serves both families. On a machine without IPv6 it is an IPv4 socket. */
static int listen_anywhere(void)
{
    int r = listen_on_family(AF_INET6);

    return r < 0 ? listen_on_family(AF_INET) : r;
}

static int port_of(int fd)
{
    union sockaddr_inet sa;
    socklen_t len = sizeof(sa);
    struct endpoint bound;

    if (getsockname(fd, &sa.any, &len) < 0 || !sockaddr_to_endpoint(&sa, &bound))
        return -EADDRNOTAVAIL;
    return bound.port;
}

/* A port that is open already is kept, because the listening thread polls it, and no other thread
 * may close it. */
int service__open_underlay(struct service *s)
{
    int r = 0;

    (void)pthread_mutex_lock(&s->lock);
    if (s->underlay_fd < 0)
        r = listen_anywhere();
    if (r > 0)
        s->underlay_fd = r;
    if (r >= 0)
        r = port_of(s->underlay_fd);
    (void)pthread_mutex_unlock(&s->lock);
    wakeup_signal(s->wake_fd);
    return r;
}

uint16_t service__underlay_port(struct service *s)
{
    int port = 0;

    (void)pthread_mutex_lock(&s->lock);
    if (s->underlay_fd >= 0)
        port = port_of(s->underlay_fd);
    (void)pthread_mutex_unlock(&s->lock);
    return port > 0 ? (uint16_t)port : 0;
}

void service__close_underlay(struct service *s)
{
    (void)pthread_mutex_lock(&s->lock);
    closep(&s->underlay_fd);
    s->underlay_fd = -1;
    (void)pthread_mutex_unlock(&s->lock);
}
