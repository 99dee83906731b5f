/* access_flows.c - see access_flows.h. */
#include "access/access_flows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"

_Static_assert(sizeof(struct access_flow) == 64, "one cache line");

#define ENTRIES_N 8 /* entries of a bucket */
#define BUCKETS_N (ACCESS_FLOWS_MAX / ENTRIES_N)
#define LOCKS_N   64

/* Bits of a state: packets have gone that way; the end was said there. */
#define HAS_GONE(way)  (1u << (way))
#define HAS_ENDED(way) (4u << (way))
#define HAS_GONE_BOTH  (HAS_GONE(ACCESS_OUT) | HAS_GONE(ACCESS_IN))
#define HAS_ENDED_BOTH (HAS_ENDED(ACCESS_OUT) | HAS_ENDED(ACCESS_IN))
#define WAS_RESET      16u
#define IS_TCP         32u
#define IS_UDP         64u
#define IS_ICMP        128u
#define IS_OTHER       256u

int access_flows_init(struct access_flows *f, uint64_t seed)
{
    struct access_flows made = {.seed = seed};

    made.locks = calloc(LOCKS_N, sizeof(*made.locks));
    /* So large that the kernel gives its pages when they are written; one more has room to align.
     */
    made.memory = calloc(ACCESS_FLOWS_MAX + 1, sizeof(*made.items));
    if (!made.locks || !made.memory) {
        free(made.locks);
        free(made.memory);
        return -ENOMEM;
    }
    made.items = (struct access_flow *)(((uintptr_t)made.memory + sizeof(*made.items) - 1) &
                                        ~(uintptr_t)(sizeof(*made.items) - 1));
    for (unsigned i = 0; i < LOCKS_N; i++)
        (void)pthread_mutex_init(&made.locks[i], NULL);
    *f = made;
    return 0;
}

void access_flows_deinit(struct access_flows *f)
{
    for (unsigned i = 0; f->locks && i < LOCKS_N; i++)
        (void)pthread_mutex_destroy(&f->locks[i]);
    free(f->locks);
    free(f->memory);
    *f = (struct access_flows)ACCESS_FLOWS_NULL;
}

/* ---- reading -------------------------------------------------------------------------------- */

static void words_of(const struct access_key *key, uint64_t ret[static ACCESS_FLOW_KEY_WORDS])
{
    memcpy(ret, key, sizeof(*key));
}

static size_t bucket_of(const struct access_flows *f, const struct access_key *key)
{
    return hash_bytes(f->seed, key, sizeof(*key)) % BUCKETS_N;
}

/* A consistent look at an entry: its state; 0: it is not that connection's. */
static uint32_t look(const struct access_flow *e, const uint64_t *words)
{
    uint32_t version = atomic_load_explicit(&e->version, memory_order_acquire);
    uint32_t state = atomic_load_explicit(&e->state, memory_order_acquire);
    uint64_t differs = 0;

    if (state == 0 || (version & 1) != 0)
        return 0;
    /* Acquire: who has seen a word of a later writer's sees its version, too. */
    for (size_t i = 0; i < ACCESS_FLOW_KEY_WORDS; i++)
        differs |= atomic_load_explicit(&e->key[i], memory_order_acquire) ^ words[i];
    return differs == 0 && atomic_load_explicit(&e->version, memory_order_relaxed) == version
               ? state
               : 0;
}

static uint32_t patience(uint32_t state)
{
    if (state & IS_UDP)
        return ACCESS_UDP_S;
    if (state & IS_ICMP)
        return ACCESS_ICMP_S;
    if (state & IS_OTHER)
        return ACCESS_OTHER_S;
    return (state & HAS_GONE_BOTH) != HAS_GONE_BOTH || (state & HAS_ENDED_BOTH) == HAS_ENDED_BOTH ||
                   (state & WAS_RESET)
               ? ACCESS_TCP_HALF_S
               : ACCESS_TCP_S;
}

static bool is_over(const struct access_flow *e, uint32_t state, uint32_t now_s)
{
    /* Clocks of two threads may differ by a moment. */
    int32_t silent = (int32_t)(now_s - atomic_load_explicit(&e->seen, memory_order_relaxed));

    return silent > (int32_t)patience(state);
}

/* The entry of a connection, and its state; NULL: there is none. */
static struct access_flow *find(
    struct access_flow *bucket, const uint64_t *words, uint32_t *ret_state)
{
    for (unsigned i = 0; i < ENTRIES_N; i++) {
        *ret_state = look(&bucket[i], words);
        if (*ret_state != 0)
            return &bucket[i];
    }
    return NULL;
}

/* ---- writing: with the bucket's lock -------------------------------------------------------- */

/* Adds bits to the state of an entry, if it is still that connection's. */
static void learn(
    struct access_flows *f, size_t at, struct access_flow *e, const uint64_t *words, uint32_t bits)
{
    pthread_mutex_t *lock = &f->locks[at % LOCKS_N];

    (void)pthread_mutex_lock(lock);
    if (look(e, words) != 0)
        (void)atomic_fetch_or_explicit(&e->state, bits, memory_order_relaxed);
    (void)pthread_mutex_unlock(lock);
}

/* How little an entry is missed; the more, the sooner it gives way. */
static uint64_t spare(const struct access_flow *e, uint32_t now_s)
{
    uint32_t state = atomic_load_explicit(&e->state, memory_order_relaxed);
    uint32_t silent = now_s - atomic_load_explicit(&e->seen, memory_order_relaxed);
    uint64_t class = 0;

    if (state == 0 || is_over(e, state, now_s))
        class = 2;
    else if ((state & HAS_GONE_BOTH) != HAS_GONE_BOTH || (state & WAS_RESET) ||
             (state & HAS_ENDED_BOTH) == HAS_ENDED_BOTH)
        class = 1;
    return class << 32 | ((int32_t)silent > 0 ? silent : 0);
}

/* The entry that gives way to another one. */
static struct access_flow *choose_victim(
    struct access_flows *f, struct access_flow *bucket, uint32_t now_s)
{
    struct access_flow *best = bucket;
    uint64_t most = 0;

    for (unsigned i = 0; i < ENTRIES_N; i++) {
        uint64_t s = spare(&bucket[i], now_s);

        if (atomic_load_explicit(&bucket[i].state, memory_order_relaxed) == 0)
            return &bucket[i];
        if (s > most) {
            most = s;
            best = &bucket[i];
        }
    }
    if (most >> 32 < 2)
        atomic_fetch_add_explicit(&f->n_lost, 1, memory_order_relaxed);
    return best;
}

static void write_entry(struct access_flow *e, const uint64_t *words, uint32_t state,
    uint32_t generation, uint32_t now_s)
{
    uint32_t version = atomic_load_explicit(&e->version, memory_order_relaxed);

    atomic_store_explicit(&e->version, version + 1, memory_order_relaxed);
    /* Release: who sees one of what follows sees that the version is odd. */
    for (size_t i = 0; i < ACCESS_FLOW_KEY_WORDS; i++)
        atomic_store_explicit(&e->key[i], words[i], memory_order_release);
    atomic_store_explicit(&e->state, state, memory_order_release);
    atomic_store_explicit(&e->generation, generation, memory_order_relaxed);
    atomic_store_explicit(&e->seen, now_s, memory_order_relaxed);
    atomic_store_explicit(&e->version, version + 2, memory_order_release);
}

/* ---- calls ---------------------------------------------------------------------------------- */

static uint32_t bits_of(const struct access_packet *p)
{
    uint32_t bits = HAS_GONE(p->way);

    if (p->ends)
        bits |= HAS_ENDED(p->way);
    if (p->resets)
        bits |= WAS_RESET;
    return bits;
}

static uint32_t protocol_of(const struct access_packet *p)
{
    if (p->key.protocol == IP_PROTO_TCP)
        return IS_TCP;
    if (p->key.protocol == IP_PROTO_UDP)
        return IS_UDP;
    return p->is_icmp ? IS_ICMP : IS_OTHER;
}

bool access_flows_take(struct access_flows *f, const struct access_packet *p, uint32_t generation,
    uint32_t now_s, struct access_flow **hint)
{
    uint32_t bits = bits_of(p);
    struct access_flow *e = *hint;
    uint64_t words[ACCESS_FLOW_KEY_WORDS];
    uint32_t state;

    words_of(&p->key, words);
    state = e ? look(e, words) : 0;
    if (state == 0)
        e = find(&f->items[bucket_of(f, &p->key) * ENTRIES_N], words, &state);
    if (!e || is_over(e, state, now_s))
        return false;
    *hint = e;
    if (((state | bits) & HAS_GONE_BOTH) != HAS_GONE_BOTH &&
        atomic_load_explicit(&e->generation, memory_order_relaxed) != generation)
        return false;
    if ((bits & ~state) != 0)
        learn(f, (size_t)(e - f->items) / ENTRIES_N, e, words, bits);
    if (atomic_load_explicit(&e->seen, memory_order_relaxed) != now_s)
        atomic_store_explicit(&e->seen, now_s, memory_order_relaxed);
    return true;
}

bool access_flows_has(struct access_flows *f, const struct access_key *key, uint32_t now_s)
{
    uint64_t words[ACCESS_FLOW_KEY_WORDS];
    struct access_flow *e;
    uint32_t state;

    words_of(key, words);
    e = find(&f->items[bucket_of(f, key) * ENTRIES_N], words, &state);
    return e && !is_over(e, state, now_s);
}

void access_flows_begin(struct access_flows *f, const struct access_packet *p, bool is_under_way,
    uint32_t generation, uint32_t now_s)
{
    uint32_t state = bits_of(p) | protocol_of(p) | (is_under_way ? HAS_GONE_BOTH : 0);
    size_t at = bucket_of(f, &p->key);
    struct access_flow *bucket = &f->items[at * ENTRIES_N];
    uint64_t words[ACCESS_FLOW_KEY_WORDS];
    struct access_flow *e;
    uint32_t before;

    words_of(&p->key, words);
    (void)pthread_mutex_lock(&f->locks[at % LOCKS_N]);
    e = find(bucket, words, &before);
    if (!e)
        e = choose_victim(f, bucket, now_s);
    write_entry(e, words, state, generation, now_s);
    (void)pthread_mutex_unlock(&f->locks[at % LOCKS_N]);
}
