/* job_ports.c - see job_ports.h. */
#include "job_ports.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "net/socket/tcp.h"
#include "os/fd_cleanup.h"

#define BACKLOG 1024

/* What a machine sends to an address of its own never comes in by the interface that has it. */
#define LOOPBACK "lo"

void job_ports_init(struct job_ports *p)
{
    p->n_failures = 0;
    for (unsigned i = 0; i < JOB_PORTS_MAX; i++)
        p->fds[i] = -1;
}

static int open_one(int *ret, const char *interface, const struct endpoint *at, struct err *e)
{
    _cleanup_(closep) int fd = -1;
    int r = tcp_listener_open(&fd, at, interface, false, e);

    if (r != 0)
        return r;
    if (listen(fd, BACKLOG) < 0)
        return err_set(e, -errno, "a port cannot be served: %s", strerror(errno));
    *ret = TAKE_FD(fd);
    return 0;
}

int job_ports_open(struct job_ports *p, const char *interface, bool has_own,
    const struct endpoint *at, unsigned n, struct err *e)
{
    int r = 0;

    for (unsigned i = 0; i < 2 * n; i++) {
        bool is_own = i >= n;
        int *fd = &p->fds[is_own ? JOB_PORTS_OVERLAY + i - n : i];
        int each = 0;

        if (*fd < 0 && (!is_own || has_own))
            each = open_one(fd, is_own ? LOOPBACK : interface, &at[i % n], e);
        r = each != 0 ? each : r;
    }
    p->n_failures = r != 0 ? p->n_failures + 1 : 0;
    return r;
}

void job_ports_close(struct job_ports *p)
{
    /* Closed at once: another network may want the address in this same turn of the loop. */
    for (unsigned i = 0; i < JOB_PORTS_MAX; i++) {
        closep(&p->fds[i]);
        p->fds[i] = -1;
    }
}
