/* service.c - see service.h: its life. */
#include "measure/service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "measure/service_internal.h"
#include "os/thread.h"
#include "os/wakeup.h"

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
