/* service_state.c - what the service's threads share: its uses, and who is a member. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "measure/service_internal.h"
#include "os/wakeup.h"

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
