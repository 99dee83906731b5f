/*
 * store_fixture.h - a store of each back end for a test, and what was read from it as text.
 *
 * The contract that is tested with these is src/control/backends/test-store.c. A back end's set-up
 * stands here, and its name in ON_ALL there; each test of the contract then runs on it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

/** What a test works on, made anew for each. */
struct store_fixture {
    struct store *s; /* owns */
    char dir[64];    /* of the SQLite one; "": none */
    struct err e;    /* the words of the last call that failed */
};

/** cmocka's set-ups: @state becomes a fixture with an empty store of that back end. */
int store_fixture_memory(void **state);
int store_fixture_sqlite(void **state);
int store_fixture_late(void **state);

/*
 * store_fixture_etcd() - the same of etcd: a prefix of its own in a cluster of three members
 *
 * The first call starts the cluster, and disturbs it from then on: a member dies and comes back,
 * another one stands still. By the seed WEFT_SEED, if it is set.
 */
int store_fixture_etcd(void **state);

/** store_fixture_end() - cmocka's teardown of the group: end the cluster, if there is one. */
int store_fixture_end(void **state);

/*
 * store_fixture_kubernetes() - the same in a namespace of its own of a Kubernetes cluster
 *
 * test/kube/test_store.py has made the namespaces store-0, store-1 ..., and names a kubeconfig in
 * $WEFT_TEST_KUBECONFIG.
 */
int store_fixture_kubernetes(void **state);

/** store_fixture_free() - cmocka's teardown: close the store, and remove its files. */
int store_fixture_free(void **state);

/** store_fixture_put() - write one key, whatever it holds, and wait; the commit's revision. */
uint64_t store_fixture_put(struct store_fixture *f, const char *key, const char *value);

/** Items as text, "key=value@revision ...", so that an assertion shows all of them. */
struct store_said {
    char text[4096];
    unsigned n; /* items */
};

/** store_said_add() - one item more. */
void store_said_add(struct store_said *said, const struct store_item *item);

/** store_said_item() - the same, as a store_item_fn of a struct store_said. */
int store_said_item(void *ctx, const struct store_item *item);

/** store_said_change() - the same, as a store_change_fn; a watch that is lost: "(compacted)". */
void store_said_change(void *ctx, const struct store_item *item);

/** store_fixture_assert_list() - the keys that start with @prefix are as @expected says. */
void store_fixture_assert_list(struct store_fixture *f, const char *prefix, const char *expected);

/** A page of a list, as it came. */
struct store_page {
    struct store_said said;
    int r;
    bool has_more;
};

/** store_page_done() - a store_done_fn of a struct store_page. */
void store_page_done(void *ctx, const struct store_answer *a);

/** store_page_read() - ask for a page, and wait for it; @is_down: in descending order. */
struct store_page store_page_read(
    struct store_fixture *f, const char *prefix, const char *from, bool is_down, size_t limit);
