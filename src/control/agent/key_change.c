/* key_change.c - see key_change.h. */
#include "agent/key_change.h"

#include <stdio.h>
#include <string.h>

#include "agent/reconcile/observe.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "mesh/keys/key_ack.h"
#include "mesh/keys/key_node.h"
#include "mesh/object/fields.h"
#include "mesh/snapshot/snapshot.h"
#include "mesh/snapshot/watch_event.h"
#include "os/clock.h"

/* A session may last for so long (whitepaper 6.1, REJECT_AFTER_TIME). */
#define SESSION (180 * NSEC_PER_SEC)
/* A hub that has said nothing for so long does not say who is there. */
#define HUB_SILENT (30 * NSEC_PER_SEC)
/* Others are called under the next key so often, until they have taken note. */
#define CALL_EACH (5 * NSEC_PER_SEC)
/* Hubs are told, and asked, so often; later so much less. */
#define SAY_FIRST NSEC_PER_SEC
#define SAY_MAX   (30 * NSEC_PER_SEC)
/* After its start an agent begins no change by the clock for so long, and some of that more. */
#define BEGIN_AFTER (60 * NSEC_PER_SEC)
/* After a statement that no hub takes another one is made so much later. */
#define AGAIN_AFTER (300 * NSEC_PER_SEC)
/* Acknowledgements that are checked in a poll: each costs four multiplications at most. */
#define CHECKS_MAX 64

/* ---- what is on the disk --------------------------------------------------------------------- */

static const struct x25519_public *own_key(const struct key_change *kc)
{
    return &snapshot_self(&kc->state->snapshot)->key;
}

static void forget_next(struct key_change *kc)
{
    state_next_key_deinit(&kc->next);
    kc->next_key = kc->state->next = (struct x25519_public){{0}};
    kc->rotation = (struct key_rotation){.key = *own_key(kc)};
    json_decref(kc->levels);
    kc->levels = NULL;
    kc->settled_at = 0;
    kc->n_waits = 0;
    kc->why = NULL;
}

void key_change_open(struct key_change *kc, const char *dir, struct state *state, nsec_t now)
{
    struct err e = ERR_NULL;
    int r;

    *kc = (struct key_change){.dir = dir, .state = state, .begun_at = now, .stage_at = now};
    kc->rotation.key = *own_key(kc);
    r = dir ? state_read_next_key(&kc->next, dir, &e) : STATE_E_ABSENT;
    if (r == STATE_E_ABSENT)
        return;
    if (r == 0 && !x25519_derive_public(&kc->next.secret, &kc->next_key))
        r = err_set(&e, -EINVAL, "keys.json has a key that nobody can have");
    /* It was about to be forgotten. */
    if (r == 0 && x25519_public_equal(&kc->next_key, own_key(kc))) {
        (void)state_forget_next_key(dir, NULL);
        forget_next(kc);
        return;
    }
    if (r == 0 && !x25519_public_equal(&kc->next.from, own_key(kc)))
        r = err_set(&e, -EINVAL, "keys.json is of another key than this node has");
    if (r < 0) {
        kc->is_damaged = true;
        forget_next(kc);
        log_error("%s; it is left as it is, and the key of this node is not changed until it is "
                  "removed",
            err_text(&e));
        return;
    }
    (void)key_rotation_begin(&kc->rotation, &kc->next_key);
    if (kc->next.has_moved)
        key_rotation_take(&kc->rotation, KEY_ROTATION_MOVE);
    state->next = kc->next_key;
    log_info("this node goes on changing its key");
}

void key_change_close(struct key_change *kc)
{
    key_hubs_deinit(&kc->hubs);
    state_next_key_deinit(&kc->next);
    json_decref(kc->levels);
    json_decref(kc->acks);
    json_decref(kc->acked);
    json_decref(kc->owed);
    kc->levels = kc->acks = kc->acked = kc->owed = NULL;
}

/* Has the disk it, whatever has become of it here? */
static bool save(struct key_change *kc, nsec_t now)
{
    struct err e = ERR_NULL;

    if (state_write_next_key(&kc->next, kc->dir, &e) == 0)
        return true;
    log_limited(&kc->limit, now, LOG_LEVEL_WARNING, "the change of this node's key waits: %s",
        err_text(&e));
    return false;
}

/* ---- what follows from it -------------------------------------------------------------------- */

const struct x25519_secret *key_change_next(const struct key_change *kc)
{
    return kc->rotation.state == KEY_ROTATION_IDLE ? NULL : &kc->next.secret;
}

bool key_change_calls_next(const struct key_change *kc)
{
    return kc->rotation.state == KEY_ROTATION_MOVED;
}

static bool is_in(const json_t *names, const char *name)
{
    return fields_list_has(names, name);
}

bool key_change_knows_one(const struct key_change *kc, const struct node *node)
{
    return key_change_calls_next(kc) && node->stock && !is_in(kc->next.seen, node->meta.name);
}

static void set_own_key(const struct key_change *kc, struct node *self)
{
    if (state_is_own_key(kc->state, &self->key))
        self->key = *own_key(kc);
}

void key_change_filter(const struct key_change *kc, struct watch_event *ev)
{
    struct snapshot *s = &ev->snapshot;

    if (ev->kind == WATCH_EVENT_SNAPSHOT && snapshot_self(s))
        /* The event is the caller's own; what its snapshot lends is const for others. */
        set_own_key(kc, (struct node *)(uintptr_t)snapshot_self(s));
    else if (ev->kind == WATCH_EVENT_PUT && ev->object.kind == &node_kind &&
             strcmp(ev->object.meta.name, kc->state->snapshot.self) == 0)
        set_own_key(kc, &ev->object.node);
}

/* ---- a change begins ------------------------------------------------------------------------- */

static int make(struct key_change *kc, const struct snapshot *s, int64_t wall_s, struct err *e)
{
    struct key_statement statement = {.kind = KEY_KIND_NODE, .old_key = *own_key(kc)};
    struct state_next_key next = {.from = statement.old_key};
    struct rng rng = rng_kernel();
    int r;

    x25519_secret_make(&next.secret, &rng);
    if (!x25519_derive_public(&next.secret, &statement.new_key))
        return err_set(e, -ENOMEM, "no memory for a key");
    (void)snprintf(
        statement.network, sizeof(statement.network), "%.*s", NAME_MAX_LEN, s->network.meta.name);
    (void)snprintf(statement.subject, sizeof(statement.subject), "%.*s", NAME_MAX_LEN, s->self);
    statement.serial = key_node_serial(snapshot_self(s)) + 1;
    statement.made_at = (uint64_t)wall_s;
    r = key_statement_sign(&statement, &kc->state->secret, &next.secret, &rng, e);
    if (r == 0) {
        (void)key_statement_format(&statement, next.statement);
        r = state_write_next_key(&next, kc->dir, e);
    }
    if (r == 0) {
        kc->next = next;
        kc->next_key = kc->state->next = statement.new_key;
    }
    secret_wipe(&next, sizeof(next));
    return r;
}

/* When this node's key is due by the clock, s since 1970; INT64_MAX: never. */
static int64_t due_at(const struct key_change *kc, const struct snapshot *s)
{
    struct key_statement last;
    uint64_t made_at = (uint64_t)kc->state->keyed_at;
    uint64_t due;

    if (key_node_last(snapshot_self(s), &last) && x25519_public_equal(&last.new_key, own_key(kc)))
        made_at = last.made_at;
    due = key_rotation_due(own_key(kc), made_at, s->network.key_rotation);
    return due > INT64_MAX ? INT64_MAX : (int64_t)due;
}

/* Has the snapshot the statement by which this node has its key, where there is one? */
static bool is_last_known(const struct key_change *kc, const struct node *self)
{
    struct key_statement last;

    return x25519_public_is_none(&kc->state->former) ||
           (key_node_last(self, &last) && x25519_public_equal(&last.new_key, own_key(kc)));
}

/* Is a change wanted, and may it begin? */
static bool is_wanted(struct key_change *kc, const struct key_change_facts *facts)
{
    const struct node *self = snapshot_self(facts->snapshot);
    nsec_t patience = BEGIN_AFTER + BEGIN_AFTER * be16_load(own_key(kc)->b) / UINT16_MAX;

    if (!kc->dir || kc->is_damaged || !facts->has_engine || self->hub)
        return false;
    /* The hub has not heard of the end of the last one, or this node not what the hub has of it. */
    if (key_node_next(self) || !is_last_known(kc, self))
        return false;
    if (kc->refused_at != 0 && facts->now - kc->refused_at < AGAIN_AFTER)
        return false;
    if (self->keys && self->keys->wanted_serial > key_node_serial(self))
        return true;
    return facts->now - kc->begun_at >= patience && facts->wall_s >= due_at(kc, facts->snapshot);
}

static unsigned begin(struct key_change *kc, const struct key_change_facts *facts)
{
    struct err e = ERR_NULL;

    if (make(kc, facts->snapshot, facts->wall_s, &e) != 0) {
        log_limited(&kc->limit, facts->now, LOG_LEVEL_WARNING,
            "this node cannot change its key: %s", err_text(&e));
        return 0;
    }
    (void)key_rotation_begin(&kc->rotation, &kc->next_key);
    kc->stage_at = facts->now;
    for (unsigned i = 0; i < kc->hubs.n; i++)
        kc->hubs.items[i].is_refused = false;
    log_info("this node changes its key");
    return KEY_CHANGE_APPLY;
}

/* ---- what others have acknowledged ----------------------------------------------------------- */

static enum key_ack_level level_of(const struct key_change *kc, const char *node)
{
    return (enum key_ack_level)json_integer_value(json_object_get(kc->levels, node));
}

static enum key_ack_level check(
    const struct key_change *kc, const struct node *node, const char *text)
{
    enum key_ack_level level = KEY_ACK_NONE;
    struct key_ack ack;

    if (!base64_decode(text, ack.mac, sizeof(ack.mac)))
        return level;
    level = key_ack_verify(&ack, &kc->next.secret, &node->key);
    if (level == KEY_ACK_NONE && node->keys && !x25519_public_is_none(&node->keys->other))
        level = key_ack_verify(&ack, &kc->next.secret, &node->keys->other);
    return level;
}

/* Takes in what hubs carry. Each is looked at until it is known to say the most. */
static void take_acks(struct key_change *kc, const struct snapshot *s)
{
    unsigned n = 0;

    if (!kc->levels)
        kc->levels = json_object();
    for (size_t i = 0; i < s->nodes.n && n < CHECKS_MAX; i++) {
        const struct node *node = &s->nodes.items[i]->node;
        enum key_ack_level known = level_of(kc, node->meta.name);

        for (unsigned k = 0; k < kc->hubs.n && known != KEY_ACK_BELIEVED; k++) {
            const char *text = key_hubs_ack(&kc->hubs, k, node->meta.name);
            enum key_ack_level level = text ? check(kc, node, text) : KEY_ACK_NONE;

            n += text != NULL;
            if (level > known) {
                known = level;
                (void)json_object_set_new(kc->levels, node->meta.name, json_integer(level));
            }
        }
    }
}

/* ---- a step ---------------------------------------------------------------------------------- */

static bool is_heard(const struct observation *ob, nsec_t now)
{
    return ob && ((ob->heard_at != 0 && now - ob->heard_at < SESSION) ||
                     (ob->handshake_at != 0 && now - ob->handshake_at < SESSION));
}

static struct key_rotation_peer see_peer(
    struct key_change *kc, const struct key_change_facts *facts, const struct node *node)
{
    const struct observation *ob = observe_find(facts->seen, &node->key);
    enum key_ack_level level = level_of(kc, node->meta.name);

    return (struct key_rotation_peer){.is_stock = node->stock,
        .is_heard = is_heard(ob, facts->now),
        .is_reachable =
            key_hubs_may_reach(&kc->hubs, facts->hubs, node->meta.name, HUB_SILENT, facts->now),
        .knows_next = level >= KEY_ACK_KNOWN,
        .calls_next = level >= KEY_ACK_BELIEVED,
        .is_seen_under_next = node->stock && is_in(kc->next.seen, node->meta.name)};
}

/* Stock peers that have had a session under the next key. It is on the disk before it counts. */
static void see_stock_peers(struct key_change *kc, const struct key_change_facts *facts)
{
    const struct snapshot *s = facts->snapshot;
    json_t *seen = NULL;

    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;
        const struct observation *ob = node->stock ? observe_find(facts->seen, &node->key) : NULL;

        if (!ob || !ob->facts.session_next || is_in(kc->next.seen, node->meta.name))
            continue;
        if (!seen)
            seen = kc->next.seen ? json_copy(kc->next.seen) : json_array();
        fields_append(&seen, json_string(node->meta.name));
    }
    if (seen) {
        json_t *before = kc->next.seen;

        kc->next.seen = seen;
        kc->next.seen = save(kc, facts->now) ? seen : before;
        json_decref(kc->next.seen == seen ? before : seen);
    }
}

static void note_waiting(struct key_change *kc, const char *name)
{
    if (kc->n_waits < 8)
        (void)snprintf(kc->waits[kc->n_waits], sizeof(kc->waits[0]), "%.*s", NAME_MAX_LEN, name);
    kc->n_waits++;
}

/* What is to be done now, and for whom it waits. */
static enum key_rotation_step decide(struct key_change *kc, const struct key_change_facts *facts)
{
    const struct snapshot *s = facts->snapshot;
    const struct node_keys *own = snapshot_self(s)->keys;
    struct key_rotation_peer *peers = calloc(s->nodes.n + 1, sizeof(*peers));
    struct key_rotation_facts rf = {.peers = peers,
        .hubs_keep_statement = key_hubs_all_keep(&kc->hubs, facts->hubs, &kc->next_key),
        .hubs_have_moved = key_hubs_all_moved(&kc->hubs, facts->hubs, &kc->next_key),
        .has_two_keys = facts->has_two_keys,
        .force = own && own->is_forced};
    enum key_rotation_step step = KEY_ROTATION_WAIT;

    kc->n_waits = 0;
    memset(kc->waits, 0, sizeof(kc->waits));
    if (!peers)
        return step;
    kc->settled_at = !rf.hubs_have_moved ? 0 : kc->settled_at ? kc->settled_at : facts->now;
    rf.is_long_moved = kc->settled_at != 0 && facts->now - kc->settled_at >= SESSION;
    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;
        struct key_rotation_peer *peer = &peers[rf.n_peers];

        /* A hub is one that the facts of hubs are about. */
        if (node->hub || strcmp(node->meta.name, s->self) == 0)
            continue;
        *peer = see_peer(kc, facts, node);
        rf.n_peers++;
        if (key_rotation_waits_for(&kc->rotation, &rf, peer))
            note_waiting(kc, node->meta.name);
    }
    kc->why = kc->rotation.state == KEY_ROTATION_PREPARED && !rf.hubs_keep_statement
                  ? "not all hubs keep its statement yet"
              : kc->rotation.state == KEY_ROTATION_MOVED && !rf.hubs_have_moved
                  ? "not all hubs have its next key for its own yet"
                  : NULL;
    step = key_rotation_decide(&kc->rotation, &rf);
    free(peers);
    return step;
}

/* From now on it calls under the next key. */
static unsigned move(struct key_change *kc, nsec_t now)
{
    kc->next.has_moved = true;
    if (!save(kc, now)) {
        kc->next.has_moved = false;
        return 0;
    }
    key_rotation_take(&kc->rotation, KEY_ROTATION_MOVE);
    kc->stage_at = now;
    log_info("this node calls under its next key");
    return KEY_CHANGE_APPLY | KEY_CHANGE_CALL;
}

const struct node *key_change_next_call(
    const struct key_change *kc, const struct snapshot *s, size_t *i)
{
    while ((key_change_calls_next(kc) || json_object_size(kc->owed) > 0) && *i < s->nodes.n) {
        const struct node *node = &s->nodes.items[(*i)++]->node;
        const char *name = node->meta.name;
        bool is_to_hear = key_change_calls_next(kc) ? level_of(kc, name) < KEY_ACK_BELIEVED
                                                    : json_object_get(kc->owed, name) != NULL;

        if (is_to_hear && !node->hub && !node->stock && strcmp(name, s->self) != 0)
            return node;
    }
    return NULL;
}

/* Who was away, or is not waited for, is called when it is heard again. */
static void owe_calls(struct key_change *kc, const struct snapshot *s)
{
    size_t i = 0;
    const struct node *node;

    json_decref(kc->owed);
    kc->owed = NULL;
    while ((node = key_change_next_call(kc, s, &i))) {
        if (!kc->owed)
            kc->owed = json_object();
        (void)json_object_set_new(kc->owed, node->meta.name, json_true());
    }
}

/* Have some of them been heard, so that they are to be called now? */
static bool has_owed_calls(struct key_change *kc, const struct key_change_facts *facts)
{
    const char *name;
    json_t *value;
    void *tmp;
    bool has = false;

    json_object_foreach_safe(kc->owed, tmp, name, value) {
        const struct node *node = snapshot_find_node(facts->snapshot, name);
        const struct observation *ob = node ? observe_find(facts->seen, &node->key) : NULL;

        if (!node || (ob && ob->handshake_at > kc->stage_at))
            (void)json_object_del(kc->owed, name);
        else
            has |= ob && ob->heard_at > kc->stage_at && facts->now - ob->heard_at < CALL_EACH;
    }
    return has && facts->now - kc->called_at >= CALL_EACH;
}

/* The key before is forgotten: first on the disk. */
static unsigned erase(struct key_change *kc, const struct snapshot *s, nsec_t now)
{
    struct state *st = kc->state;
    struct node *self = (struct node *)(uintptr_t)snapshot_self(&st->snapshot);
    struct x25519_secret before = st->secret;
    struct x25519_public former = st->former;
    struct err e = ERR_NULL;
    int r;

    st->former = self->key;
    st->secret = kc->next.secret;
    self->key = kc->next_key;
    r = state_write(st, kc->dir, &e);
    if (r < 0) {
        st->secret = before;
        self->key = st->former;
        st->former = former;
        log_limited(
            &kc->limit, now, LOG_LEVEL_WARNING, "the old key of this node stays: %s", err_text(&e));
    }
    secret_wipe(&before, sizeof(before));
    if (r < 0)
        return 0;
    if (state_forget_next_key(kc->dir, &e) < 0)
        log_limited(&kc->limit, now, LOG_LEVEL_WARNING, "%s", err_text(&e));
    owe_calls(kc, s);
    key_rotation_take(&kc->rotation, KEY_ROTATION_ERASE);
    forget_next(kc);
    kc->stage_at = now;
    log_info("this node has its new key, and the old one is erased");
    return KEY_CHANGE_APPLY | KEY_CHANGE_OWN;
}

/* Nobody has the statement, so the change may as well not have begun. */
static unsigned give_up(struct key_change *kc, nsec_t now)
{
    struct err e = ERR_NULL;

    if (state_forget_next_key(kc->dir, &e) < 0) {
        log_limited(&kc->limit, now, LOG_LEVEL_WARNING, "%s", err_text(&e));
        return 0;
    }
    kc->refused_at = kc->stage_at = now;
    forget_next(kc);
    log_warning("this node keeps its key, because no hub takes its statement of the next one");
    return KEY_CHANGE_APPLY;
}

static unsigned act(struct key_change *kc, const struct key_change_facts *facts)
{
    bool is_refused = kc->rotation.state == KEY_ROTATION_PREPARED &&
                      key_hubs_all_refuse(&kc->hubs, facts->hubs, &kc->next_key);
    bool may_call =
        kc->rotation.state == KEY_ROTATION_MOVED && facts->now - kc->called_at >= CALL_EACH;
    unsigned actions = 0;

    if (is_refused)
        return give_up(kc, facts->now);
    switch (decide(kc, facts)) {
    case KEY_ROTATION_MOVE:
        actions = move(kc, facts->now);
        break;
    case KEY_ROTATION_ERASE:
        return erase(kc, facts->snapshot, facts->now);
    case KEY_ROTATION_WAIT:
    case KEY_ROTATION_ANNOUNCE:
    case KEY_ROTATION_FINISH:
        /* Hubs are told how far it is, whatever it waits for. */
        actions = may_call ? KEY_CHANGE_CALL : 0;
        break;
    }
    if (actions & KEY_CHANGE_CALL)
        kc->called_at = facts->now;
    return actions;
}

/* ---- what this node acknowledges ------------------------------------------------------------- */

/* What may be told that node. The engine has to take its next key before that is said; one that has
 * a single key takes it when the hub says that the node uses it. */
static enum key_ack_level level_for(
    const struct key_change_facts *facts, const struct node *node, const struct x25519_public *next)
{
    if (!facts->has_engine || (facts->has_two_keys && !observe_find(facts->seen, next)))
        return KEY_ACK_NONE;
    return node_trust_level(facts->trust, node->meta.name, next);
}

/* An acknowledgement is made once: it costs a multiplication. It is made with the key that this
 * node calls under: who gets it may know the one before no more. */
static void acknowledge(struct key_change *kc, json_t **acks, json_t **acked,
    const struct node *node, enum key_ack_level level, const struct x25519_public *next)
{
    bool calls_next = key_change_calls_next(kc);
    const struct x25519_secret *secret = calls_next ? &kc->next.secret : &kc->state->secret;
    const struct x25519_public *own = calls_next ? &kc->next_key : own_key(kc);
    const char *name = node->meta.name;
    char keys[2][X25519_BASE64_MAX];
    char of[2 * X25519_BASE64_MAX + 16];
    char text[BASE64_SIZE(sizeof(((struct key_ack *)NULL)->mac))];
    struct key_ack ack;

    (void)snprintf(of, sizeof(of), "%d %s %s", (int)level, x25519_public_format(next, keys[0]),
        x25519_public_format(own, keys[1]));
    if (strcmp(fields_text_of(kc->acked, name), of) == 0) {
        fields_set(acks, name, json_incref(json_object_get(kc->acks, name)));
        fields_set(acked, name, json_string(of));
        return;
    }
    if (!key_ack_make(&ack, level, secret, next))
        return;
    base64_encode(ack.mac, sizeof(ack.mac), text);
    fields_set(acks, name, json_string(text));
    fields_set(acked, name, json_string(of));
}

static void make_acks(struct key_change *kc, const struct key_change_facts *facts)
{
    const struct snapshot *s = facts->snapshot;
    json_t *acks = json_object();
    json_t *acked = json_object();

    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;
        const struct x25519_public *next = key_node_next(node);
        enum key_ack_level level;

        if (!next || node->hub || strcmp(node->meta.name, s->self) == 0)
            continue;
        level = level_for(facts, node, next);
        if (level != KEY_ACK_NONE)
            acknowledge(kc, &acks, &acked, node, level, next);
    }
    json_decref(kc->acks);
    json_decref(kc->acked);
    kc->acks = acks;
    kc->acked = acked;
}

/* ---- polls ----------------------------------------------------------------------------------- */

/* What hubs are told. A change that they do not know the end of is told once more. */
static struct key_hubs_say say_of(const struct key_change *kc, const struct snapshot *s, nsec_t now)
{
    const struct node *self = snapshot_self(s);
    const struct x25519_public *next = key_node_next(self);
    nsec_t each = nsec_min(nsec_max(SAY_FIRST, (now - kc->stage_at) / 8), SAY_MAX);
    struct key_hubs_say say = {.each = each, .acks = kc->acks};

    if (kc->rotation.state != KEY_ROTATION_IDLE) {
        say.stage = key_rotation_state_names[kc->rotation.state];
        say.statement = kc->next.statement;
        say.n_waits = kc->n_waits;
        for (unsigned i = 0; i < 8 && kc->waits[i][0] != '\0'; i++)
            say.waits[i] = kc->waits[i];
        say.why = kc->why;
    } else if (next && x25519_public_equal(next, own_key(kc)) && node_keys_last(self->keys)) {
        say.stage = "ended";
        say.statement = node_keys_last(self->keys);
    }
    return say;
}

unsigned key_change_poll(struct key_change *kc, const struct key_change_facts *facts)
{
    struct key_hubs_say say;
    unsigned actions = 0;

    if (kc->rotation.state == KEY_ROTATION_IDLE) {
        if (is_wanted(kc, facts))
            actions = begin(kc, facts);
        else if (has_owed_calls(kc, facts))
            actions = KEY_CHANGE_CALL;
        if (actions & KEY_CHANGE_CALL)
            kc->called_at = facts->now;
    } else {
        take_acks(kc, facts->snapshot);
        see_stock_peers(kc, facts);
        actions = act(kc, facts);
    }
    make_acks(kc, facts);
    say = say_of(kc, facts->snapshot, facts->now);
    /* Nobody hears of a key under which the engine does not answer yet. */
    if (kc->rotation.state != KEY_ROTATION_IDLE &&
        (!facts->is_applied || actions & KEY_CHANGE_APPLY))
        say.stage = NULL;
    key_hubs_poll(&kc->hubs, facts->hubs, &say, facts->now);
    return actions;
}

bool key_change_is_settled(const struct key_change *kc, const struct snapshot *s)
{
    const struct node *self = snapshot_self(s);

    if (kc->rotation.state != KEY_ROTATION_IDLE || json_object_size(kc->acks) > 0 ||
        (self->keys && self->keys->wanted_serial > key_node_serial(self)))
        return false;
    for (size_t i = 0; i < s->nodes.n; i++)
        if (key_node_next(&s->nodes.items[i]->node))
            return false;
    return true;
}

json_t *key_change_encode(const struct key_change *kc)
{
    json_t *names = json_array();
    char next[X25519_BASE64_MAX];

    if (kc->rotation.state == KEY_ROTATION_IDLE) {
        json_decref(names);
        return NULL;
    }
    for (unsigned i = 0; i < 8 && kc->waits[i][0] != '\0'; i++)
        fields_append(&names, json_string(kc->waits[i]));
    return json_pack("{s:s, s:s, s:i, s:o, s:s*}", "stage",
        key_rotation_state_names[kc->rotation.state], "next",
        x25519_public_format(&kc->next_key, next), "waits", (int)kc->n_waits, "waitsFor", names,
        "why", kc->why);
}
