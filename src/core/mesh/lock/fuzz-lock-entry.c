/*
 * fuzz-lock-entry.c - any bytes are entries of a lock that are written again as they were, or none.
 *
 * Those that are some are put one behind the other, whoever has signed them, so that what they come
 * to is tried as well: nothing is accepted twice, and each entry has words.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "mesh/lock/lock_chain.h"
#include "mesh/lock/lock_words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool verify_anything(const struct ed25519_signature *signature,
    const struct ed25519_public *public, const void *message, size_t len)
{
    return true;
}

/* The entry's own signatures are the fuzzer's; these are those that it has to have. */
static void sign_anyhow(const struct lock_chain *c, struct lock_entry *entry)
{
    const struct lock_signers *signers =
        entry->body.kind == LOCK_GENESIS ? &entry->body.genesis.signers : &c->state.signers;

    memset(entry->signatures, 0, sizeof(entry->signatures));
    entry->n_signatures = 1;
    if (entry->body.kind == LOCK_JOIN) {
        entry->signatures[0].key = entry->body.join.token;
    } else if (entry->body.kind == LOCK_RECOVER) {
        entry->signatures[0].key = entry->body.recover.key;
    } else {
        entry->n_signatures = signers->n;
        for (unsigned i = 0; i < signers->n; i++)
            entry->signatures[i].key = signers->items[i].key;
    }
}

static void check_state(const struct lock_state *s)
{
    size_t n_routes = 0;

    assert(s->by_key.n == s->nodes.n);
    assert(s->by_address4.n == s->nodes.n);
    assert(s->by_address6.n == s->nodes.n);
    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct lock_node *node = s->nodes.items[i];

        assert(lock_state_node(s, node->node.meta.name) == node);
        assert(lock_state_node_of(s, &node->node.key) == node);
        assert(!lock_state_is_revoked(s, &node->node.key));
        n_routes += node->node.routes ? node->node.routes->n : 0;
    }
    assert(s->routes.n == n_routes);
}

/* In its place, and as made when it is good. */
static void apply(struct lock_chain *c, struct lock_entry *entry)
{
    struct str words = STR_NULL;
    size_t n = c->n;

    lock_chain_next(c, entry->made_at, entry);
    sign_anyhow(c, entry);
    lock_words(entry, &c->state, &words);
    assert(str_text(&words)[0] != '\0');
    str_deinit(&words);
    if (lock_chain_apply(c, entry, NULL) == 0)
        assert(c->n == n + 1);
    else
        assert(c->n == n && !c->is_broken);
    check_state(&c->state);
}

static void check_bytes(const struct lock_entry *entry, const uint8_t *p, size_t len)
{
    uint8_t *again = malloc(len);
    struct writer w = writer_make(again, again ? len : 0);

    assert(again);
    lock_entry_encode(&w, entry);
    assert(!w.failed && writer_len(&w) == len && memcmp(again, p, len) == 0);
    free(again);
}

/* A chain as it stands: nobody has signed what a fuzzer says. The corpus has chains that are. */
static void check_pinned(const uint8_t *data, size_t len, const char *network)
{
    static const struct lock_pins pins = {
        .keys = {{{0x9a, 0xf9, 0xb5, 0x68, 0x08, 0x66, 0x65, 0x77}}}, .n = 1, .threshold = 1};
    struct lock_chain c;

    lock_chain_init(&c, network, &pins);
    (void)lock_chain_read(&c, data, len, NULL, NULL);
    assert(lock_chain_check_usable(&c, NULL) < 0);
    lock_chain_deinit(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct reader in = reader_make(data, len);
    struct lock_chain c = {.n = 0};
    struct lock_entry entry = LOCK_ENTRY_NULL;
    const uint8_t *start = data;

    while (reader_left(&in) > 0 && lock_entry_decode(&entry, &in, NULL) == 0) {
        check_bytes(&entry, start, (size_t)(in.p - start));
        if (start == data) {
            check_pinned(data, len, entry.network);
            lock_chain_init(&c, entry.network, NULL);
            c.verify = verify_anything;
        }
        start = in.p;
        apply(&c, &entry);
        lock_entry_deinit(&entry);
    }
    lock_chain_deinit(&c);
    return 0;
}
