/* script_reports.c - see script_reports.h. */
#include "train/job/script_reports.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "health/job_sample.h"
#include "os/file.h"

/* Datagrams that are taken at once. */
#define AT_ONCE 256

int script_reports_open(struct script_reports *ret)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    socklen_t len = sizeof(at);
    int one = 1;
    _cleanup_(closep) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    /* Without a name in it the kernel chooses one that nobody has. */
    if (fd < 0 ||
        bind(fd, (const struct sockaddr *)&at, offsetof(struct sockaddr_un, sun_path)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) < 0)
        return -errno;
    len -= (socklen_t)offsetof(struct sockaddr_un, sun_path);
    if (len < 2 || len > SCRIPT_REPORTS_NAME_MAX - 1)
        return -ENAMETOOLONG;
    *ret = (struct script_reports){.fd = -1};
    (void)snprintf(ret->name, sizeof(ret->name), "@%.*s", (int)len - 1, at.sun_path + 1);
    ret->fd = TAKE_FD(fd);
    return 0;
}

void script_reports_close(struct script_reports *r)
{
    closep(&r->fd);
}

/* Return: bytes; -1: there is nothing. 0: it is not from one who may. */
static ssize_t receive(int fd, char *buf, size_t cap)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct iovec iov = {.iov_base = buf, .iov_len = cap};
    struct msghdr m = {.msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes)};
    ssize_t n = recvmsg(fd, &m, 0);
    const struct cmsghdr *c = n >= 0 ? CMSG_FIRSTHDR(&m) : NULL;
    struct ucred from = {.uid = (uid_t)-1};

    if (n < 0)
        return -1;
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
        memcpy(&from, CMSG_DATA(c), sizeof(from));
    return from.uid == geteuid() || from.uid == 0 ? n : 0;
}

void script_reports_read(struct script_reports *r)
{
    /* One byte more than is allowed, so that what is longer is not taken for what is not. */
    char buf[JOB_REPORT_MAX + 1];

    for (unsigned i = 0; r->fd >= 0 && i < AT_ONCE; i++) {
        struct job_report said;
        ssize_t n = receive(r->fd, buf, sizeof(buf));

        if (n < 0)
            return;
        if (job_report_decode(&said, buf, (size_t)n, NULL) == 0)
            script_reports_take(r, &said);
    }
}

void script_reports_take(struct script_reports *r, const struct job_report *said)
{
    unsigned i = 0;

    while (i < r->n && r->ranks[i].last.rank != said->rank)
        i++;
    if (i == SCRIPT_REPORTS_RANKS_MAX)
        return;
    /* The first report of a rank, or of one that was started anew, is where it begins. */
    if (i == r->n || said->comm_ms < r->ranks[i].last.comm_ms || said->step < r->ranks[i].last.step)
        r->ranks[i] = (struct script_reports_rank){.before = *said};
    r->n += i == r->n;
    r->ranks[i].last = *said;
    r->ranks[i].is_new = true;
}

void script_reports_add(struct job_sample *ret, struct script_reports *r)
{
    struct job_progress *p = &ret->progress;

    *p = (struct job_progress){.n_ranks = 0};
    for (unsigned i = 0; i < r->n; i++) {
        struct script_reports_rank *rank = &r->ranks[i];
        uint64_t steps = rank->last.step - rank->before.step;
        uint64_t comm_ms = rank->last.comm_ms - rank->before.comm_ms;

        if (!rank->is_new)
            continue;
        /* Of all ranks the least: of the one that is behind, and of the one that waits least. */
        if (p->n_ranks == 0 || rank->last.step < p->step)
            p->step = rank->last.step;
        if (p->n_ranks == 0 || steps < p->n_steps)
            p->n_steps = steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX;
        if (p->n_ranks == 0 || comm_ms < p->comm_ms)
            p->comm_ms = comm_ms < ret->ms ? (uint32_t)comm_ms : ret->ms;
        p->n_ranks++;
        rank->before = rank->last;
        rank->is_new = false;
    }
}
