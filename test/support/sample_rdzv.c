/* sample_rdzv.c - see sample_rdzv.h. */
#include "test/support/sample_rdzv.h"

#include <poll.h>
#include <unistd.h>

#include "os/process.h"
#include "rendezvous/job/rdzv_link.h"

static struct rdzv_link hub;
static void (*take_message)(const struct rdzv_wire *m, int fd);

void sample_rdzv_say(const struct rdzv_wire *m)
{
    rdzv_link_say(&hub, m);
    rdzv_link_flush(&hub);
}

static void on_message(void *ctx, const struct rdzv_wire *m, int fd)
{
    take_message(m, fd);
    if (fd >= 0)
        (void)close(fd);
}

int sample_rdzv_run(void (*take)(const struct rdzv_wire *m, int fd))
{
    struct pollfd readable = {.fd = PROCESS_LINK_FD, .events = POLLIN};

    if (rdzv_link_init(&hub, PROCESS_LINK_FD) != 0)
        return 1;
    hub.on_message = on_message;
    take_message = take;
    while (!hub.failed && poll(&readable, 1, -1) == 1)
        rdzv_link_read(&hub);
    rdzv_link_deinit(&hub);
    return 0;
}
