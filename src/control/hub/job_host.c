/*
 * job_host.c - the rendezvous processes: started, fed, heard, ended, started again.
 *
 * Theory of operation. A network that is served has one process. It is this program, started anew
 * with nothing but one end of a socket pair (rendezvous/rdzv_process.h), and is told everything:
 * whose rendezvous it is, who is a member, which jobs there are, what the store has of each, and
 * last its listening sockets. So nobody is served before all that was acknowledged is there again.
 * The sockets stay open here as well: while a process is dead its clients wait in their queues.
 *
 * What it says is heard in portions, one in a turn of the loop, and only while there is room for
 * changes on their way to the disk. When it ends by itself, or says what it may not say, what it
 * has said before is committed, and another is started: at once, and then after longer and longer.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fd_cleanup.h"
#include "base/err.h"
#include "hub/jobs_internal.h"
#include "store/store.h"
#include "os/clock.h"
#include "os/process.h"

/* Heard at once. */
#define IN_MAX (RDZV_WIRE_MAX + 4)

/* What may wait to be said: while jobs are loaded, and at all. A process that does not listen for
 * so long is stuck. */
#define OUT_LOAD (128u << 10)
#define OUT_MAX  (16u << 20)

/* Blobs that are read at once while jobs are loaded, about. */
#define READ_MAX 16

/* From the end of a process to the start of the next. */
#define BACKOFF_FIRST (50 * NSEC_PER_MSEC)
#define BACKOFF_MAX   (30 * NSEC_PER_SEC)

/* A process that was there for so long was well. */
#define WELL_AFTER (60 * NSEC_PER_SEC)

struct jobs_host {
    struct jobs_network *network; /* pins; NULL: it is closing */
    uv_poll_t poll;               /* of @fd */
    int events;                   /* that are polled for */
    int fd;                       /* owns */
    pid_t pid;
    nsec_t started;
    struct str out;       /* to be said */
    size_t out_off;       /* bytes of it that were */
    size_t in_len;        /* bytes of @in */
    unsigned n_reading;   /* blobs that the store was asked for; they pin this */
    size_t bytes_reading; /* of them */
    bool is_closed;       /* its descriptor is */
    bool is_ending;       /* it was told to end */
    bool is_behind;       /* it has not been told everything */
    bool is_waiting;      /* what it says next is taken when there is room */
    uint8_t in[IN_MAX];
};

static void on_event(uv_poll_t *poll, int status, int events);

/* ---- the end -------------------------------------------------------------------------------- */

static void host_free(struct jobs_host *host)
{
    str_deinit(&host->out);
    free(host);
}

static void on_closed(uv_handle_t *h)
{
    struct jobs_host *host = container_of((uv_poll_t *)h, struct jobs_host, poll);

    (void)close(host->fd);
    host->is_closed = true;
    if (host->n_reading == 0)
        host_free(host);
}

/* Its jobs have nobody connected; what it counted is kept. */
static void forget_facts(struct jobs_network *n)
{
    nsec_t now = clock_now();
    struct job *job;

    list_foreach(job, &n->list, link) {
        if (job->n_members > 0)
            job->heard = now;
        job->n_connections = 0;
        job->n_members = 0;
        job->is_told = false;
        job->is_loaded = false;
        job->loaded = 0;
        job->handed = 0;
    }
    n->n_store_requests += n->counts.n_store_requests;
    n->n_etcd_requests += n->counts.n_etcd_requests;
    n->n_hung_up += n->counts.n_hung_up;
    n->n_deferred += n->counts.n_accepts_deferred;
    n->counts = (struct rdzv_wire){.type = RDZV_WIRE_COUNTS};
}

/* The process is no more, or is to be no more. */
static void detach(struct jobs_network *n)
{
    struct jobs_host *host = n->host;

    jobs__take_no_more(n);
    forget_facts(n);
    n->host = NULL;
    n->ended = host->pid;
    host->network = NULL;
    (void)kill(host->pid, SIGKILL);
    uv_close((uv_handle_t *)&host->poll, on_closed);
}

/* It has ended by itself, or has to: the next one is started. */
static void lose(struct jobs_network *n, const char *why)
{
    nsec_t now = clock_now();
    bool was_well = now - n->host->started > WELL_AFTER;
    bool is_ending = n->host->is_ending;

    detach(n);
    if (is_ending || n->start_at == NSEC_NEVER)
        return;
    n->jobs->n_restarts++;
    n->backoff =
        was_well || n->backoff == 0 ? BACKOFF_FIRST : nsec_min(2 * n->backoff, BACKOFF_MAX);
    n->start_at = now + n->backoff;
    log_warning("rendezvous of network \"%s\": its process %s; it is started again", n->name, why);
    jobs__arm(n->jobs);
}

void jobs__host_kill(struct jobs_network *n)
{
    if (n->host)
        detach(n);
}

/* ---- saying --------------------------------------------------------------------------------- */

static size_t left_of(const struct jobs_host *host)
{
    return host->out.len - host->out_off;
}

static void watch(struct jobs_host *host)
{
    struct jobs_network *n = host->network;
    int events = 0;

    /* Its end is not waited for while nothing is heard: it would be told again and again. */
    if (!host->is_waiting && jobs__can_take(n))
        events |= UV_READABLE | UV_DISCONNECT;
    /* While the store is read, that says when to go on. */
    if (left_of(host) > 0 || (host->is_behind && host->n_reading == 0))
        events |= UV_WRITABLE;
    if (events == host->events)
        return;
    host->events = events;
    if (events)
        (void)uv_poll_start(&host->poll, events, on_event);
    else
        (void)uv_poll_stop(&host->poll);
}

/* As much as it takes now. */
static void flush(struct jobs_host *host)
{
    while (left_of(host) > 0) {
        ssize_t n = send(
            host->fd, host->out.text + host->out_off, left_of(host), MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        /* Of its end it is told by the poll. */
        if (n < 0)
            return;
        host->out_off += (size_t)n;
    }
    if (host->out.cap > OUT_LOAD)
        str_deinit(&host->out);
    host->out.len = 0;
    host->out_off = 0;
}

static void say(struct jobs_host *host, const struct rdzv_wire *m)
{
    rdzv_wire_encode(&host->out, m);
}

void jobs__host_say(struct jobs_network *n, const struct rdzv_wire *m)
{
    struct jobs_host *host = n->host;

    if (!host)
        return;
    if (m->type == RDZV_WIRE_END)
        host->is_ending = true;
    say(host, m);
    flush(host);
    if (host->out.failed || left_of(host) > OUT_MAX)
        (void)kill(host->pid, SIGKILL);
    watch(host);
}

/* ---- feeding -------------------------------------------------------------------------------- */

/* A blob on its way out of the store. It is told when all of it is there. */
struct reading {
    struct jobs_host *host; /* pins: see n_reading */
    struct rdzv_wire m;     /* without its bytes */
    struct jobs_item item;  /* as it was; not in any index */
    unsigned piece;         /* that comes next */
    char first[RDZV_KEY_MAX];
    struct str said;        /* what the pieces so far say */
    int r;                  /* 0, or of the piece that cannot be read */
    struct err e;           /* its words */
    char bad[RDZV_KEY_MAX]; /* its key */
};

static void read_piece(struct reading *rd, const char *text)
{
    uint8_t buf[RDZV_CHUNK];
    struct rdzv_head head;
    size_t len = 0;

    rd->r = rd->piece == 0 ? rdzv_head_decode(&head, buf, &len, text, &rd->e)
                           : rdzv_piece_decode(buf, &len, text, &rd->e);
    if (rd->r != 0)
        return;
    rd->m.data = buf;
    rd->m.len = len;
    rd->m.has_more = rd->piece + 1 < rd->item.n_pieces;
    rdzv_wire_encode(&rd->said, &rd->m);
}

/* All of it is there. What cannot be read is set aside, and nothing of it is told. */
static void end_reading(struct reading *rd)
{
    struct jobs_host *host = rd->host;
    struct jobs_network *n = host->network;
    const struct job *job = n ? jobs__find_number(n, rd->m.job) : NULL;

    host->n_reading--;
    host->bytes_reading -= rd->item.len;
    /* A run that is over meanwhile is told so, and has no content. */
    if (job && job->record.run == rd->m.run && rd->r == 0)
        str_add_bytes(&host->out, str_text(&rd->said), rd->said.len);
    else if (job && job->record.run == rd->m.run && rd->r != -EIO)
        jobs__set_aside(n->jobs, rd->bad,
            rd->r == STORE_E_ABSENT ? "a piece of it is missing" : err_text(&rd->e));
    /* When the store is away, the next process may be told more. */
    if (job && rd->r == -EIO)
        (void)kill(host->pid, SIGKILL);
    host->out.failed |= rd->said.failed;
    str_deinit(&rd->said);
    free(rd);
    if (host->is_closed && host->n_reading == 0)
        host_free(host);
    else if (n)
        jobs__host_feed(n);
}

static void on_piece(void *ctx, const struct store_answer *a)
{
    struct reading *rd = ctx;

    if (rd->r == 0 && a->r == 0)
        read_piece(rd, a->items[0].value);
    else if (rd->r == 0 && (rd->r = a->r) != 0)
        rd->e = *a->e;
    if (rd->r != 0 && rd->bad[0] == '\0')
        (void)rdzv_key_of_piece(rd->bad, rd->first, rd->item.slot, rd->piece);
    if (++rd->piece == rd->item.n_pieces)
        end_reading(rd);
}

/* Have all pieces of a blob read. False: not now. */
static bool load_blob(struct jobs_host *host, const struct job *job, const struct jobs_item *item)
{
    struct store *store = host->network->jobs->model->store;
    struct reading *rd = calloc(1, sizeof(*rd));
    unsigned i = 0;

    if (!rd)
        return false;
    *rd = (struct reading){.host = host,
        .item = *item,
        .said = STR_NULL,
        .e = ERR_NULL,
        .m = {.type = RDZV_WIRE_LOAD,
            .job = job->number,
            .run = job->record.run,
            .kind = item->kind,
            .hash = item->hash}};
    (void)rdzv_key_of_blob(rd->first, item->kind, job->network->name, job->name, &item->hash);
    while (i < item->n_pieces) {
        char key[RDZV_KEY_MAX];

        if (store_get(
                store, rdzv_key_of_piece(key, rd->first, item->slot, i), on_piece, rd, &rd->e) != 0)
            break;
        i++;
    }
    if (i == 0) {
        free(rd);
        return false;
    }
    host->n_reading++;
    host->bytes_reading += item->len;
    if (i < item->n_pieces) {
        /* Those that were accepted end it, and the process, which is told all anew. */
        rd->r = -EIO;
        rd->item.n_pieces = (uint16_t)i;
    }
    return true;
}

/* What the store has of a job, as much as may wait to be said; true when all of it was said. The
 * index does not grow meanwhile: nobody is served yet. */
static bool load_job(struct jobs_host *host, struct job *job)
{
    while (left_of(host) + host->bytes_reading < OUT_LOAD && host->n_reading < READ_MAX) {
        struct htab_link *l = htab_each(&job->items, &job->loaded, NULL);

        if (!l)
            return host->n_reading == 0;
        for (; l; l = l->next) {
            const struct jobs_item *item = container_of(l, struct jobs_item, link);

            if (jobs__is_current(job, item) && !load_blob(host, job, item))
                (void)kill(host->pid, SIGKILL);
        }
    }
    return false;
}

static int send_listener(struct jobs_host *host, const struct job *job, int fd)
{
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct str text = STR_NULL;
    struct iovec iov;
    struct msghdr h = {.msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&h);
    ssize_t n;

    rdzv_wire_encode(&text, &(struct rdzv_wire){.type = RDZV_WIRE_LISTENER, .job = job->number});
    iov = (struct iovec){.iov_base = text.text, .iov_len = text.len};
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    n = text.failed ? -1 : sendmsg(host->fd, &h, MSG_NOSIGNAL | MSG_DONTWAIT);
    /* So short a message goes whole or not at all. */
    str_deinit(&text);
    return n < 0 ? -EAGAIN : 0;
}

/* False: not now. */
static bool hand_over(struct jobs_host *host, struct job *job)
{
    for (unsigned i = 0; i < JOBS__LISTENERS_MAX; i++) {
        if (job->listeners[i] < 0 || job->handed & 1U << i)
            continue;
        flush(host);
        if (left_of(host) > 0 || send_listener(host, job, job->listeners[i]) != 0)
            return false;
        job->handed |= 1U << i;
    }
    return true;
}

static void say_job(struct jobs_host *host, struct job *job)
{
    say(host, &(struct rdzv_wire){.type = RDZV_WIRE_JOB,
                  .job = job->number,
                  .run = job->record.run,
                  .port = job->record.port,
                  .etcd_port =
                      strcmp(job->name, JOBS_DEFAULT) == 0 ? JOBS_DEFAULT_ETCD : job->record.port,
                  .data = (const uint8_t *)job->name,
                  .len = strlen(job->name)});
    job->is_told = true;
}

/* False: the rest when it has heard what waits. */
static bool feed_job(struct jobs_host *host, struct job *job)
{
    if (!job->is_told)
        say_job(host, job);
    if (!job->is_loaded)
        job->is_loaded = load_job(host, job);
    return job->is_loaded && hand_over(host, job);
}

void jobs__host_feed(struct jobs_network *n)
{
    struct jobs_host *host = n->host;
    struct job *job;

    if (!host || host->is_ending)
        return;
    host->is_behind = false;
    list_foreach(job, &n->list, link) {
        host->is_behind = !job->is_forgotten && !job->is_unsaved && !feed_job(host, job);
        if (host->is_behind)
            break;
    }
    flush(host);
    if (host->out.failed || left_of(host) > OUT_MAX)
        (void)kill(host->pid, SIGKILL);
    watch(host);
}

/* ---- hearing -------------------------------------------------------------------------------- */

/* A blob of several pieces is begun when all before it is on the disk: see rdzv_record.h. */
static bool has_to_wait(const struct jobs_network *n, const struct rdzv_wire *m)
{
    if (m->type == RDZV_WIRE_PUT && m->n_pieces > 1 && m->piece == 1)
        return !jobs__is_saved(n);
    return !jobs__can_take(n);
}

/* The messages that are there, as many as there is room for. False: the process is lost. */
static bool take_messages(struct jobs_host *host)
{
    struct jobs_network *n = host->network;
    size_t off = 0;
    bool is_bad = false;

    while (!is_bad) {
        struct rdzv_wire m;
        size_t used = 0;
        int r = rdzv_wire_decode(&m, host->in + off, host->in_len - off, &used);

        host->is_waiting = r == 0 && has_to_wait(n, &m);
        if (r == RDZV_WIRE_E_SHORT || host->is_waiting)
            break;
        is_bad = r != 0 || !jobs__take(n, &m);
        off += used;
    }
    memmove(host->in, host->in + off, host->in_len - off);
    host->in_len -= off;
    if (is_bad)
        lose(n, "says what it may not say");
    return !is_bad;
}

/* One portion. False: the process is lost. */
static bool hear(struct jobs_host *host)
{
    ssize_t n = recv(host->fd, host->in + host->in_len, IN_MAX - host->in_len, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n > 0) {
        host->in_len += (size_t)n;
        return take_messages(host);
    }
    lose(host->network, "has ended");
    return false;
}

/* What has come before, and then more. False: the process is lost, or there is no room. */
static bool hear_rest(struct jobs_host *host)
{
    if (host->in_len > 0 && !take_messages(host))
        return false;
    return !host->is_waiting && hear(host);
}

static void on_event(uv_poll_t *poll, int status, int events)
{
    struct jobs_host *host = container_of(poll, struct jobs_host, poll);

    if (events & UV_WRITABLE)
        jobs__host_feed(host->network);
    if (events & (UV_READABLE | UV_DISCONNECT) || status < 0)
        (void)hear_rest(host);
    if (host->network)
        watch(host);
}

void jobs__host_hear(struct jobs_network *n)
{
    struct jobs_host *host = n->host;

    if (!host || !take_messages(host))
        return;
    watch(host);
}

unsigned jobs__host_unread(const struct jobs_network *n)
{
    int bytes = 0;

    if (!n->host)
        return 0;
    return n->host->in_len > 0 || (ioctl(n->host->fd, SIOCINQ, &bytes) == 0 && bytes > 0);
}

/* ---- the beginning -------------------------------------------------------------------------- */

/* @network: so that a person sees in a list of processes whose it is. */
static int spawn(const char *network, int fd, pid_t *ret, struct err *e)
{
    const char *const argv[] = {"/proc/self/exe", "rendezvous", network, NULL};

    return process_link(argv, fd, ret, e);
}

/* Whose rendezvous it is, and who is a member; the rest by jobs__host_feed(). */
static void introduce(struct jobs_host *host)
{
    const struct jobs_network *n = host->network;
    const struct hub_network *net = &n->net->pub;

    say(host, &(struct rdzv_wire){.type = RDZV_WIRE_NETWORK,
                  .address = net->address4,
                  .address6 = net->address6,
                  .data = (const uint8_t *)n->name,
                  .len = strlen(n->name)});
    for (size_t i = 0; i < n->net->nodes.n; i++) {
        const struct node *node = &model_node_at(n->net, i)->pub.spec;

        say(host, &(struct rdzv_wire){.type = RDZV_WIRE_MEMBER, .address = node->address4});
        say(host, &(struct rdzv_wire){.type = RDZV_WIRE_MEMBER, .address = node->address6});
    }
}

static int start(struct jobs_network *n, nsec_t now, struct err *e)
{
    struct jobs_host *host = calloc(1, sizeof(*host));
    _cleanup_(closep) int theirs = -1;
    int pair[2];
    int r;

    if (!host)
        return err_set(e, -ENOMEM, "no memory for a rendezvous");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
        r = err_set(e, -errno, "no socket for a rendezvous: %s", strerror(errno));
        free(host);
        return r;
    }
    theirs = pair[1];
    r = spawn(n->name, theirs, &host->pid, e);
    if (r != 0) {
        (void)close(pair[0]);
        free(host);
        return r;
    }
    host->network = n;
    host->fd = pair[0];
    host->started = now;
    (void)uv_poll_init(n->jobs->loop, &host->poll, host->fd);
    n->host = host;
    introduce(host);
    jobs__host_feed(n);
    return 0;
}

/* It has ended, and that is over. */
static void reap(struct jobs_network *n)
{
    int status = 0;

    if (n->ended <= 0 || waitpid(n->ended, &status, WNOHANG) == 0)
        return;
    n->ended = 0;
    if (WIFSIGNALED(status))
        log_info("rendezvous of network \"%s\": its process was ended by signal %d", n->name,
            WTERMSIG(status));
}

nsec_t jobs__host_due(const struct jobs_network *n)
{
    /* The next one is told what is in the store. */
    return n->host || !n->net || !jobs__is_saved(n) ? NSEC_NEVER : n->start_at;
}

void jobs__host_tick(struct jobs_network *n, nsec_t now)
{
    struct err e = ERR_NULL;

    reap(n);
    if (jobs__host_due(n) > now || !n->jobs->started)
        return;
    if (n->ended > 0) {
        n->start_at = now + BACKOFF_FIRST;
        return;
    }
    if (start(n, now, &e) == 0)
        return;
    n->backoff = n->backoff == 0 ? BACKOFF_FIRST : nsec_min(2 * n->backoff, BACKOFF_MAX);
    n->start_at = now + n->backoff;
    log_warning("rendezvous of network \"%s\" is not served: %s", n->name, err_text(&e));
}

/* ---- the hub ends --------------------------------------------------------------------------- */

void jobs__host_end(struct jobs_network *n, nsec_t deadline)
{
    struct err e = ERR_NULL;

    while (n->host) {
        nsec_t left = deadline - clock_now();
        struct pollfd wait = {
            .fd = n->host->fd, .events = (short)(POLLIN | (left_of(n->host) > 0 ? POLLOUT : 0))};

        if (left <= 0 || poll(&wait, 1, (int)(left / NSEC_PER_MSEC) + 1) < 0)
            break;
        flush(n->host);
        if (!(wait.revents & (POLLIN | POLLHUP | POLLERR)))
            continue;
        (void)hear_rest(n->host);
        if (n->host && n->host->is_waiting && jobs__commit_all(n, &e) != 0)
            break;
    }
    jobs__host_kill(n);
    if (n->ended > 0)
        (void)waitpid(n->ended, NULL, 0);
    n->ended = 0;
}
