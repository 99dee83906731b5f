/* watches.c - see watches.h. */
#include "watches.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "fake.h"
#include "os/clock.h"

#define EVENTS   256
#define READ_MAX (256 << 10)
#define MARK_MAX 32
#define TEXT_MAX (256 << 10) /* unpacked at a time */

/* A line that is alone in a piece of the stream. */
#define HEARTBEAT_TYPE     "\"type\":\"heartbeat\""
#define HEARTBEAT_TEXT_MAX 128
#define PROBE_S            4

/* Where in the answer of HTTP/1.1 the next byte is: chunks, RFC 9112 section 7.1. */
enum phase { PHASE_HEAD, PHASE_SIZE, PHASE_DATA, PHASE_BEHIND };

struct watch {
    int fd;              /* owns; -1: there is none */
    uint32_t next_ended; /* and one: the next in the list of those that have ended; 0: none */
    enum phase phase;    /* of the next byte */
    unsigned matched;    /* PHASE_HEAD: bytes of the empty line; PHASE_BEHIND: of the line's end */
    size_t left;         /* PHASE_SIZE: as far as it was read; PHASE_DATA: bytes of the chunk */
    bool has_begun;      /* its first byte of data has come */
    z_stream *z;         /* owns: it is sent packed; NULL: as it is */
    bool has_snapshot;   /* its first line is over */
    unsigned next_s;     /* when the next heartbeat comes, as the last one said; 0: it did not */
    unsigned reported;   /* the last mark that it has had */
    struct fake_known known;
    char tail[MARK_MAX]; /* the last bytes of its data, in case that a mark is cut */
    size_t tail_len;
};

struct watches {
    int epoll_fd; /* owns */
    uint32_t cap;
    _Atomic uint32_t n_lost;
    _Atomic uint64_t n_bytes;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t updates;
    struct watch *all; /* owns */
    uint32_t ended;    /* and one: the first of those that have ended; 0: none */
    char mark[MARK_MAX];
    unsigned round; /* of marks; 0: none is looked for */
    uint32_t n_snapshots;
    uint32_t n_reported;
    nsec_t reported_at; /* when the last one was told */
};

/* ---- what has come -------------------------------------------------------------------------- */

static bool has_mark(const struct watches *w, const struct watch *it, const char *p, size_t n)
{
    size_t len = strlen(w->mark);
    char seam[2 * MARK_MAX];
    size_t more = n < len ? n : len;

    if (memmem(p, n, w->mark, len))
        return true;
    memcpy(seam, it->tail, it->tail_len);
    memcpy(seam + it->tail_len, p, more);
    return memmem(seam, it->tail_len + more, w->mark, len) != NULL;
}

static void keep_tail(struct watch *it, const char *p, size_t n)
{
    size_t keep = MARK_MAX - 1;

    if (n >= keep) {
        memcpy(it->tail, p + n - keep, keep);
        it->tail_len = keep;
        return;
    }
    if (it->tail_len + n > keep) {
        size_t gone = it->tail_len + n - keep;

        memmove(it->tail, it->tail + gone, it->tail_len - gone);
        it->tail_len -= gone;
    }
    memcpy(it->tail + it->tail_len, p, n);
    it->tail_len += n;
}

/* What an agent does about a heartbeat: take_heartbeat() in agent/hublink/hub_link.c. */
static void take_heartbeat(struct watch *it, const char *p, size_t n)
{
    static const char field[] = "\"next\":";
    const char *at;
    unsigned next_s = 0;

    if (n > HEARTBEAT_TEXT_MAX || !memmem(p, n, HEARTBEAT_TYPE, strlen(HEARTBEAT_TYPE)))
        return;
    at = memmem(p, n, field, sizeof(field) - 1);
    if (at)
        next_s = (unsigned)strtoul(at + sizeof(field) - 1, NULL, 10);
    if (next_s != it->next_s)
        fake_set_probes(it->fd, next_s ? next_s + 1 : PROBE_S);
    it->next_s = next_s;
}

/* The number behind the last @field in the text, if there is one. */
static void take_number(const char *p, size_t n, const char *field, uint64_t *ret)
{
    const char *end = p + n;
    size_t len = strlen(field);
    const char *at;

    while ((at = memmem(p, (size_t)(end - p), field, len)) && at + len < end) {
        uint64_t value = 0;

        for (p = at + len; p < end && *p >= '0' && *p <= '9'; p++)
            value = value * 10 + (uint64_t)(*p - '0');
        /* A number at the end may go on in the next piece. */
        if (p < end)
            *ret = value;
    }
}

/* What an agent would say of this watch when it begins anew: the revision of the last event. The
 * nodes of a snapshot have none. */
static void take_known(struct watch *it, const char *p, size_t n)
{
    if (it->known.boot == 0)
        take_number(p, n, "\"boot\":", &it->known.boot);
    if (it->has_snapshot || it->known.revision == 0)
        take_number(p, n, "\"revision\":", &it->known.revision);
}

static void take_text(struct watches *w, struct watch *it, const char *p, size_t n)
{
    take_known(it, p, n);
    if (!it->has_snapshot && memchr(p, '\n', n)) {
        it->has_snapshot = true;
        w->n_snapshots++;
    }
    if (w->round != it->reported && w->mark[0] && has_mark(w, it, p, n)) {
        it->reported = w->round;
        w->n_reported++;
        w->reported_at = clock_now();
    }
    take_heartbeat(it, p, n);
    keep_tail(it, p, n);
}

/* RFC 1950 section 2.2: no JSON begins with this byte. */
static bool is_packed(char first)
{
    return first == 0x78;
}

static void begin_data(struct watch *it, char first)
{
    it->has_begun = true;
    if (!is_packed(first))
        return;
    it->z = calloc(1, sizeof(*it->z));
    if (!it->z || inflateInit(it->z) != Z_OK)
        fake_die("no memory");
}

static void take_data(struct watches *w, struct watch *it, const char *p, size_t n)
{
    static char text[TEXT_MAX]; /* of the one thread */

    if (!it->has_begun)
        begin_data(it, p[0]);
    if (!it->z) {
        take_text(w, it, p, n);
        return;
    }
    it->z->next_in = (Bytef *)p;
    it->z->avail_in = (uInt)n;
    do {
        int r;

        it->z->next_out = (Bytef *)text;
        it->z->avail_out = sizeof(text);
        r = inflate(it->z, Z_SYNC_FLUSH);
        if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
            fake_die("a watch cannot be unpacked");
        take_text(w, it, text, sizeof(text) - it->z->avail_out);
    } while (it->z->avail_out == 0);
}

static void end_data(struct watch *it)
{
    if (it->z)
        (void)inflateEnd(it->z);
    free(it->z);
    it->z = NULL;
}

static int hex_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One byte outside of the data. */
static void take_byte(struct watch *it, char c)
{
    static const char end[] = "\r\n\r\n";

    switch (it->phase) {
    case PHASE_HEAD:
        it->matched = c == end[it->matched] ? it->matched + 1 : c == '\r';
        if (it->matched == 4) {
            it->phase = PHASE_SIZE;
            it->left = 0;
        }
        break;
    case PHASE_SIZE:
        if (hex_of(c) >= 0)
            it->left = it->left * 16 + (size_t)hex_of(c);
        else if (c == '\n')
            it->phase = PHASE_DATA;
        break;
    case PHASE_BEHIND:
        if (c == '\n') {
            it->phase = PHASE_SIZE;
            it->left = 0;
        }
        break;
    case PHASE_DATA:
        break;
    }
}

static void feed(struct watches *w, struct watch *it, const char *p, size_t n)
{
    while (n > 0) {
        size_t some = 1;

        if (it->phase == PHASE_DATA) {
            some = n < it->left ? n : it->left;
            take_data(w, it, p, some);
            it->left -= some;
            if (it->left == 0)
                it->phase = PHASE_BEHIND;
        } else {
            take_byte(it, *p);
        }
        p += some;
        n -= some;
    }
}

/* ---- the thread ----------------------------------------------------------------------------- */

static void read_one(struct watches *w, struct watch *it, char *buf)
{
    ssize_t n = it->fd < 0 ? 0 : recv(it->fd, buf, READ_MAX, 0);

    /* Cut since the event, or it is another one's. */
    if (it->fd < 0 || (n < 0 && errno == EAGAIN))
        return;
    if (n <= 0) {
        (void)close(it->fd);
        it->fd = -1;
        end_data(it);
        w->n_snapshots -= it->has_snapshot;
        it->next_ended = w->ended;
        w->ended = (uint32_t)(it - w->all) + 1;
        atomic_fetch_add(&w->n_lost, 1);
        return;
    }
    atomic_fetch_add(&w->n_bytes, (uint64_t)n);
    feed(w, it, buf, (size_t)n);
}

static void *run(void *arg)
{
    static char buf[READ_MAX];
    struct watches *w = arg;
    struct epoll_event events[EVENTS];

    for (;;) {
        int n = epoll_wait(w->epoll_fd, events, EVENTS, -1);

        (void)pthread_mutex_lock(&w->lock);
        for (int i = 0; i < n; i++)
            read_one(w, events[i].data.ptr, buf);
        (void)pthread_cond_signal(&w->updates);
        (void)pthread_mutex_unlock(&w->lock);
    }
    return NULL;
}

struct watches *watches_start(uint32_t n)
{
    struct watches *w = calloc(1, sizeof(*w));
    pthread_condattr_t attr;
    pthread_t thread;

    if (!w)
        fake_die("no memory");
    w->cap = n;
    w->all = calloc(n, sizeof(*w->all));
    w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&w->updates, &attr);
    for (uint32_t i = 0; w->all && i < n; i++)
        w->all[i].fd = -1;
    if (!w->all || w->epoll_fd < 0 || pthread_create(&thread, NULL, run, w) != 0)
        fake_die("no memory");
    return w;
}

void watches_cut(struct watches *w)
{
    (void)pthread_mutex_lock(&w->lock);
    for (uint32_t i = 0; i < w->cap; i++) {
        struct watch *it = &w->all[i];

        if (it->fd < 0)
            continue;
        (void)close(it->fd);
        it->fd = -1;
        end_data(it);
        w->n_snapshots -= it->has_snapshot;
    }
    (void)pthread_mutex_unlock(&w->lock);
}

struct fake_known watches_known(struct watches *w, uint32_t number)
{
    struct fake_known known;

    (void)pthread_mutex_lock(&w->lock);
    known = w->all[number].known;
    (void)pthread_mutex_unlock(&w->lock);
    return known;
}

bool watches_take_ended(struct watches *w, uint32_t *ret_number)
{
    bool any;

    (void)pthread_mutex_lock(&w->lock);
    any = w->ended > 0;
    if (any) {
        *ret_number = w->ended - 1;
        w->ended = w->all[*ret_number].next_ended;
    }
    (void)pthread_mutex_unlock(&w->lock);
    return any;
}

void watches_add(struct watches *w, uint32_t number, int fd)
{
    struct epoll_event ev = {.events = EPOLLIN};

    (void)pthread_mutex_lock(&w->lock);
    if (number >= w->cap)
        fake_die("more watches than there is room for");
    ev.data.ptr = &w->all[number];
    /* After watches_expect() the mark is looked for in all that comes. */
    w->all[number] = (struct watch){
        .fd = fd, .reported = w->all[number].reported, .known = w->all[number].known};
    (void)pthread_mutex_unlock(&w->lock);
    if (epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
        fake_die("a watch cannot be waited for");
}

/* Until *@have is @n. */
static uint32_t wait_for(
    struct watches *w, const uint32_t *have, uint32_t n, nsec_t patience, nsec_t *ret_at)
{
    nsec_t end = clock_now() + patience;
    struct timespec ts = {.tv_sec = end / NSEC_PER_SEC, .tv_nsec = end % NSEC_PER_SEC};
    uint32_t had;

    (void)pthread_mutex_lock(&w->lock);
    while (*have < n && pthread_cond_timedwait(&w->updates, &w->lock, &ts) == 0)
        continue;
    had = *have;
    if (ret_at)
        *ret_at = w->reported_at;
    (void)pthread_mutex_unlock(&w->lock);
    return had;
}

uint32_t watches_wait_snapshots(struct watches *w, uint32_t n, nsec_t patience)
{
    return wait_for(w, &w->n_snapshots, n, patience, NULL);
}

void watches_expect(struct watches *w, const char *mark)
{
    (void)pthread_mutex_lock(&w->lock);
    (void)snprintf(w->mark, sizeof(w->mark), "%s", mark);
    w->round++;
    w->n_reported = 0;
    (void)pthread_mutex_unlock(&w->lock);
}

uint32_t watches_wait_told(struct watches *w, uint32_t n, nsec_t patience, nsec_t *ret_at)
{
    return wait_for(w, &w->n_reported, n, patience, ret_at);
}

uint32_t watches_lost(const struct watches *w)
{
    return atomic_load(&w->n_lost);
}

uint64_t watches_bytes(const struct watches *w)
{
    return atomic_load(&w->n_bytes);
}
