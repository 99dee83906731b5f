/* keypair.c - see keypair.h. */
#include "noise/keypair.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "wire/wg.h"

/* ---- the window ---- */

#define BLOCK_BITS 64
#define N_BLOCKS   (REPLAY_BITS / BLOCK_BITS)

_Static_assert((N_BLOCKS & (N_BLOCKS - 1)) == 0, "the ring's index is a mask");

/* Clears the @n blocks behind @from, and counts what leaves with them. Not inlined: only one
 * message in 64 has to save registers for it. */
__attribute__((noinline)) static void clear_blocks(struct replay *w, uint64_t from, uint64_t n)
{
    if (n > N_BLOCKS)
        n = N_BLOCKS;
    for (uint64_t i = 1; i <= n; i++) {
        uint64_t *block = &w->blocks[(from + i) % N_BLOCKS];

        w->n_left += (unsigned)__builtin_popcountll(*block);
        *block = 0;
    }
}

/* Makes @counter the greatest: clears the blocks between the old greatest's and its own. */
static void advance(struct replay *w, uint64_t counter)
{
    uint64_t from = w->next ? (w->next - 1) / BLOCK_BITS : 0;
    uint64_t n = counter / BLOCK_BITS - from;

    if (n > 0)
        clear_blocks(w, from, n);
    w->next = counter + 1;
}

bool replay_check(struct replay *w, uint64_t counter)
{
    uint64_t bit = UINT64_C(1) << counter % BLOCK_BITS;
    uint64_t *block = &w->blocks[counter / BLOCK_BITS % N_BLOCKS];

    if (counter >= WG_REJECT_AFTER_MESSAGES)
        return false;
    if (counter >= w->next) {
        advance(w, counter);
        *block |= bit;
        return true;
    }
    if (w->next - 1 - counter > REPLAY_WINDOW)
        return false;
    if (*block & bit) {
        w->n_repeated++;
        return false;
    }
    *block |= bit;
    w->n_reordered++;
    return true;
}

struct arrivals replay_arrivals(const struct replay *w, uint64_t below)
{
    uint64_t front = w->next ? (w->next - 1) / BLOCK_BITS : 0;
    uint64_t first = front < N_BLOCKS ? 0 : front - (N_BLOCKS - 1); /* block of the ring */
    uint64_t n_seen = w->n_left;                                    /* below @below */
    uint64_t n_above = 0;                                           /* seen, from there on */

    if (below > w->next)
        below = w->next;
    if (below < first * BLOCK_BITS)
        below = first * BLOCK_BITS;
    for (uint64_t i = first; i <= front; i++) {
        uint64_t block = w->blocks[i % N_BLOCKS];
        unsigned n = (unsigned)__builtin_popcountll(block);
        unsigned n_from = 0; /* of the counters from @below on */

        if (i == below / BLOCK_BITS)
            n_from = (unsigned)__builtin_popcountll(block >> below % BLOCK_BITS);
        else if (i > below / BLOCK_BITS)
            n_from = n;
        n_seen += n - n_from;
        n_above += n_from;
    }
    return (struct arrivals){.received = n_seen + n_above,
        .lost = below - n_seen,
        .reordered = w->n_reordered,
        .repeated = w->n_repeated};
}

/* ---- one keypair ---- */

/* 6.1, and what AES-GCM needs instead. */
static const struct {
    uint64_t rekey_after;
    uint64_t reject_after;
} message_limits[AEAD_CIPHER_N] = {
    [AEAD_CIPHER_CHACHA20POLY1305] = {WG_REKEY_AFTER_MESSAGES, WG_REJECT_AFTER_MESSAGES},
    [AEAD_CIPHER_AES256GCM] = {KEYPAIR_AES_REKEY_AFTER_MESSAGES, KEYPAIR_AES_REJECT_AFTER_MESSAGES},
};

static uint64_t rekey_after(const struct keypair *kp)
{
    return message_limits[kp->alg->cipher].rekey_after;
}

static uint64_t reject_after(const struct keypair *kp)
{
    return message_limits[kp->alg->cipher].reject_after;
}

int keypair_new(struct keypair **ret)
{
    struct keypair *kp = calloc(1, sizeof(*kp));

    if (!kp)
        return -ENOMEM;
    atomic_init(&kp->refs, 1);
    atomic_init(&kp->send_counter, 0);
    (void)pthread_mutex_init(&kp->replay_lock, NULL);
    *ret = kp;
    return 0;
}

struct keypair *keypair_unref(struct keypair *kp)
{
    /* Pairs with itself: the last one sees all that the others did before letting go. */
    if (kp && atomic_fetch_sub_explicit(&kp->refs, 1, memory_order_acq_rel) == 1) {
        (void)pthread_mutex_destroy(&kp->replay_lock);
        secret_wipe(kp, sizeof(*kp));
        free(kp);
    }
    return NULL;
}

static uint64_t sent(const struct keypair *kp)
{
    return atomic_load_explicit(&kp->send_counter, memory_order_relaxed);
}

bool keypair_can_send(const struct keypair *kp, nsec_t now)
{
    return now - kp->birth < WG_REJECT_AFTER_TIME && sent(kp) < reject_after(kp);
}

bool keypair_can_receive(const struct keypair *kp, nsec_t now)
{
    return now - kp->birth < WG_REJECT_AFTER_TIME;
}

bool keypair_wants_rekey_after_send(const struct keypair *kp, nsec_t now)
{
    return sent(kp) > rekey_after(kp) ||
           (kp->is_initiator && now - kp->birth >= WG_REKEY_AFTER_TIME);
}

bool keypair_wants_rekey_after_receive(const struct keypair *kp, nsec_t now)
{
    return kp->is_initiator &&
           now - kp->birth >= WG_REJECT_AFTER_TIME - WG_KEEPALIVE_TIMEOUT - WG_REKEY_TIMEOUT;
}

bool keypair_take_counters(struct keypair *kp, uint32_t n, uint64_t *ret_first)
{
    uint64_t limit = reject_after(kp);
    uint64_t first = sent(kp);

    /* A compare-and-swap, not an addition: a counter past the limit may never wrap around. */
    do {
        if (first > limit || limit - first < n)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(
        &kp->send_counter, &first, first + n, memory_order_relaxed, memory_order_relaxed));
    *ret_first = first;
    return true;
}

bool keypair_seal(
    const struct keypair *kp, struct aead_lane *lane, uint64_t counter, uint8_t *msg, size_t len)
{
    struct wg_data header = {
        .type = le32_make(WG_TYPE_DATA),
        .receiver = le32_make(kp->remote_index),
        .counter = le64_make(counter),
    };
    struct aead_nonce nonce = aead_nonce_make(counter);

    memcpy(msg, &header, sizeof(header));
    return aead_seal(lane, kp->alg, &kp->seal_key, &nonce, NULL, 0, msg + sizeof(header), len);
}

bool keypair_open(const struct keypair *kp, struct aead_lane *lane, uint8_t *msg, size_t len,
    uint64_t *ret_counter)
{
    struct wg_data header;
    struct aead_nonce nonce;
    uint64_t counter;

    memcpy(&header, msg, sizeof(header));
    counter = le64_get(header.counter);
    nonce = aead_nonce_make(counter);
    if (counter >= reject_after(kp) || !aead_open(lane, kp->alg, &kp->open_key, &nonce, NULL, 0,
                                           msg + sizeof(header), len - sizeof(header)))
        return false;
    *ret_counter = counter;
    return true;
}

void keypair_check_counters(struct keypair *kp, const uint64_t *counters, size_t n, bool *ret_fresh)
{
    (void)pthread_mutex_lock(&kp->replay_lock);
    for (size_t i = 0; i < n; i++)
        ret_fresh[i] = replay_check(&kp->replay, counters[i]);
    (void)pthread_mutex_unlock(&kp->replay_lock);
}

/* As keypairs_arrivals(). @is_over: nothing is awaited any more. */
static void add_arrivals(struct keypair *kp, bool is_over, nsec_t now, struct arrivals *sum)
{
    struct arrivals a;

    (void)pthread_mutex_lock(&kp->replay_lock);
    if (is_over) {
        kp->awaited_below = kp->replay.next;
    } else if (now - kp->marked_at >= KEYPAIR_AWAITED_FOR) {
        kp->awaited_below = kp->marked;
        kp->marked = kp->replay.next;
        kp->marked_at = now;
    }
    a = replay_arrivals(&kp->replay, kp->awaited_below);
    (void)pthread_mutex_unlock(&kp->replay_lock);
    arrivals_add(sum, &a);
}

/* ---- a peer's three slots ---- */

void keypairs_init(struct keypairs *ks)
{
    *ks = (struct keypairs){0};
    (void)pthread_mutex_init(&ks->lock, NULL);
}

void keypairs_deinit(struct keypairs *ks)
{
    assert(!ks->current && !ks->previous && !ks->next);
    (void)pthread_mutex_destroy(&ks->lock);
}

struct keypair *keypairs_acquire_current(struct keypairs *ks)
{
    struct keypair *kp;

    (void)pthread_mutex_lock(&ks->lock);
    kp = ks->current;
    /* Whoever adds a reference holds one, so nothing is ordered by this. */
    if (kp)
        atomic_fetch_add_explicit(&kp->refs, 1, memory_order_relaxed);
    (void)pthread_mutex_unlock(&ks->lock);
    return kp;
}

struct arrivals keypairs_arrivals(struct keypairs *ks, nsec_t now)
{
    struct arrivals sum = {.received = 0};
    struct keypair *slots[3];

    (void)pthread_mutex_lock(&ks->lock);
    slots[0] = ks->current;
    slots[1] = ks->previous;
    slots[2] = ks->next;
    (void)pthread_mutex_unlock(&ks->lock);
    /* Workers only move them from slot to slot. */
    for (size_t i = 0; i < 3; i++)
        if (slots[i])
            add_arrivals(slots[i], false, now, &sum);
    return sum;
}

struct arrivals keypairs_evicted_arrivals(const struct keypairs_evicted *evicted)
{
    struct arrivals sum = {.received = 0};

    for (size_t i = 0; i < 3; i++)
        if (evicted->kp[i])
            add_arrivals(evicted->kp[i], true, 0, &sum);
    return sum;
}

/* Moves *@slot, if there is something in it, to the end of the list. */
static void evict(struct keypair **slot, struct keypairs_evicted *list, size_t *n)
{
    if (*slot)
        list->kp[(*n)++] = *slot;
    *slot = NULL;
}

void keypairs_add(struct keypairs *ks, struct keypair *kp, struct keypairs_evicted *ret)
{
    struct keypairs_evicted list = {{NULL}};
    size_t n = 0;

    (void)pthread_mutex_lock(&ks->lock);
    if (kp->is_initiator) {
        evict(&ks->previous, &list, &n);
        /*
         * An unconfirmed next is newer than current: the other side may have
         * begun to send with it, so it is the one worth receiving with.
         */
        if (ks->next) {
            evict(&ks->current, &list, &n);
            ks->previous = ks->next;
            ks->next = NULL;
        } else {
            ks->previous = ks->current;
        }
        ks->current = kp;
    } else {
        evict(&ks->next, &list, &n);
        evict(&ks->previous, &list, &n);
        ks->next = kp;
    }
    (void)pthread_mutex_unlock(&ks->lock);
    *ret = list;
}

bool keypairs_confirm(struct keypairs *ks, const struct keypair *kp, bool *ret_renews)
{
    bool is_next;

    (void)pthread_mutex_lock(&ks->lock);
    is_next = kp == ks->next;
    if (is_next) {
        assert(!ks->previous);
        ks->previous = ks->current;
        ks->current = ks->next;
        ks->next = NULL;
        *ret_renews = ks->previous != NULL;
    }
    (void)pthread_mutex_unlock(&ks->lock);
    return is_next;
}

void keypairs_clear(struct keypairs *ks, struct keypairs_evicted *ret)
{
    struct keypairs_evicted list = {{NULL}};
    size_t n = 0;

    (void)pthread_mutex_lock(&ks->lock);
    evict(&ks->current, &list, &n);
    evict(&ks->previous, &list, &n);
    evict(&ks->next, &list, &n);
    (void)pthread_mutex_unlock(&ks->lock);
    *ret = list;
}
