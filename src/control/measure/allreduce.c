/* allreduce.c - see link_test.h: a ring and a tree of members that sum vectors. */
#include "measure/link_test.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/parse.h"
#include "measure/session.h"
#include "os/clock.h"
#include "os/file.h"

#define NEIGHBOUR_TIME (3 * NSEC_PER_SEC)
#define PIECE          (64u << 10) /* floats that go up or down the tree at a time */
#define PATTERN        13u

struct allreduce_party {
    const struct order *order;
    uint32_t rank;
    uint32_t n;
    float *vector;   /* owns */
    float *incoming; /* owns; room for what a neighbour sends; as long as @vector */
    size_t len;      /* floats */
    /* Connections to the neighbours; owned; -1: none. */
    int next;        /* in the ring */
    int prev;        /* in the ring */
    int parent;      /* in the tree */
    int children[2]; /* in the tree */
    nsec_t deadline; /* monotonic; of all repeats together */
};

/* ---- moving bytes -------------------------------------------------------------------------- */

/* One direction of an exchange: the bytes that have still to be sent, or received. */
struct part {
    int fd;
    uint8_t *p;
    size_t left; /* bytes */
};

static int move_out(struct part *out)
{
    ssize_t n = send(out->fd, out->p, out->left, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    out->p += n;
    out->left -= (size_t)n;
    return 0;
}

static int move_in(struct part *in)
{
    ssize_t n = recv(in->fd, in->p, in->left, MSG_DONTWAIT);

    if (n == 0)
        return -EPIPE;
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    in->p += n;
    in->left -= (size_t)n;
    return 0;
}

/* Sends and receives at the same time. If all members of a ring sent first and received afterwards,
 * all would wait for each other. */
static int exchange(struct part out, struct part in, nsec_t deadline)
{
    int r = 0;

    while (r == 0 && (out.left > 0 || in.left > 0)) {
        struct pollfd fds[2] = {{.fd = out.left > 0 ? out.fd : -1, .events = POLLOUT},
            {.fd = in.left > 0 ? in.fd : -1, .events = POLLIN}};
        nsec_t wait = deadline - clock_now();

        if (wait <= 0)
            return -ETIMEDOUT;
        (void)poll(fds, 2, (int)(wait / NSEC_PER_MSEC + 1));
        if (fds[0].revents)
            r = move_out(&out);
        if (r == 0 && fds[1].revents)
            r = move_in(&in);
    }
    return r;
}

static void add_vector(float *to, const float *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

/* ---- ring ---------------------------------------------------------------------------------- */

/* Part @i of @of, which is divided into as many parts as there are members. */
static struct part slice(const struct allreduce_party *p, float *of, uint32_t i, int fd)
{
    size_t from = p->len * i / p->n;
    size_t to = p->len * (i + 1) / p->n;

    return (struct part){
        .fd = fd, .p = (uint8_t *)(of + from), .left = (to - from) * sizeof(float)};
}

static int ring_once(struct allreduce_party *p)
{
    for (uint32_t step = 0; step + 1 < p->n; step++) {
        uint32_t out = (p->rank + p->n - step) % p->n;
        uint32_t in = (out + p->n - 1) % p->n;
        struct part target = slice(p, p->incoming, in, p->prev);
        int r = exchange(slice(p, p->vector, out, p->next), target, p->deadline);

        if (r < 0)
            return r;
        add_vector(
            p->vector + p->len * in / p->n, (float *)(void *)target.p, target.left / sizeof(float));
    }
    for (uint32_t step = 0; step + 1 < p->n; step++) {
        uint32_t out = (p->rank + 1 + p->n - step) % p->n;
        uint32_t in = (out + p->n - 1) % p->n;
        int r = exchange(
            slice(p, p->vector, out, p->next), slice(p, p->vector, in, p->prev), p->deadline);

        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- tree ---------------------------------------------------------------------------------- */

static int send_all(int fd, float *data, size_t n, nsec_t deadline)
{
    struct part out = {.fd = fd, .p = (uint8_t *)data, .left = n * sizeof(float)};

    return fd < 0 ? 0 : exchange(out, (struct part){.fd = -1}, deadline);
}

static int receive_all(int fd, float *data, size_t n, nsec_t deadline)
{
    struct part in = {.fd = fd, .p = (uint8_t *)data, .left = n * sizeof(float)};

    return exchange((struct part){.fd = -1}, in, deadline);
}

static int tree_up(struct allreduce_party *p, size_t from, size_t n)
{
    for (unsigned c = 0; c < 2; c++) {
        int r;

        if (p->children[c] < 0)
            continue;
        r = receive_all(p->children[c], p->incoming + from, n, p->deadline);
        if (r < 0)
            return r;
        add_vector(p->vector + from, p->incoming + from, n);
    }
    return send_all(p->parent, p->vector + from, n, p->deadline);
}

static int tree_down(struct allreduce_party *p, size_t from, size_t n)
{
    int r = p->parent < 0 ? 0 : receive_all(p->parent, p->vector + from, n, p->deadline);

    for (unsigned c = 0; r == 0 && c < 2; c++)
        r = send_all(p->children[c], p->vector + from, n, p->deadline);
    return r;
}

static int tree_once(struct allreduce_party *p)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < p->len; i += PIECE)
        r = tree_up(p, i, p->len - i < PIECE ? p->len - i : PIECE);
    for (size_t i = 0; r == 0 && i < p->len; i += PIECE)
        r = tree_down(p, i, p->len - i < PIECE ? p->len - i : PIECE);
    return r;
}

/* ---- the neighbours -------------------------------------------------------------------------- */

static int dial_rank(const struct allreduce_party *p, const struct dial_target *to, uint32_t rank,
    int *ret, struct err *e)
{
    struct order hop = {.kind = ORDER_HOP, .rank = p->rank};
    struct dial_target end = *to;

    end.peer = p->order->addrs[rank];
    return dial_all(&end, &hop, 1, clock_now() + NEIGHBOUR_TIME, ret, e);
}

static int take_rank(struct session *s, uint32_t rank, int *ret, struct err *e)
{
    *ret = session_take_hop(s, rank, clock_now() + NEIGHBOUR_TIME);
    return *ret < 0 ? err_set(e, -ETIMEDOUT, "the member of rank %u did not come", rank) : 0;
}

static int connect_neighbours(
    struct allreduce_party *p, const struct dial_target *to, struct session *s, struct err *e)
{
    uint32_t child = 2 * p->rank + 1;
    int r = 0;

    if (p->order->algorithm == ORDER_RING) {
        r = dial_rank(p, to, (p->rank + 1) % p->n, &p->next, e);
        return r < 0 ? r : take_rank(s, (p->rank + p->n - 1) % p->n, &p->prev, e);
    }
    if (p->rank > 0)
        r = dial_rank(p, to, (p->rank - 1) / 2, &p->parent, e);
    for (uint32_t c = 0; r == 0 && c < 2 && child + c < p->n; c++)
        r = take_rank(s, child + c, &p->children[c], e);
    return r;
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* All sums are whole numbers below 2^24, which a float holds exactly in whatever order they are
 * added. */
static bool is_correct(const struct allreduce_party *p)
{
    float base = (float)((uint64_t)p->n * (p->n - 1) / 2);

    for (size_t i = 0; i < p->len; i++)
        if (p->vector[i] != (float)p->n * (float)(i % PATTERN) + base)
            return false;
    return true;
}

static int repeat_allreduce(struct allreduce_party *p, struct allreduce *ret)
{
    nsec_t total = 0;

    ret->correct = true;
    for (uint32_t i = 0; i < p->order->repeats; i++) {
        nsec_t start;
        int r;

        for (size_t k = 0; k < p->len; k++)
            p->vector[k] = (float)(k % PATTERN + p->rank);
        start = clock_now();
        r = p->order->algorithm == ORDER_RING ? ring_once(p) : tree_once(p);
        if (r < 0)
            return r;
        total += clock_now() - start;
        ret->repeats = i + 1;
        ret->elapsed = total / ret->repeats;
        ret->correct = ret->correct && is_correct(p);
    }
    return 0;
}

/* Is there memory for two vectors? See ALLREDUCE_SURE_MAX. */
static bool has_memory(uint64_t bytes)
{
    static const char name[] = "MemAvailable:";
    uint64_t kib = 0;
    char line[128];
    FILE *f;

    if (bytes <= ALLREDUCE_SURE_MAX)
        return true;
    f = fopen("/proc/meminfo", "re");
    while (f && kib == 0 && fgets(line, sizeof(line), f)) {
        char *number = line + sizeof(name) - 1;

        /* "MemAvailable:   22334455 kB" */
        if (strncmp(line, name, sizeof(name) - 1) != 0)
            continue;
        number += strspn(number, " ");
        number[strcspn(number, " \n")] = '\0';
        if (parse_u64(&kib, number, 1, UINT64_MAX / 1024, "memory", NULL) != 0)
            break;
    }
    if (f)
        (void)fclose(f);
    return 4 * bytes <= kib * 1024;
}

void allreduce_run(
    struct allreduce *ret, const struct dial_target *to, const struct order *o, struct session *s)
{
    struct allreduce_party p = {.order = o,
        .rank = o->rank,
        .n = (uint32_t)o->n_addrs,
        .len = o->bytes / sizeof(float),
        .next = -1,
        .prev = -1,
        .parent = -1,
        .children = {-1, -1}};
    struct err e = ERR_NULL;
    int r = 0;

    *ret = (struct allreduce){0};
    if (has_memory(o->bytes)) {
        p.vector = calloc(p.len, sizeof(float));
        p.incoming = calloc(p.len, sizeof(float));
    }
    if (!p.vector || !p.incoming)
        r = err_set(&e, -ENOMEM, "no memory for a vector of %zu numbers", p.len);
    if (r == 0)
        r = connect_neighbours(&p, to, s, &e);
    p.deadline = clock_now() + (nsec_t)o->ms * NSEC_PER_MSEC;
    if (r == 0) {
        r = repeat_allreduce(&p, ret);
        if (r < 0)
            (void)err_set(&e, r, "a neighbour is lost: %s", strerror(-r));
    }
    if (r < 0)
        (void)snprintf(ret->why, sizeof(ret->why), "%.*s", RESULT_WHY_MAX - 1, err_text(&e));
    closep(&p.next);
    closep(&p.prev);
    closep(&p.parent);
    closep(&p.children[0]);
    closep(&p.children[1]);
    free(p.vector);
    free(p.incoming);
}
