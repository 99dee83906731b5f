/* test-audit-pages.c - the audit log is read in pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/audit/audit.h"
#include "store/store.h"
#include "test/support/audit_log.h"

static void test_pages(void **state)
{
    struct audit_log *f = *state;
    struct audit_query query = {.limit = 3};
    json_t *page;
    const json_t *list;

    for (int i = 0; i < 4; i++) {
        assert_int_equal(audit_log_commit(f, i % 2 ? "+node/a/x" : "+node/b/x"), 0);
        audit_log_act(f, "stranger", 1);
        audit_refused(&f->audit, "GET /v1/networks", "", 401, "no", f->now);
        assert_int_equal(audit_tick(&f->audit, f->now, true, &f->e), 0);
        store_wait(f->store);
    }
    /* Backwards: eight entries, of both kinds in turn. */
    page = audit_log_read(f, query);
    list = json_object_get(page, "entries");
    assert_int_equal(json_array_size(list), 3);
    assert_string_equal(audit_log_text(json_array_get(list, 0), "answer"), "refused");
    assert_string_equal(audit_log_text(json_array_get(list, 1), "object"), "node/a/x");
    (void)snprintf(query.before, sizeof(query.before), "%s", audit_log_text(page, "previous"));
    json_decref(page);
    query.limit = 9;
    page = audit_log_read(f, query);
    assert_int_equal(json_array_size(json_object_get(page, "entries")), 5);
    assert_string_equal(audit_log_text(page, "previous"), "");
    json_decref(page);
    /* Forward, from the start, one network only. */
    query = (struct audit_query){.limit = 1, .network = "a"};
    (void)audit_id(query.after, 0, 0);
    page = audit_log_read(f, query);
    assert_string_equal(
        audit_log_text(json_array_get(json_object_get(page, "entries"), 0), "object"), "node/a/x");
    (void)snprintf(query.after, sizeof(query.after), "%s", audit_log_text(page, "next"));
    json_decref(page);
    query.limit = 9;
    page = audit_log_read(f, query);
    assert_int_equal(json_array_size(json_object_get(page, "entries")), 1);
    json_decref(page);
}

/* The IDs' numbers of a page, and where it goes on: "1 2 next 2-fff previous 1-000". */
static void assert_page(struct audit_log *f, struct audit_query query, const char *expected)
{
    json_t *page = audit_log_read(f, query);
    char text[512] = "";
    const json_t *entry;
    size_t len = 0;
    size_t i;

    json_array_foreach(json_object_get(page, "entries"), i, entry)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%d ",
            (int)audit_id_number(audit_log_text(entry, "id")));
    len += (size_t)snprintf(
        text + len, sizeof(text) - len, "next %s", audit_log_text(page, "next") + 15);
    if (json_object_get(page, "previous"))
        (void)snprintf(
            text + len, sizeof(text) - len, " previous %s", audit_log_text(page, "previous") + 15);
    json_decref(page);
    assert_string_equal(text, expected);
}

/* Both kinds in the order of events, either way, from any place and since any time. */
static void test_places(void **state)
{
    struct audit_log *f = *state;
    struct audit_query query = {.limit = 4};

    for (int i = 0; i < 3; i++) {
        assert_int_equal(audit_log_commit(f, i == 1 ? "+node/b/x" : "+node/a/x"), 0);
        audit_refused(&f->audit, "GET /a", "", 401, "no", f->now);
        assert_int_equal(audit_tick(&f->audit, f->now, true, &f->e), 0);
        store_wait(f->store);
        audit_log_wall++;
    }
    assert_page(f, query, "3 4 5 6 next 6-fff previous 3-000");
    (void)audit_id(query.before, 3, 0);
    assert_page(f, query, "1 2 next 6-fff");
    query.limit = 2;
    assert_page(f, query, "1 2 next 6-fff previous 1-000");
    query = (struct audit_query){.limit = 6};
    assert_page(f, query, "1 2 3 4 5 6 next 6-fff previous 1-000");
    query.limit = 7;
    assert_page(f, query, "1 2 3 4 5 6 next 6-fff");
    query.since = 1790000001;
    assert_page(f, query, "3 4 5 6 next 6-fff");
    (void)audit_id(query.after, 1, 0);
    assert_page(f, query, "3 4 5 6 next 6-000");
    query.since = 0;
    query.limit = 4;
    assert_page(f, query, "2 3 4 5 next 5-000");
    (void)audit_id(query.after, 5, 0);
    assert_page(f, query, "6 next 6-000");
    (void)audit_id(query.after, 6, 0);
    assert_page(f, query, "next 6-000");
    query = (struct audit_query){.limit = 4, .network = "a"};
    assert_page(f, query, "1 5 next 6-fff");
    query.limit = 1;
    assert_page(f, query, "5 next 6-fff previous 5-000");
}

/* A reader that wants few of many looks at no more than 2000 of each kind for a page. */
static void test_a_page_costs_no_more(void **state)
{
    struct audit_log *f = *state;
    struct audit_query query = {.limit = 4, .network = "b"};
    char text[4096] = "";
    size_t len = 0;

    audit_refused(&f->audit, "GET /a", "b", 401, "no", f->now);
    assert_int_equal(audit_tick(&f->audit, f->now, true, &f->e), 0);
    store_wait(f->store);
    assert_int_equal(audit_log_commit(f, "+node/b/x"), 0);
    for (int i = 0; i < 50; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "+node/a/n-%d ", i);
    for (int i = 0; i < 40; i++)
        assert_int_equal(audit_log_commit(f, text), 0);
    /* The refusal is older than what was looked at of the changes: it is on the next page. */
    assert_page(f, query, "next a-fff previous 3-000");
    (void)audit_id(query.before, 3, 0);
    assert_page(f, query, "1 2 next a-fff");
    (void)audit_id(query.after, 0, 0);
    assert_page(f, query, "1 2 next a-030");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        AUDIT_LOG_CASE(test_pages),
        AUDIT_LOG_CASE(test_places),
        AUDIT_LOG_CASE(test_a_page_costs_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
