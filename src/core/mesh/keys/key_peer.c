/* key_peer.c - see key_peer.h. */
#include "mesh/keys/key_peer.h"

#include <errno.h>

#include "base/err.h"

static bool has_next(const struct key_peer *p)
{
    return !x25519_public_is_none(&p->next);
}

bool key_peer_takes(const struct key_peer *p, const struct x25519_public *key)
{
    return x25519_public_equal(key, &p->key) || (has_next(p) && x25519_public_equal(key, &p->next));
}

const struct x25519_public *key_peer_calls(const struct key_peer *p)
{
    return has_next(p) && p->calls_next ? &p->next : &p->key;
}

const struct x25519_public *key_peer_newest(const struct key_peer *p)
{
    return has_next(p) ? &p->next : &p->key;
}

/* The link that @key has signed; NULL: none. */
static const struct key_statement *link_of(
    const struct x25519_public *key, const struct key_statement *chain, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (x25519_public_equal(&chain[i].old_key, key))
            return &chain[i];
    return NULL;
}

int key_peer_on_chain(struct key_peer *p, const struct key_statement *chain, size_t n,
    const struct key_subject *subject, key_chain_verify_fn verify, struct err *e)
{
    const struct key_statement *first;
    struct x25519_public end;
    int r = n == 0 ? 0 : verify(&p->key, chain, n, subject, &end, e);

    if (n == 0 || r < 0 || x25519_public_equal(&end, &p->key))
        return r;
    first = link_of(&p->key, chain, n);
    if (has_next(p) && !x25519_public_equal(&first->new_key, &p->next))
        return err_set(e, -EINVAL, "the key of \"%s\" has signed two next ones", subject->name);
    if (x25519_public_equal(&end, key_peer_newest(p)))
        return 0;
    /* All that are not the last but one are gone: who signed with that one had erased them. */
    *p = (struct key_peer){.key = chain[n - 1].old_key, .next = end};
    return 1;
}

bool key_peer_on_hub_key(struct key_peer *p, const struct x25519_public *key, bool is_silent)
{
    if (!is_silent || p->calls_next || !has_next(p) || !x25519_public_equal(key, &p->next))
        return false;
    p->calls_next = true;
    return true;
}

bool key_peer_on_handshake(struct key_peer *p, const struct x25519_public *key, bool is_initiator)
{
    if (!has_next(p) || !key_peer_takes(p, key))
        return false;
    if (!is_initiator)
        return false;
    if (x25519_public_equal(key, &p->key)) {
        /* It answers under that key as well. */
        bool changed = p->calls_next;

        p->calls_next = false;
        return changed;
    }
    *p = (struct key_peer){.key = p->next};
    return true;
}
