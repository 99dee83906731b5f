/* service.c - see service.h: its life, its members, its connections' threads. */
#include "probe/service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "probe/service_internal.h"
#include "sys/thread.h"
#include "sys/wakeup.h"

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

int service_new(struct service **ret, const struct service_config *config, struct err *e)
{
    struct service *s = calloc(1, sizeof(*s));
    int r;

    if (!s)
        return err_set(e, -ENOMEM, "no memory for the measuring service");
    s->config = *config;
    s->users = 2;
    s->underlay_fd = s->tcp_fd = s->udp_fd = s->unix_fd = -1;
    (void)pthread_mutex_init(&s->lock, NULL);
    session_init(&s->session);
    s->wake_fd = wakeup_open();
    r = s->wake_fd < 0 ? s->wake_fd : thread_start(&s->thread, "measure", -1, service__listen, s);
    if (r < 0) {
        s->users = 1;
        service__unref(s);
        return err_set(e, r, "the measuring service does not start: %s", strerror(-r));
    }
    *ret = s;
    return 0;
}

void service_look(struct service *s)
{
    wakeup_signal(s->wake_fd);
}

struct service *service_free(struct service *s)
{
    if (!s)
        return NULL;
    (void)pthread_mutex_lock(&s->lock);
    s->is_stopping = true;
    (void)pthread_mutex_unlock(&s->lock);
    wakeup_signal(s->wake_fd);
    (void)pthread_join(s->thread, NULL);
    service__unref(s);
    return NULL;
}

/* ---- members ------------------------------------------------------------------------------- */

static int compare_members(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct ip_addr));
}

_Static_assert(offsetof(struct service_member, address) == 0, "compare_members() relies on it");

void service_set_members(
    struct service *s, const struct ip_addr *own, const struct service_member *members, size_t n)
{
    struct service_member *copy = malloc((n + 1) * sizeof(*copy));

    /* Without memory the members of before stay. */
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
