/* path_sockets.c - see path_sockets.h. */
#include "agent/paths/socket/path_sockets.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <uv.h>

#include "base/err.h"
#include "engine/engine.h"
#include "engine/frames.h"
#include "net/socket/udp_batch.h"
#include "net/tun/offload.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/thread.h"
#include "wire/wg.h"

/* ---- WireGuard's own port -------------------------------------------------------------------- */

/* Most frames taken in one turn of the loop, so that other events have their turn. */
#define FRAMES_PER_TURN 256

#define REOPEN_AFTER NSEC_PER_SEC

/* Lives until its handle is closed, which happens in a later turn than frame_client_close(). */
struct frame_client_poll {
    uv_poll_t handle;
    struct frame_client *port; /* borrowed while it is open */
};

static void on_frame_poll_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void frame_client_close(struct frame_client *fc)
{
    if (!fc->frames)
        return;
    (void)uv_poll_stop(&fc->poll->handle);
    uv_close((uv_handle_t *)&fc->poll->handle, on_frame_poll_closed);
    fc->poll = NULL;
    fc->frames->ops->close(fc->frames);
    fc->frames = NULL;
}

static void on_frames_readable(uv_poll_t *handle, int status, int events)
{
    struct frame_client_poll *poll = handle->data;
    struct frame_client *fc = poll->port;
    struct engine_frame frame;
    int r = 0;

    /* The receiver may close this client and open it anew, which gives it another poll. */
    for (unsigned i = 0; r == 0 && i < FRAMES_PER_TURN && fc->poll == poll; i++) {
        r = fc->frames->ops->receive(fc->frames, &frame);
        if (r == 0)
            fc->fn(fc->ctx, &frame);
    }
    if (fc->poll == poll && r != 0 && r != ENGINE_FRAMES_E_EMPTY)
        frame_client_close(fc);
}

static int open_frames(struct frame_client *fc, struct engine *engine, uint16_t port, struct err *e)
{
    struct frame_client_poll *poll = calloc(1, sizeof(*poll));
    int r = poll ? engine->ops->open_frames(engine, &fc->frames, port, e) : -ENOMEM;

    if (r < 0) {
        free(poll);
        return r;
    }
    poll->port = fc;
    poll->handle.data = poll;
    (void)uv_poll_init(fc->loop, &poll->handle, fc->frames->fd);
    (void)uv_poll_start(&poll->handle, UV_READABLE, on_frames_readable);
    fc->poll = poll;
    fc->engine = engine;
    fc->port = port;
    return 0;
}

bool frame_client_keep(struct frame_client *fc, struct engine *engine, uint16_t port, nsec_t now)
{
    struct err e = ERR_NULL;

    if (fc->frames && (fc->engine != engine || fc->port != port))
        frame_client_close(fc);
    if (fc->frames || !engine || port == 0 ||
        (fc->tried_at != 0 && now - fc->tried_at < REOPEN_AFTER))
        return false;
    fc->tried_at = 0;
    if (open_frames(fc, engine, port, &e) == 0)
        return true;
    fc->tried_at = now;
    log_limited(&fc->limit, now, LOG_LEVEL_WARNING, "paths cannot be looked for, trying again: %s",
        err_text(&e));
    return false;
}

int frame_client_send(struct frame_client *fc, const struct engine_frame *frame)
{
    int r = fc->frames ? fc->frames->ops->send(fc->frames, frame) : 0;

    if (r == ENGINE_FRAMES_E_GONE)
        frame_client_close(fc);
    return r;
}

/* ---- sockets beside it ----------------------------------------------------------------------- */

/* Most frames that wait for the loop; what comes beyond them is dropped. A guess brings a few. */
#define QUEUE_MAX 64

#define EVENTS_PER_TURN 16

/* A used socket still receives for this time after it was closed, because the other end leaves the
 * path at about the same time, ms. */
#define LINGER_MS 1000

/* An event key that is no socket's: the thread was woken by wakeup_signal(). */
#define WAKE 0

/** One socket, and its other end. */
struct punch_socket {
    uint32_t id;            /* 0: a free place */
    struct udp_sockets out; /* owns; what the peer sees */
    struct udp_sockets in;  /* owns; on loopback, connected to WireGuard; none: it is not used */
    struct endpoint remote; /* whose datagrams are passed on */
    nsec_t close_at;        /* time to close it; NSEC_NEVER: it stays open */
};

struct punch_frame {
    uint32_t socket;
    struct engine_frame frame;
};

struct punch_sockets {
    /* The loop's. */
    punch_sockets_fn fn;
    void *ctx; /* pins */
    uv_async_t arrived;
    uv_timer_t linger;
    unsigned n_handles; /* that are not closed */
    pthread_t thread;
    bool is_running;       /* the thread is; what it needs is there */
    struct udp_outbox own; /* for frames; there while the thread is */

    /* Changed by the loop with the gate closed, read by the thread inside it. */
    struct gate gate;
    struct punch_socket places[PUNCH_SOCKETS_MAX];
    struct endpoint wireguard; /* port 0: not known */

    /* Immutable while the thread runs. */
    struct offloads offloads;
    int epoll_fd; /* owns */
    int wake_fd;  /* owns: see os/thread.h */
    _Atomic bool is_ending;

    /* The thread's. */
    struct udp_inbox inbox;
    struct udp_outbox outbox;

    pthread_mutex_t lock;      /* guards the queue; no other lock is taken while it is held */
    struct punch_frame *queue; /* owns; a ring of QUEUE_MAX */
    unsigned first;
    unsigned n;
};

static struct endpoint loopback_at(uint16_t port)
{
    return (struct endpoint){.addr = ip_addr_v4((const uint8_t[4]){127, 0, 0, 1}), .port = port};
}

/* ---- frames for the loop -------------------------------------------------------------------- */

static void queue_frame(struct punch_sockets *ss, const struct punch_socket *s,
    const struct udp_run *run, uint32_t off, uint32_t len)
{
    struct punch_frame *f;

    if (len > ENGINE_FRAME_MAX)
        return;
    (void)pthread_mutex_lock(&ss->lock);
    if (ss->n < QUEUE_MAX) {
        f = &ss->queue[(ss->first + ss->n++) % QUEUE_MAX];
        f->socket = s->id;
        f->frame.remote = run->path.remote;
        f->frame.local = run->path.local;
        f->frame.ifindex = run->path.ifindex;
        f->frame.received_at = clock_now();
        f->frame.len = len;
        memcpy(f->frame.data, run->buf + off, len);
    }
    (void)pthread_mutex_unlock(&ss->lock);
    (void)uv_async_send(&ss->arrived);
}

static bool next_frame(struct punch_sockets *ss, struct punch_frame *ret)
{
    bool some;

    (void)pthread_mutex_lock(&ss->lock);
    some = ss->n > 0;
    if (some) {
        *ret = ss->queue[ss->first];
        ss->first = (ss->first + 1) % QUEUE_MAX;
        ss->n--;
    }
    (void)pthread_mutex_unlock(&ss->lock);
    return some;
}

static void on_arrived(uv_async_t *async)
{
    struct punch_sockets *ss = async->data;
    struct punch_frame f;

    /* At most one queue a turn, so that a flood does not stop the rest. */
    for (unsigned i = 0; i < QUEUE_MAX && next_frame(ss, &f); i++)
        ss->fn(ss->ctx, f.socket, &f.frame);
}

/* ---- the thread ----------------------------------------------------------------------------- */

static bool is_punch_used(const struct punch_socket *s)
{
    return s->in.fd[UDP_FAMILY_V4] >= 0;
}

/* The datagrams of @run from byte @from to byte @to, which are WireGuard's. */
static void pass_in(struct punch_sockets *ss, const struct punch_socket *s,
    const struct udp_run *run, uint32_t from, uint32_t to)
{
    struct udp_run part = *run;

    if (from >= to || !is_punch_used(s) || !endpoint_equal(&run->path.remote, &s->remote))
        return;
    part.buf = run->buf + from;
    part.len = to - from;
    part.path = (struct udp_path){.remote = ss->wireguard};
    udp_outbox_add(&ss->outbox, &s->in, &part);
}

static void sort_run(
    struct punch_sockets *ss, const struct punch_socket *s, const struct udp_run *run)
{
    uint32_t begin = 0;

    for (uint32_t off = 0; off < run->len; off += run->seg) {
        uint32_t len = run->len - off < run->seg ? run->len - off : run->seg;

        /* The first byte is not enough: an answer of STUN begins with one of WireGuard's. */
        if (wg_type_of(run->buf + off, len) != 0)
            continue;
        pass_in(ss, s, run, begin, off);
        queue_frame(ss, s, run, off, len);
        begin = off + run->seg;
    }
    pass_in(ss, s, run, begin, run->len);
}

static void pass_outward(struct punch_sockets *ss, const struct punch_socket *s)
{
    unsigned n = udp_receive(&ss->inbox, s->in.fd[UDP_FAMILY_V4]);

    for (unsigned i = 0; i < n; i++) {
        struct udp_run run = ss->inbox.runs[i];

        run.path = (struct udp_path){.remote = s->remote};
        udp_outbox_add(&ss->outbox, &s->out, &run);
    }
    udp_outbox_flush(&ss->outbox, &s->out);
}

/* What an event of the epoll set carries: whose it is, its place, and which end. */
static uint64_t event_key(
    const struct punch_sockets *ss, const struct punch_socket *s, bool is_inner)
{
    return (uint64_t)s->id << 32 | (uint64_t)(s - ss->places) << 1 | (is_inner ? 1 : 0);
}

static void serve_event(struct punch_sockets *ss, uint64_t key)
{
    const struct punch_socket *s = &ss->places[(uint32_t)key >> 1];

    /* The place may have been given to another one since the kernel said so. */
    if (key == WAKE || s->id != key >> 32)
        return;
    if ((key & 1) == 0) {
        unsigned n = udp_receive(&ss->inbox, s->out.fd[UDP_FAMILY_V4]);

        for (unsigned i = 0; i < n; i++)
            sort_run(ss, s, &ss->inbox.runs[i]);
        udp_outbox_flush(&ss->outbox, &s->in);
    } else if (is_punch_used(s)) {
        pass_outward(ss, s);
    }
}

static void *run_thread(void *arg)
{
    struct punch_sockets *ss = arg;
    struct epoll_event events[EVENTS_PER_TURN];

    while (!atomic_load(&ss->is_ending)) {
        int n = epoll_wait(ss->epoll_fd, events, EVENTS_PER_TURN, -1);

        gate_enter(&ss->gate, 0);
        for (int i = 0; i < n; i++)
            serve_event(ss, events[i].data.u64);
        gate_leave(&ss->gate, 0);
    }
    return NULL;
}

static int watch_fd(struct punch_sockets *ss, int fd, uint64_t key)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = key};

    return epoll_ctl(ss->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static void release_thread(struct punch_sockets *ss)
{
    closep(&ss->epoll_fd);
    closep(&ss->wake_fd);
    udp_inbox_deinit(&ss->inbox);
    udp_outbox_deinit(&ss->outbox);
    udp_outbox_deinit(&ss->own);
    gate_deinit(&ss->gate);
    free(ss->queue);
    ss->queue = NULL;
}

static int prepare_thread(struct punch_sockets *ss)
{
    int r = gate_init(&ss->gate, 1);

    ss->offloads = offloads_all();
    offload_test_udp(&ss->offloads);
    ss->queue = calloc(QUEUE_MAX, sizeof(*ss->queue));
    if (r == 0 && !ss->queue)
        r = -ENOMEM;
    if (r == 0)
        r = udp_inbox_init(&ss->inbox);
    if (r == 0)
        r = udp_outbox_init(&ss->outbox, ss->offloads.on[OFFLOAD_UDP_GSO], false);
    if (r == 0)
        r = udp_outbox_init(&ss->own, false, false);
    if (r == 0 && (ss->epoll_fd = epoll_create1(EPOLL_CLOEXEC)) < 0)
        r = -errno;
    if (r == 0 && (ss->wake_fd = wakeup_open()) < 0)
        r = ss->wake_fd;
    return r == 0 ? watch_fd(ss, ss->wake_fd, WAKE) : r;
}

static int start_thread(struct punch_sockets *ss, struct err *e)
{
    int r;

    if (ss->is_running)
        return 0;
    r = prepare_thread(ss);
    if (r == 0)
        r = thread_start(&ss->thread, "punch", -1, run_thread, ss);
    if (r < 0) {
        release_thread(ss);
        return err_set(
            e, r, "the thread for sockets beside WireGuard's does not start: %s", strerror(-r));
    }
    ss->is_running = true;
    return 0;
}

/* ---- sockets -------------------------------------------------------------------------------- */

/* @id 0 finds a free place. */
static struct punch_socket *punch_find(struct punch_sockets *ss, uint32_t id)
{
    for (unsigned i = 0; i < PUNCH_SOCKETS_MAX; i++)
        if (ss->places[i].id == id)
            return &ss->places[i];
    return NULL;
}

static struct punch_socket *punch_find_open(struct punch_sockets *ss, uint32_t socket)
{
    return socket == 0 ? NULL : punch_find(ss, socket);
}

static struct punch_socket no_socket(void)
{
    return (struct punch_socket){
        .out = UDP_SOCKETS_NULL, .in = UDP_SOCKETS_NULL, .close_at = NSEC_NEVER};
}

/* The thread sees either the old one or the new one. */
static void set_socket(
    struct punch_sockets *ss, struct punch_socket *place, const struct punch_socket *s)
{
    gate_close(&ss->gate);
    *place = *s;
    gate_open(&ss->gate);
}

static void close_now(struct punch_sockets *ss, struct punch_socket *place)
{
    const struct punch_socket none = no_socket();
    struct punch_socket s = *place;

    set_socket(ss, place, &none);
    udp_close(&s.out);
    udp_close(&s.in);
}

int punch_sockets_open(struct punch_sockets *ss, uint32_t socket, struct err *e)
{
    const struct endpoint any = {.addr = ip_addr_v4((const uint8_t[4]){0})};
    struct punch_socket *place = punch_find(ss, 0);
    struct punch_socket s = no_socket();
    int r = start_thread(ss, e);

    if (r == 0 && !place)
        r = err_set(e, -EMFILE, "there are %d sockets beside WireGuard's", PUNCH_SOCKETS_MAX);
    if (r == 0)
        r = udp_open_at(&s.out, &any, &ss->offloads, e);
    if (r < 0)
        return r;
    s.id = socket;
    set_socket(ss, place, &s);
    r = watch_fd(ss, s.out.fd[UDP_FAMILY_V4], event_key(ss, place, false));
    if (r < 0) {
        close_now(ss, place);
        return err_set(e, r, "a socket beside WireGuard's cannot be heard: %s", strerror(-r));
    }
    return 0;
}

static void on_linger(uv_timer_t *timer);

/* Sets the timer for the first socket that is to be closed. */
static void arm_linger(struct punch_sockets *ss)
{
    nsec_t due = NSEC_NEVER;

    for (unsigned i = 0; i < PUNCH_SOCKETS_MAX; i++)
        due = nsec_min(due, ss->places[i].close_at);
    if (due == NSEC_NEVER)
        return;
    due = nsec_max(due - clock_now(), 0);
    (void)uv_timer_start(&ss->linger, on_linger, (uint64_t)(due / NSEC_PER_MSEC + 1), 0);
}

static void on_linger(uv_timer_t *timer)
{
    struct punch_sockets *ss = timer->data;
    nsec_t now = clock_now();

    for (unsigned i = 0; i < PUNCH_SOCKETS_MAX; i++)
        if (ss->places[i].close_at <= now)
            close_now(ss, &ss->places[i]);
    arm_linger(ss);
}

void punch_sockets_close(struct punch_sockets *ss, uint32_t socket)
{
    struct punch_socket *s = punch_find_open(ss, socket);

    if (!s || s->close_at != NSEC_NEVER)
        return;
    if (!is_punch_used(s)) {
        close_now(ss, s);
        return;
    }
    s->close_at = clock_now() + LINGER_MS * NSEC_PER_MSEC;
    arm_linger(ss);
}

void punch_sockets_send(struct punch_sockets *ss, uint32_t socket, const struct engine_frame *frame)
{
    struct punch_socket *s = punch_find_open(ss, socket);
    struct udp_run run = {.buf = (uint8_t *)(uintptr_t)frame->data,
        .len = (uint32_t)frame->len,
        .seg = (uint16_t)frame->len,
        .hops = frame->hops,
        .path = {.remote = frame->remote, .local = frame->local}};

    if (!s || frame->len == 0)
        return;
    /* Whether packets may be fragmented is an option of the socket, so nobody else may be sending.
     */
    if (frame->dont_fragment) {
        gate_close(&ss->gate);
        (void)udp_set_dont_fragment(&s->out, true);
    }
    udp_outbox_add(&ss->own, &s->out, &run);
    udp_outbox_flush(&ss->own, &s->out);
    if (frame->dont_fragment) {
        (void)udp_set_dont_fragment(&s->out, false);
        gate_open(&ss->gate);
    }
}

/* Into @in: the second end of @s, which has none yet. */
static int open_inner(
    struct punch_sockets *ss, const struct punch_socket *s, struct udp_sockets *in, struct err *e)
{
    const struct endpoint any = loopback_at(0);
    int r = udp_open_at(in, &any, &ss->offloads, e);

    if (r < 0)
        return r;
    r = udp_connect(in, &ss->wireguard);
    if (r == 0)
        r = watch_fd(ss, in->fd[UDP_FAMILY_V4], event_key(ss, s, true));
    if (r < 0) {
        udp_close(in);
        return err_set(e, r, "WireGuard cannot be reached on loopback: %s", strerror(-r));
    }
    return 0;
}

int punch_sockets_use(struct punch_sockets *ss, uint32_t socket, const struct endpoint *remote,
    struct endpoint *ret_local, struct err *e)
{
    struct punch_socket *s = punch_find_open(ss, socket);
    struct punch_socket used;
    int r = 0;

    if (!s)
        return err_set(e, -ENOENT, "socket %u is not open", socket);
    if (ss->wireguard.port == 0)
        return err_set(e, -ENOTCONN, "WireGuard's port is not known");
    used = *s;
    used.remote = *remote;
    if (!is_punch_used(s))
        r = open_inner(ss, s, &used.in, e);
    if (r < 0)
        return r;
    set_socket(ss, s, &used);
    *ret_local = loopback_at(used.in.port);
    return 0;
}

void punch_sockets_set_port(struct punch_sockets *ss, uint16_t port)
{
    if (ss->wireguard.port == port)
        return;
    if (ss->is_running)
        gate_close(&ss->gate);
    ss->wireguard = loopback_at(port);
    for (unsigned i = 0; port != 0 && i < PUNCH_SOCKETS_MAX; i++)
        if (is_punch_used(&ss->places[i]))
            (void)udp_connect(&ss->places[i].in, &ss->wireguard);
    if (ss->is_running)
        gate_open(&ss->gate);
}

/* ---- life ----------------------------------------------------------------------------------- */

int punch_sockets_new(struct punch_sockets **ret, struct uv_loop_s *loop, punch_sockets_fn fn,
    void *ctx, struct err *e)
{
    struct punch_sockets *ss = calloc(1, sizeof(*ss));

    if (!ss)
        return err_set(e, -ENOMEM, "no memory for sockets beside WireGuard's");
    ss->fn = fn;
    ss->ctx = ctx;
    ss->epoll_fd = ss->wake_fd = -1;
    for (unsigned i = 0; i < PUNCH_SOCKETS_MAX; i++)
        ss->places[i] = no_socket();
    (void)pthread_mutex_init(&ss->lock, NULL);
    (void)uv_async_init(loop, &ss->arrived, on_arrived);
    (void)uv_timer_init(loop, &ss->linger);
    ss->arrived.data = ss->linger.data = ss;
    ss->n_handles = 2;
    /* These handles alone do not keep the loop running. */
    uv_unref((uv_handle_t *)&ss->arrived);
    uv_unref((uv_handle_t *)&ss->linger);
    *ret = ss;
    return 0;
}

static void on_punch_closed(uv_handle_t *handle)
{
    struct punch_sockets *ss = handle->data;

    if (--ss->n_handles > 0)
        return;
    (void)pthread_mutex_destroy(&ss->lock);
    free(ss);
}

struct punch_sockets *punch_sockets_free(struct punch_sockets *ss)
{
    if (!ss)
        return NULL;
    if (ss->is_running) {
        atomic_store(&ss->is_ending, true);
        wakeup_signal(ss->wake_fd);
        (void)pthread_join(ss->thread, NULL);
        release_thread(ss);
        ss->is_running = false;
    }
    for (unsigned i = 0; i < PUNCH_SOCKETS_MAX; i++) {
        udp_close(&ss->places[i].out);
        udp_close(&ss->places[i].in);
    }
    uv_close((uv_handle_t *)&ss->arrived, on_punch_closed);
    uv_close((uv_handle_t *)&ss->linger, on_punch_closed);
    return NULL;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void on_main_frame(void *ctx, const struct engine_frame *frame)
{
    struct path_sockets *s = ctx;

    s->fn(s->ctx, PATH_SOCKET_MAIN, frame);
}

int path_sockets_init(
    struct path_sockets *s, struct uv_loop_s *loop, path_sockets_fn fn, void *ctx, struct err *e)
{
    *s = (struct path_sockets){
        .main = {.loop = loop, .fn = on_main_frame, .ctx = s}, .fn = fn, .ctx = ctx};
    return punch_sockets_new(&s->punch, loop, fn, ctx, e);
}

bool path_sockets_keep(struct path_sockets *s, struct engine *engine, uint16_t port, nsec_t now)
{
    bool opened = frame_client_keep(&s->main, engine, port, now);

    punch_sockets_set_port(s->punch, port);
    return opened;
}

void path_sockets_send(struct path_sockets *s, const struct path_action *action)
{
    struct engine_frame frame = {
        .remote = action->remote,
        .local = action->local,
        .dont_fragment = action->dont_fragment,
        .hops = action->hops,
        .len = action->len,
    };

    if (action->len > sizeof(frame.data))
        return;
    memcpy(frame.data, action->frame, action->len);
    if (action->socket == PATH_SOCKET_MAIN)
        (void)frame_client_send(&s->main, &frame);
    else
        punch_sockets_send(s->punch, action->socket, &frame);
}

bool path_sockets_open(struct path_sockets *s, uint32_t socket, nsec_t now)
{
    struct err e = ERR_NULL;
    int r = punch_sockets_open(s->punch, socket, &e);

    if (r < 0 && socket != PATH_SOCKETS_FRESH)
        log_limited(&s->limit, now, LOG_LEVEL_WARNING,
            "the ports of this node's NAT can be guessed less well: %s", err_text(&e));
    return r == 0;
}

bool path_sockets_use(
    struct path_sockets *s, const struct path_action *action, struct endpoint *ret, nsec_t now)
{
    struct err e = ERR_NULL;

    *ret = action->remote;
    if (action->socket == PATH_SOCKET_MAIN ||
        punch_sockets_use(s->punch, action->socket, &action->remote, ret, &e) == 0)
        return true;
    log_limited(&s->limit, now, LOG_LEVEL_WARNING, "the path to %s cannot be used: %s",
        action->name, err_text(&e));
    punch_sockets_close(s->punch, action->socket);
    return false;
}
