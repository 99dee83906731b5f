/* store_fixture.c - see store_fixture.h. */
#include "test/support/store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/store_open.h"
#include "store/store.h"
#include "test/support/sample_etcd.h"
#include "test/support/sample_late.h"
#include "test/support/store_now.h"

static struct store *open_store(struct store_fixture *f, const char *url)
{
    struct store *s = NULL;
    int r = store_open(&s, url, 0, &f->e);

    if (r != 0)
        fail_msg("%s: %s", url, err_text(&f->e));
    return s;
}

int store_fixture_memory(void **state)
{
    struct store_fixture *f = calloc(1, sizeof(*f));

    f->s = open_store(f, "memory:");
    *state = f;
    return 0;
}

int store_fixture_sqlite(void **state)
{
    struct store_fixture *f = calloc(1, sizeof(*f));
    char url[128];

    (void)snprintf(f->dir, sizeof(f->dir), "/tmp/weft-test-store.XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    (void)snprintf(url, sizeof(url), "sqlite:%s/hub.db", f->dir);
    f->s = open_store(f, url);
    *state = f;
    return 0;
}

int store_fixture_late(void **state)
{
    struct store_fixture *f = calloc(1, sizeof(*f));

    f->s = sample_late_open(11, 0);
    *state = f;
    return 0;
}

/* One for all tests of a program. */
static struct sample_etcd *cluster;

int store_fixture_etcd(void **state)
{
    static const struct sample_etcd_options opt = {.n = 3};
    static unsigned n;
    struct store_fixture *f;
    const char *given = getenv("WEFT_SEED");
    char prefix[32];
    char url[256];

    if (!cluster) {
        cluster = sample_etcd_start(&opt);
        if (!cluster)
            return -1;
        sample_etcd_disturb(cluster, given ? strtoull(given, NULL, 10) : 1);
    }
    f = calloc(1, sizeof(*f));
    (void)snprintf(prefix, sizeof(prefix), "/test/%u/", n++);
    f->s = open_store(f, sample_etcd_url(cluster, prefix, url, sizeof(url)));
    *state = f;
    return 0;
}

int store_fixture_kubernetes(void **state)
{
    struct store_fixture *f = calloc(1, sizeof(*f));
    static unsigned n;
    char url[512];

    (void)snprintf(url, sizeof(url), "kubernetes:?namespace=store-%u&kubeconfig=%s", n++,
        getenv("WEFT_TEST_KUBECONFIG"));
    f->s = open_store(f, url);
    *state = f;
    return 0;
}

int store_fixture_end(void **state)
{
    cluster = sample_etcd_free(cluster);
    return 0;
}

int store_fixture_free(void **state)
{
    struct store_fixture *f = *state;
    char command[128];
    int r = 0;

    store_free(f->s);
    if (f->dir[0]) {
        (void)snprintf(command, sizeof(command), "rm -rf %s", f->dir);
        r = system(command);
    }
    free(f);
    return r;
}

void store_said_add(struct store_said *said, const struct store_item *item)
{
    size_t len = strlen(said->text);

    said->n++;
    (void)snprintf(said->text + len, sizeof(said->text) - len, "%s%s=%.40s@%llu", len ? " " : "",
        item->key, item->value ? item->value : "(gone)", (unsigned long long)item->revision);
}

int store_said_item(void *ctx, const struct store_item *item)
{
    store_said_add(ctx, item);
    if (item->value)
        assert_int_equal(item->value_len, strlen(item->value));
    return 0;
}

void store_said_change(void *ctx, const struct store_item *item)
{
    struct store_said *said = ctx;
    size_t len = strlen(said->text);

    if (item)
        store_said_add(said, item);
    else
        (void)snprintf(said->text + len, sizeof(said->text) - len, "(compacted)");
}

uint64_t store_fixture_put(struct store_fixture *f, const char *key, const char *value)
{
    struct store_op op = {
        .kind = STORE_OP_PUT, .key = key, .value = value, .expect = STORE_EXPECT_ANY};
    uint64_t revision = 0;

    assert_int_equal(store_now_commit(f->s, &op, 1, 0, &revision, NULL, &f->e), 0);
    return revision;
}

void store_fixture_assert_list(struct store_fixture *f, const char *prefix, const char *expected)
{
    struct store_said said = {0};
    uint64_t revision = 0;

    assert_int_equal(store_now_list(f->s, prefix, store_said_item, &said, &revision, &f->e), 0);
    assert_string_equal(said.text, expected);
    assert_int_equal(revision, store_revision(f->s));
}

void store_page_done(void *ctx, const struct store_answer *a)
{
    struct store_page *page = ctx;

    page->r = a->r;
    page->has_more = a->has_more;
    for (size_t i = 0; i < a->n_items; i++)
        store_said_add(&page->said, &a->items[i]);
}

struct store_page store_page_read(
    struct store_fixture *f, const char *prefix, const char *from, bool is_down, size_t limit)
{
    struct store_range range = {.prefix = prefix, .from = from, .is_down = is_down, .limit = limit};
    struct store_page page = {.r = 99};

    assert_int_equal(store_list(f->s, &range, store_page_done, &page, &f->e), 0);
    store_wait(f->s);
    assert_int_equal(page.r, 0);
    return page;
}
