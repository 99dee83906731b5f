/* sample_reload.c - see sample_reload.h. */
#include "test/support/sample_reload.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "test/support/sample_hub.h"
#include "test/support/sample_ops.h"

#define KEYS    256
#define DAMAGES 3

/* Some records of the file, by key. */
struct records {
    char *keys[KEYS];
    char *values[KEYS];
    unsigned n;
};

static void records_deinit(struct records *r)
{
    for (unsigned i = 0; i < r->n; i++) {
        free(r->keys[i]);
        free(r->values[i]);
    }
    r->n = 0;
}

/* ---- the file ------------------------------------------------------------------------------- */

static sqlite3 *open_file(const struct sample_hub *s)
{
    sqlite3 *db = NULL;

    if (sqlite3_open(s->url + strlen("sqlite:"), &db) != SQLITE_OK)
        sample_hub_fail("%s does not open", s->url);
    return db;
}

/* Of the kinds that the model keeps. */
static void read_records(sqlite3 *db, struct records *ret)
{
    sqlite3_stmt *st = NULL;

    sqlite3_prepare_v2(db, "SELECT key, value FROM item", -1, &st, NULL);
    while (sqlite3_step(st) == SQLITE_ROW && ret->n < KEYS) {
        const char *key = (const char *)sqlite3_column_text(st, 0);

        if (record_key_parse(key).kind == RECORD_NONE)
            continue;
        ret->keys[ret->n] = strdup(key);
        ret->values[ret->n++] = strdup((const char *)sqlite3_column_text(st, 1));
    }
    sqlite3_finalize(st);
}

static void write_value(sqlite3 *db, const char *key, const void *value, size_t len)
{
    sqlite3_stmt *st = NULL;

    sqlite3_prepare_v2(db, "UPDATE item SET value = ?2 WHERE key = ?1", -1, &st, NULL);
    sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 2, value, (int)len, SQLITE_STATIC);
    if (sqlite3_step(st) != SQLITE_DONE || sqlite3_changes(db) != 1)
        sample_hub_fail("\"%s\" cannot be damaged: %s", key, sqlite3_errmsg(db));
    sqlite3_finalize(st);
}

/* ---- damage --------------------------------------------------------------------------------- */

/* Where a flip is seen: without the name of the sum's field the record is one without a sum. */
static size_t a_place(struct choices *c, const char *value)
{
    const char *field = strstr(value, ",\"sum\":\"");
    size_t at = choices_below(c, (unsigned)strlen(value));

    return field && value + at >= field && value + at < field + 8 ? 0 : at;
}

/* Damage one record, or two by swapping them; into @hurt. */
static unsigned damage(
    sqlite3 *db, const struct records *r, struct choices *c, const char *hurt[static 2])
{
    unsigned i = choices_below(c, r->n);
    unsigned k = choices_below(c, r->n);
    size_t len = strlen(r->values[i]);
    char *value = strdup(r->values[i]);
    unsigned n = 1;

    hurt[0] = r->keys[i];
    switch (choices_below(c, 4)) {
    case 0:
        write_value(db, r->keys[i], value, choices_below(c, (unsigned)len));
        break;
    case 1:
        value[a_place(c, value)] ^= (char)(1 << choices_below(c, 8));
        write_value(db, r->keys[i], value, len);
        break;
    case 2:
        value[choices_below(c, (unsigned)len)] = '\0';
        write_value(db, r->keys[i], value, len);
        break;
    default:
        if (strcmp(r->values[i], r->values[k]) == 0) {
            write_value(db, r->keys[i], "", 0);
            break;
        }
        write_value(db, r->keys[i], r->values[k], strlen(r->values[k]));
        write_value(db, r->keys[k], value, len);
        hurt[n++] = r->keys[k];
    }
    free(value);
    return n;
}

/* ---- what has to be ------------------------------------------------------------------------- */

static bool is_same(json_t *a, json_t *b, const char *what)
{
    if (json_equal(a, b))
        return true;
    (void)fprintf(stderr, "%s\n%s\n%s\n", what, json_dumps(a, JSON_COMPACT | JSON_SORT_KEYS),
        json_dumps(b, JSON_COMPACT | JSON_SORT_KEYS));
    return false;
}

static bool is_set_aside(
    const struct keys *d, enum record_kind kind, const char *network, const char *name)
{
    char key[RECORD_KEY_MAX];

    return damaged_find(d, record_key(key, kind, network, name)) != NULL;
}

/* The node's record, or its report. */
static bool is_node_hurt(const struct keys *d, const char *network, const char *name)
{
    return is_set_aside(d, RECORD_NODE, network, name) ||
           is_set_aside(d, RECORD_REPORT, network, name);
}

/* Is what the API shows as KIND/NETWORK/NAME made of a record that is set aside? */
static bool is_hurt(const struct keys *d, const char *shown)
{
    char kind[16];
    char network[NAME_MAX_LEN + 1];
    char name[OBJECT_NAME_MAX + 1];
    const char *slash = strchr(shown, '/');
    const char *last = strrchr(shown, '/');
    char key[RECORD_KEY_MAX];
    char *middle;

    (void)snprintf(kind, sizeof(kind), "%.*s", (int)(slash - shown), shown);
    (void)snprintf(network, sizeof(network), "%.*s", (int)(last - slash - 1), slash + 1);
    (void)snprintf(name, sizeof(name), "%s", last + 1);
    if (is_set_aside(d, RECORD_NETWORK, network, ""))
        return true;
    /* The hub's own node is made anew at the start, when there is need. */
    if (strcmp(kind, "Node") == 0)
        return strcmp(name, "hub") == 0 || is_node_hurt(d, network, name);
    if (strcmp(kind, "Network") == 0)
        return false;
    if (damaged_find(d, record_object_key(key, object_kind_find(kind), network, name)))
        return true;
    if (strcmp(kind, "MeshEdge") != 0)
        return false;
    middle = strstr(name, "--");
    *middle = '\0';
    return is_node_hurt(d, network, name) || is_node_hurt(d, network, middle + 2);
}

static void check_rest(struct sample_hub *s, json_t *before)
{
    json_t *after = sample_hub_show(s);
    const char *key;
    json_t *item;

    json_object_foreach(before, key, item) {
        if (is_hurt(&s->hub->model.damaged, key))
            continue;
        if (!json_object_get(after, key))
            sample_hub_fail("%s is not there any more", key);
        if (!is_same(item, json_object_get(after, key), key))
            sample_hub_fail("%s is not as it was", key);
    }
    json_decref(after);
}

static void check_named(struct sample_hub *s, const char *const hurt[], unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct record_key k = record_key_parse(hurt[i]);

        /* The hub's own node is made anew. */
        if (k.kind == RECORD_NODE && strcmp(k.name, "hub") == 0)
            continue;
        if (!damaged_find(&s->hub->model.damaged, hurt[i]))
            sample_hub_fail("\"%s\" is damaged, and was taken", hurt[i]);
    }
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void reopen(struct sample_hub *s)
{
    sample_hub_close(s);
    sample_hub_open(s);
}

static void hurt_some(struct sample_hub *s, struct choices *c)
{
    struct records records = {.n = 0};
    const char *hurt[2 * DAMAGES];
    json_t *before;
    unsigned n = 0;
    sqlite3 *db;

    before = sample_hub_show(s);
    sample_hub_close(s);
    db = open_file(s);
    read_records(db, &records);
    for (unsigned i = 0; i < DAMAGES && records.n > 0; i++)
        n += damage(db, &records, c, hurt + n);
    sqlite3_close(db);
    sample_hub_open(s);
    check_named(s, hurt, n);
    check_rest(s, before);
    json_decref(before);
    records_deinit(&records);
}

void sample_reload_run(const uint8_t *bytes, size_t n)
{
    struct choices first = {.bytes = bytes, .n = n / 2};
    struct choices hurts = {.bytes = bytes + n / 2, .n = n / 4};
    struct choices last = {.bytes = bytes + n / 2 + n / 4, .n = n / 4};
    struct sample_hub s = {.now = 0};
    json_t *before;
    json_t *after;

    sample_hub_make_dir(&s, true);
    sample_hub_open(&s);
    sample_ops_run(&s, &first);
    before = sample_hub_show(&s);
    reopen(&s);
    after = sample_hub_show(&s);
    if (!is_same(before, after, "before and after"))
        sample_hub_fail("what is stored is not what loads");
    if (s.hub->model.damaged.n > 0)
        sample_hub_fail("\"%s\" was stored, and does not load: %s",
            s.hub->model.damaged.items[0]->key,
            err_text(&damaged_find_below(&s.hub->model.damaged, "")->why));
    json_decref(before);
    json_decref(after);
    hurt_some(&s, &hurts);
    sample_ops_run(&s, &last);
    sample_hub_close(&s);
    sample_hub_remove_dir(&s);
}
