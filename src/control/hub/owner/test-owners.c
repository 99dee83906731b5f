/* test-owners.c - two hubs of one store: who serves the jobs of a network, and who comes next. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "hub/model/model.h"
#include "hub/owner/owners.h"
#include "os/log.h"
#include "store/store.h"
#include "store/store_backend.h"
#include "test/support/sample_mesh.h"
#include "test/support/store_now.h"

#define S  NSEC_PER_SEC
#define T0 (100 * S)

static nsec_t now;

static nsec_t test_clock(void)
{
    return now;
}

/* A hub, as far as its owners look at it. */
struct hub_part {
    struct model model;
    struct model_network net; /* "default", which the first hub has made */
    struct served_network served;
    struct model_node own;
    struct owners owners;
    bool is_dead;
};

struct fixture {
    struct store *s;
    struct hub_part hubs[2]; /* "hub" and "other" */
};

static void put(struct fixture *f, const char *key, const char *value)
{
    struct store_op op = {.kind = value ? STORE_OP_PUT : STORE_OP_DELETE,
        .key = key,
        .value = value,
        .expect = STORE_EXPECT_ANY};
    struct err e = ERR_NULL;

    assert_int_equal(store_now_commit(f->s, &op, 1, 0, NULL, NULL, &e), 0);
}

static void put_beat(struct fixture *f, const char *name, uint64_t boot, uint64_t heartbeat)
{
    struct heartbeat_record record = {.boot = boot, .heartbeat = heartbeat};
    char *text = heartbeat_record_encode(&record);
    char key[RECORD_KEY_MAX];

    put(f, owner_key(key, OWNER_HEARTBEAT_PREFIX, name), text);
    free(text);
}

/* What the store has; revision 0: nothing. */
struct stored {
    char value[1024];
    uint64_t revision;
};

static int keep_item(void *ctx, const struct store_item *item)
{
    struct stored *ret = ctx;

    (void)snprintf(ret->value, sizeof(ret->value), "%s", item->value);
    ret->revision = item->revision;
    return 0;
}

static struct stored get(struct fixture *f, const char *key)
{
    struct stored ret = {.revision = 0};
    struct err e = ERR_NULL;

    assert_true(store_now_list(f->s, key, keep_item, &ret, NULL, &e) == 0);
    return ret;
}

static struct owner_record get_owner(struct fixture *f)
{
    struct stored stored = get(f, "owner/default");
    struct owner_record record = {.epoch = 0};

    if (stored.revision != 0)
        assert_int_equal(owner_record_decode(&record, stored.value, NULL), 0);
    return record;
}

/* The epoch that the hub's Node says; 0: none. */
static uint64_t get_epoch(struct fixture *f, const char *hub)
{
    char key[RECORD_KEY_MAX];
    struct stored stored = get(f, record_key(key, RECORD_NODE, "default", hub));
    struct token_hash token;
    struct node node;
    uint64_t epoch;

    assert_int_equal(record_node_decode(&node, &token, stored.value, NULL), 0);
    epoch = node.hub->rendezvous_epoch;
    node_deinit(&node);
    return epoch;
}

static void begin_hub(struct fixture *f, unsigned i, bool is_shared)
{
    struct hub_part *h = &f->hubs[i];
    struct object o = sample_node(1);
    struct snapshot sample = sample_snapshot(1, 1);
    char key[RECORD_KEY_MAX];
    char *text;
    struct err e = ERR_NULL;

    *h = (struct hub_part){.model = {.store = f->s, .boot = 100 + i}};
    (void)snprintf(h->model.self, sizeof(h->model.self), "%s", i == 0 ? "hub" : "other");
    memcpy(o.node.meta.name, h->model.self, sizeof(h->model.self));
    h->own.spec = o.node;
    h->own.net = &h->net;
    text = record_node_encode(&o.node, &h->own.token);
    put(f, record_key(key, RECORD_NODE, "default", h->model.self), text);
    free(text);
    h->own.spec.meta.resource_version = get(f, key).revision;
    h->net.keyed.key = h->net.spec.meta.name;
    h->net.spec = sample.network;
    h->net.model = &h->model;
    h->net.maker = (struct network_maker){.key = sample_key(1), .name = "hub"};
    h->net.own = &h->own;
    h->net.served = &h->served;
    h->served.is_up = true;
    assert_int_equal(keys_add(&h->model.networks, &h->net.keyed), 0);
    f->s->is_shared = is_shared;
    owners_init(&h->owners, &h->model, test_clock);
    assert_int_equal(owners_load(&h->owners, &e), 0);
    snapshot_deinit(&sample);
}

static void end_hub(struct hub_part *h)
{
    owners_deinit(&h->owners);
    keys_deinit(&h->model.networks);
    node_deinit(&h->own.spec);
}

static int set_up_hubs(void **state, bool is_shared)
{
    static struct fixture f;
    struct err e = ERR_NULL;

    f = (struct fixture){.s = NULL};
    now = T0;
    assert_int_equal(memory_open(&f.s, "", 1, &e), 0);
    for (unsigned i = 0; i < 2; i++)
        begin_hub(&f, i, is_shared);
    *state = &f;
    return 0;
}

static int set_up(void **state)
{
    return set_up_hubs(state, true);
}

static int set_up_alone(void **state)
{
    return set_up_hubs(state, false);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    for (unsigned i = 0; i < 2; i++)
        end_hub(&f->hubs[i]);
    store_free(f->s);
    return 0;
}

/* What happens now at both hubs. The store has answered when it returns. */
static void tick(struct fixture *f)
{
    for (unsigned i = 0; i < 2; i++)
        if (!f->hubs[i].is_dead)
            owners_tick(&f->hubs[i].owners, now);
    store_wait(f->s);
}

static void pass(struct fixture *f, unsigned seconds)
{
    for (unsigned i = 0; i < seconds; i++) {
        now += S;
        tick(f);
    }
}

static bool serves(const struct fixture *f, unsigned i)
{
    return owners_serves(&f->hubs[i].owners, &f->hubs[i].net, now);
}

static void assert_owner(struct fixture *f, const char *hub, uint64_t epoch)
{
    struct owner_record record = get_owner(f);

    assert_string_equal(record.hub, hub);
    assert_int_equal(record.epoch, epoch);
    if (hub[0])
        assert_int_equal(get_epoch(f, hub), epoch);
}

/* The hub that has made the network begins, once a beat of its own is stored. */
static void begin(struct fixture *f)
{
    tick(f);
    assert_int_equal(get_owner(f).epoch, 0);
    assert_false(serves(f, 0) || serves(f, 1));
    pass(f, 1);
    assert_owner(f, "hub", 1);
    assert_true(serves(f, 0));
    assert_false(serves(f, 1));
    f->hubs[0].own.spec.meta.resource_version = get(f, "node/default/hub").revision;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void test_the_maker_serves(void **state)
{
    struct fixture *f = *state;
    struct owner_record record;

    begin(f);
    record = get_owner(f);
    assert_true(record.has_network);
    assert_true(x25519_public_equal(&record.network, &f->hubs[0].net.maker.key));
    /* It goes on, and nothing is written anew but beats. */
    pass(f, 30);
    assert_owner(f, "hub", 1);
    assert_true(serves(f, 0) && !serves(f, 1));
    assert_int_equal(owners_find(&f->hubs[1].owners, "default")->record.epoch, 1);
    assert_null(owners_find(&f->hubs[1].owners, "other"));
}

static void test_beats(void **state)
{
    struct fixture *f = *state;
    struct owners *o = &f->hubs[0].owners;
    struct heartbeat_record heartbeat;

    f->hubs[1].is_dead = true;
    tick(f);
    assert_int_equal(heartbeat_record_decode(&heartbeat, get(f, "hub/hub").value, NULL), 0);
    assert_int_equal(heartbeat.boot, 100);
    assert_int_equal(heartbeat.heartbeat, 1);
    assert_true(o->stored_at == T0);
    now = T0 + 3 * S / 2 - 1;
    tick(f);
    assert_int_equal(o->heartbeat, 1);
    now = T0 + 3 * S / 2;
    owners_tick(o, now);
    assert_int_equal(o->heartbeat, 2);
    /* The store has not answered: it counts from when the last that was stored was begun. */
    assert_true(o->is_beating);
    assert_true(o->stored_at == T0);
    owners_tick(o, now + 10 * S);
    assert_int_equal(o->heartbeat, 2);
    store_wait(f->s);
    assert_true(o->stored_at == T0 + 3 * S / 2);
    assert_false(o->is_beating);
}

static void refuse(struct store *s, struct store_job *job)
{
    job->r = err_set(&job->e, -EIO, "the disk is broken");
    store__finish(s, job);
}

/* Others hear no beat that was not stored, so it is none. */
static void test_beats_that_are_not_stored(void **state)
{
    struct fixture *f = *state;
    const struct store_ops *memory = f->s->ops;
    struct store_ops broken = *memory;
    nsec_t stored_at;

    f->hubs[1].is_dead = true;
    begin(f);
    stored_at = f->hubs[0].owners.stored_at;
    broken.submit = refuse;
    f->s->ops = &broken;
    pass(f, OWNER_SERVE_FOR / S);
    assert_true(f->hubs[0].owners.stored_at == stored_at);
    assert_false(serves(f, 0));
    f->s->ops = memory;
    pass(f, 2);
    assert_true(serves(f, 0));
}

/* Somebody has written this hub's Node meanwhile, of which it has not heard yet. */
static void test_a_node_that_has_changed(void **state)
{
    struct fixture *f = *state;
    uint64_t *version = &f->hubs[0].own.spec.meta.resource_version;

    tick(f);
    --*version;
    pass(f, 1);
    assert_int_equal(get_owner(f).epoch, 0);
    assert_int_equal(get_epoch(f, "hub"), 0);
    ++*version;
    pass(f, 1);
    assert_owner(f, "hub", 1);
}

static void test_a_dead_owner_is_replaced(void **state)
{
    struct fixture *f = *state;

    begin(f);
    pass(f, 1);
    f->hubs[0].is_dead = true;
    /* The last beat was heard at T0 + 2 s. */
    assert_true(owners_is_alive(&f->hubs[1].owners, "hub", now));
    pass(f, 5);
    assert_true(owners_is_alive(&f->hubs[1].owners, "hub", now));
    assert_owner(f, "hub", 1);
    /* The dead one, were it only slow, would have stopped by now. */
    assert_false(serves(f, 0));
    pass(f, 1);
    assert_false(owners_is_alive(&f->hubs[1].owners, "hub", now));
    assert_owner(f, "other", 2);
    assert_true(serves(f, 1));
    /* Its beat is gone, so that it hears of that when it goes on. */
    assert_int_equal(get(f, "hub/hub").revision, 0);
    f->hubs[0].is_dead = false;
    pass(f, 3);
    assert_owner(f, "other", 2);
    assert_true(!serves(f, 0) && serves(f, 1));
}

/* The owner has beaten after all, of which the other one has not heard yet. */
static void test_an_owner_that_was_only_slow(void **state)
{
    struct fixture *f = *state;
    struct owners *o = &f->hubs[1].owners;

    begin(f);
    pass(f, 1);
    f->hubs[0].is_dead = true;
    pass(f, 5);
    for (size_t i = 0; i < o->n_hubs; i++)
        if (strcmp(o->hubs[i].name, "hub") == 0)
            o->hubs[i].revision--;
    pass(f, 1);
    assert_owner(f, "hub", 1);
    assert_false(owners_find(o, "default")->is_asking);
    assert_false(serves(f, 1));
}

/* A hub that ends gives its networks up, and the next one does not wait. */
static void test_given_up(void **state)
{
    struct fixture *f = *state;

    begin(f);
    owners_give_up(&f->hubs[1].owners, now);
    store_wait(f->s);
    assert_owner(f, "hub", 1);
    owners_give_up(&f->hubs[0].owners, now);
    store_wait(f->s);
    assert_owner(f, "", 1);
    assert_true(get_owner(f).has_network);
    assert_false(serves(f, 0));
    f->hubs[0].is_dead = true;
    pass(f, 1);
    assert_owner(f, "other", 2);
}

/* Where the owner's record cannot be read, somebody writes it anew. */
static void test_a_record_that_cannot_be_read(void **state)
{
    struct fixture *f = *state;

    begin(f);
    put(f, "owner/default", "{");
    assert_false(serves(f, 0));
    assert_int_equal(owners_find(&f->hubs[0].owners, "default")->record.epoch, 0);
    pass(f, 1);
    assert_owner(f, "hub", 1);
    assert_true(serves(f, 0));
    /* It goes, and with it what it said. */
    f->hubs[0].is_dead = f->hubs[1].is_dead = true;
    put(f, "owner/default", NULL);
    assert_int_equal(owners_find(&f->hubs[0].owners, "default")->revision, 0);
    assert_false(serves(f, 0));
}

/* What is said of another network of this name is not of this one. */
static void test_a_record_of_another_network(void **state)
{
    struct fixture *f = *state;
    struct owner_record former = {
        .hub = "hub", .epoch = 7, .has_network = true, .network = sample_key(5)};
    char *text = owner_record_encode(&former);

    put(f, "owner/default", text);
    pass(f, 20);
    assert_int_equal(get_owner(f).epoch, 7);
    assert_false(serves(f, 0) || serves(f, 1));
    assert_false(owners_is_of(owners_find(&f->hubs[0].owners, "default"), &f->hubs[0].net));
    free(text);
    /* An older hub did not say of which it was. */
    former.has_network = false;
    text = owner_record_encode(&former);
    put(f, "owner/default", text);
    assert_true(serves(f, 0));
    free(text);
}

/* Nothing is taken over for a network that is not served here. */
static void test_networks_that_are_not_served(void **state)
{
    struct fixture *f = *state;
    struct model_network *net = &f->hubs[0].net;

    f->hubs[1].is_dead = true;
    tick(f);
    net->served->is_up = false;
    pass(f, 1);
    net->served->is_up = true;
    model_set_network_leaving(net, "it is removed");
    pass(f, 1);
    model_set_network_leaving(net, NULL);
    net->own = NULL;
    pass(f, 1);
    assert_int_equal(get_owner(f).epoch, 0);
    net->own = &f->hubs[0].own;
    pass(f, 1);
    assert_owner(f, "hub", 1);
    assert_true(serves(f, 0));
    net->own = NULL;
    assert_false(serves(f, 0));
}

/* A network that is gone, and has no record, is forgotten. */
static void test_networks_that_are_gone(void **state)
{
    struct fixture *f = *state;
    struct hub_part *h = &f->hubs[0];

    begin(f);
    keys_remove(&h->model.networks, &h->net.keyed);
    pass(f, 1);
    assert_int_equal(h->owners.n_networks, 1);
    put(f, "owner/default", NULL);
    assert_int_equal(h->owners.n_networks, 1);
    pass(f, 1);
    assert_int_equal(h->owners.n_networks, 0);
    assert_null(owners_find(&h->owners, "default"));
}

static void test_who_lives(void **state)
{
    struct fixture *f = *state;
    const struct owners *o = &f->hubs[0].owners;

    f->hubs[1].is_dead = true;
    tick(f);
    assert_true(owners_is_alive(o, "hub", now + 100 * S));
    assert_false(owners_is_alive(o, "third", now));
    put_beat(f, "third", 5, 1);
    put_beat(f, "fourth", 6, 1);
    assert_true(owners_is_alive(o, "third", now));
    assert_true(owners_is_alive(o, "third", now + OWNER_TAKE_AFTER - 1));
    assert_false(owners_is_alive(o, "third", now + OWNER_TAKE_AFTER));
    now += 3 * S;
    put_beat(f, "third", 5, 2);
    assert_true(owners_is_alive(o, "third", now + OWNER_TAKE_AFTER - 1));
    /* It has ended; the others are as they were. */
    put(f, "hub/third", NULL);
    assert_false(owners_is_alive(o, "third", now));
    assert_true(owners_is_alive(o, "fourth", now));
    put(f, "hub/fourth", "{");
    assert_false(owners_is_alive(o, "fourth", now));
    assert_int_equal(o->n_hubs, 1);
}

/* What others write into the store makes no table longer than it is, and no name longer. */
static void test_no_more_than_there_is_room_for(void **state)
{
    struct fixture *f = *state;
    const struct owners *o = &f->hubs[0].owners;
    char name[NAME_MAX_LEN + 2] = "";
    char key[RECORD_KEY_MAX];

    for (size_t len = NAME_MAX_LEN + 1; len >= NAME_MAX_LEN; len--) {
        memset(name, 'x', len);
        name[len] = '\0';
        put(f, owner_key(key, OWNER_RECORD_PREFIX, name), "{");
        put_beat(f, name, 1, 1);
        assert_int_equal(o->n_networks, len <= NAME_MAX_LEN);
        assert_int_equal(o->n_hubs, len <= NAME_MAX_LEN);
    }
    for (unsigned i = 0; i <= OWNERS_NETWORKS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "n%u", i);
        put(f, owner_key(key, OWNER_RECORD_PREFIX, name), "{");
        if (i <= OWNERS_HUBS_MAX)
            put_beat(f, name, 1, 1);
    }
    assert_int_equal(o->n_networks, OWNERS_NETWORKS_MAX);
    assert_int_equal(o->n_hubs, OWNERS_HUBS_MAX);
}

/* Another process was started as this hub: who was there first stays. */
static void test_another_process_is_this_hub(void **state)
{
    struct fixture *f = *state;
    struct owners *o = &f->hubs[0].owners;

    f->hubs[1].is_dead = true;
    begin(f);
    put_beat(f, "hub", 7, 1);
    assert_null(owners_failure(o));
    put_beat(f, "hub", 7, 2);
    assert_null(owners_failure(o));
    /* It stood still, and the other one took it for dead. */
    now += OWNER_TAKE_AFTER;
    put_beat(f, "hub", 7, 3);
    assert_non_null(owners_failure(o));
    assert_int_equal(owners_failure(o)->code, -EEXIST);
    assert_string_equal(owners_failure(o)->text,
        "another process runs as hub \"hub\" on this store, with its name and its key, and this "
        "one was taken for dead, so it ends: a state directory is for one hub only; start others "
        "with an empty one and another --name");
    /* What is its own is the other's. */
    owners_give_up(o, now);
    store_wait(f->s);
    assert_owner(f, "hub", 1);
}

static void test_this_process_was_started_later(void **state)
{
    struct fixture *f = *state;
    struct owners *o = &f->hubs[0].owners;

    f->hubs[1].is_dead = true;
    put_beat(f, "hub", 7, 1);
    tick(f);
    put_beat(f, "hub", 7, 2);
    assert_null(owners_failure(o));
    put_beat(f, "hub", 7, 3);
    assert_non_null(owners_failure(o));
    assert_int_equal(owners_failure(o)->code, -EEXIST);
    assert_non_null(strstr(owners_failure(o)->text, "was started later"));
}

/* A store that is this hub's alone. */
static void test_alone(void **state)
{
    struct fixture *f = *state;

    pass(f, 10);
    assert_true(serves(f, 0) && serves(f, 1));
    assert_int_equal(get(f, "hub/").revision, 0);
    assert_int_equal(get(f, "owner/").revision, 0);
    assert_null(owners_find(&f->hubs[0].owners, "default"));
    assert_true(owners_is_alive(&f->hubs[0].owners, "hub", now));
    assert_false(owners_is_alive(&f->hubs[0].owners, "other", now));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_maker_serves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_beats, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_beats_that_are_not_stored, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_node_that_has_changed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_dead_owner_is_replaced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_owner_that_was_only_slow, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_given_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_record_that_cannot_be_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_record_of_another_network, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_networks_that_are_not_served, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_networks_that_are_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_lives, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_more_than_there_is_room_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_process_is_this_hub, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_this_process_was_started_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_alone, set_up_alone, tear_down),
    };

    log_init("test", LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
