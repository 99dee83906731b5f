/* measure_host.c - see measure_host.h. */
#include "agent/measure_host.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "measure/service_process.h"
#include "os/clock.h"
#include "os/fd_cleanup.h"
#include "os/log.h"
#include "os/process.h"

/* Time from the end of a process to the start of the next. */
#define BACKOFF_FIRST (50 * NSEC_PER_MSEC)
#define BACKOFF_MAX   (30 * NSEC_PER_SEC)

/* After a process that ran for longer than this the wait begins with BACKOFF_FIRST again. */
#define WELL_AFTER (60 * NSEC_PER_SEC)

/* A process that is to end is killed after this time. */
#define END_MS 2000

/* The connection to one process; it is released by the loop, perhaps after the host. */
struct measure_link {
    uv_poll_t poll;            /* of @fd */
    struct measure_host *host; /* borrowed; NULL: this link is closing */
    int fd;                    /* owns */
};

struct measure_host {
    uv_loop_t *loop;
    uv_timer_t timer;           /* until the next start */
    struct service_wire config; /* immutable */
    struct rlimit memlock;      /* immutable */
    struct measure_link *link;  /* NULL: there is no process */
    pid_t pid;                  /* to be waited for; 0: none */
    nsec_t started_at;          /* time of that process's start; 0: there is none */
    nsec_t backoff;
    struct str list; /* the members, as they were told last */
    bool is_behind;  /* the process has not been told @list */
    struct str out;  /* to be said */
    size_t out_off;  /* bytes of it that were */
};

static void on_event(uv_poll_t *poll, int status, int events);
static void on_timer(uv_timer_t *timer);

/* ---- the end of a process ------------------------------------------------------------------- */

static void on_link_closed(uv_handle_t *handle)
{
    free(container_of((uv_poll_t *)handle, struct measure_link, poll));
}

static void hang_up(struct measure_host *h)
{
    struct measure_link *link = h->link;

    if (!link)
        return;
    h->link = NULL;
    link->host = NULL;
    uv_close((uv_handle_t *)&link->poll, on_link_closed);
    (void)close(link->fd);
    str_deinit(&h->out);
    h->out_off = 0;
}

/* Plans the next start, each time later than before. */
static void plan_start(struct measure_host *h)
{
    bool was_well = h->started_at != 0 && clock_now() - h->started_at > WELL_AFTER;

    h->backoff =
        was_well || h->backoff == 0 ? BACKOFF_FIRST : nsec_min(2 * h->backoff, BACKOFF_MAX);
    h->started_at = 0;
    (void)uv_timer_start(&h->timer, on_timer, (uint64_t)(h->backoff / NSEC_PER_MSEC), 0);
}

static void lose(struct measure_host *h)
{
    hang_up(h);
    (void)kill(h->pid, SIGKILL);
    log_warning("the process that lets members measure this node has ended; it is started again");
    plan_start(h);
}

/* ---- sending -------------------------------------------------------------------------------- */

static void watch(struct measure_host *h)
{
    int events = UV_READABLE | UV_DISCONNECT;

    if (h->out.len > 0)
        events |= UV_WRITABLE;
    (void)uv_poll_start(&h->link->poll, events, on_event);
}

/* Sends as much as the socket takes now. The process's end is noticed by the poll. */
static void flush(struct measure_host *h)
{
    while (h->out_off < h->out.len) {
        ssize_t n = send(h->link->fd, h->out.text + h->out_off, h->out.len - h->out_off,
            MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return;
        h->out_off += (size_t)n;
    }
    str_deinit(&h->out);
    h->out_off = 0;
}

/* Sends what waits. Of several lists of which nothing was sent yet only the newest is sent. */
static void pump(struct measure_host *h)
{
    flush(h);
    if (h->is_behind && h->out.len == 0) {
        str_add_bytes(&h->out, h->list.text, h->list.len);
        h->is_behind = false;
        flush(h);
    }
    /* Without memory for a whole list the connection is given up; the next process is told all. */
    if (h->out.failed)
        (void)shutdown(h->link->fd, SHUT_RDWR);
    watch(h);
}

static void on_event(uv_poll_t *poll, int status, int events)
{
    struct measure_host *h = container_of(poll, struct measure_link, poll)->host;

    if (status < 0 || events & (UV_READABLE | UV_DISCONNECT))
        lose(h);
    else
        pump(h);
}

/* ---- the beginning -------------------------------------------------------------------------- */

static int start(struct measure_host *h, struct err *e)
{
    /* This very program, also if another version has replaced its file by now. */
    const char *const argv[] = {"/proc/self/exe", "measuring", NULL};
    struct measure_link *link = calloc(1, sizeof(*link));
    _cleanup_(closep) int theirs = -1;
    int pair[2];
    int r;

    if (!link)
        return err_set(e, -ENOMEM, "no memory");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        r = err_set(e, -errno, "no socket: %s", strerror(errno));
        free(link);
        return r;
    }
    theirs = pair[1];
    r = process_link(argv, theirs, &h->pid, e);
    if (r < 0) {
        (void)close(pair[0]);
        free(link);
        return r;
    }
    /* Lowering a limit needs no right. If this fails the process only tells a wrong limit. */
    (void)prlimit(h->pid, RLIMIT_MEMLOCK, &h->memlock, NULL);
    *link = (struct measure_link){.host = h, .fd = pair[0]};
    (void)uv_poll_init(h->loop, &link->poll, link->fd);
    h->link = link;
    h->started_at = clock_now();
    service_wire_encode(&h->out, &h->config);
    h->is_behind = h->list.len > 0;
    pump(h);
    return 0;
}

static void try_start(struct measure_host *h)
{
    struct err e = ERR_NULL;

    if (start(h, &e) == 0)
        return;
    log_warning("weft preflight and weft bench do not find this node: no process for them: %s",
        err_text(&e));
    plan_start(h);
}

static void on_timer(uv_timer_t *timer)
{
    struct measure_host *h = container_of(timer, struct measure_host, timer);

    if (h->pid > 0 && !process_has_ended(h->pid)) {
        plan_start(h);
        return;
    }
    h->pid = 0;
    try_start(h);
}

int measure_host_new(struct measure_host **ret, uv_loop_t *loop,
    const struct service_config *config, const struct rlimit *memlock, struct err *e)
{
    struct measure_host *h = calloc(1, sizeof(*h));

    if (!h)
        return err_set(e, -ENOMEM, "no memory for the measuring process");
    h->loop = loop;
    h->memlock = *memlock;
    h->config = (struct service_wire){.type = SERVICE_WIRE_CONFIG, .port = config->port};
    (void)snprintf(h->config.interface, sizeof(h->config.interface), "%s", config->interface);
    (void)snprintf(h->config.socket_path, sizeof(h->config.socket_path), "%s", config->socket_path);
    (void)uv_timer_init(loop, &h->timer);
    try_start(h);
    *ret = h;
    return 0;
}

/* ---- members -------------------------------------------------------------------------------- */

void measure_host_tell(struct measure_host *h, const struct ip_addr *own,
    const struct service_member *members, size_t n)
{
    struct service_wire m = {.type = SERVICE_WIRE_LIST, .own = *own, .n = (uint32_t)n};
    struct str list = STR_NULL;

    service_wire_encode(&list, &m);
    m.type = SERVICE_WIRE_MEMBER;
    for (size_t i = 0; i < n; i++) {
        m.member = members[i];
        service_wire_encode(&list, &m);
    }
    /* Without memory the members of before stay. */
    if (!list.failed &&
        (list.len != h->list.len || memcmp(list.text, h->list.text, list.len) != 0)) {
        struct str before = h->list;

        h->list = list;
        list = before;
        h->is_behind = true;
    }
    str_deinit(&list);
    if (!h->link)
        return;
    /* A list that is still to be sent makes it check its interface as well. */
    if (!h->is_behind && h->out.len == 0)
        service_wire_encode(&h->out, &(struct service_wire){.type = SERVICE_WIRE_LOOK});
    pump(h);
}

/* ---- the end -------------------------------------------------------------------------------- */

static void wait_for_end(pid_t pid)
{
    _cleanup_(closep) int pid_fd = pidfd_open(pid, 0);
    struct pollfd wait = {.fd = pid_fd, .events = POLLIN};

    if (pid_fd < 0 || poll(&wait, 1, END_MS) <= 0)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(container_of((uv_timer_t *)handle, struct measure_host, timer));
}

struct measure_host *measure_host_free(struct measure_host *h)
{
    if (!h)
        return NULL;
    hang_up(h);
    if (h->pid > 0)
        wait_for_end(h->pid);
    str_deinit(&h->list);
    str_deinit(&h->out);
    uv_close((uv_handle_t *)&h->timer, on_timer_closed);
    return NULL;
}
