/* test-audit.c - what the audit log holds, and what bounds it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "base/err.h"
#include "hub/audit/audit.h"
#include "hub/record/record.h"
#include "store/store.h"
#include "test/support/audit_log.h"
#include "test/support/sample_late.h"
#include "test/support/store_now.h"

static void on_failed_read(void *ctx, int r, json_t *page, const struct err *e)
{
    assert_null(page);
    assert_string_equal(err_text(e), "the store is away");
    *(int *)ctx = r;
}

static void test_changes(void **state)
{
    struct audit_log *f = *state;

    assert_int_equal(audit_log_commit(f, "+network/a +ipam/a +node/a/hub"), 0);
    audit_log_act(f, "admin:ci", 1);
    assert_int_equal(audit_log_commit(f, "+edge/a/x--y"), 0);
    assert_int_equal(audit_log_commit(f, "+edge/a/x--y"), 0);
    audit_act_hub(&f->audit);
    /* Reports and what jobs keep are no administration; what is not there is not removed. */
    assert_int_equal(audit_log_commit(f, "+report/a/x +rdzv/a/b"), 0);
    assert_int_equal(audit_log_commit(f, "-edge/a/u--v"), 0);
    audit_log_is(f, "hub create network/a 0>1; admin:ci create edge/a/x--y 0>2; "
                    "admin:ci change edge/a/x--y 2>3; ");
    assert_int_equal(store_revision(f->store), 4);
}

/* Everything that an entry says, and what the log counts besides. */
static void test_whole_entries(void **state)
{
    struct audit_log *f = *state;

    assert_int_equal(f->audit.age_s, 400 * 86400);
    assert_int_equal(f->audit.max[AUDIT_CHANGE], 100000);
    assert_int_equal(f->audit.max[AUDIT_REFUSAL], 4096);
    assert_int_equal(audit_log_commit(f, "+network/a"), 0);
    audit_log_act(f, "admin:ci", 7);
    audit_log_wall += 5;
    assert_int_equal(audit_log_commit(f, "+node/a/x +node/a/y"), 0);
    assert_int_equal(audit_note(&f->audit, "copy", "a", "file/x", f->now, NULL, NULL, &f->e), 0);
    assert_int_equal(audit_note(&f->audit, "copy", "", "file/y", f->now, NULL, NULL, &f->e), 0);
    store_wait(f->store);
    assert_int_equal(audit_log_commit(f, "-node/a/x"), 0);
    assert_int_equal(f->audit.n[AUDIT_CHANGE], 6);
    assert_int_equal(f->audit.n_written[AUDIT_CHANGE], 6);
    assert_int_equal(f->audit.last, 5);
    assert_int_equal(f->audit.settled, 5);
    audit_log_entry_is(f, 0,
        "{\"id\":\"0000000000000001-000\",\"answer\":\"done\",\"time\":1790000000,\"actor\":"
        "\"hub\","
        "\"operation\":\"create\",\"object\":\"network/a\",\"network\":\"a\",\"newRevision\":1}");
    audit_log_entry_is(f, 2,
        "{\"id\":\"0000000000000002-001\",\"answer\":\"done\",\"time\":1790000005,"
        "\"actor\":\"admin:ci\",\"from\":\"198.51.100.7\",\"operation\":\"create\","
        "\"object\":\"node/a/y\",\"network\":\"a\",\"newRevision\":2}");
    audit_log_entry_is(f, 3,
        "{\"id\":\"0000000000000003-000\",\"answer\":\"done\",\"time\":1790000005,"
        "\"actor\":\"admin:ci\",\"from\":\"198.51.100.7\",\"operation\":\"copy\","
        "\"object\":\"file/x\",\"network\":\"a\"}");
    /* The second note was made before the first one was written. */
    audit_log_entry_is(f, 4,
        "{\"id\":\"0000000000000004-000\",\"answer\":\"done\",\"time\":1790000005,"
        "\"actor\":\"admin:ci\",\"from\":\"198.51.100.7\",\"operation\":\"copy\","
        "\"object\":\"file/y\"}");
    audit_log_entry_is(f, 5,
        "{\"id\":\"0000000000000005-000\",\"answer\":\"done\",\"time\":1790000005,"
        "\"actor\":\"admin:ci\",\"from\":\"198.51.100.7\",\"operation\":\"remove\","
        "\"object\":\"node/a/x\",\"network\":\"a\",\"oldRevision\":2}");
}

/* Of tokens only their values tell which network they are for: before a removal, and of a new one.
 */
static void test_tokens(void **state)
{
    static const char key[] = "token/"
                              "abababababababababababababababababababababababababababababababab";
    struct token_record token = {.network = "a", .hub_key = {{9}}, .expires_at = 1, .uses = 1};
    struct admin_record admin = {
        .name = "ci", .network = "b", .hub_key = {{9}}, .created_at = 1, .expires_at = 2};
    struct store_op ops[2] = {
        {.kind = STORE_OP_PUT, .key = key, .expect = STORE_EXPECT_ANY},
        {.kind = STORE_OP_PUT, .key = "admin/ci", .expect = STORE_EXPECT_ANY},
    };
    struct audit_by each[2] = {{.actor = "uid:0"}, {.actor = "uid:1"}};
    struct audit_log *f = *state;
    char *values[2];

    admin.role = ROLE_ADMIN;
    (void)snprintf(admin.created_by, sizeof(admin.created_by), "uid:0");
    ops[0].value = values[0] = record_token_encode(&token);
    ops[1].value = values[1] = admin_record_encode(&admin);
    f->audit.each = each;
    assert_int_equal(audit_log_commit_ops(f, ops, 2, NULL), 0);
    f->audit.each = NULL;
    assert_int_equal(
        audit_log_commit(f, "-admin/ci -token/"
                            "abababababababababababababababababababababababababababababababab"),
        0);
    audit_log_entry_is(f, 0,
        "{\"id\":\"0000000000000001-000\",\"answer\":\"done\",\"time\":1790000000,"
        "\"actor\":\"uid:0\",\"operation\":\"create\",\"object\":\"token/abababababab\","
        "\"network\":\"a\",\"newRevision\":1}");
    audit_log_entry_is(f, 1,
        "{\"id\":\"0000000000000001-001\",\"answer\":\"done\",\"time\":1790000000,"
        "\"actor\":\"uid:1\",\"operation\":\"create\",\"object\":\"admin/ci\","
        "\"network\":\"b\",\"newRevision\":1}");
    audit_log_entry_is(f, 2,
        "{\"id\":\"0000000000000002-000\",\"answer\":\"done\",\"time\":1790000000,"
        "\"actor\":\"hub\",\"operation\":\"remove\",\"object\":\"admin/ci\","
        "\"network\":\"b\",\"oldRevision\":1}");
    audit_log_entry_is(f, 3,
        "{\"id\":\"0000000000000002-001\",\"answer\":\"done\",\"time\":1790000000,"
        "\"actor\":\"hub\",\"operation\":\"remove\",\"object\":\"token/abababababab\","
        "\"network\":\"a\",\"oldRevision\":1}");
    free(values[0]);
    free(values[1]);
}

/* Of several hubs each is named, and the second parts of its IDs begin where another's do not. */
static void test_several_hubs(void **state)
{
    struct audit_log *f = *state;
    char expected[AUDIT_ID_MAX];
    const json_t *entry;
    json_t *page;
    size_t i;

    audit_share(&f->audit, "east", 4711);
    for (uint64_t number = 1; number <= 8; number++)
        assert_int_equal(audit_log_commit(f, "+node/a/x +node/a/y"), 0);
    page = audit_log_read(f, (struct audit_query){.limit = 0});
    json_array_foreach(json_object_get(page, "entries"), i, entry) {
        uint64_t number = i / 2 + 1;

        (void)audit_id(expected, number,
            (unsigned)(hash_u64(4711, number) % (4096 / AUDIT_PER_COMMIT)) * AUDIT_PER_COMMIT +
                i % 2);
        assert_string_equal(audit_log_text(entry, "id"), expected);
        assert_string_equal(audit_log_text(entry, "actor"), "hub:east");
    }
    assert_int_equal(i, 16);
    json_decref(page);
}

/* A log whose numbers are beyond the store's, as one that was copied, goes on from its own. */
static void test_numbers_only_grow(void **state)
{
    struct audit_log *f = *state;
    struct store_op op = {.kind = STORE_OP_PUT,
        .key = "audit/00000000000003e8-000",
        .value = "{}",
        .expect = STORE_EXPECT_ANY};
    json_t *page;

    assert_int_equal(store_now_commit(f->store, &op, 1, 0, NULL, NULL, &f->e), 0);
    op.key = "audit/0000000000000007-000";
    assert_int_equal(store_now_commit(f->store, &op, 1, 0, NULL, NULL, &f->e), 0);
    assert_int_equal(audit_open(&f->audit, &f->e), 0);
    assert_int_equal(f->audit.last, 1000);
    assert_int_equal(f->audit.settled, 1000);
    assert_int_equal(f->audit.n[AUDIT_CHANGE], 2);
    assert_int_equal(audit_log_commit(f, "+node/a/x"), 0);
    assert_int_equal(f->audit.last, 1001);
    assert_int_equal(f->audit.settled, 1001);
    page = audit_log_read(f, (struct audit_query){.limit = 1});
    assert_string_equal(audit_log_text(page, "next"), "00000000000003e9-fff");
    assert_string_equal(audit_log_text(page, "previous"), "00000000000003e9-000");
    json_decref(page);
    /* A commit without entries has no number. */
    assert_int_equal(audit_log_commit(f, "+report/a/x"), 0);
    assert_int_equal(f->audit.last, 1001);
    assert_int_equal(f->audit.settled, 1001);
}

static void test_what_goes_with_something_else(void **state)
{
    static const char token[] = "token/"
                                "abababababababababababababababababababababababababababababababab";
    struct audit_log *f = *state;
    char text[256];

    (void)snprintf(text, sizeof(text), "+%s", token);
    assert_int_equal(audit_log_commit(f, text), 0);
    audit_log_act(f, "join:abababababab", 2);
    (void)snprintf(text, sizeof(text), "?network/a +%s +ipam/a +node/a/x", token);
    assert_int_equal(audit_log_commit(f, text), 0);
    assert_int_equal(audit_log_commit(f, "+edge/a/x--y"), 0);
    assert_int_equal(audit_log_commit(f, "-node/a/x -report/a/x -edge/a/x--y"), 0);
    /* By themselves they have theirs; and a network that is only looked at hides nothing. */
    assert_int_equal(audit_log_commit(f, "+edge/a/x--y ?node/a/x"), 0);
    assert_int_equal(audit_log_commit(f, "-edge/a/x--y +node/a/y"), 0);
    (void)snprintf(text, sizeof(text), "-node/a/y -%s", token);
    assert_int_equal(audit_log_commit(f, text), 0);
    assert_int_equal(audit_log_commit(f, "+network/a +node/a/hub +edge/a/x--y"), 0);
    /* The id of a token in the log is the start of its hash, and no more of it. */
    audit_log_is(f, "hub create token/abababababab 0>1; join:abababababab create node/a/x 0>2; "
                    "join:abababababab create edge/a/x--y 0>3; "
                    "join:abababababab remove node/a/x 2>0; "
                    "join:abababababab create edge/a/x--y 0>5; "
                    "join:abababababab remove edge/a/x--y 5>0; "
                    "join:abababababab create node/a/y 0>6; "
                    "join:abababababab remove node/a/y 6>0; "
                    "join:abababababab remove token/abababababab 2>0; "
                    "join:abababababab create network/a 0>8; "
                    "join:abababababab create edge/a/x--y 0>8; ");
}

/* Entries are where their change is: a commit that fails leaves neither. */
static void test_a_commit_that_fails(void **state)
{
    struct audit_log *f = *state;
    struct store_op op = {.kind = STORE_OP_PUT, .key = "node/a/x", .value = "{}", .expect = 77};
    size_t failed = 9;

    assert_int_equal(audit_log_commit_ops(f, &op, 1, &failed), STORE_E_CONFLICT);
    assert_int_equal(failed, 0);
    audit_log_is(f, "");
    assert_int_equal(f->audit.n[AUDIT_CHANGE], 0);
    assert_int_equal(f->audit.n_written[AUDIT_CHANGE], 0);
    assert_int_equal(f->audit.rings[AUDIT_CHANGE].n, 0);
    /* It is on its way no more, and its number is not given again. */
    assert_int_equal(f->audit.settled, 1);
    assert_int_equal(f->audit.last, 1);
}

static void test_a_large_commit(void **state)
{
    struct audit_log *f = *state;
    char text[4096] = "";
    size_t len = 0;
    json_t *page;
    const json_t *last;

    for (int i = 0; i < 80; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "+node/a/n-%d ", i);
    assert_int_equal(audit_log_commit(f, text), 0);
    page = audit_log_read(f, (struct audit_query){.limit = 0});
    assert_int_equal(json_array_size(json_object_get(page, "entries")), AUDIT_PER_COMMIT);
    last = json_array_get(json_object_get(page, "entries"), AUDIT_PER_COMMIT - 1);
    assert_int_equal(audit_log_number(last, "others"), 80 - AUDIT_PER_COMMIT);
    assert_string_equal(audit_log_text(last, "id"), "0000000000000001-03f");
    json_decref(page);
    assert_int_equal(f->audit.n[AUDIT_CHANGE], AUDIT_PER_COMMIT);
}

static void test_bounds(void **state)
{
    struct audit_log *f = *state;

    f->audit.max[AUDIT_CHANGE] = 3;
    f->audit.age_s = 100;
    for (int i = 0; i < 5; i++)
        assert_int_equal(audit_log_commit(f, "+node/a/x"), 0);
    audit_log_tick(f, 11 * NSEC_PER_SEC);
    audit_log_is(f, "hub change node/a/x 2>3; hub change node/a/x 3>4; hub change node/a/x 4>5; ");
    assert_int_equal(f->audit.n[AUDIT_CHANGE], 3);
    audit_log_tick(f, 60 * NSEC_PER_SEC);
    assert_int_equal(audit_log_commit(f, "+node/a/y"), 0);
    audit_log_tick(f, 30 * NSEC_PER_SEC);
    audit_log_is(f, "hub create node/a/y 0>7; ");
    /* The count is what is there, also after a start. */
    assert_int_equal(audit_open(&f->audit, &f->e), 0);
    assert_int_equal(f->audit.n[AUDIT_CHANGE], 1);
}

/* An entry as old as it may get is kept, and one that is a second older is not. */
static void test_age(void **state)
{
    struct audit_log *f = *state;

    f->audit.age_s = 100;
    assert_int_equal(audit_log_commit(f, "+node/a/x"), 0);
    audit_log_wall += 1;
    assert_int_equal(audit_log_commit(f, "+node/a/y"), 0);
    audit_log_wall += 90;
    /* They are looked for each ten seconds. */
    audit_log_tick(f, 9 * NSEC_PER_SEC);
    audit_log_wall += 1;
    f->now += NSEC_PER_SEC - 1;
    assert_int_equal(audit_tick(&f->audit, f->now, false, &f->e), 0);
    assert_int_equal(f->audit.n_trims, 0);
    f->now += 1;
    /* Not while everything is flushed at the end. */
    assert_int_equal(audit_tick(&f->audit, f->now, true, &f->e), 0);
    assert_int_equal(f->audit.n_trims, 0);
    assert_int_equal(audit_tick(&f->audit, f->now, false, &f->e), 0);
    assert_int_equal(f->audit.n_trims, AUDIT_KIND_N);
    /* Those are on their way. */
    assert_int_equal(audit_tick(&f->audit, f->now + 20 * NSEC_PER_SEC, false, &f->e), 0);
    assert_int_equal(f->audit.n_trims, AUDIT_KIND_N);
    store_wait(f->store);
    assert_int_equal(f->audit.n_trims, 0);
    assert_int_equal(f->audit.trimmed_at, f->now);
    audit_log_is(f, "hub create node/a/y 0>2; ");
    assert_int_equal(f->audit.n[AUDIT_CHANGE], 1);
    assert_int_equal(f->audit.rings[AUDIT_CHANGE].n, 1);
}

/* What one commit does not remove is removed by the next tick, and not ten seconds later. */
static void test_many_go(void **state)
{
    struct audit_log *f = *state;
    char text[4096] = "";
    size_t len = 0;

    for (int i = 0; i < AUDIT_PER_COMMIT; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "+node/a/n-%d ", i);
    for (int i = 0; i < 10; i++)
        assert_int_equal(audit_log_commit(f, text), 0);
    f->audit.max[AUDIT_CHANGE] = 100;
    audit_log_tick(f, 10 * NSEC_PER_SEC);
    assert_int_equal(f->audit.n[AUDIT_CHANGE], 640 - 256);
    assert_int_equal(f->audit.trimmed_at, 0);
    audit_log_tick(f, 0);
    assert_int_equal(f->audit.n[AUDIT_CHANGE], 640 - 512);
    audit_log_tick(f, 0);
    assert_int_equal(f->audit.n[AUDIT_CHANGE], 100);
    assert_int_equal(f->audit.trimmed_at, f->now);
    /* All of the rest get too old at once. */
    for (int i = 0; i < 3; i++)
        assert_int_equal(audit_log_commit(f, text), 0);
    f->audit.max[AUDIT_CHANGE] = 10000;
    f->audit.age_s = -1;
    audit_log_tick(f, 10 * NSEC_PER_SEC);
    assert_int_equal(f->audit.n[AUDIT_CHANGE], 100 + 192 - 256);
    audit_log_tick(f, 0);
    audit_log_is(f, "");
    assert_int_equal(f->audit.n[AUDIT_CHANGE], 0);
    assert_int_equal(f->audit.rings[AUDIT_CHANGE].n, 0);
}

/* A store that is away is told of once, by the next call. */
static void test_a_store_that_is_away(void **state)
{
    struct audit_log *f = *state;
    struct audit_query query = {.limit = 1};
    int r = 0;

    assert_int_equal(audit_log_commit(f, "+node/a/x"), 0);
    sample_late_set_loss(f->store, 1);
    f->now += 10 * NSEC_PER_SEC;
    assert_int_equal(audit_tick(&f->audit, f->now, false, &f->e), 0);
    store_wait(f->store);
    assert_int_equal(f->audit.n_trims, 0);
    assert_int_equal(audit_tick(&f->audit, f->now, false, &f->e), -EIO);
    assert_string_equal(err_text(&f->e), "the store is away");
    assert_int_equal(audit_tick(&f->audit, f->now, false, &f->e), 0);
    assert_int_equal(audit_read(&f->audit, &query, on_failed_read, &r, &f->e), 0);
    store_wait(f->store);
    assert_int_equal(r, -EIO);
    /* Nothing was forgotten by that. */
    sample_late_set_loss(f->store, 0);
    assert_int_equal(f->audit.n[AUDIT_CHANGE], 1);
    audit_log_is(f, "hub create node/a/x 0>1; ");
}

/* Who changes very much pushes out what is its own. */
static void test_full_by_one_network(void **state)
{
    struct audit_log *f = *state;

    f->audit.max[AUDIT_CHANGE] = 5;
    assert_int_equal(audit_log_commit(f, "+node/quiet/x"), 0);
    for (int i = 0; i < 9; i++)
        assert_int_equal(audit_log_commit(f, "+node/loud/x"), 0);
    audit_log_tick(f, 11 * NSEC_PER_SEC);
    assert_int_equal(f->audit.n[AUDIT_CHANGE], 5);
    audit_log_is(f, "hub create node/quiet/x 0>1; hub change node/loud/x 6>7; "
                    "hub change node/loud/x 7>8; hub change node/loud/x 8>9; "
                    "hub change node/loud/x 9>10; ");
    /* The same after a start, with what is there from before. */
    assert_int_equal(audit_open(&f->audit, &f->e), 0);
    assert_int_equal(audit_log_commit(f, "+node/loud/x"), 0);
    audit_log_tick(f, 11 * NSEC_PER_SEC);
    assert_int_equal(f->audit.n[AUDIT_CHANGE], 5);
    audit_log_is(f, "hub create node/quiet/x 0>1; hub change node/loud/x 7>8; "
                    "hub change node/loud/x 8>9; hub change node/loud/x 9>10; "
                    "hub change node/loud/x 10>12; ");
}

/* Of an entry that cannot be read it is told that there is one; it goes like the others. */
static void test_a_damaged_entry(void **state)
{
    struct audit_log *f = *state;
    struct store_op op = {.kind = STORE_OP_PUT,
        .key = "audit/0000000000000000-000",
        .value = "{\"time\":\"x\"}",
        .expect = STORE_EXPECT_ANY};

    assert_int_equal(store_now_commit(f->store, &op, 1, 0, NULL, NULL, &f->e), 0);
    op.key = "audit/zzz";
    assert_int_equal(store_now_commit(f->store, &op, 1, 0, NULL, NULL, &f->e), 0);
    assert_int_equal(audit_log_commit(f, "+node/a/x"), 0);
    assert_int_equal(audit_open(&f->audit, &f->e), 0);
    audit_log_is(f, "unknown unreadable  0>0; hub create node/a/x 0>3; ");
    /* It is of no network. */
    assert_int_equal(f->audit.rings[AUDIT_CHANGE].n, 2);
    audit_log_tick(f, 11 * NSEC_PER_SEC);
    assert_int_equal(f->audit.rings[AUDIT_CHANGE].n, 1);
    assert_int_equal(f->audit.n[AUDIT_CHANGE], 2);
    audit_log_is(f, "hub create node/a/x 0>3; ");
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
    struct audit_log *f = *state;

    audit_log_act(f, "uid:0", 1);
    assert_int_equal(
        audit_note(&f->audit, "change", "", "file/admin.token", f->now, NULL, NULL, &f->e), 0);
    store_wait(f->store);
    audit_log_is(f, "uid:0 change file/admin.token 0>0; ");
}

/* Notes about one network push out what is its own. */
static void test_notes_of_one_network(void **state)
{
    struct audit_log *f = *state;

    f->audit.max[AUDIT_CHANGE] = 4;
    assert_int_equal(
        audit_note(&f->audit, "change", "", "file/admin.token", f->now, NULL, NULL, &f->e), 0);
    assert_int_equal(audit_log_commit(f, "+node/quiet/x"), 0);
    for (int i = 0; i < 9; i++) {
        assert_int_equal(
            audit_note(&f->audit, "copy", "loud", "node/loud/x", f->now, NULL, NULL, &f->e), 0);
        store_wait(f->store);
    }
    audit_log_tick(f, 11 * NSEC_PER_SEC);
    audit_log_is(f, "hub change file/admin.token 0>0; hub create node/quiet/x 0>2; "
                    "hub copy node/loud/x 0>0; hub copy node/loud/x 0>0; ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        AUDIT_LOG_CASE(test_changes),
        AUDIT_LOG_CASE(test_whole_entries),
        AUDIT_LOG_CASE(test_tokens),
        AUDIT_LOG_CASE(test_several_hubs),
        AUDIT_LOG_CASE(test_numbers_only_grow),
        AUDIT_LOG_CASE(test_what_goes_with_something_else),
        AUDIT_LOG_CASE(test_a_commit_that_fails),
        AUDIT_LOG_CASE(test_a_large_commit),
        AUDIT_LOG_CASE(test_bounds),
        AUDIT_LOG_CASE(test_age),
        AUDIT_LOG_CASE(test_many_go),
        cmocka_unit_test_setup_teardown(
            test_a_store_that_is_away, audit_log_setup_late, audit_log_teardown),
        AUDIT_LOG_CASE(test_full_by_one_network),
        AUDIT_LOG_CASE(test_a_damaged_entry),
        cmocka_unit_test(test_a_sum_in_each_entry),
        AUDIT_LOG_CASE(test_a_note),
        AUDIT_LOG_CASE(test_notes_of_one_network),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
