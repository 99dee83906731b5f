/* kernel.c - see kernel.h. */
#include "kernel.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what RCCL 5.4 lays before its kernels (devcomm.h of its source) ------------------------- */

#define LOOK_AGAIN_MS 1

#define STEPS    8 /* slots of a buffer */
#define CHANNELS 32
#define SIMPLE   2 /* of three protocols, the only one for sends and receives */
#define PER_WORK 2 /* of a work's elements, the first receives and the second sends */

enum { WORK_P2P = 2 };

struct connection {
    char *buffers[3];
    uint64_t *tail; /* steps that were filled */
    uint64_t *head; /* steps that were taken out */
    int direct;
    int shared;
    void **pointer_exchange;
    uint64_t *argument_exchange;
    int *sizes;   /* of steps, for the proxy; NULL: none */
    int *offsets; /* of steps in the buffer; NULL: they lie one behind the other */
    uint64_t step;
    uint64_t last_cleaning;
    uint32_t *next_flush;
    uint32_t *own_flush;
};

struct peer {
    struct connection send[3];
    struct connection recv[3];
};

struct channel {
    struct peer *peers;
    struct {
        int prev, next;
        int *ranks;
        int index;
    } ring;
    int trees[2][5];
    int direct_tree[19];
    uint32_t *done;
} __attribute__((aligned(16)));

struct communicator {
    int rank;
    int ranks;
    int buffer_sizes[3];
    int fifo_depth;
    void *fifo;
    volatile uint32_t *aborts;
    struct channel *channels;
};

struct element {
    struct {
        int32_t peer : 30;
        uint32_t connection : 2;
    };
    struct {
        uint16_t type : 4, warps : 4, first_warp : 4, groups : 4;
    };
    uint16_t count_of_ops;
    uint32_t buffer_high, buffer_low;
    uint32_t size_high, size_low;
    int chunk;
};

struct work {
    union {
        int32_t next;  /* where the next one lies, from the first; of the last one: */
        uint32_t acks; /* what tells the host that all were read */
    };
    uint16_t function;
    uint8_t is_last : 1, is_in_fifo : 1;
    uint8_t type;
    union {
        char space[248];
        struct element elements[PER_WORK];
    };
};
_Static_assert(sizeof(struct element) == 28, "as RCCL has it");
_Static_assert(sizeof(struct work) == 256, "as RCCL has it");
_Static_assert(sizeof(struct connection) == 112, "as RCCL has it");
_Static_assert(sizeof(struct channel) == 160, "as RCCL has it");

/* ---- all that runs -------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_done = PTHREAD_COND_INITIALIZER;
static unsigned n_running; /* guarded by lock */

static void count(int by)
{
    (void)pthread_mutex_lock(&lock);
    n_running += (unsigned)by;
    if (n_running == 0)
        (void)pthread_cond_broadcast(&all_done);
    (void)pthread_mutex_unlock(&lock);
}

void kernel_wait(void)
{
    (void)pthread_mutex_lock(&lock);
    while (n_running > 0)
        (void)pthread_cond_wait(&all_done, &lock);
    (void)pthread_mutex_unlock(&lock);
}

/* A thread of its own, as warps are; a program without it is not tested. */
static void run(void *(*fn)(void *), void *argument)
{
    pthread_attr_t attributes;
    pthread_t thread;

    count(1);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attributes, fn, argument) != 0)
        abort();
    (void)pthread_attr_destroy(&attributes);
}

/* ---- one send, or one receive ---------------------------------------------------------------- */

/* Until the proxy at the other end of a buffer has come to that step. False: RCCL gives up. */
static bool wait_for(const struct communicator *comm, const uint64_t *at, uint64_t step)
{
    while ((int64_t)(__atomic_load_n(at, __ATOMIC_ACQUIRE) - step) < 0) {
        if (*comm->aborts)
            return false;
        (void)poll(NULL, 0, LOOK_AGAIN_MS);
    }
    return true;
}

static char *slot_of(const struct communicator *comm, const struct connection *c)
{
    unsigned slot = c->step % STEPS;

    if (c->offsets)
        return c->buffers[SIMPLE] + __atomic_load_n(&c->offsets[slot], __ATOMIC_ACQUIRE);
    return c->buffers[SIMPLE] + slot * (size_t)(comm->buffer_sizes[SIMPLE] / STEPS);
}

static bool send_chunk(
    const struct communicator *comm, struct connection *c, const char *from, size_t size)
{
    if (!wait_for(comm, c->head, c->step + 1 - STEPS))
        return false;
    if (c->sizes)
        __atomic_store_n(&c->sizes[c->step % STEPS], (int)size, __ATOMIC_SEQ_CST);
    memcpy(slot_of(comm, c), from, size);
    c->step++;
    __atomic_store_n(c->tail, c->step, __ATOMIC_RELEASE);
    return true;
}

static bool receive_chunk(
    const struct communicator *comm, struct connection *c, char *to, size_t size)
{
    if (!wait_for(comm, c->tail, c->step + 1))
        return false;
    memcpy(to, slot_of(comm, c), size);
    c->step++;
    __atomic_store_n(c->head, c->step, __ATOMIC_RELEASE);
    return true;
}

/** An element of a work, and where it is to run. */
struct transfer {
    const struct communicator *comm;
    struct channel *channel;
    struct element e;
    bool sends;
};

static void transfer(const struct transfer *t)
{
    char *buffer = (char *)(uintptr_t)((uint64_t)t->e.buffer_high << 32 | t->e.buffer_low);
    size_t size = (size_t)t->e.size_high << 32 | t->e.size_low;
    struct peer *peer = &t->channel->peers[t->e.peer];
    struct connection *c = t->sends ? &peer->send[t->e.connection] : &peer->recv[t->e.connection];
    size_t at = 0;

    if (!t->sends)
        __atomic_store_n(c->head, c->step, __ATOMIC_RELEASE);
    do {
        size_t n = size - at < (size_t)t->e.chunk ? size - at : (size_t)t->e.chunk;

        if (!(t->sends ? send_chunk(t->comm, c, buffer + at, n)
                       : receive_chunk(t->comm, c, buffer + at, n)))
            return;
        at += n;
    } while (at < size);
}

static void *run_transfer(void *argument)
{
    transfer(argument);
    free(argument);
    count(-1);
    return NULL;
}

/* ---- a launch ------------------------------------------------------------------------------- */

static void *copy(const void *of, size_t size)
{
    void *p = malloc(size);

    if (!p)
        abort();
    return memcpy(p, of, size);
}

/* Both ways at once, and then the next work, as the warps of a block do it. */
static void run_work(const struct communicator *comm, struct channel *channel, const struct work *w)
{
    pthread_t threads[PER_WORK];
    unsigned n = 0;

    if (w->type != WORK_P2P) {
        (void)fprintf(stderr, "stand-in: no kernel for work of type %u\n", w->type);
        abort();
    }
    for (unsigned i = 0; i < PER_WORK && i < w->elements[0].groups; i++) {
        const struct element *e = &w->elements[i];
        struct transfer t = {comm, channel, *e, i % 2 == 1};

        if (e->type == 0 || e->peer == -1 || e->peer == comm->rank)
            continue;
        count(1);
        if (pthread_create(&threads[n++], NULL, run_transfer, copy(&t, sizeof(t))) != 0)
            abort();
    }
    for (unsigned i = 0; i < n; i++)
        (void)pthread_join(threads[i], NULL);
}

/** A block of a launch, which is for one channel. */
struct block {
    const struct communicator *comm;
    struct channel *channel;
    const struct work *head; /* of all blocks */
    const struct work *first;
};

static void *run_block(void *argument)
{
    struct block *b = argument;
    const struct work *at = b->first;
    bool is_last;

    do {
        /* The host may use the place again once it is told that all were read. */
        struct work w = *at;

        is_last = w.is_last;
        if (is_last && w.is_in_fifo)
            __atomic_store_n(b->channel->done, w.acks, __ATOMIC_RELEASE);
        run_work(b->comm, b->channel, &w);
        at = b->head + w.next;
    } while (!is_last);
    free(b);
    count(-1);
    return NULL;
}

void kernel_launch(void **arguments)
{
    const struct communicator *comm = *(struct communicator **)arguments[0];
    uint64_t channels = *(uint64_t *)arguments[1];
    const struct work *head = *(struct work **)arguments[2];
    unsigned n = 0;

    for (unsigned i = 0; i < CHANNELS; i++) {
        struct block b = {comm, &comm->channels[i], head, head + n};

        if ((channels >> i & 1) == 0)
            continue;
        run(run_block, copy(&b, sizeof(b)));
        n++;
    }
}
