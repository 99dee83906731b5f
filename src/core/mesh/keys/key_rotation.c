/* key_rotation.c - see key_rotation.h. */
#include "mesh/keys/key_rotation.h"

#include "base/bytes.h"

const char *const key_rotation_state_names[] = {
    [KEY_ROTATION_IDLE] = "idle",
    [KEY_ROTATION_PREPARED] = "prepared",
    [KEY_ROTATION_MOVED] = "moved",
};

_Static_assert(
    sizeof(key_rotation_state_names) / sizeof(*key_rotation_state_names) == KEY_ROTATION_N,
    "each state has a name");

bool key_rotation_begin(struct key_rotation *r, const struct x25519_public *next)
{
    if (r->state != KEY_ROTATION_IDLE || x25519_public_equal(next, &r->key))
        return false;
    r->next = *next;
    r->state = KEY_ROTATION_PREPARED;
    return true;
}

/* Would it be lost if the node called it under the next key, and answered under both? */
static bool holds_up_move(
    const struct key_rotation_facts *facts, const struct key_rotation_peer *peer)
{
    /* The kernel's engine answers under one key alone. */
    if (peer->is_stock)
        return !facts->has_two_keys && !peer->is_seen_under_next;
    return (peer->is_heard || peer->is_reachable) && !peer->knows_next && !peer->calls_next;
}

/* Would it be lost if the old key was gone? That a peer knows the next key, or has answered under
 * it, does not mean that it calls by it. A stock peer may have been silent for as long as nothing
 * was to be said. */
static bool holds_up_erasure(
    const struct key_rotation_facts *facts, const struct key_rotation_peer *peer)
{
    if (peer->is_stock)
        return !peer->is_seen_under_next;
    return (peer->is_heard || peer->is_reachable || !facts->is_long_moved) && !peer->calls_next;
}

bool key_rotation_waits_for(const struct key_rotation *r, const struct key_rotation_facts *facts,
    const struct key_rotation_peer *peer)
{
    if (facts->force)
        return false;
    switch (r->state) {
    case KEY_ROTATION_PREPARED:
        return holds_up_move(facts, peer);
    case KEY_ROTATION_MOVED:
        return holds_up_erasure(facts, peer);
    case KEY_ROTATION_IDLE:
    case KEY_ROTATION_N:
        break;
    }
    return false;
}

static bool waits_for_any(const struct key_rotation *r, const struct key_rotation_facts *facts)
{
    for (size_t i = 0; i < facts->n_peers; i++)
        if (key_rotation_waits_for(r, facts, &facts->peers[i]))
            return true;
    return false;
}

enum key_rotation_step key_rotation_decide(
    const struct key_rotation *r, const struct key_rotation_facts *facts)
{
    switch (r->state) {
    case KEY_ROTATION_PREPARED:
        if (!facts->hubs_keep_statement)
            return KEY_ROTATION_ANNOUNCE;
        return waits_for_any(r, facts) ? KEY_ROTATION_WAIT : KEY_ROTATION_MOVE;
    case KEY_ROTATION_MOVED:
        if (!facts->hubs_have_moved)
            return KEY_ROTATION_FINISH;
        return waits_for_any(r, facts) ? KEY_ROTATION_WAIT : KEY_ROTATION_ERASE;
    case KEY_ROTATION_IDLE:
    case KEY_ROTATION_N:
        break;
    }
    return KEY_ROTATION_WAIT;
}

void key_rotation_take(struct key_rotation *r, enum key_rotation_step step)
{
    switch (step) {
    case KEY_ROTATION_MOVE:
        r->state = KEY_ROTATION_MOVED;
        break;
    case KEY_ROTATION_ERASE:
        *r = (struct key_rotation){.state = KEY_ROTATION_IDLE, .key = r->next};
        break;
    case KEY_ROTATION_WAIT:
    case KEY_ROTATION_ANNOUNCE:
    case KEY_ROTATION_FINISH:
        break;
    }
}

const struct x25519_public *key_rotation_initiates_with(
    const struct key_rotation *r, const struct key_rotation_peer *peer)
{
    bool knows_old_only = peer->is_stock && !peer->is_seen_under_next;

    return r->state == KEY_ROTATION_MOVED && !knows_old_only ? &r->next : &r->key;
}

uint64_t key_rotation_due(const struct x25519_public *key, uint64_t made_at, uint32_t every)
{
    uint64_t early = (uint64_t)every / 10 * be16_load(key->b) / UINT16_MAX;

    if (every == 0)
        return UINT64_MAX;
    if (made_at > UINT64_MAX - every)
        return UINT64_MAX;
    return made_at == 0 ? 0 : made_at + every - early;
}
