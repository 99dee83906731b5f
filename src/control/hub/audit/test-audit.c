/* test-audit.c - what the audit log holds, what bounds it, and how it is read in pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/store_open.h"
#include "base/err.h"
#include "hub/audit/audit.h"
#include "hub/record/record.h"
#include "store/store.h"
#include "test/support/sample_late.h"
#include "test/support/store_now.h"

static int64_t wall_now;

static int64_t wall(void)
{
    return wall_now;
}

struct fixture {
    struct store *store;
    struct audit audit;
    nsec_t now;
    struct err e;
};

static int on_before(void *ctx, const struct store_item *item)
{
    struct audit_before *before = ctx;
    struct token_record token;
    struct admin_record admin;

    before->revision = item->revision;
    if (strncmp(item->key, "token/", 6) == 0 && record_token_decode(&token, item->value, NULL) == 0)
        memcpy(before->network, token.network, sizeof(before->network));
    if (strncmp(item->key, "admin/", 6) == 0 &&
        admin_record_decode(&admin, item->key, item->value, NULL) == 0)
        memcpy(before->network, admin.network, sizeof(before->network));
    return 0;
}

/* As a hub's model knows it. */
static void look_before(void *ctx, const char *key, struct audit_before *ret)
{
    struct fixture *f = ctx;

    (void)store_now_get(f->store, key, on_before, ret, &f->e);
}

static int begin(struct fixture *f, void **state)
{
    wall_now = 1790000000;
    audit_init(&f->audit, f->store, wall, look_before, f);
    assert_int_equal(audit_open(&f->audit, &f->e), 0);
    f->now = 1000 * NSEC_PER_SEC;
    f->audit.trimmed_at = f->now;
    *state = f;
    return 0;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_int_equal(store_open(&f->store, "memory:", 0, &f->e), 0);
    return begin(f, state);
}

static int setup_late(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    f->store = sample_late_open(5, 0);
    return begin(f, state);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    store_free(f->store);
    audit_deinit(&f->audit);
    free(f);
    return 0;
}

/* The outcome of a commit. */
struct outcome {
    bool is_there;
    int r;
    size_t failed;
};

static void on_committed(void *ctx, const struct store_answer *a)
{
    *(struct outcome *)ctx = (struct outcome){true, a->r, a->failed};
}

static int commit_ops(struct fixture *f, const struct store_op *ops, size_t n, size_t *failed)
{
    struct outcome outcome = {.is_there = false};

    assert_int_equal(audit_commit(&f->audit, ops, n, f->now, on_committed, &outcome, &f->e), 0);
    store_wait(f->store);
    assert_true(outcome.is_there);
    if (failed)
        *failed = outcome.failed;
    return outcome.r;
}

/* Commit what @text says: "+key" puts, "-key" deletes, "?key" checks; separated by spaces. */
static int commit(struct fixture *f, const char *text)
{
    struct store_op ops[100];
    char copy[4096];
    char *rest = copy;
    char *word;
    size_t n = 0;

    (void)snprintf(copy, sizeof(copy), "%s", text);
    while ((word = strsep(&rest, " ")) && *word)
        ops[n++] = (struct store_op){.kind = word[0] == '+'   ? STORE_OP_PUT
                                             : word[0] == '-' ? STORE_OP_DELETE
                                                              : STORE_OP_CHECK,
            .key = word + 1,
            .value = "{}",
            .expect = STORE_EXPECT_ANY};
    return commit_ops(f, ops, n, NULL);
}

static void on_read(void *ctx, int r, json_t *page, const struct err *e)
{
    assert_int_equal(r, 0);
    *(json_t **)ctx = page;
}

static json_t *read_page(struct fixture *f, struct audit_query query)
{
    json_t *json = NULL;

    if (query.limit == 0)
        query.limit = AUDIT_PAGE_MAX;
    assert_int_equal(audit_read(&f->audit, &query, on_read, &json, &f->e), 0);
    store_wait(f->store);
    assert_non_null(json);
    return json;
}

static const char *text_of(const json_t *entry, const char *name)
{
    const char *text = json_string_value(json_object_get(entry, name));

    return text ? text : "";
}

static int number_of(const json_t *entry, const char *name)
{
    return (int)json_integer_value(json_object_get(entry, name));
}

/* The whole log as "actor operation object old>new", or "actor !status xcount". */
static void assert_log(struct fixture *f, const char *expected)
{
    json_t *page = read_page(f, (struct audit_query){.limit = 0});
    char text[8192] = "";
    size_t len = 0;
    const json_t *entry;
    size_t i;

    json_array_foreach(json_object_get(page, "entries"), i, entry) {
        if (strcmp(text_of(entry, "answer"), "refused") == 0)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s !%d x%d; ",
                text_of(entry, "actor"), number_of(entry, "status"), number_of(entry, "count"));
        else
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s %s %s %d>%d; ",
                text_of(entry, "actor"), text_of(entry, "operation"), text_of(entry, "object"),
                number_of(entry, "oldRevision"), number_of(entry, "newRevision"));
    }
    json_decref(page);
    assert_string_equal(text, expected);
}

static void act(struct fixture *f, const char *actor, uint8_t last)
{
    const uint8_t b[4] = {198, 51, 100, last};
    struct ip_addr from = ip_addr_v4(b);

    audit_act(&f->audit, actor, &from);
}

static void test_changes(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(commit(f, "+network/a +ipam/a +node/a/hub"), 0);
    act(f, "admin:ci", 1);
    assert_int_equal(commit(f, "+edge/a/x--y"), 0);
    assert_int_equal(commit(f, "+edge/a/x--y"), 0);
    audit_act_hub(&f->audit);
    /* Reports and what jobs keep are no administration; what is not there is not removed. */
    assert_int_equal(commit(f, "+report/a/x +rdzv/a/b"), 0);
    assert_int_equal(commit(f, "-edge/a/u--v"), 0);
    assert_log(f, "hub create network/a 0>1; admin:ci create edge/a/x--y 0>2; "
                  "admin:ci change edge/a/x--y 2>3; ");
    assert_int_equal(store_revision(f->store), 4);
}

static void test_what_goes_with_something_else(void **state)
{
    static const char token[] = "token/"
                                "abababababababababababababababababababababababababababababababab";
    struct fixture *f = *state;
    char text[256];

    (void)snprintf(text, sizeof(text), "+%s", token);
    assert_int_equal(commit(f, text), 0);
    act(f, "join:abababababab", 2);
    (void)snprintf(text, sizeof(text), "?network/a +%s +ipam/a +node/a/x", token);
    assert_int_equal(commit(f, text), 0);
    assert_int_equal(commit(f, "+edge/a/x--y"), 0);
    assert_int_equal(commit(f, "-node/a/x -report/a/x -edge/a/x--y"), 0);
    /* The id of a token in the log is the start of its hash, and no more of it. */
    assert_log(f, "hub create token/abababababab 0>1; join:abababababab create node/a/x 0>2; "
                  "join:abababababab create edge/a/x--y 0>3; "
                  "join:abababababab remove node/a/x 2>0; ");
}

/* Entries are where their change is: a commit that fails leaves neither. */
static void test_a_commit_that_fails(void **state)
{
    struct fixture *f = *state;
    struct store_op op = {.kind = STORE_OP_PUT, .key = "node/a/x", .value = "{}", .expect = 77};
    size_t failed = 9;

    assert_int_equal(commit_ops(f, &op, 1, &failed), STORE_E_CONFLICT);
    assert_int_equal(failed, 0);
    assert_log(f, "");
    assert_int_equal(f->audit.n[AUDIT_CHANGE], 0);
}

static void test_a_large_commit(void **state)
{
    struct fixture *f = *state;
    char text[4096] = "";
    size_t len = 0;
    json_t *page;
    const json_t *last;

    for (int i = 0; i < 80; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "+node/a/n-%d ", i);
    assert_int_equal(commit(f, text), 0);
    page = read_page(f, (struct audit_query){.limit = 0});
    assert_int_equal(json_array_size(json_object_get(page, "entries")), AUDIT_PER_COMMIT);
    last = json_array_get(json_object_get(page, "entries"), AUDIT_PER_COMMIT - 1);
    assert_int_equal(number_of(last, "others"), 80 - AUDIT_PER_COMMIT);
    json_decref(page);
}

static void tick(struct fixture *f, nsec_t reply)
{
    f->now += reply;
    wall_now += reply / NSEC_PER_SEC;
    assert_int_equal(audit_tick(&f->audit, f->now, false, &f->e), 0);
    store_wait(f->store);
}

static void test_bounds(void **state)
{
    struct fixture *f = *state;

    f->audit.max[AUDIT_CHANGE] = 3;
    f->audit.age_s = 100;
    for (int i = 0; i < 5; i++)
        assert_int_equal(commit(f, "+node/a/x"), 0);
    tick(f, 11 * NSEC_PER_SEC);
    assert_log(f, "hub change node/a/x 2>3; hub change node/a/x 3>4; hub change node/a/x 4>5; ");
    assert_int_equal(f->audit.n[AUDIT_CHANGE], 3);
    tick(f, 60 * NSEC_PER_SEC);
    assert_int_equal(commit(f, "+node/a/y"), 0);
    tick(f, 30 * NSEC_PER_SEC);
    assert_log(f, "hub create node/a/y 0>7; ");
    /* The count is what is there, also after a start. */
    assert_int_equal(audit_open(&f->audit, &f->e), 0);
    assert_int_equal(f->audit.n[AUDIT_CHANGE], 1);
}

/* Who changes very much pushes out what is its own. */
static void test_full_by_one_network(void **state)
{
    struct fixture *f = *state;

    f->audit.max[AUDIT_CHANGE] = 5;
    assert_int_equal(commit(f, "+node/quiet/x"), 0);
    for (int i = 0; i < 9; i++)
        assert_int_equal(commit(f, "+node/loud/x"), 0);
    tick(f, 11 * NSEC_PER_SEC);
    assert_int_equal(f->audit.n[AUDIT_CHANGE], 5);
    assert_log(f, "hub create node/quiet/x 0>1; hub change node/loud/x 6>7; "
                  "hub change node/loud/x 7>8; hub change node/loud/x 8>9; "
                  "hub change node/loud/x 9>10; ");
    /* The same after a start, with what is there from before. */
    assert_int_equal(audit_open(&f->audit, &f->e), 0);
    assert_int_equal(commit(f, "+node/loud/x"), 0);
    tick(f, 11 * NSEC_PER_SEC);
    assert_int_equal(f->audit.n[AUDIT_CHANGE], 5);
    assert_log(f, "hub create node/quiet/x 0>1; hub change node/loud/x 7>8; "
                  "hub change node/loud/x 8>9; hub change node/loud/x 9>10; "
                  "hub change node/loud/x 10>12; ");
}

static void test_refusals_are_gathered(void **state)
{
    struct fixture *f = *state;

    act(f, "stranger", 1);
    for (int i = 0; i < 1000; i++)
        audit_refused(&f->audit, "GET /v1/networks", "", 401, "it needs a token \xff\n", f->now);
    act(f, "admin:eyes", 2);
    audit_refused(&f->audit, "DELETE /v1/networks/{network}", "a", 403, "no", f->now);
    assert_log(f, "");
    tick(f, 9 * NSEC_PER_SEC);
    assert_log(f, "");
    tick(f, 2 * NSEC_PER_SEC);
    assert_log(f, "stranger !401 x1000; admin:eyes !403 x1; ");
    audit_refused(&f->audit, "GET /v1/networks", "", 401, "again", f->now);
    assert_int_equal(audit_tick(&f->audit, f->now, true, &f->e), 0);
    store_wait(f->store);
    assert_log(f, "stranger !401 x1000; admin:eyes !403 x1; admin:eyes !401 x1; ");
}

/* How many refusals the log tells of, in all its entries. */
static int64_t count_refusals(struct fixture *f)
{
    json_t *page = read_page(f, (struct audit_query){.limit = 0});
    const json_t *entry;
    int64_t n = 0;
    size_t i;

    json_array_foreach(json_object_get(page, "entries"), i, entry) {
        n += number_of(entry, "count");
        assert_true(number_of(entry, "count") == 0 || number_of(entry, "firstTime") > 0);
    }
    json_decref(page);
    return n;
}

/* Whoever has many addresses fills neither the disk nor the log of changes. */
/* What a store does not take is told later, and with what has come meanwhile. */
static void test_refusals_that_are_lost(void **state)
{
    struct fixture *f = *state;
    int64_t n = 0;

    sample_late_set_loss(f->store, 2);
    for (int second = 0; second < 600; second++) {
        act(f, "stranger", (uint8_t)(n++ % 40));
        audit_refused(&f->audit, "GET /v1/networks", "", 401, "no", f->now);
        f->now += NSEC_PER_SEC;
        (void)audit_tick(&f->audit, f->now, false, &f->e);
        store_wait(f->store);
    }
    sample_late_set_loss(f->store, 0);
    (void)audit_tick(&f->audit, f->now, true, &f->e);
    store_wait(f->store);
    tick(f, 600 * NSEC_PER_SEC);
    /* Of what nobody knew whether it was written there may be too much. */
    assert_true(count_refusals(f) >= n);
}

static void test_refusals_are_bounded(void **state)
{
    struct fixture *f = *state;
    int64_t n = 0;

    assert_int_equal(commit(f, "+node/a/x"), 0);
    for (int second = 0; second < 3600; second++) {
        for (int k = 0; k < 5; k++) {
            act(f, "stranger", (uint8_t)n++);
            audit_refused(&f->audit, "GET /v1/networks", "", 401, "no", f->now);
        }
        tick(f, NSEC_PER_SEC);
    }
    assert_in_range(f->audit.n_written[AUDIT_REFUSAL], 300, 600 + AUDIT_REFUSALS_BURST);
    tick(f, 600 * NSEC_PER_SEC);
    /* Each is counted somewhere. */
    assert_int_equal(count_refusals(f), n);
    f->audit.max[AUDIT_REFUSAL] = 100;
    for (int i = 0; i < 5; i++)
        tick(f, 11 * NSEC_PER_SEC);
    assert_int_equal(f->audit.n[AUDIT_REFUSAL], 100);
    assert_int_equal(f->audit.n[AUDIT_CHANGE], 1);
}

static void test_pages(void **state)
{
    struct fixture *f = *state;
    struct audit_query query = {.limit = 3};
    json_t *page;
    const json_t *list;

    for (int i = 0; i < 4; i++) {
        assert_int_equal(commit(f, i % 2 ? "+node/a/x" : "+node/b/x"), 0);
        act(f, "stranger", 1);
        audit_refused(&f->audit, "GET /v1/networks", "", 401, "no", f->now);
        assert_int_equal(audit_tick(&f->audit, f->now, true, &f->e), 0);
        store_wait(f->store);
    }
    /* Backwards: eight entries, of both kinds in turn. */
    page = read_page(f, query);
    list = json_object_get(page, "entries");
    assert_int_equal(json_array_size(list), 3);
    assert_string_equal(text_of(json_array_get(list, 0), "answer"), "refused");
    assert_string_equal(text_of(json_array_get(list, 1), "object"), "node/a/x");
    (void)snprintf(query.before, sizeof(query.before), "%s", text_of(page, "previous"));
    json_decref(page);
    query.limit = 9;
    page = read_page(f, query);
    assert_int_equal(json_array_size(json_object_get(page, "entries")), 5);
    assert_string_equal(text_of(page, "previous"), "");
    json_decref(page);
    /* Forward, from the start, one network only. */
    query = (struct audit_query){.limit = 1, .network = "a"};
    (void)audit_id(query.after, 0, 0);
    page = read_page(f, query);
    assert_string_equal(
        text_of(json_array_get(json_object_get(page, "entries"), 0), "object"), "node/a/x");
    (void)snprintf(query.after, sizeof(query.after), "%s", text_of(page, "next"));
    json_decref(page);
    query.limit = 9;
    page = read_page(f, query);
    assert_int_equal(json_array_size(json_object_get(page, "entries")), 1);
    json_decref(page);
}

/* Of an entry that cannot be read it is told that there is one; it goes like the others. */
static void test_a_damaged_entry(void **state)
{
    struct fixture *f = *state;
    struct store_op op = {.kind = STORE_OP_PUT,
        .key = "audit/0000000000000000-000",
        .value = "{\"time\":\"x\"}",
        .expect = STORE_EXPECT_ANY};

    assert_int_equal(store_now_commit(f->store, &op, 1, 0, NULL, NULL, &f->e), 0);
    op.key = "audit/zzz";
    assert_int_equal(store_now_commit(f->store, &op, 1, 0, NULL, NULL, &f->e), 0);
    assert_int_equal(commit(f, "+node/a/x"), 0);
    assert_int_equal(audit_open(&f->audit, &f->e), 0);
    assert_log(f, "unknown unreadable  0>0; hub create node/a/x 0>3; ");
    tick(f, 11 * NSEC_PER_SEC);
    assert_int_equal(f->audit.n[AUDIT_CHANGE], 2);
    assert_log(f, "hub create node/a/x 0>3; ");
}

/* A flipped bit, or an entry under another's key, is no entry. */
static void test_a_sum_in_each_entry(void **state)
{
    struct audit_record record = {
        .actor = "admin:ci", .operation = "remove", .object = "node/a/x", .time = 7};
    struct audit_record read;
    struct err e = ERR_NULL;
    char key[RECORD_KEY_MAX];
    char *text;

    (void)audit_id(record.id, 42, 0);
    text = audit_record_encode(&record);
    (void)audit_record_key(key, AUDIT_CHANGE, record.id);
    assert_int_equal(audit_record_decode(&read, key, text, &e), 0);
    assert_string_equal(read.object, "node/a/x");
    key[strlen(key) - 1] = '1';
    assert_int_equal(audit_record_decode(&read, key, text, &e), -EINVAL);
    key[strlen(key) - 1] = '0';
    *strstr(text, "node/a/x") = 'm';
    assert_int_equal(audit_record_decode(&read, key, text, &e), -EINVAL);
    free(text);
}

static void test_a_note(void **state)
{
    struct fixture *f = *state;

    act(f, "uid:0", 1);
    assert_int_equal(
        audit_note(&f->audit, "change", "", "file/admin.token", f->now, NULL, NULL, &f->e), 0);
    store_wait(f->store);
    assert_log(f, "uid:0 change file/admin.token 0>0; ");
}

/* Notes about one network push out what is its own. */
static void test_notes_of_one_network(void **state)
{
    struct fixture *f = *state;

    f->audit.max[AUDIT_CHANGE] = 4;
    assert_int_equal(
        audit_note(&f->audit, "change", "", "file/admin.token", f->now, NULL, NULL, &f->e), 0);
    assert_int_equal(commit(f, "+node/quiet/x"), 0);
    for (int i = 0; i < 9; i++) {
        assert_int_equal(
            audit_note(&f->audit, "copy", "loud", "node/loud/x", f->now, NULL, NULL, &f->e), 0);
        store_wait(f->store);
    }
    tick(f, 11 * NSEC_PER_SEC);
    assert_log(f, "hub change file/admin.token 0>0; hub create node/quiet/x 0>2; "
                  "hub copy node/loud/x 0>0; hub copy node/loud/x 0>0; ");
}

#define CASE(test)                                                                                 \
    {#test " (memory)", test, setup, teardown, NULL},                                              \
    {                                                                                              \
#test " (late)", test, setup_late, teardown, NULL                                          \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_changes),
        CASE(test_what_goes_with_something_else),
        CASE(test_a_commit_that_fails),
        CASE(test_a_large_commit),
        CASE(test_bounds),
        CASE(test_full_by_one_network),
        CASE(test_refusals_are_gathered),
        CASE(test_refusals_are_bounded),
        cmocka_unit_test_setup_teardown(test_refusals_that_are_lost, setup_late, teardown),
        CASE(test_pages),
        CASE(test_a_damaged_entry),
        cmocka_unit_test(test_a_sum_in_each_entry),
        CASE(test_a_note),
        CASE(test_notes_of_one_network),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
