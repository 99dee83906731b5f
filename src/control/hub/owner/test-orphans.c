/* test-orphans.c - what a removed network has left goes, and nothing of any other network does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/model/model.h"
#include "hub/owner/owners.h"
#include "store/store.h"
#include "store/store_backend.h"
#include "test/support/store_now.h"

#define S NSEC_PER_SEC

/* More than one page. */
#define N_JOBS 150

static nsec_t now;

static nsec_t test_clock(void)
{
    return now;
}

struct fixture {
    struct store *s;
    struct model model; /* without networks */
    struct owners owners;
    struct orphans orphans;
};

static void put(struct fixture *f, const char *key, const char *value)
{
    struct store_op op = {
        .kind = STORE_OP_PUT, .key = key, .value = value, .expect = STORE_EXPECT_ANY};
    struct err e = ERR_NULL;

    assert_int_equal(store_now_commit(f->s, &op, 1, 0, NULL, NULL, &e), 0);
}

/* The key of the network of before. */
static const struct x25519_public former = {.b = {1, 2, 3}};

/* The records of a network whose jobs the hub "other" has served. */
static void put_network(struct fixture *f, const char *name)
{
    struct owner_record record = {
        .hub = "other", .epoch = 3, .has_network = true, .network = former};
    char *text = owner_record_encode(&record);
    char key[64];

    for (unsigned i = 0; i < N_JOBS; i++) {
        (void)snprintf(key, sizeof(key), "rdzv/%s/j/job%u", name, i);
        put(f, key, "{}");
    }
    (void)snprintf(key, sizeof(key), "owner/%s", name);
    put(f, key, text);
    free(text);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct err e = ERR_NULL;

    now = 100 * S;
    assert_int_equal(memory_open(&f->s, "", 1, &e), 0);
    f->s->is_shared = true;
    f->model.store = f->s;
    (void)snprintf(f->model.self, sizeof(f->model.self), "hub");
    put_network(f, "gone");
    put(f, "rdzv/gone-too/j/job", "{}");
    owners_init(&f->owners, &f->model, test_clock);
    assert_int_equal(owners_load(&f->owners, &e), 0);
    f->orphans = (struct orphans){.owners = &f->owners};
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    owners_deinit(&f->owners);
    store_free(f->s);
    free(f);
    return 0;
}

static void pass(struct fixture *f, nsec_t span)
{
    for (nsec_t end = now + span; now < end; now += S) {
        orphans_tick(&f->orphans, now);
        store_wait(f->s);
    }
}

static int count_one(void *ctx, const struct store_item *item)
{
    *(unsigned *)ctx += 1;
    return 0;
}

static unsigned count(struct fixture *f, const char *prefix)
{
    struct err e = ERR_NULL;
    unsigned n = 0;

    assert_int_equal(store_now_list(f->s, prefix, count_one, &n, NULL, &e), 0);
    return n;
}

static void test_all_goes(void **state)
{
    struct fixture *f = *state;

    pass(f, 10 * S);
    assert_int_equal(count(f, "rdzv/gone/"), N_JOBS);
    pass(f, 5 * S);
    assert_int_equal(count(f, "rdzv/gone/"), 0);
    assert_int_equal(count(f, "owner/"), 0);
    assert_int_equal(count(f, "rdzv/gone-too/"), 1);
    owners_tick(&f->owners, now);
    assert_int_equal(f->owners.n_networks, 0);
}

/* Its owner lives, and deletes it itself. */
static void test_an_owner_that_lives(void **state)
{
    struct heartbeat_record heartbeat = {.boot = 1};
    struct fixture *f = *state;

    for (unsigned i = 0; i < 10; i++) {
        char *text = heartbeat_record_encode(&heartbeat);

        heartbeat.heartbeat++;
        put(f, "hub/other", text);
        free(text);
        pass(f, 2 * S);
    }
    assert_int_equal(count(f, "rdzv/gone/"), N_JOBS);
    pass(f, 20 * S);
    assert_int_equal(count(f, "rdzv/gone/") + count(f, "owner/"), 0);
}

/* It is there again, of which this hub has not heard yet: the store refuses. */
static void test_a_network_that_is_there(void **state)
{
    struct fixture *f = *state;
    char key[RECORD_KEY_MAX];

    put(f, record_key(key, RECORD_NETWORK, "gone", ""), "{}");
    pass(f, 20 * S);
    assert_int_equal(count(f, "rdzv/gone/"), N_JOBS);
    assert_int_equal(count(f, "owner/"), 1);
}

/* Puts a network of that name into the model, by that key. */
static struct model_network *make_again(struct fixture *f, const struct x25519_public *key)
{
    static struct model_network net;
    static char name[] = "gone";

    net = (struct model_network){
        .keyed.key = name, .maker = {.key = *key, .name = "hub"}, .model = &f->model};
    (void)snprintf(net.spec.meta.name, sizeof(net.spec.meta.name), "%s", name);
    assert_int_equal(keys_add(&f->model.networks, &net.keyed), 0);
    return &net;
}

/* It is there again at once, as another one, and inherits nothing; its owner died with the first.
 */
static void test_a_network_that_is_made_again(void **state)
{
    static const struct x25519_public other = {.b = {9}};
    struct fixture *f = *state;
    const struct owners_network *n = owners_find(&f->owners, "gone");
    const struct model_network *net = make_again(f, &other);

    assert_false(owners_is_of(n, net));
    pass(f, 5 * S);
    assert_int_equal(count(f, "rdzv/gone/") + count(f, "owner/"), 0);
    assert_int_equal(count(f, "rdzv/gone-too/"), 1);
    assert_true(owners_is_of(owners_find(&f->owners, "gone"), net));
    keys_deinit(&f->model.networks);
}

/* The same network is taken over with its jobs. */
static void test_a_network_that_has_stayed(void **state)
{
    struct fixture *f = *state;
    const struct model_network *net = make_again(f, &former);

    assert_true(owners_is_of(owners_find(&f->owners, "gone"), net));
    pass(f, 20 * S);
    assert_int_equal(count(f, "rdzv/gone/"), N_JOBS);
    keys_deinit(&f->model.networks);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_goes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_owner_that_lives, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_network_that_is_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_network_that_is_made_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_network_that_has_stayed, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
