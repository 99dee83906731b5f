/* access_filter.c - see access_filter.h. */
#include "access/access_filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"

_Static_assert(offsetof(struct access_refused, packets) == 40, "no padding in what is compared");

/* Words of the table of fragments, and places that a datagram may have. */
#define FRAGMENTS_N    4096
#define FRAGMENT_TRIES 4

/* A word: the upper bits are the datagram's hash, the lower ones a second. */
#define FRAGMENT_TIME_MASK UINT64_C(0xffffff)

/* Places that a kind may have. */
#define KIND_TRIES 8

int access_filter_new(struct access_filter **ret, unsigned n_parts, uint64_t seed, nsec_t now)
{
    struct access_filter *f = calloc(1, sizeof(*f));

    if (!f)
        return -ENOMEM;
    f->seed = seed;
    f->takes_up_until = now + ACCESS_TAKE_UP_S * NSEC_PER_SEC;
    f->fragments = calloc(FRAGMENTS_N, sizeof(*f->fragments));
    f->parts = calloc(n_parts, sizeof(*f->parts));
    for (; f->parts && f->n_parts < n_parts; f->n_parts++)
        (void)pthread_mutex_init(&f->parts[f->n_parts].lock, NULL);
    if (!f->fragments || !f->parts || access_flows_init(&f->flows, seed) < 0) {
        (void)access_filter_free(f);
        return -ENOMEM;
    }
    *ret = f;
    return 0;
}

struct access_filter *access_filter_free(struct access_filter *f)
{
    if (!f)
        return NULL;
    for (unsigned i = 0; i < f->n_parts; i++)
        (void)pthread_mutex_destroy(&f->parts[i].lock);
    access_flows_deinit(&f->flows);
    (void)access_set_free(f->set);
    free(f->fragments);
    free(f->parts);
    free(f);
    return NULL;
}

struct access_set *access_filter_use(struct access_filter *f, struct access_set *set, uint64_t tag)
{
    struct access_set *before = f->set;

    f->set = set;
    f->tag = tag;
    f->generation++;
    return before;
}

void access_filter_settle(struct access_filter *f, struct access_set *before)
{
    if (before)
        access_set_add_counts(f->set, before);
    (void)access_set_free(before);
}

/* ---- fragments ------------------------------------------------------------------------------ */

static uint64_t datagram_of(const struct access_filter *f, const struct access_packet *p)
{
    struct access_key key = p->key;

    /* Later fragments have no ports, and of IPv6 another protocol where headers follow. */
    key.local_port = (uint16_t)(p->fragment_id >> 16);
    key.remote_port = (uint16_t)p->fragment_id;
    key.protocol = (uint8_t)p->way;
    return hash_bytes(f->seed, &key, sizeof(key));
}

static bool is_fresh(uint64_t word, uint32_t now_s)
{
    /* Clocks of two workers may differ by a moment. */
    return word != 0 &&
           ((now_s + 1 - (uint32_t)word) & FRAGMENT_TIME_MASK) <= ACCESS_FRAGMENT_S + 1;
}

/* A word that another worker writes at the same time is one lost datagram. */
static void note_first(struct access_filter *f, const struct access_packet *p, uint32_t now_s)
{
    uint64_t hash = datagram_of(f, p);
    uint64_t word = (hash & ~FRAGMENT_TIME_MASK) | (now_s & FRAGMENT_TIME_MASK);
    size_t at = hash % FRAGMENTS_N;

    for (unsigned i = 0; i < FRAGMENT_TRIES; i++) {
        size_t place = (at + i) % FRAGMENTS_N;
        uint64_t there = atomic_load_explicit(&f->fragments[place], memory_order_relaxed);

        if (is_fresh(there, now_s) && (there & ~FRAGMENT_TIME_MASK) != (word & ~FRAGMENT_TIME_MASK))
            continue;
        at = place;
        break;
    }
    atomic_store_explicit(&f->fragments[at], word, memory_order_relaxed);
}

static bool has_first(const struct access_filter *f, const struct access_packet *p, uint32_t now_s)
{
    uint64_t hash = datagram_of(f, p);

    for (unsigned i = 0; i < FRAGMENT_TRIES; i++) {
        uint64_t there = atomic_load_explicit(
            &f->fragments[(hash % FRAGMENTS_N + i) % FRAGMENTS_N], memory_order_relaxed);

        if (is_fresh(there, now_s) && ((there ^ hash) & ~FRAGMENT_TIME_MASK) == 0)
            return true;
    }
    return false;
}

/* ---- what is refused ------------------------------------------------------------------------ */

/* The place of a kind, which is one of a few; NULL: others have them all. */
static struct access_refused *kind_of(const struct access_filter *f, struct access_part *part,
    const struct access_refused *like, uint32_t now_s)
{
    size_t at = hash_bytes(f->seed, like, offsetof(struct access_refused, packets));
    struct access_refused *free_one = NULL;

    for (unsigned i = 0; i < KIND_TRIES; i++) {
        struct access_refused *k = &part->kinds[(at + i) % ACCESS_REFUSED_KINDS];

        if (k->packets > 0 && memcmp(k, like, offsetof(struct access_refused, packets)) == 0)
            return k;
        if (!free_one && (k->packets == 0 || now_s - k->seen_s > ACCESS_REFUSED_S))
            free_one = k;
    }
    if (free_one)
        *free_one = *like;
    return free_one;
}

static bool refuse(struct access_filter *f, struct access_part *part, const struct access_packet *p,
    uint32_t now_s)
{
    struct access_refused like = {
        .from = p->way == ACCESS_IN ? p->key.remote : p->key.local,
        .to = p->way == ACCESS_IN ? p->key.local : p->key.remote,
        .port = p->port,
        .protocol = p->key.protocol,
    };
    struct access_refused *k;

    (void)pthread_mutex_lock(&part->lock);
    part->n_refused++;
    k = kind_of(f, part, &like, now_s);
    if (k) {
        k->packets++;
        k->seen_s = now_s;
    }
    (void)pthread_mutex_unlock(&part->lock);
    return false;
}

unsigned access_filter_refused(struct access_filter *f, unsigned part,
    struct access_refused ret[static ACCESS_REFUSED_KINDS], uint64_t *ret_all)
{
    struct access_part *of = &f->parts[part];
    unsigned n = 0;

    (void)pthread_mutex_lock(&of->lock);
    for (unsigned i = 0; i < ACCESS_REFUSED_KINDS; i++)
        if (of->kinds[i].packets > 0)
            ret[n++] = of->kinds[i];
    *ret_all = of->n_refused;
    (void)pthread_mutex_unlock(&of->lock);
    return n;
}

/* ---- deciding ------------------------------------------------------------------------------- */

/* Would rules let in what the packet, as TCP in the midst of a connection, is the answer to? */
static bool is_answer(const struct access_filter *f, const struct access_packet *p, nsec_t now)
{
    struct access_packet asked = *p;

    if (p->key.protocol != IP_PROTO_TCP || p->begins || now >= f->takes_up_until)
        return false;
    asked.way = p->way == ACCESS_IN ? ACCESS_OUT : ACCESS_IN;
    asked.port = p->way == ACCESS_IN ? p->key.remote_port : p->key.local_port;
    if (access_set_is_shut(f->set, &asked))
        return false;
    return !access_set_refuses(f->set, asked.way) ||
           access_set_find(f->set, &asked) != ACCESS_NO_RULE;
}

static bool ask_rules(struct access_filter *f, const struct access_packet *p, nsec_t now)
{
    uint32_t now_s = (uint32_t)(now / NSEC_PER_SEC);
    bool is_shut = access_set_is_shut(f->set, p);
    uint32_t rule = is_shut ? ACCESS_NO_RULE : access_set_find(f->set, p);
    bool passes = !is_shut && (rule != ACCESS_NO_RULE || !access_set_refuses(f->set, p->way));
    bool is_under_way = !passes && is_answer(f, p, now);

    if (rule != ACCESS_NO_RULE && p->way == ACCESS_IN)
        access_set_count(f->set, rule);
    if ((passes || is_under_way) && p->is_connected)
        access_flows_begin(&f->flows, p, is_under_way, f->generation, now_s);
    return passes || is_under_way;
}

bool access_filter_pass(struct access_filter *f, unsigned part, enum access_way way,
    const uint8_t *p, size_t len, const struct ip_info *ip, nsec_t now)
{
    struct access_part *own = &f->parts[part];
    uint32_t now_s = (uint32_t)(now / NSEC_PER_SEC);
    struct access_packet packet;
    bool passes;

    if (!f->set)
        return true;
    access_packet_read(&packet, p, len, ip, way);
    if (packet.kind == ACCESS_PACKET_BROKEN)
        return refuse(f, own, &packet, now_s);
    if (packet.kind == ACCESS_PACKET_FOLLOWING)
        return has_first(f, &packet, now_s) || refuse(f, own, &packet, now_s);
    passes = packet.is_connected && !packet.begins &&
             access_flows_take(&f->flows, &packet, f->generation, now_s, &own->hint);
    if (!passes && packet.related.protocol != 0)
        passes = access_flows_has(&f->flows, &packet.related, now_s);
    if (!passes)
        passes = ask_rules(f, &packet, now);
    if (passes && packet.kind == ACCESS_PACKET_FIRST)
        note_first(f, &packet, now_s);
    return passes || refuse(f, own, &packet, now_s);
}
