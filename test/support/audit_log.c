/* audit_log.c - see audit_log.h. */
#include "test/support/audit_log.h"

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
#include "base/containers.h"
#include "base/err.h"
#include "hub/record/record.h"
#include "store/store.h"
#include "test/support/sample_late.h"
#include "test/support/store_now.h"

int64_t audit_log_wall;

static int64_t wall(void)
{
    return audit_log_wall;
}

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
    struct audit_log *f = ctx;

    (void)store_now_get(f->store, key, on_before, ret, &f->e);
}

static int begin(struct audit_log *f, void **state)
{
    audit_log_wall = 1790000000;
    audit_init(&f->audit, f->store, wall, look_before, f);
    assert_int_equal(audit_open(&f->audit, &f->e), 0);
    f->now = 1000 * NSEC_PER_SEC;
    f->audit.trimmed_at = f->now;
    *state = f;
    return 0;
}

int audit_log_setup(void **state)
{
    struct audit_log *f = calloc(1, sizeof(*f));

    assert_int_equal(store_open(&f->store, "memory:", 0, &f->e), 0);
    return begin(f, state);
}

int audit_log_setup_late(void **state)
{
    struct audit_log *f = calloc(1, sizeof(*f));

    f->store = sample_late_open(5, 0);
    return begin(f, state);
}

int audit_log_teardown(void **state)
{
    struct audit_log *f = *state;

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

int audit_log_commit_ops(struct audit_log *f, const struct store_op *ops, size_t n, size_t *failed)
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
int audit_log_commit(struct audit_log *f, const char *text)
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
    return audit_log_commit_ops(f, ops, n, NULL);
}

static void on_read(void *ctx, int r, json_t *page, const struct err *e)
{
    assert_int_equal(r, 0);
    *(json_t **)ctx = page;
}

json_t *audit_log_read(struct audit_log *f, struct audit_query query)
{
    json_t *json = NULL;

    if (query.limit == 0)
        query.limit = AUDIT_PAGE_MAX;
    assert_int_equal(audit_read(&f->audit, &query, on_read, &json, &f->e), 0);
    store_wait(f->store);
    assert_non_null(json);
    return json;
}

const char *audit_log_text(const json_t *entry, const char *name)
{
    const char *text = json_string_value(json_object_get(entry, name));

    return text ? text : "";
}

int audit_log_number(const json_t *entry, const char *name)
{
    return (int)json_integer_value(json_object_get(entry, name));
}

/* The whole log as "actor operation object old>new", or "actor !status xcount". */
void audit_log_is(struct audit_log *f, const char *expected)
{
    json_t *page = audit_log_read(f, (struct audit_query){.limit = 0});
    char text[8192] = "";
    size_t len = 0;
    const json_t *entry;
    size_t i;

    json_array_foreach(json_object_get(page, "entries"), i, entry) {
        if (strcmp(audit_log_text(entry, "answer"), "refused") == 0)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s !%d x%d; ",
                audit_log_text(entry, "actor"), audit_log_number(entry, "status"),
                audit_log_number(entry, "count"));
        else
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s %s %s %d>%d; ",
                audit_log_text(entry, "actor"), audit_log_text(entry, "operation"),
                audit_log_text(entry, "object"), audit_log_number(entry, "oldRevision"),
                audit_log_number(entry, "newRevision"));
    }
    json_decref(page);
    assert_string_equal(text, expected);
}

/* Entry @i of the log, whole. */
void audit_log_entry_is(struct audit_log *f, size_t i, const char *expected)
{
    json_t *page = audit_log_read(f, (struct audit_query){.limit = 0});
    json_t *entry = json_array_get(json_object_get(page, "entries"), i);
    json_t *wanted = json_loads(expected, 0, NULL);
    char *text = json_dumps(entry, JSON_COMPACT);

    assert_non_null(wanted);
    if (!json_equal(entry, wanted))
        fail_msg("%s", text ? text : "there is none");
    free(text);
    json_decref(wanted);
    json_decref(page);
}

void audit_log_act(struct audit_log *f, const char *actor, uint8_t last)
{
    const uint8_t b[4] = {198, 51, 100, last};
    struct ip_addr from = ip_addr_v4(b);

    audit_act(&f->audit, actor, &from);
}

void audit_log_tick(struct audit_log *f, nsec_t reply)
{
    f->now += reply;
    audit_log_wall += reply / NSEC_PER_SEC;
    assert_int_equal(audit_tick(&f->audit, f->now, false, &f->e), 0);
    store_wait(f->store);
}
