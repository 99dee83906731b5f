/* lock_chain.c - see lock_chain.h. */
#include "mesh/lock/lock_chain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

const char *const lock_order_names[] = {"same", "ahead", "behind", "forked"};
_Static_assert(sizeof(lock_order_names) / sizeof(*lock_order_names) == LOCK_ORDER_N, "a name each");

void lock_chain_init(struct lock_chain *c, const char *network, const struct lock_pins *pins)
{
    *c = (struct lock_chain){.verify = ed25519_verify};
    (void)snprintf(c->network, sizeof(c->network), "%s", network);
    if (pins)
        c->pins = *pins;
}

void lock_chain_deinit(struct lock_chain *c)
{
    lock_state_deinit(&c->state);
    free(c->hashes);
    c->hashes = NULL;
    c->n = 0;
    c->cap = 0;
}

/* ---- where an entry stands ------------------------------------------------------------------ */

static int check_place(const struct lock_chain *c, const struct lock_entry *entry, struct err *e)
{
    static const struct lock_hash none = {{0}};

    if (strcmp(entry->network, c->network) != 0)
        return err_set(e, -EINVAL, "it is of the network \"%s\"", entry->network);
    if (c->n == LOCK_ENTRIES_MAX)
        return err_set(e, -EINVAL, "a lock has %u entries at most", LOCK_ENTRIES_MAX);
    if (entry->seq != c->n)
        return err_set(e, -EINVAL, "the next entry is number %zu", c->n);
    if (!lock_hash_equal(&entry->prev, c->n > 0 ? &c->hashes[c->n - 1] : &none))
        return err_set(e, -EINVAL, "it does not follow the entry before it");
    if (entry->body.kind != LOCK_JOIN && entry->made_at < c->made_at)
        return err_set(e, -EINVAL, "it was made %llu s before an entry that stands before it",
            (unsigned long long)(c->made_at - entry->made_at));
    return 0;
}

/* ---- who has signed it ---------------------------------------------------------------------- */

static int check_alone(const struct lock_entry *entry, const struct ed25519_public *key,
    const char *whose, struct err *e)
{
    if (entry->n_signatures != 1 || ed25519_public_compare(&entry->signatures[0].key, key) != 0)
        return err_set(
            e, -EINVAL, "it has to be signed by the key of its %s, and by no other", whose);
    return 0;
}

static bool is_signer(const struct lock_signers *signers, const struct ed25519_public *key)
{
    for (unsigned i = 0; i < signers->n; i++)
        if (ed25519_public_compare(&signers->items[i].key, key) == 0)
            return true;
    return false;
}

static int check_signed(
    const struct lock_entry *entry, const struct lock_signers *signers, struct err *e)
{
    char text[ED25519_BASE64_MAX];

    for (unsigned i = 0; i < entry->n_signatures; i++)
        if (!is_signer(signers, &entry->signatures[i].key))
            return err_set(e, -EINVAL, "it is signed by the key %s, which is no signer's",
                ed25519_public_format(&entry->signatures[i].key, text));
    if (entry->n_signatures < signers->threshold)
        return err_set(e, -EINVAL, "%u of its %u signers have signed it, and %u have to",
            entry->n_signatures, signers->n, signers->threshold);
    return 0;
}

static int check_signatures(
    const struct lock_chain *c, const struct lock_entry *entry, struct err *e)
{
    const struct lock_body *b = &entry->body;
    int r;

    if (b->kind == LOCK_JOIN)
        r = check_alone(entry, &b->join.token, "token", e);
    else if (b->kind == LOCK_RECOVER)
        r = check_alone(entry, &b->recover.key, "code", e);
    else
        r = check_signed(
            entry, b->kind == LOCK_GENESIS ? &b->genesis.signers : &c->state.signers, e);
    return r == 0 ? lock_entry_verify(entry, c->verify, e) : r;
}

/* Have so many of those whom the pins name signed it? */
static bool is_vouched(const struct lock_pins *pins, const struct lock_entry *entry)
{
    unsigned n = 0;

    for (unsigned i = 0; i < pins->n; i++)
        n += lock_entry_signature(entry, &pins->keys[i]) != NULL;
    return n >= pins->threshold;
}

/* ---- the next one --------------------------------------------------------------------------- */

static int check(const struct lock_chain *c, const struct lock_entry *entry, struct err *e)
{
    uint64_t at = entry->made_at > c->made_at ? entry->made_at : c->made_at;
    int r = check_place(c, entry, e);

    if (r == 0)
        r = lock_state_check(&c->state, entry, at, e);
    return r == 0 ? check_signatures(c, entry, e) : r;
}

static int reserve(struct lock_chain *c)
{
    size_t cap = c->cap > 0 ? 2 * c->cap : 64;
    struct lock_hash *hashes = c->hashes;

    if (c->n == c->cap) {
        hashes = reallocarray(c->hashes, cap, sizeof(*hashes));
        if (!hashes)
            return -ENOMEM;
        c->cap = cap;
    }
    c->hashes = hashes;
    return 0;
}

static int take(struct lock_chain *c, struct lock_entry *entry)
{
    struct lock_hash hash;
    bool is_by_operators = entry->body.kind != LOCK_JOIN;
    uint64_t made_at = entry->made_at;
    bool vouched = is_vouched(&c->pins, entry);
    int r = reserve(c);

    if (r == 0)
        r = lock_entry_hash(entry, &hash);
    if (r == 0)
        r = lock_state_take(&c->state, entry);
    if (r < 0)
        return r;
    c->hashes[c->n++] = hash;
    c->is_vouched |= vouched;
    if (is_by_operators)
        c->made_at = made_at;
    return 0;
}

int lock_chain_apply(struct lock_chain *c, struct lock_entry *entry, struct err *e)
{
    int r = c->is_broken ? err_set(e, -ENOMEM, "there was no memory for an entry before it")
                         : check(c, entry, e);

    if (r == 0) {
        r = take(c, entry);
        c->is_broken = r < 0;
        if (r < 0)
            (void)err_set(e, r, "there is no memory for it");
    }
    if (r < 0)
        (void)err_prefix(
            e, "entry %llu of the lock of \"%s\"", (unsigned long long)entry->seq, c->network);
    return r;
}

int lock_chain_read(struct lock_chain *c, const void *p, size_t len, size_t *ret_len, struct err *e)
{
    struct reader in = reader_make(p, len);
    size_t taken = 0;
    int r = 0;

    while (r == 0 && reader_left(&in) > 0) {
        struct lock_entry entry = LOCK_ENTRY_NULL;

        r = lock_entry_decode(&entry, &in, e);
        if (r == 0)
            r = lock_chain_apply(c, &entry, e);
        if (r == 0)
            taken = len - reader_left(&in);
        lock_entry_deinit(&entry);
    }
    if (ret_len)
        *ret_len = taken;
    return r;
}

void lock_chain_next(const struct lock_chain *c, uint64_t now, struct lock_entry *entry)
{
    static const struct lock_hash none = {{0}};

    memcpy(entry->network, c->network, sizeof(entry->network));
    entry->seq = c->n;
    entry->prev = c->n > 0 ? c->hashes[c->n - 1] : none;
    entry->made_at = now > c->made_at ? now : c->made_at;
}

int lock_chain_check_usable(const struct lock_chain *c, struct err *e)
{
    if (c->is_broken || c->n == 0)
        return err_set(e, -EINVAL, "the lock of \"%s\" has no entry yet", c->network);
    if (!c->is_vouched)
        return err_set(e, -EINVAL,
            "no entry of the lock of \"%s\" is signed by %u of the %u signers that the join token "
            "names",
            c->network, c->pins.threshold, c->pins.n);
    return 0;
}

/* ---- with another member's ------------------------------------------------------------------ */

struct lock_head lock_chain_head(const struct lock_chain *c)
{
    return (struct lock_head){.seq = c->n - 1, .hash = c->hashes[c->n - 1]};
}

enum lock_order lock_chain_compare(const struct lock_chain *c, const struct lock_head *head)
{
    if (head->seq >= c->n)
        return LOCK_ORDER_BEHIND;
    if (!lock_hash_equal(&head->hash, &c->hashes[head->seq]))
        return LOCK_ORDER_FORKED;
    return head->seq == c->n - 1 ? LOCK_ORDER_SAME : LOCK_ORDER_AHEAD;
}
