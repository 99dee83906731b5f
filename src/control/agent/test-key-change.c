/*
 * test-key-change.c - a node changes its key, step by step, and an agent that ends between any two
 * of them goes on from what is on the disk.
 *
 * Hubs are what the test says they have answered: nothing is sent, because nobody knows where they
 * are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <uv.h>

#include "agent/key_change.h"
#include "agent/reconcile/observe.h"
#include "base/err.h"
#include "base/text.h"
#include "mesh/keys/key_ack.h"
#include "mesh/keys/key_node.h"
#include "mesh/snapshot/watch_event.h"
#include "os/file.h"
#include "test/support/sample_keys.h"
#include "test/support/sample_mesh.h"

#define SEC  NSEC_PER_SEC
#define WALL 1700000000

/* The node n2 of four: the hub, n3 and n4. */
static struct world {
    char dir[64];
    uv_loop_t loop;
    struct state state;
    struct snapshot snapshot;
    struct hub_set hubs;
    struct observation seen_items[2];
    struct observe seen;
    struct node_trust trust;
    struct key_change kc;
    struct key_change_facts facts;
    struct sample_keys n3; /* its keys, and the statements of them */
} w;

static const char *path_of(const char *file)
{
    static char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", w.dir, file);
    return path;
}

static bool is_there(const char *file)
{
    return access(path_of(file), F_OK) == 0;
}

static char *read_file(const char *file)
{
    char *text = NULL;

    assert_int_equal(statefile_read(path_of(file), 1 << 20, &text, NULL, NULL), 0);
    return text;
}

static void write_file(const char *file, const char *text)
{
    assert_int_equal(statefile_replace(path_of(file), text, strlen(text), 0600, NULL), 0);
}

static struct node *node_of(const char *name)
{
    struct node *node = (struct node *)(uintptr_t)snapshot_find_node(&w.snapshot, name);

    assert_non_null(node);
    return node;
}

static const struct x25519_public *own_key(void)
{
    return &snapshot_self(&w.state.snapshot)->key;
}

/* As after the start of an agent. */
static void open_it(void)
{
    struct hub_link_listener listener = {.ctx = NULL};
    struct hub_set_facts hf = {.snapshot = &w.snapshot, .seen = &w.seen};
    struct hub_set_actions actions = {.pass_soon = false};
    struct node_trust_facts tf = {.seen = &w.seen, .now = w.facts.now, .wall = WALL * SEC};

    assert_int_equal(state_read(&w.state, w.dir, NULL), 0);
    node_of("n2")->key = *own_key();
    hub_set_init(&w.hubs, &w.loop, &w.state, &listener);
    assert_int_equal(hub_set_take(&w.hubs, &hf, &actions, NULL), 0);
    node_trust_open(&w.trust, NULL, &w.snapshot, 0, &tf);
    key_change_open(&w.kc, w.dir, &w.state, w.facts.now);
}

static void close_it(void)
{
    struct node_trust_facts tf = {.seen = &w.seen, .now = w.facts.now, .wall = WALL * SEC};

    key_change_close(&w.kc);
    node_trust_close(&w.trust, false, &tf);
    hub_set_stop(&w.hubs);
    state_deinit(&w.state);
}

/* The agent is killed, and started again. */
static void start_again(void)
{
    close_it();
    open_it();
}

static int begin(void **state)
{
    struct object self = sample_node(2);
    struct object other = sample_node(3);
    struct state st = STATE_NULL;
    struct rng rng;
    uint64_t seed = 5;

    memset(&w, 0, sizeof(w));
    (void)snprintf(w.dir, sizeof(w.dir), "/tmp/weft-keys-XXXXXX");
    assert_non_null(mkdtemp(w.dir));
    assert_int_equal(uv_loop_init(&w.loop), 0);
    rng = rng_seeded(&seed);
    x25519_secret_make(&st.secret, &rng);
    assert_true(x25519_derive_public(&st.secret, &self.node.key));
    sample_keys_make(&w.n3, "default", "n3");
    other.node.key = w.n3.keys[0];
    w.snapshot = sample_snapshot(4, 2);
    sample_put(&w.snapshot, self);
    sample_put(&w.snapshot, other);
    st.snapshot = w.snapshot;
    st.engine = ENGINE_KIND_USERSPACE;
    (void)snprintf(st.interface, sizeof(st.interface), "weft0");
    assert_int_equal(state_write(&st, w.dir, NULL), 0);
    w.facts = (struct key_change_facts){.snapshot = &w.snapshot,
        .seen = &w.seen,
        .trust = &w.trust,
        .hubs = &w.hubs,
        .has_engine = true,
        .has_two_keys = true,
        .is_applied = true,
        .now = 1000 * SEC,
        .wall_s = WALL};
    open_it();
    return 0;
}

static int end(void **state)
{
    static const char *const files[] = {"node.json", "public.json", "keys.json", "peers.json"};

    close_it();
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w.loop), 0);
    snapshot_deinit(&w.snapshot);
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        (void)unlink(path_of(files[i]));
    return rmdir(w.dir);
}

/* Some seconds later. */
static unsigned poll_it(void)
{
    w.facts.now += SEC;
    w.facts.wall_s++;
    return key_change_poll(&w.kc, &w.facts);
}

/* The hub has answered that this node has @key and goes on with @next; @heard: who is there. */
static void answer(
    const struct x25519_public *key, const struct x25519_public *next, const char *heard)
{
    struct key_hub *h = &w.kc.hubs.items[0];

    assert_int_equal(w.kc.hubs.n, 1);
    h->key = *key;
    h->next = *next;
    h->answered_at = w.facts.now;
    json_decref(h->heard);
    h->heard = json_object();
    if (heard)
        (void)json_object_set_new(h->heard, heard, json_true());
}

/* n3 has acknowledged it, with that one of its keys. */
static void acknowledge(enum key_ack_level level, unsigned key)
{
    struct key_hub *h = &w.kc.hubs.items[0];
    struct key_ack ack;
    char text[BASE64_SIZE(sizeof(ack.mac))];

    assert_true(key_ack_make(&ack, level, &w.n3.secrets[key], &w.kc.next_key));
    base64_encode(ack.mac, sizeof(ack.mac), text);
    if (!h->acks)
        h->acks = json_object();
    (void)json_object_set_new(h->acks, "n3", json_string(text));
}

static void want(uint64_t serial)
{
    struct node *self = node_of("n2");

    if (!self->keys)
        self->keys = calloc(1, sizeof(*self->keys));
    assert_non_null(self->keys);
    self->keys->wanted_serial = serial;
}

static void hear(const char *name)
{
    w.seen_items[0] =
        (struct observation){.key = node_of(name)->key, .heard_at = w.facts.now, .other = {{0}}};
    w.seen = (struct observe){.items = w.seen_items, .n = 1};
}

static void expect_waits(unsigned n, const char *first)
{
    assert_int_equal(w.kc.n_waits, n);
    assert_string_equal(w.kc.waits[0], first);
}

/* ---- the course of a change ------------------------------------------------------------------ */

static void test_nothing_is_wanted(void **state)
{
    assert_int_equal(poll_it(), 0);
    assert_true(key_change_is_settled(&w.kc, &w.snapshot));
    assert_null(key_change_next(&w.kc));
    assert_null(key_change_encode(&w.kc));
    assert_false(is_there("keys.json"));
}

/* Whatever is on the disk before a step is also there after it, when the agent ends there. */
static void test_every_step_and_an_end_after_each(void **state)
{
    const struct x25519_public first = *own_key();
    struct x25519_public next;
    struct x25519_secret before = w.state.secret;
    struct key_statement s;
    char key[X25519_BASE64_MAX];
    char text[KEY_STATEMENT_TEXT_MAX];
    char *files;
    size_t i = 0;

    want(1);
    assert_false(key_change_is_settled(&w.kc, &w.snapshot));
    assert_int_equal(poll_it(), KEY_CHANGE_APPLY);
    next = w.kc.next_key;
    assert_int_equal(key_statement_parse(&s, w.kc.next.statement, NULL), 0);
    assert_int_equal(key_statement_verify(&s, NULL), 0);
    assert_int_equal(s.serial, 1);
    assert_true(x25519_public_equal(&s.old_key, &first) && x25519_public_equal(&s.new_key, &next));
    assert_string_equal(s.subject, "n2");

    /* The hub does not keep it yet, so everybody might be there. */
    start_again();
    assert_true(x25519_public_equal(&w.kc.next_key, &next));
    assert_true(x25519_public_equal(&w.state.next, &next));
    assert_int_equal(poll_it(), 0);
    expect_waits(2, "n3");
    assert_non_null(w.kc.why);

    /* It does, and has heard n3, which knows nothing; n4 is away. */
    answer(&first, &next, "n3");
    assert_int_equal(poll_it(), 0);
    expect_waits(1, "n3");
    assert_false(key_change_calls_next(&w.kc));

    /* n3 knows it. */
    acknowledge(KEY_ACK_KNOWN, 0);
    assert_int_equal(poll_it(), KEY_CHANGE_APPLY | KEY_CHANGE_CALL);
    assert_true(key_change_calls_next(&w.kc));
    assert_string_equal(key_change_next_call(&w.kc, &w.snapshot, &i)->meta.name, "n3");
    assert_string_equal(key_change_next_call(&w.kc, &w.snapshot, &i)->meta.name, "n4");
    assert_null(key_change_next_call(&w.kc, &w.snapshot, &i));

    start_again();
    assert_true(key_change_calls_next(&w.kc));
    assert_int_equal(poll_it(), KEY_CHANGE_CALL);
    answer(&next, &next, "n3");
    assert_int_equal(poll_it(), 0);
    expect_waits(2, "n3");

    /* n3 calls by it. n4 is waited for until it has no session any more that anybody could know. */
    acknowledge(KEY_ACK_BELIEVED, 0);
    assert_int_equal(poll_it(), 0);
    expect_waits(1, "n4");
    w.facts.now += 180 * SEC;
    answer(&next, &next, "n3");
    files = read_file("keys.json");
    assert_int_equal(poll_it(), KEY_CHANGE_APPLY | KEY_CHANGE_OWN);
    assert_null(key_change_next(&w.kc));
    assert_true(x25519_public_equal(own_key(), &next));
    assert_memory_not_equal(&w.state.secret, &before, sizeof(before));
    assert_false(is_there("keys.json"));

    /* An end before keys.json was gone. */
    write_file("keys.json", files);
    free(files);
    start_again();
    assert_true(x25519_public_equal(own_key(), &next));
    assert_true(x25519_public_equal(&w.state.former, &first));
    assert_false(is_there("keys.json"));
    x25519_secret_write(&before, key);
    files = read_file("node.json");
    assert_null(strstr(files, key));
    free(files);

    /* It does not begin anew before it sees its statement. */
    assert_int_equal(poll_it(), 0);
    assert_int_equal(node_keys_add(node_of("n2")->keys, key_statement_format(&s, text)), 0);
    assert_int_equal(poll_it(), 0);
    want(2);
    assert_int_equal(poll_it(), KEY_CHANGE_APPLY);
}

/* What no hub takes nobody has: it is as if it had not begun, for a while. */
static void test_a_statement_that_is_refused(void **state)
{
    want(1);
    assert_int_equal(poll_it(), KEY_CHANGE_APPLY);
    (void)poll_it();
    assert_int_equal(w.kc.hubs.n, 1);
    w.kc.hubs.items[0].is_refused = true;
    assert_int_equal(poll_it(), KEY_CHANGE_APPLY);
    assert_null(key_change_next(&w.kc));
    assert_false(is_there("keys.json"));
    assert_int_equal(poll_it(), 0);
    w.facts.now += 300 * SEC;
    assert_int_equal(poll_it(), KEY_CHANGE_APPLY);
    /* A hub that keeps it may have shown it. */
    w.kc.hubs.items[0].is_refused = true;
    w.kc.hubs.items[0].next = w.kc.next_key;
    (void)poll_it();
    assert_non_null(key_change_next(&w.kc));
}

/* A change that the hub does not know the end of is no reason to begin another one. */
static void test_the_hub_has_not_heard_of_the_end(void **state)
{
    struct node *self = node_of("n2");

    want(1);
    self->keys->next = *own_key();
    assert_int_equal(poll_it(), 0);
    assert_false(key_change_is_settled(&w.kc, &w.snapshot));
    assert_false(is_there("keys.json"));
}

/* Who was heard by this node itself is there, whatever hubs say. */
static void test_who_is_heard_is_waited_for(void **state)
{
    struct x25519_public first = *own_key();

    want(1);
    (void)poll_it();
    hear("n4");
    answer(&first, &w.kc.next_key, NULL);
    assert_int_equal(poll_it(), 0);
    expect_waits(1, "n4");
    w.facts.now += 180 * SEC;
    answer(&first, &w.kc.next_key, NULL);
    assert_int_equal(poll_it(), KEY_CHANGE_APPLY | KEY_CHANGE_CALL);
}

/* A hub that has not answered for long may know of somebody. */
static void test_a_silent_hub_holds_it_up(void **state)
{
    struct x25519_public first = *own_key();

    want(1);
    (void)poll_it();
    answer(&first, &w.kc.next_key, NULL);
    w.facts.now += 40 * SEC;
    assert_int_equal(poll_it(), 0);
    expect_waits(2, "n3");
    /* Unless a person has said so. */
    node_of("n2")->keys->is_forced = true;
    assert_int_equal(poll_it(), KEY_CHANGE_APPLY | KEY_CHANGE_CALL);
}

/* n3 changes its key as well: it acknowledges by the one that it calls under. */
static void test_acknowledged_under_another_key(void **state)
{
    struct node *n3 = node_of("n3");
    struct x25519_public first = *own_key();

    want(1);
    (void)poll_it();
    answer(&first, &w.kc.next_key, "n3");
    acknowledge(KEY_ACK_KNOWN, 2);
    assert_int_equal(poll_it(), 0);
    n3->keys = calloc(1, sizeof(*n3->keys));
    assert_non_null(n3->keys);
    n3->keys->other = w.n3.keys[2];
    assert_int_equal(poll_it(), KEY_CHANGE_APPLY | KEY_CHANGE_CALL);
}

/* A stock peer knows the key before, until it has a session under the next one. */
static void test_a_stock_peer(void **state)
{
    struct x25519_public first = *own_key();
    struct x25519_public next;

    node_of("n3")->stock = true;
    want(1);
    (void)poll_it();
    next = w.kc.next_key;
    answer(&first, &next, NULL);
    assert_int_equal(poll_it(), KEY_CHANGE_APPLY | KEY_CHANGE_CALL);
    assert_true(key_change_knows_one(&w.kc, node_of("n3")));
    assert_false(key_change_knows_one(&w.kc, node_of("n4")));
    answer(&next, &next, NULL);
    w.facts.now += 181 * SEC;
    answer(&next, &next, NULL);
    (void)poll_it();
    w.facts.now += 181 * SEC;
    answer(&next, &next, NULL);
    (void)poll_it();
    expect_waits(1, "n3");
    hear("n3");
    w.seen_items[0].facts.session_next = true;
    w.kc.hubs.items[0].answered_at = 0;
    (void)poll_it();
    assert_false(key_change_knows_one(&w.kc, node_of("n3")));
    start_again();
    assert_false(key_change_knows_one(&w.kc, node_of("n3")));
}

/* ---- by the clock ---------------------------------------------------------------------------- */

static void test_by_the_clock(void **state)
{
    w.snapshot.network.key_rotation = 86400;
    w.state.keyed_at = WALL - 80000;
    w.facts.now += 3600 * SEC;
    w.facts.wall_s = WALL - 3000;
    assert_int_equal(poll_it(), 0);
    w.facts.wall_s = WALL + 6400;
    assert_int_equal(poll_it(), KEY_CHANGE_APPLY);
}

/* Agents that start together do not all begin at once. */
static void test_not_at_once_after_a_start(void **state)
{
    w.snapshot.network.key_rotation = 60;
    w.state.keyed_at = WALL - 1000;
    w.facts.now += 50 * SEC;
    assert_int_equal(poll_it(), 0);
    w.facts.now += 70 * SEC;
    assert_int_equal(poll_it(), KEY_CHANGE_APPLY);
}

/* ---- what is on the disk --------------------------------------------------------------------- */

static void test_a_damaged_file(void **state)
{
    write_file("keys.json", "{\"stage\": \"moved\"");
    start_again();
    assert_true(w.kc.is_damaged);
    want(1);
    assert_int_equal(poll_it(), 0);
    assert_true(is_there("keys.json"));
}

/* As of a machine that has joined anew. */
static void test_a_file_of_another_key(void **state)
{
    struct state_next_key other = {.from = sample_key(9), .secret = {.b = {7, [31] = 0x40}}};

    memcpy(other.statement, w.n3.statements[0], sizeof(other.statement));
    assert_int_equal(state_write_next_key(&other, w.dir, NULL), 0);
    start_again();
    assert_true(w.kc.is_damaged);
    assert_null(key_change_next(&w.kc));
    want(1);
    assert_int_equal(poll_it(), 0);
}

static void test_what_the_hub_says_of_this_node(void **state)
{
    struct watch_event ev = {.kind = WATCH_EVENT_PUT, .object = sample_node(2)};
    struct x25519_public other = sample_key(9);

    want(1);
    (void)poll_it();
    ev.object.node.key = w.kc.next_key;
    key_change_filter(&w.kc, &ev);
    assert_true(x25519_public_equal(&ev.object.node.key, own_key()));
    ev.object.node.key = other;
    key_change_filter(&w.kc, &ev);
    assert_true(x25519_public_equal(&ev.object.node.key, &other));
    object_deinit(&ev.object);
}

/* ---- acknowledgements ------------------------------------------------------------------------ */

static enum key_ack_level given_to_n3(unsigned next)
{
    const char *text = json_string_value(json_object_get(w.kc.acks, "n3"));
    struct key_ack ack;

    if (!text)
        return KEY_ACK_NONE;
    assert_true(base64_decode(text, ack.mac, sizeof(ack.mac)));
    return key_ack_verify(
        &ack, &w.n3.secrets[next], key_change_calls_next(&w.kc) ? &w.kc.next_key : own_key());
}

/* What n3 may be told follows from what is believed, and kept, and from what the engine takes. */
static void test_what_is_acknowledged(void **state)
{
    struct node_trust_facts tf = {.seen = &w.seen, .now = w.facts.now, .wall = WALL * SEC};
    struct watch_event ev = {.kind = WATCH_EVENT_PUT, .object = sample_node(3)};
    struct node *n3;

    sample_keys_say(&ev.object.node, &w.n3, 0, 1, 1);
    node_trust_filter(&w.trust, &ev, &tf);
    sample_put(&w.snapshot, ev.object);
    n3 = node_of("n3");
    hear("n3");
    (void)poll_it();
    assert_int_equal(given_to_n3(1), KEY_ACK_NONE); /* not kept */
    (void)node_trust_look(&w.trust, &w.snapshot, &tf);
    (void)poll_it();
    assert_int_equal(given_to_n3(1), KEY_ACK_NONE); /* not taken */
    w.seen_items[0].other = w.n3.keys[1];
    w.seen.has_others = true;
    (void)poll_it();
    assert_int_equal(given_to_n3(1), KEY_ACK_KNOWN);
    w.seen_items[0].facts.heard_next = true;
    assert_true(node_trust_on_calls(&w.trust, &w.snapshot, &tf));
    assert_true(x25519_public_equal(&n3->key, &w.n3.keys[1]));
    (void)node_trust_look(&w.trust, &w.snapshot, &tf);
    (void)poll_it();
    assert_int_equal(given_to_n3(1), KEY_ACK_BELIEVED);
    assert_false(key_change_is_settled(&w.kc, &w.snapshot));
    /* Its change is over. */
    n3->keys->next = (struct x25519_public){{0}};
    (void)poll_it();
    assert_int_equal(given_to_n3(1), KEY_ACK_NONE);
    assert_true(key_change_is_settled(&w.kc, &w.snapshot));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_is_wanted),
        TEST(test_every_step_and_an_end_after_each),
        TEST(test_a_statement_that_is_refused),
        TEST(test_the_hub_has_not_heard_of_the_end),
        TEST(test_who_is_heard_is_waited_for),
        TEST(test_a_silent_hub_holds_it_up),
        TEST(test_acknowledged_under_another_key),
        TEST(test_a_stock_peer),
        TEST(test_by_the_clock),
        TEST(test_not_at_once_after_a_start),
        TEST(test_a_damaged_file),
        TEST(test_a_file_of_another_key),
        TEST(test_what_the_hub_says_of_this_node),
        TEST(test_what_is_acknowledged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
