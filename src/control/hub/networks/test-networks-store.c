/*
 * test-networks-store.c - networks that are made and removed on a store whose commits conflict, or
 * of which nobody knows what has become.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>
#include <unistd.h>

#include "base/err.h"
#include "hub/networks/networks.h"
#include "store/store_backend.h"
#include "test/support/sample_hub.h"

static struct sample_hub hub;

/* What each commit is answered with, and how many there were; 0: it is done. */
static int answer;
static unsigned n_commits;

static const struct store_ops *usual;
static struct store_ops ops;

static void submit(struct store *s, struct store_job *job)
{
    if (job->kind != STORE_JOB_COMMIT || answer == 0) {
        usual->submit(s, job);
        return;
    }
    n_commits++;
    job->r = answer;
    if (answer != STORE_E_CONFLICT)
        (void)err_set(&job->e, 0, "the connection broke");
    store__finish(s, job);
}

static int begin(void **state)
{
    sample_hub_begin(&hub);
    usual = hub.hub->store->ops;
    ops = *usual;
    ops.submit = submit;
    hub.hub->store->ops = &ops;
    n_commits = 0;
    return 0;
}

static int end(void **state)
{
    hub.hub->store->ops = usual;
    sample_hub_end(&hub);
    return 0;
}

struct outcome {
    unsigned n; /* how often it was told */
    struct err e;
};

static void on_added(void *ctx, int r, const struct model_network *net, const struct err *e)
{
    struct outcome *o = ctx;

    o->n++;
    o->e = *e;
    o->e.code = r;
    assert_true(r != 0 || net != NULL);
}

static void on_removed(void *ctx, int r, const struct err *e)
{
    on_added(ctx, r, sample_hub_network(&hub), e);
}

static bool has_key(const char *name)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/keys/%s.key", hub.dir, name);
    return access(path, F_OK) == 0;
}

static void read_key(const char *name, char ret[static 64])
{
    char path[128];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/keys/%s.key", hub.dir, name);
    f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(ret, 64, f));
    (void)fclose(f);
}

static struct outcome add(int r)
{
    struct network wanted = {.meta.name = "lab", .mtu = NETWORK_MTU_DEFAULT};
    struct outcome o = {.n = 0};
    struct err e = ERR_NULL;

    answer = r;
    n_commits = 0;
    assert_int_equal(ip_prefix_parse(&wanted.cidr4, "10.61.0.0/16", NULL), 0);
    assert_int_equal(networks_add(&hub.hub->networks, &wanted, on_added, &o, &e), 0);
    assert_string_equal(hub.hub->networks.adding, "lab");
    while (o.n == 0)
        (void)uv_run(&hub.loop, UV_RUN_ONCE);
    answer = 0;
    assert_int_equal(o.n, 1);
    assert_string_equal(hub.hub->networks.adding, "");
    assert_string_equal(hub.hub->audit.by.actor, "hub");
    return o;
}

/* The entries of the log may collide: that is tried again, so often. */
static void test_a_network_is_made(void **state)
{
    struct outcome o = add(STORE_E_CONFLICT);

    assert_int_equal(n_commits, 1 + 8);
    assert_int_equal(o.e.code, NETWORKS_E_EXISTS);
    assert_string_equal(err_text(&o.e), "there is a network \"lab\" on this hub already");
    /* Its key may be needed yet. */
    o = add(STORE_E_UNKNOWN);
    assert_int_equal(n_commits, 1);
    assert_int_equal(o.e.code, -EIO);
    assert_string_equal(
        err_text(&o.e), "whether network \"lab\" was made is not known: look, and try again");
    assert_true(has_key("lab"));
    o = add(-ENOSPC);
    assert_int_equal(n_commits, 1);
    assert_int_equal(o.e.code, -ENOSPC);
    assert_true(has_key("lab"));
    o = add(0);
    assert_int_equal(o.e.code, 0);
    assert_non_null(model_find_network(&hub.hub->model, "lab"));
}

/* A key that only this attempt has made is not needed when it has failed. */
static void test_a_network_is_refused(void **state)
{
    struct outcome o = add(-ENOSPC);

    assert_int_equal(o.e.code, -ENOSPC);
    assert_false(has_key("lab"));
}

/* The store may do it after all, at any time later: what it has then is the key that there is. */
static void test_what_was_done_later_has_its_key(void **state)
{
    const struct model_network *net;
    struct x25519_secret secret;
    char before[64];
    char after[64];

    (void)add(STORE_E_UNKNOWN);
    read_key("lab", before);
    (void)add(STORE_E_UNKNOWN);
    (void)add(-ENOSPC);
    (void)add(0);
    read_key("lab", after);
    assert_string_equal(before, after);
    net = model_find_network(&hub.hub->model, "lab");
    assert_int_equal(networks_key(&hub.hub->networks, "lab", &net->public, &secret, NULL), 0);
}

static struct outcome take_away(int r)
{
    struct outcome o = {.n = 0};
    struct err e = ERR_NULL;

    answer = r;
    n_commits = 0;
    assert_int_equal(
        networks_remove(&hub.hub->networks, sample_hub_network(&hub), on_removed, &o, &e), 0);
    assert_non_null(sample_hub_network(&hub)->leaving);
    store_wait(hub.hub->store);
    answer = 0;
    assert_int_equal(o.n, 1);
    assert_null(sample_hub_network(&hub)->leaving);
    return o;
}

static void test_a_network_is_removed(void **state)
{
    struct outcome o = take_away(STORE_E_CONFLICT);

    assert_int_equal(n_commits, 8);
    assert_int_equal(o.e.code, -EIO);
    assert_string_equal(err_text(&o.e), "network \"default\" is not removed: others change it");
    o = take_away(STORE_E_UNKNOWN);
    assert_int_equal(n_commits, 1);
    assert_int_equal(o.e.code, -EIO);
    assert_string_equal(err_text(&o.e), "network \"default\" is not removed: the connection broke");
    o = take_away(-ENOSPC);
    assert_int_equal(n_commits, 1);
    assert_int_equal(o.e.code, -ENOSPC);
    assert_string_equal(err_text(&o.e), "the connection broke");
    assert_true(has_key("default"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_network_is_made, begin, end),
        cmocka_unit_test_setup_teardown(test_a_network_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(test_what_was_done_later_has_its_key, begin, end),
        cmocka_unit_test_setup_teardown(test_a_network_is_removed, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
