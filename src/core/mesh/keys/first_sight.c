/* first_sight.c - see first_sight.h. */
#include "mesh/keys/first_sight.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "base/err.h"
#include "mesh/keys/key_node.h"
#include "mesh/keys/key_peer.h"

const char *const first_sight_state_names[] = {
    "known", "refused", "waits", "asks", "changed", "new hub"};
_Static_assert(
    sizeof(first_sight_state_names) / sizeof(*first_sight_state_names) == FIRST_SIGHT_STATE_N,
    "a name each");

/* ---- the memory ------------------------------------------------------------------------------ */

void first_sight_deinit(struct first_sight *fs)
{
    free(fs->peers);
    fs->peers = NULL;
    fs->n = fs->cap = fs->n_offered = 0;
}

static int compare_name(const void *item, const void *wanted)
{
    const struct first_sight_peer *peer = item;

    return strcmp(peer->name, wanted);
}

static size_t place_of(const struct first_sight *fs, const char *name, bool *ret_found)
{
    return sorted_place(fs->peers, fs->n, sizeof(*fs->peers), compare_name, name, ret_found);
}

static struct first_sight_peer *find(struct first_sight *fs, const char *name)
{
    bool is_there;
    size_t at = place_of(fs, name, &is_there);

    return is_there ? &fs->peers[at] : NULL;
}

const struct first_sight_peer *first_sight_find(const struct first_sight *fs, const char *name)
{
    bool is_there;
    size_t at = place_of(fs, name, &is_there);

    return is_there ? &fs->peers[at] : NULL;
}

static void forget(struct first_sight *fs, size_t at)
{
    fs->n_offered -= fs->peers[at].offered_at != 0;
    fs->n--;
    memmove(&fs->peers[at], &fs->peers[at + 1], (fs->n - at) * sizeof(*fs->peers));
    fs->has_changed = true;
}

/* Whoever was removed first is forgotten for another. Return: one more fits. */
static bool make_place(struct first_sight *fs)
{
    size_t oldest = fs->n;

    if (fs->n < FIRST_SIGHT_PEERS_MAX)
        return true;
    for (size_t i = 0; i < fs->n; i++)
        if (fs->peers[i].removed_at != 0 &&
            (oldest == fs->n || fs->peers[i].removed_at < fs->peers[oldest].removed_at))
            oldest = i;
    if (oldest == fs->n)
        return false;
    forget(fs, oldest);
    return true;
}

/* One that nothing is held of yet; NULL: it does not fit, or no memory. */
static struct first_sight_peer *add(struct first_sight *fs, const char *name)
{
    struct first_sight_peer *peers;
    bool is_there;
    size_t at;

    if (!make_place(fs))
        return NULL;
    at = place_of(fs, name, &is_there);
    peers = sorted_open(fs->peers, fs->n, sizeof(*fs->peers), at, &fs->cap);
    if (!peers)
        return NULL;
    fs->peers = peers;
    fs->n++;
    fs->has_changed = true;
    peers[at] = (struct first_sight_peer){.seen_at = 0};
    (void)snprintf(peers[at].name, sizeof(peers[at].name), "%.*s", NAME_MAX_LEN, name);
    return &peers[at];
}

/* ---- identities ------------------------------------------------------------------------------ */

static struct first_sight_identity identity_of(const struct node *n)
{
    struct first_sight_identity id = {
        .key = n->key, .address4 = n->address4, .address6 = n->address6, .is_hub = n->hub != NULL};

    if (n->hub && n->hub->has_tls_pin) {
        id.has_pin = true;
        id.pin = n->hub->tls_pin;
    }
    return id;
}

unsigned first_sight_changes(
    const struct first_sight_identity *held, const struct first_sight_identity *said)
{
    unsigned changes = 0;

    if (!x25519_public_equal(&held->key, &said->key))
        changes |= FIRST_SIGHT_KEY;
    if (!ip_addr_equal(&held->address4, &said->address4) ||
        !ip_addr_equal(&held->address6, &said->address6))
        changes |= FIRST_SIGHT_ADDRESS;
    if (!held->is_hub && said->is_hub)
        changes |= FIRST_SIGHT_HUB;
    if (held->has_pin && said->has_pin &&
        memcmp(held->pin.b, said->pin.b, sizeof(held->pin.b)) != 0)
        changes |= FIRST_SIGHT_PIN;
    return changes;
}

const char *first_sight_text(unsigned changes, char buf[static FIRST_SIGHT_TEXT_MAX])
{
    static const char *const words[] = {"key", "address", "role of a hub", "TLS key"};
    size_t len = 0;

    buf[0] = '\0';
    for (unsigned i = 0; i < sizeof(words) / sizeof(*words) && len < FIRST_SIGHT_TEXT_MAX; i++)
        if (changes & 1u << i)
            len += (size_t)snprintf(
                buf + len, FIRST_SIGHT_TEXT_MAX - len, "%s%s", len > 0 ? " and " : "", words[i]);
    return buf;
}

void first_sight_apply(const struct first_sight_peer *peer, struct node *node)
{
    first_sight_set_keys(peer, node);
    node->address4 = peer->held.address4;
    node->address6 = peer->held.address6;
    if (node->hub && !peer->held.is_hub) {
        free(node->hub);
        node->hub = NULL;
    }
    if (node->hub && peer->held.has_pin) {
        node->hub->has_tls_pin = true;
        node->hub->tls_pin = peer->held.pin;
    }
}

/* ---- the rules ------------------------------------------------------------------------------- */

/* A clock that was set back must not make a key answer in the future. */
static void hear(struct first_sight_peer *peer, const struct first_sight_facts *facts)
{
    int64_t heard = facts->answered ? facts->answered(facts->ctx, &peer->held.key) : 0;

    if (heard > peer->answered_at)
        peer->answered_at = heard;
    if (peer->answered_at > facts->at)
        peer->answered_at = facts->at;
    if (peer->offered_at > facts->at)
        peer->offered_at = facts->at;
}

/* Does the held key still answer? Who was removed cannot. */
static bool is_silent(const struct first_sight *fs, const struct first_sight_peer *peer, int64_t at)
{
    int64_t asked = fs->held_for < FIRST_SIGHT_ASKED_S ? fs->held_for : FIRST_SIGHT_ASKED_S;

    return at - peer->answered_at >= fs->held_for &&
           (peer->removed_at != 0 || at - peer->offered_at >= asked);
}

int64_t first_sight_silent_at(const struct first_sight *fs, const struct first_sight_peer *peer)
{
    int64_t asked = fs->held_for < FIRST_SIGHT_ASKED_S ? fs->held_for : FIRST_SIGHT_ASKED_S;
    int64_t silent = peer->answered_at + fs->held_for;
    int64_t answered = peer->removed_at != 0 ? 0 : peer->offered_at + asked;

    return silent > answered ? silent : answered;
}

/* Who has one of these addresses, and is not @but: in the network, or so shortly removed that its
 * key may still answer. */
static const struct first_sight_peer *find_owner(const struct first_sight *fs,
    const struct first_sight_identity *id, const struct first_sight_peer *but, int64_t at)
{
    for (size_t i = 0; i < fs->n; i++) {
        const struct first_sight_peer *peer = &fs->peers[i];

        if (peer == but || peer->seen_at == 0 ||
            (peer->removed_at != 0 && at - peer->answered_at >= fs->held_for))
            continue;
        if (ip_addr_equal(&peer->held.address4, &id->address4) ||
            ip_addr_equal(&peer->held.address6, &id->address6))
            return peer;
    }
    return NULL;
}

/* Is an address that it would have another peer's? */
static bool is_taken(const struct first_sight *fs, const struct first_sight_peer *peer, int64_t at)
{
    bool has_other = peer->seen_at == 0 ||
                     (first_sight_changes(&peer->held, &peer->offered) & FIRST_SIGHT_ADDRESS);

    /* What is named at the same time has no order. */
    return fs->has_members && has_other && find_owner(fs, &peer->offered, peer, at);
}

/* Why the offer may be believed now; FIRST_SIGHT_UNCHANGED: it may not. */
static enum first_sight_how may_believe(const struct first_sight *fs,
    const struct first_sight_peer *peer, const struct first_sight_facts *facts)
{
    unsigned changes = first_sight_changes(&peer->held, &peer->offered);

    if (is_taken(fs, peer, facts->at))
        return FIRST_SIGHT_UNCHANGED;
    if (peer->seen_at == 0)
        return fs->asks && fs->has_members && peer->offered.is_hub ? FIRST_SIGHT_UNCHANGED
                                                                   : FIRST_SIGHT_SILENT;
    if (fs->asks)
        return FIRST_SIGHT_UNCHANGED;
    /* That a known machine is a hub as well takes nothing from anybody. */
    if (changes == FIRST_SIGHT_HUB || is_silent(fs, peer, facts->at))
        return FIRST_SIGHT_SILENT;
    return FIRST_SIGHT_UNCHANGED;
}

static void forget_next(struct first_sight_peer *peer)
{
    peer->next = (struct x25519_public){{0}};
    peer->calls_next = peer->has_next = false;
}

static void withdraw(struct first_sight *fs, struct first_sight_peer *peer)
{
    fs->n_offered -= peer->offered_at != 0;
    fs->has_changed |= peer->offered_at != 0;
    peer->offered_at = 0;
}

static void believe(
    struct first_sight *fs, struct first_sight_peer *peer, enum first_sight_how how, int64_t at)
{
    unsigned changes = first_sight_changes(&peer->held, &peer->offered) & ~FIRST_SIGHT_HUB;
    bool is_new = peer->seen_at == 0;

    if (peer->offered.is_hub && (is_new || !peer->held.is_hub))
        peer->hub_at = fs->has_members && how != FIRST_SIGHT_TRUSTED ? at : 0;
    if (is_new) {
        peer->seen_at = at;
    } else if (changes != 0) {
        peer->how = how;
        peer->changed_at = at;
        peer->changed = changes;
        peer->before = peer->held;
    }
    if (is_new || (changes & FIRST_SIGHT_KEY)) {
        peer->answered_at = 0;
        forget_next(peer);
    }
    peer->held = peer->offered;
    peer->removed_at = 0;
    withdraw(fs, peer);
    fs->has_changed = true;
}

/* The hub says what is held. What it leaves out, or says for the first time, is no change. */
static void agree(
    struct first_sight *fs, struct first_sight_peer *peer, const struct first_sight_identity *said)
{
    withdraw(fs, peer);
    fs->has_changed |= peer->removed_at != 0 || peer->held.is_hub != said->is_hub;
    peer->removed_at = 0;
    peer->held.is_hub = said->is_hub;
    if (!said->is_hub)
        peer->hub_at = 0;
    if (said->has_pin && !peer->held.has_pin) {
        peer->held.has_pin = fs->has_changed = true;
        peer->held.pin = said->pin;
    }
}

static bool is_same(const struct first_sight_identity *a, const struct first_sight_identity *b)
{
    return first_sight_changes(a, b) == 0 && a->is_hub == b->is_hub && a->has_pin == b->has_pin;
}

static void offer(struct first_sight *fs, struct first_sight_peer *peer,
    const struct first_sight_identity *said, int64_t at)
{
    if (peer->offered_at != 0 && is_same(&peer->offered, said))
        return;
    fs->n_offered += peer->offered_at == 0;
    peer->offered = *said;
    peer->offered_at = at;
    fs->has_changed = true;
}

/* ---- keys that follow each other ------------------------------------------------------------- */

static struct key_peer keys_of(const struct first_sight_peer *peer)
{
    return (struct key_peer){
        .key = peer->held.key, .next = peer->next, .calls_next = peer->calls_next};
}

/* When it was last heard is known by the key that it had until now. */
static void set_keys_of(struct first_sight *fs, struct first_sight_peer *peer,
    const struct key_peer *keys, const struct first_sight_facts *facts)
{
    hear(peer, facts);
    if (!x25519_public_equal(&peer->held.key, &keys->key)) {
        peer->how = FIRST_SIGHT_SIGNED;
        peer->changed_at = facts->at;
        peer->changed = FIRST_SIGHT_KEY;
        peer->before = peer->held;
        peer->held.key = keys->key;
    }
    peer->next = keys->next;
    peer->calls_next = keys->calls_next;
    peer->has_next &= !x25519_public_is_none(&peer->next);
    fs->has_changed = true;
}

int first_sight_chain(struct first_sight *fs, const struct node *node, const char *network,
    const struct first_sight_facts *facts, struct err *e)
{
    struct key_statement chain[NODE_KEYS_STATEMENTS_MAX];
    struct first_sight_peer *peer = find(fs, node->meta.name);
    struct key_subject subject = key_node_subject(network, node);
    struct key_statement last;
    struct key_peer keys;
    size_t n;
    int r;

    if (!peer || peer->seen_at == 0 || !key_node_last(node, &last))
        return 0;
    keys = keys_of(peer);
    /* Nearly always: then no signature is looked at. */
    if (x25519_public_equal(&last.new_key, key_peer_newest(&keys)))
        return 0;
    n = key_node_chain(node, chain);
    r = key_peer_on_chain(&keys, chain, n, &subject, key_chain_verify, e);
    if (r == 1)
        set_keys_of(fs, peer, &keys, facts);
    return r;
}

bool first_sight_on_call(struct first_sight *fs, const char *name, const struct x25519_public *key,
    const struct first_sight_facts *facts)
{
    struct first_sight_peer *peer = find(fs, name);
    struct key_peer keys;

    if (!peer || peer->seen_at == 0)
        return false;
    keys = keys_of(peer);
    if (!key_peer_on_handshake(&keys, key, true))
        return false;
    set_keys_of(fs, peer, &keys, facts);
    return true;
}

/* The hub says that its next key is its key: is it to be called under that? */
static bool follow_hub(
    struct first_sight *fs, struct first_sight_peer *peer, const struct first_sight_facts *facts)
{
    struct key_peer keys = keys_of(peer);
    bool is_silent;

    if (!peer->has_next || peer->calls_next)
        return false;
    hear(peer, facts);
    is_silent = facts->has_one_key || facts->at - peer->answered_at >= FIRST_SIGHT_SESSION_S;
    if (!key_peer_on_hub_key(&keys, &peer->next, is_silent))
        return false;
    set_keys_of(fs, peer, &keys, facts);
    return true;
}

enum key_ack_level first_sight_level(
    const struct first_sight *fs, const char *name, const struct x25519_public *next)
{
    const struct first_sight_peer *peer = first_sight_find(fs, name);

    if (!peer || peer->seen_at == 0 || peer->removed_at != 0)
        return KEY_ACK_NONE;
    if (x25519_public_equal(&peer->next, next))
        return KEY_ACK_KNOWN;
    /* It may have told that it changes its key a second time, and this one is the last but one. */
    return x25519_public_equal(&peer->held.key, next) ? KEY_ACK_BELIEVED : KEY_ACK_NONE;
}

void first_sight_set_keys(const struct first_sight_peer *peer, struct node *node)
{
    struct key_peer keys = keys_of(peer);
    bool has_next = !x25519_public_is_none(&keys.next);

    node->key = *key_peer_calls(&keys);
    if (!node->keys && has_next)
        node->keys = calloc(1, sizeof(*node->keys));
    if (!node->keys)
        return;
    node->keys->other = has_next && keys.calls_next ? keys.key : keys.next;
    if (peer->how == FIRST_SIGHT_SIGNED)
        node->keys->former = peer->before.key;
}

enum first_sight_verdict first_sight_node(
    struct first_sight *fs, struct node *node, const struct first_sight_facts *facts)
{
    struct first_sight_identity said = identity_of(node);
    struct first_sight_peer *peer = find(fs, node->meta.name);
    enum first_sight_how how;

    if (strcmp(node->meta.name, fs->self) == 0)
        return FIRST_SIGHT_BELIEVED;
    if (!peer)
        peer = add(fs, node->meta.name);
    if (!peer)
        return FIRST_SIGHT_BELIEVED;
    /* What the held key has signed is no change. */
    peer->has_next = peer->seen_at != 0 && !x25519_public_is_none(&peer->next) &&
                     x25519_public_equal(&said.key, &peer->next);
    if (peer->has_next) {
        said.key = peer->held.key;
        (void)follow_hub(fs, peer, facts);
    }
    if (peer->seen_at != 0 && first_sight_changes(&peer->held, &said) == 0) {
        agree(fs, peer, &said);
        first_sight_set_keys(peer, node);
        return FIRST_SIGHT_BELIEVED;
    }
    offer(fs, peer, &said, facts->at);
    if (peer->seen_at != 0)
        hear(peer, facts);
    how = may_believe(fs, peer, facts);
    if (how != FIRST_SIGHT_UNCHANGED) {
        believe(fs, peer, how, facts->at);
        first_sight_set_keys(peer, node);
        return FIRST_SIGHT_BELIEVED;
    }
    /* Who was removed does not come back by what somebody else says. */
    if (peer->seen_at == 0 || peer->removed_at != 0)
        return FIRST_SIGHT_LEFT_OUT;
    first_sight_apply(peer, node);
    return FIRST_SIGHT_KEPT;
}

static void remove_at(struct first_sight *fs, size_t at, const struct first_sight_facts *facts)
{
    struct first_sight_peer *peer = &fs->peers[at];

    if (peer->seen_at == 0) {
        forget(fs, at);
        return;
    }
    withdraw(fs, peer);
    if (peer->removed_at != 0)
        return;
    hear(peer, facts);
    peer->removed_at = facts->at;
    fs->has_changed = true;
}

void first_sight_gone(
    struct first_sight *fs, const char *name, const struct first_sight_facts *facts)
{
    bool is_there;
    size_t at = place_of(fs, name, &is_there);

    if (is_there)
        remove_at(fs, at, facts);
}

void first_sight_members(
    struct first_sight *fs, const struct snapshot *s, const struct first_sight_facts *facts)
{
    for (size_t i = fs->n; i-- > 0;)
        if (!snapshot_find_node(s, fs->peers[i].name))
            remove_at(fs, i, facts);
}

/* ---- time ------------------------------------------------------------------------------------ */

static bool is_too_old(const struct first_sight_peer *peer, int64_t at)
{
    return peer->removed_at != 0 && peer->offered_at == 0 &&
           at - peer->removed_at >= FIRST_SIGHT_KEPT_S;
}

void first_sight_look(struct first_sight *fs, const struct first_sight_facts *facts,
    first_sight_taken_fn taken, void *ctx)
{
    for (size_t i = fs->n; i-- > 0;) {
        struct first_sight_peer *peer = &fs->peers[i];
        enum first_sight_how how;

        if (is_too_old(peer, facts->at)) {
            forget(fs, i);
            continue;
        }
        if (peer->seen_at != 0)
            hear(peer, facts);
        if (follow_hub(fs, peer, facts))
            taken(ctx, peer);
        if (peer->offered_at == 0)
            continue;
        how = may_believe(fs, peer, facts);
        if (how == FIRST_SIGHT_UNCHANGED)
            continue;
        believe(fs, peer, how, facts->at);
        taken(ctx, peer);
    }
}

int first_sight_trust(struct first_sight *fs, const char *name,
    const struct first_sight_facts *facts, first_sight_taken_fn taken, void *ctx, struct err *e)
{
    struct first_sight_peer *peer = find(fs, name);
    const struct first_sight_peer *owner;

    if (!peer)
        return err_set(e, -ENOENT, "nobody called \"%s\" is known here", name);
    if (peer->offered_at == 0) {
        fs->has_changed |= peer->hub_at != 0 || peer->how == FIRST_SIGHT_SILENT;
        peer->hub_at = 0;
        if (peer->how == FIRST_SIGHT_SILENT)
            peer->how = FIRST_SIGHT_TRUSTED;
        return 0;
    }
    owner = is_taken(fs, peer, facts->at) ? find_owner(fs, &peer->offered, peer, facts->at) : NULL;
    if (owner)
        return err_set(e, -EBUSY,
            "the hub gives \"%s\" an address of \"%s\", which has to be removed, or trusted with "
            "another one, before",
            name, owner->name);
    believe(fs, peer, FIRST_SIGHT_TRUSTED, facts->at);
    taken(ctx, peer);
    return 0;
}

/* ---- what is shown --------------------------------------------------------------------------- */

enum first_sight_state first_sight_state(
    const struct first_sight *fs, const struct first_sight_peer *peer, int64_t at)
{
    if (peer->offered_at != 0) {
        if (peer->seen_at == 0 && is_taken(fs, peer, at))
            return FIRST_SIGHT_REFUSED;
        /* Its first frame after the hub's word says that both cannot be right. */
        if (peer->removed_at == 0 && peer->answered_at > peer->offered_at)
            return FIRST_SIGHT_REFUSED;
        return fs->asks ? FIRST_SIGHT_ASKS : FIRST_SIGHT_SILENCE;
    }
    if (peer->how == FIRST_SIGHT_SILENT && at - peer->changed_at < FIRST_SIGHT_SHOWN_S)
        return FIRST_SIGHT_TAKEN;
    if (peer->hub_at != 0 && at - peer->hub_at < FIRST_SIGHT_SHOWN_S)
        return FIRST_SIGHT_NEW_HUB;
    return FIRST_SIGHT_WELL;
}
