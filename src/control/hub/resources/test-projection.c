/*
 * test-projection.c - which of all objects and resources is next, that two sides which agree are
 * left alone, and what becomes of refusals and failures.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hub/resources/projection.h"
#include "test/support/edge_resource.h"

static json_t *parse(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);

    assert_non_null(json);
    return json;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void begin(struct projection *p)
{
    projection_init(p);
    p->is_complete = true;
    for (unsigned i = 0; object_kinds[i]; i++) {
        projection_list_begin(p, object_kinds[i]);
        projection_list_end(p, object_kinds[i]);
    }
}

static void tell(struct projection *p, const char *path, int revision)
{
    json_t *o = path ? edge_object(path, revision) : NULL;

    assert_int_equal(projection_want(p, &mesh_edge_kind, EDGE_RESOURCE, o), 0);
    json_decref(o);
}

/* The API server shows what was applied last, with @path in place of its path if that is given. */
static void show(struct projection *p, const char *path, const char *version, const char *done,
    const char *revision)
{
    json_t *r = edge_resource(path, version, done, revision);

    assert_int_equal(projection_saw(p, &mesh_edge_kind, r), 0);
    json_decref(r);
}

static enum resource_step next(struct projection *p, nsec_t now)
{
    struct projection_step step;

    return projection_next(p, now, &step) ? step.what : RESOURCE_NOTHING;
}

/* Is nothing to be done before @at, and then this? */
static void expect_at(struct projection *p, nsec_t at, enum resource_step what)
{
    assert_int_equal(next(p, at - 1), RESOURCE_NOTHING);
    assert_int_equal(next(p, at), what);
}

/* The item of the edge, of which the hub was asked for the wish that is due. */
static struct projection_item *ask_hub(struct projection *p, enum resource_step what)
{
    struct projection_item *item = projection_find(p, &mesh_edge_kind, EDGE_RESOURCE);

    assert_int_equal(next(p, 0), what);
    projection_asked(p, item);
    return item;
}

static void set_deleting(json_t *resource)
{
    (void)json_object_set_new(
        json_object_get(resource, "metadata"), "deletionTimestamp", json_string("now"));
}

/* The API server shows that somebody deletes it, whom the hub's finalizer holds. */
static void show_deleting(struct projection *p, const char *version)
{
    json_t *r = edge_resource("auto", version, NULL, NULL);

    set_deleting(r);
    assert_int_equal(projection_saw(p, &mesh_edge_kind, r), 0);
    json_decref(r);
}

static void test_nothing_before_both_sides_are_known(void **state)
{
    struct projection p;

    projection_init(&p);
    show(&p, "auto", "1", NULL, NULL);
    assert_int_equal(next(&p, 0), RESOURCE_NOTHING);
    p.is_complete = true;
    assert_int_equal(next(&p, 0), RESOURCE_NOTHING);
    for (unsigned i = 0; object_kinds[i]; i++)
        p.has_list[i] = true;
    p.has_list[1] = false;
    assert_int_equal(next(&p, 0), RESOURCE_NOTHING);
    p.has_list[1] = true;
    assert_int_equal(next(&p, 0), RESOURCE_ASK_PUT);
    /* After that nothing is known any more. */
    projection_reset(&p);
    assert_int_equal(p.items.n, 0);
    assert_false(p.is_complete);
    for (unsigned i = 0; object_kinds[i]; i++)
        assert_false(p.has_list[i]);
    show(&p, "auto", "1", NULL, NULL);
    assert_int_equal(next(&p, 0), RESOURCE_NOTHING);
    projection_reset(&p);
}

/* What is told of something that neither side has makes no item of it. */
static void test_what_nobody_has(void **state)
{
    json_t *nameless = json_pack("{s:{}}", "metadata");
    struct projection p;

    begin(&p);
    tell(&p, NULL, 0);
    projection_gone(&p, &mesh_edge_kind, EDGE_RESOURCE);
    assert_int_equal(projection_saw(&p, &mesh_edge_kind, nameless), 0);
    assert_int_equal(p.items.n, 0);
    /* An item that both sides have given up is forgotten when the next step is decided. */
    tell(&p, "auto", 5);
    assert_int_equal(next(&p, 0), RESOURCE_APPLY);
    tell(&p, NULL, 0);
    assert_int_equal(next(&p, 0), RESOURCE_NOTHING);
    assert_int_equal(p.items.n, 0);
    /* What is no resource of the API server is as none, and so the hub's object is applied. */
    tell(&p, "auto", 5);
    (void)json_object_set_new(
        json_object_get(nameless, "metadata"), "name", json_string(EDGE_RESOURCE));
    assert_int_equal(projection_saw(&p, &mesh_edge_kind, nameless), 0);
    assert_int_equal(next(&p, 0), RESOURCE_APPLY);
    projection_reset(&p);
    json_decref(nameless);
}

/* After a write an item waits for the version that the server has answered with, for five seconds.
 */
static void test_a_write_is_to_be_seen(void **state)
{
    json_t *invalid = json_pack("{s:{s:s}}", "metadata", "name", EDGE_RESOURCE);
    struct projection_item *item;
    struct projection p;

    begin(&p);
    tell(&p, "auto", 5);
    assert_int_equal(next(&p, 0), RESOURCE_APPLY);
    item = projection_find(&p, &mesh_edge_kind, EDGE_RESOURCE);
    projection_wrote(&p, item, "2", 1);
    assert_string_equal(item->awaited, "2");
    /* Neither what the hub tells nor another version ends that. */
    tell(&p, "direct", 6);
    show(&p, "auto", "1", NULL, NULL);
    assert_int_equal(projection_saw(&p, &mesh_edge_kind, invalid), 0);
    expect_at(&p, 1 + 5 * NSEC_PER_SEC, RESOURCE_APPLY);
    assert_null(item->awaited);
    projection_wrote(&p, item, "3", 0);
    show(&p, "auto", "3", NULL, NULL);
    assert_null(item->awaited);
    assert_int_equal(next(&p, 0), RESOURCE_ASK_PUT);
    /* A write that changed nothing, and one of what is gone, have nothing to wait for. */
    projection_wrote(&p, item, "3", 0);
    assert_null(item->awaited);
    assert_int_equal(next(&p, 0), RESOURCE_ASK_PUT);
    projection_wrote(&p, item, NULL, 0);
    assert_int_equal(next(&p, 0), RESOURCE_ASK_PUT);
    /* What is gone meanwhile is dealt with at once. */
    projection_wrote(&p, item, "4", 0);
    assert_int_equal(next(&p, 0), RESOURCE_NOTHING);
    projection_gone(&p, &mesh_edge_kind, EDGE_RESOURCE);
    assert_int_equal(next(&p, 0), RESOURCE_APPLY);
    json_decref(invalid);
    projection_reset(&p);
}

/* A whole list ends what was waited for, and what it lacks has gone; other kinds stay as they are.
 */
static void test_a_list_tells_what_is_there(void **state)
{
    json_t *other = edge_resource("auto", "1", NULL, NULL);
    struct projection_item *item;
    struct projection p;

    (void)json_object_set_new(
        json_object_get(other, "metadata"), "name", json_string("default.a--c"));
    begin(&p);
    tell(&p, "auto", 5);
    item = projection_find(&p, &mesh_edge_kind, EDGE_RESOURCE);
    assert_int_equal(next(&p, 0), RESOURCE_APPLY);
    projection_wrote(&p, item, "7", 0);
    assert_int_equal(projection_saw(&p, &mesh_edge_kind, other), 0);
    projection_list_begin(&p, &mesh_edge_kind);
    assert_int_equal(next(&p, 0), RESOURCE_NOTHING);
    show(&p, "auto", "5", NULL, NULL);
    projection_list_begin(&p, &node_kind);
    projection_list_end(&p, &node_kind);
    assert_string_equal(item->awaited, "7");
    projection_list_end(&p, &mesh_edge_kind);
    assert_null(item->awaited);
    assert_true(item->seen.is_there);
    assert_false(projection_find(&p, &mesh_edge_kind, "default.a--c")->seen.is_there);
    assert_int_equal(next(&p, 0), RESOURCE_APPLY);
    assert_int_equal(next(&p, 0), RESOURCE_NOTHING);
    assert_null(projection_find(&p, &mesh_edge_kind, "default.a--c"));
    /* What the next list lacks is applied again. */
    projection_list_begin(&p, &mesh_edge_kind);
    projection_list_end(&p, &mesh_edge_kind);
    assert_false(item->seen.is_there);
    assert_int_equal(next(&p, 0), RESOURCE_APPLY);
    json_decref(other);
    projection_reset(&p);
}

static void test_a_wish_is_asked_once(void **state)
{
    char hash[2][RESOURCE_HASH_MAX];
    struct projection_item *item;
    struct projection p;
    json_t *after = edge_object("off", 6);

    edge_hash("auto", hash[0]);
    edge_hash("off", hash[1]);
    begin(&p);
    tell(&p, "auto", 5);
    assert_int_equal(next(&p, 0), RESOURCE_APPLY);
    item = projection_find(&p, &mesh_edge_kind, EDGE_RESOURCE);
    projection_wrote(&p, item, "2", 0);
    assert_int_equal(next(&p, 0), RESOURCE_NOTHING);
    show(&p, "auto", "2", hash[0], "5");
    (void)next(&p, 0);
    /* A person writes; until the hub has answered, nothing else is asked. */
    show(&p, "off", "3", hash[0], "5");
    assert_int_equal(next(&p, 0), RESOURCE_ASK_PUT);
    projection_asked(&p, item);
    show(&p, "off", "3", hash[0], "5");
    assert_int_equal(next(&p, 0), RESOURCE_NOTHING);
    assert_false(projection_judged(&p, item, false, 200, NULL, after, 0));
    assert_int_equal(next(&p, 0), RESOURCE_APPLY);
    projection_wrote(&p, item, "4", 0);
    show(&p, "off", "4", hash[1], "6");
    (void)next(&p, 0);
    assert_int_equal(next(&p, 0), RESOURCE_NOTHING);
    projection_reset(&p);
    json_decref(after);
}

static void test_a_refusal_is_marked_and_stays(void **state)
{
    char hash[2][RESOURCE_HASH_MAX];
    struct projection_step step;
    struct projection_item *item;
    struct projection p;

    edge_hash("auto", hash[0]);
    edge_hash("off", hash[1]);
    begin(&p);
    tell(&p, "auto", 5);
    show(&p, "off", "3", hash[0], "5");
    assert_int_equal(next(&p, 0), RESOURCE_ASK_PUT);
    item = projection_find(&p, &mesh_edge_kind, EDGE_RESOURCE);
    projection_asked(&p, item);
    assert_true(item->is_asked);
    assert_string_equal(item->asked, hash[1]);
    assert_true(projection_judged(&p, item, false, 400, "no", NULL, 0));
    assert_false(item->is_asked);
    assert_true(item->has_to_mark);
    assert_string_equal(item->refused, "no");
    assert_string_equal(item->reason, "Refused");
    /* Its own sentence says more than that of a conflict of owners. */
    assert_false(projection_clash(item, "conflict"));
    assert_string_equal(item->refused, "no");
    assert_true(projection_next(&p, 0, &step));
    assert_ptr_equal(step.item, item);
    assert_int_equal(step.what, RESOURCE_APPLY);
    assert_int_equal(step.yield, RESOURCE_YIELD_ALL);
    projection_wrote(&p, item, "4", 0);
    assert_false(item->has_to_mark);
    show(&p, "off", "4", hash[1], "5");
    assert_int_equal(next(&p, 0), RESOURCE_NOTHING);
    assert_string_equal(projection_verdict(item, "").refused, "no");
    /* The same sentence again is no news. */
    assert_false(projection_judged(&p, item, false, 400, "no", NULL, 0));
    /* Later the hub's object changes, and the person's field is where it was. */
    tell(&p, "direct", 7);
    assert_int_equal(next(&p, 0), RESOURCE_APPLY);
    /* When the two agree, nothing is refused any more. */
    tell(&p, "off", 8);
    assert_int_equal(next(&p, 0), RESOURCE_APPLY);
    assert_null(item->refused);
    assert_null(projection_verdict(item, "").refused);
    projection_reset(&p);
}

/* A refusal that is not marked yet is about the spec that was asked for, of a resource that stays.
 */
static void test_what_is_not_marked(void **state)
{
    char hash[RESOURCE_HASH_MAX];
    struct projection_step step;
    struct projection_item *item;
    struct projection p;

    edge_hash("auto", hash);
    begin(&p);
    show(&p, "auto", "3", NULL, NULL);
    item = ask_hub(&p, RESOURCE_ASK_PUT);
    assert_true(projection_judged(&p, item, false, 409, "later", NULL, 0));
    assert_string_equal(item->reason, "Conflict");
    /* Another wish was written meanwhile. */
    show(&p, "off", "4", NULL, NULL);
    item = ask_hub(&p, RESOURCE_ASK_PUT);
    assert_false(item->has_to_mark);
    assert_true(projection_judged(&p, item, false, 400, "no", NULL, 0));
    /* Somebody deletes it; it has gone, and comes again. */
    show_deleting(&p, "5");
    assert_int_equal(next(&p, 0), RESOURCE_RELEASE);
    show(&p, "off", "6", NULL, NULL);
    item = ask_hub(&p, RESOURCE_ASK_PUT);
    assert_false(projection_judged(&p, item, false, 400, "no", NULL, 0));
    projection_gone(&p, &mesh_edge_kind, EDGE_RESOURCE);
    assert_false(item->has_to_mark);
    show(&p, "off", "7", NULL, NULL);
    item = ask_hub(&p, RESOURCE_ASK_PUT);
    assert_false(projection_judged(&p, item, false, 400, "no", NULL, 0));
    assert_true(projection_next(&p, 0, &step));
    assert_int_equal(step.what, RESOURCE_APPLY);
    assert_int_equal(step.yield, RESOURCE_YIELD_ALL);
    /* It was marked, by a write whose answer did not come. */
    show(&p, "auto", "8", NULL, NULL);
    item = ask_hub(&p, RESOURCE_ASK_PUT);
    assert_false(projection_judged(&p, item, false, 400, "no", NULL, 0));
    show(&p, "auto", "9", hash, "none");
    assert_int_equal(next(&p, 0), RESOURCE_NOTHING);
    assert_false(item->has_to_mark);
    projection_reset(&p);
}

/* What the hub lacks it is asked for again after half a minute: what that needs may have come. */
static void test_a_refusal_without_an_object_is_asked_again(void **state)
{
    nsec_t pause = 30 * NSEC_PER_SEC;
    char hash[RESOURCE_HASH_MAX];
    struct projection_step step;
    struct projection p;

    edge_hash("auto", hash);
    begin(&p);
    show(&p, "auto", "3", hash, "none");
    /* That it is refused is a status to write, once. */
    assert_true(projection_next(&p, 7, &step));
    assert_int_equal(step.what, RESOURCE_NOTHING);
    assert_false(projection_next(&p, 6 + pause, &step));
    assert_true(projection_next(&p, 7 + pause, &step));
    assert_int_equal(step.what, RESOURCE_ASK_PUT);
    /* What came to be deleted meanwhile is no wish any more. */
    projection_failed(&p, step.item, 0);
    show(&p, "auto", "3", hash, "none");
    assert_true(projection_next(&p, 7, &step));
    step.item->seen.is_deleting = true;
    step.item->seen.has_finalizer = false;
    assert_false(projection_next(&p, 7 + pause, &step));
    projection_reset(&p);
}

/* What the hub has done, and what it will do later; the rest it refuses. */
static void test_answers_of_the_hub(void **state)
{
    static const struct {
        int status;
        bool is_remove;
        bool is_done;
        bool is_later;
    } cases[] = {
        {.status = 199},
        {.status = 200, .is_done = true},
        {.status = 299, .is_done = true},
        {.status = 300},
        {.status = 404},
        {.status = 404, .is_remove = true, .is_done = true},
        {.status = 403, .is_remove = true},
        {.status = 204, .is_remove = true, .is_done = true},
        {.status = 429, .is_later = true},
        {.status = 499},
        {.status = 500, .is_later = true},
        {.status = 503, .is_remove = true, .is_later = true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        bool is_refused = !cases[i].is_done && !cases[i].is_later;
        bool is_remove = cases[i].is_remove;
        json_t *after = edge_object("off", 6);
        struct projection_item *item;
        struct projection p;

        begin(&p);
        if (is_remove) {
            tell(&p, "auto", 5);
            show_deleting(&p, "3");
        } else {
            show(&p, "off", "3", NULL, NULL);
        }
        item = ask_hub(&p, is_remove ? RESOURCE_ASK_REMOVE : RESOURCE_ASK_PUT);
        if (projection_judged(&p, item, is_remove, cases[i].status, "no", after, 0) != is_refused)
            fail_msg("%d", cases[i].status);
        assert_false(item->is_asked);
        assert_int_equal(item->refused != NULL, is_refused);
        assert_int_equal(item->has_to_mark, is_refused && !is_remove);
        assert_int_equal(item->is_kept, is_refused && is_remove);
        assert_int_equal(item->n_failed, cases[i].is_later);
        if (cases[i].is_done)
            assert_int_equal(item->want.revision, is_remove ? 0 : 6);
        if (cases[i].is_later)
            expect_at(&p, NSEC_PER_SEC, is_remove ? RESOURCE_ASK_REMOVE : RESOURCE_ASK_PUT);
        else
            assert_int_equal(next(&p, 0), is_remove ? RESOURCE_RELEASE : RESOURCE_APPLY);
        projection_reset(&p);
        json_decref(after);
    }
}

/* An object that the hub has refused to remove stays, and its resource may go; who deletes that one
 * once more is told again. */
static void test_a_refused_removal(void **state)
{
    struct projection_item *item;
    struct projection p;

    begin(&p);
    tell(&p, "auto", 5);
    for (unsigned i = 0; i < 2; i++) {
        show_deleting(&p, "3");
        item = ask_hub(&p, RESOURCE_ASK_REMOVE);
        assert_true(projection_judged(&p, item, true, 400, "no", NULL, 0));
        assert_int_equal(next(&p, 0), RESOURCE_RELEASE);
        projection_wrote(&p, item, "4", 0);
        projection_gone(&p, &mesh_edge_kind, EDGE_RESOURCE);
        assert_int_equal(next(&p, 0), RESOURCE_APPLY);
    }
    projection_reset(&p);
}

/* The pause after a failure is doubled each time, up to a minute, until a write succeeds. */
static void test_failures(void **state)
{
    static const unsigned pauses[] = {1, 2, 4, 8, 16, 32, 64, 64};
    struct projection_item *item;
    struct projection p;
    nsec_t now = 0;

    begin(&p);
    tell(&p, "auto", 5);
    assert_int_equal(next(&p, now), RESOURCE_APPLY);
    item = projection_find(&p, &mesh_edge_kind, EDGE_RESOURCE);
    for (size_t i = 0; i < sizeof(pauses) / sizeof(*pauses); i++) {
        projection_failed(&p, item, now);
        now += pauses[i] * NSEC_PER_SEC;
        expect_at(&p, now, RESOURCE_APPLY);
    }
    projection_wrote(&p, item, NULL, now);
    assert_int_equal(next(&p, now), RESOURCE_APPLY);
    projection_failed(&p, item, now);
    expect_at(&p, now + NSEC_PER_SEC, RESOURCE_APPLY);
    projection_reset(&p);
}

/* Two that wait at the same time are due one after the other. */
static void test_two_wait(void **state)
{
    struct projection_item *items[2];
    json_t *o = edge_object("auto", 5);
    struct projection_step step;
    struct projection p;

    begin(&p);
    tell(&p, "auto", 5);
    (void)json_object_set_new(json_object_get(o, "metadata"), "name", json_string("a--c"));
    (void)json_object_set_new(json_object_get(o, "spec"), "nodes", json_pack("[s, s]", "a", "c"));
    assert_int_equal(projection_want(&p, &mesh_edge_kind, "default.a--c", o), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(projection_next(&p, 0, &step));
        items[i] = step.item;
        projection_failed(&p, step.item, i);
    }
    assert_string_equal(items[0]->name, EDGE_RESOURCE);
    assert_string_equal(items[1]->name, "default.a--c");
    assert_false(projection_next(&p, NSEC_PER_SEC - 1, &step));
    assert_true(projection_next(&p, NSEC_PER_SEC, &step));
    assert_ptr_equal(step.item, items[0]);
    assert_false(projection_next(&p, NSEC_PER_SEC, &step));
    assert_true(projection_next(&p, NSEC_PER_SEC + 1, &step));
    assert_ptr_equal(step.item, items[1]);
    /* What is told of both, however often, makes both due once. */
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(projection_want(&p, &mesh_edge_kind, "default.a--c", o), 0);
        tell(&p, "auto", 5);
    }
    for (unsigned i = 0; i < 2; i++)
        assert_true(projection_next(&p, 2 * NSEC_PER_SEC, &step));
    assert_false(projection_next(&p, 2 * NSEC_PER_SEC, &step));
    /* Both are due, or wait for something, when all is forgotten. */
    tell(&p, "auto", 5);
    assert_int_equal(projection_want(&p, &mesh_edge_kind, "default.a--c", o), 0);
    projection_reset(&p);
    begin(&p);
    tell(&p, "auto", 5);
    assert_int_equal(projection_want(&p, &mesh_edge_kind, "default.a--c", o), 0);
    while (projection_next(&p, 0, &step))
        projection_wrote(&p, step.item, "7", 0);
    projection_reset(&p);
    json_decref(o);
}

static void test_damage_deletes_nothing(void **state)
{
    char hash[RESOURCE_HASH_MAX];
    struct projection p;

    edge_hash("auto", hash);
    begin(&p);
    projection_keep_all(&p, true);
    show(&p, "auto", "3", hash, "5");
    assert_int_equal(next(&p, 0), RESOURCE_NOTHING);
    projection_keep_all(&p, true);
    assert_int_equal(next(&p, 0), RESOURCE_NOTHING);
    projection_keep_all(&p, false);
    assert_int_equal(next(&p, 0), RESOURCE_DELETE);
    projection_reset(&p);
}

/* ---- status ---------------------------------------------------------------------------------- */

static void expect_verdict(
    const struct projection_item *item, const char *refused, const char *reason)
{
    struct resource_verdict v = projection_verdict(item, "2026-01-01T00:00:00Z");

    if (refused) {
        assert_string_equal(v.refused, refused);
        assert_string_equal(v.reason, reason);
    } else {
        assert_null(v.refused);
    }
    assert_int_equal(v.generation, item->seen.is_there ? 1 : 0);
    assert_string_equal(v.now, "2026-01-01T00:00:00Z");
}

/* The API server shows a spec that the hub has not, with a condition that says so or not. */
static void show_accepted(struct projection *p, const char *status, const char *reason)
{
    json_t *r = edge_resource("off", "3", NULL, NULL);

    (void)json_object_set_new(r, "status",
        json_pack("{s:[{s:s, s:s, s:s, s:s}]}", "conditions", "type", "Accepted", "status", status,
            "reason", reason, "message", "as it says"));
    assert_int_equal(projection_saw(p, &mesh_edge_kind, r), 0);
    json_decref(r);
}

/* Why the hub does not do what the spec says: by its own word, by what the resource shows already,
 * or just so. */
static void test_verdict(void **state)
{
    struct projection_item *item;
    struct projection p;

    begin(&p);
    tell(&p, "auto", 5);
    item = projection_find(&p, &mesh_edge_kind, EDGE_RESOURCE);
    expect_verdict(item, NULL, NULL);
    show(&p, "auto", "2", NULL, NULL);
    expect_verdict(item, NULL, NULL);
    show(&p, "off", "2", NULL, NULL);
    expect_verdict(item, "the hub has another spec", "Conflict");
    show_accepted(&p, "True", "Accepted");
    expect_verdict(item, "the hub has another spec", "Conflict");
    show_accepted(&p, "False", "Refused");
    expect_verdict(item, "as it says", "Refused");
    show_accepted(&p, "False", "Conflict");
    expect_verdict(item, "as it says", "Conflict");
    /* A conflict is told once, until its words change. */
    assert_true(projection_clash(item, "kubectl owns it"));
    expect_verdict(item, "kubectl owns it", "Conflict");
    assert_false(projection_clash(item, "kubectl owns it"));
    assert_true(projection_clash(item, "helm owns it"));
    expect_verdict(item, "helm owns it", "Conflict");
    projection_reset(&p);
}

/* Which parts are to be written, as "MANAGER ". */
static const char *parts_of(const struct projection_item *item)
{
    static char text[1024];
    struct resource_part parts[RESOURCE_PARTS_MAX];
    size_t n = projection_parts(parts, item, "2026-01-01T00:00:00Z");

    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(text);

        (void)snprintf(text + len, sizeof(text) - len, "%s ", parts[i].manager);
        resource_part_deinit(&parts[i]);
    }
    return text;
}

/* Is the status of the edge to be written now? */
static bool has_status_to_write(struct projection *p)
{
    struct projection_step step;

    if (!projection_next(p, 0, &step))
        return false;
    assert_int_equal(step.what, RESOURCE_NOTHING);
    return true;
}

/* The parts of the status that the resource does not show yet are due, after the hub has told
 * them; its own ones also later, when what it says of the spec changes. */
static void test_parts_that_are_due(void **state)
{
    json_t *status = parse("{\"agent/a\":{\"path\":\"direct\"},\"hub\":{\"state\":\"up\"},"
                           "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}");
    json_t *there = NULL;
    char hash[RESOURCE_HASH_MAX];
    struct resource_part parts[RESOURCE_PARTS_MAX];
    struct projection_item *item;
    struct projection p;
    json_t *own;
    size_t n;

    edge_hash("auto", hash);
    begin(&p);
    tell(&p, "auto", 5);
    there = edge_resource("auto", "3", hash, "5");
    assert_int_equal(projection_saw(&p, &mesh_edge_kind, there), 0);
    item = projection_find(&p, &mesh_edge_kind, EDGE_RESOURCE);
    /* The hub has not told its status: that is left as it is. */
    assert_false(has_status_to_write(&p));
    assert_int_equal(projection_status(&p, &mesh_edge_kind, EDGE_RESOURCE, status), 0);
    assert_true(json_equal(item->status, status));
    own = json_copy(status);
    (void)json_object_del(own, "agent/a");
    assert_true(json_equal(item->own, own));
    json_decref(own);
    assert_string_equal(parts_of(item), "agent/a " RESOURCE_MANAGER_STATUS " ");
    assert_true(has_status_to_write(&p));
    assert_false(has_status_to_write(&p));
    /* It is written, and the API server shows it. */
    (void)json_object_set_new(there, "status", json_object());
    n = projection_parts(parts, item, "2026-01-01T00:00:00Z");
    for (size_t i = 0; i < n; i++) {
        (void)json_object_update(json_object_get(there, "status"), parts[i].status);
        resource_part_deinit(&parts[i]);
    }
    projection_wrote_status(item);
    assert_null(item->status);
    projection_wrote_status(item);
    assert_int_equal(projection_saw(&p, &mesh_edge_kind, there), 0);
    assert_string_equal(parts_of(item), "");
    assert_false(has_status_to_write(&p));
    /* The same is told again: there is nothing to write, and it need not be kept. */
    assert_int_equal(projection_status(&p, &mesh_edge_kind, EDGE_RESOURCE, status), 0);
    assert_false(has_status_to_write(&p));
    assert_null(item->status);
    /* A person's spec is not accepted: the hub's part says so; an agent's waits until it is told.
     */
    (void)json_object_del(json_object_get(there, "status"), "agent/a");
    assert_int_equal(projection_saw(&p, &mesh_edge_kind, there), 0);
    assert_string_equal(parts_of(item), "");
    assert_int_equal(projection_status(&p, &mesh_edge_kind, EDGE_RESOURCE, status), 0);
    assert_string_equal(parts_of(item), "agent/a ");
    projection_wrote_status(item);
    (void)json_object_set_new(json_object_get(there, "spec"), "path", json_string("off"));
    assert_int_equal(projection_saw(&p, &mesh_edge_kind, there), 0);
    assert_string_equal(parts_of(item), RESOURCE_MANAGER_STATUS " ");
    json_decref(there);
    json_decref(status);
    projection_reset(&p);
}

/* Of what is being deleted, or is not there any more, no status is written. */
static void test_no_status_of_what_goes(void **state)
{
    json_t *status = parse("{\"hub\":{\"state\":\"up\"}}");
    char hash[RESOURCE_HASH_MAX];
    struct projection_item *item;
    struct projection p;
    json_t *there;

    edge_hash("auto", hash);
    begin(&p);
    tell(&p, "auto", 5);
    show(&p, "auto", "3", hash, "5");
    item = projection_find(&p, &mesh_edge_kind, EDGE_RESOURCE);
    assert_int_equal(projection_status(&p, &mesh_edge_kind, EDGE_RESOURCE, status), 0);
    assert_true(has_status_to_write(&p));
    projection_failed(&p, item, 0);
    assert_int_equal(next(&p, NSEC_PER_SEC - 1), RESOURCE_NOTHING);
    there = edge_resource("auto", "4", hash, "5");
    set_deleting(there);
    (void)json_object_del(json_object_get(there, "metadata"), "finalizers");
    assert_int_equal(projection_saw(&p, &mesh_edge_kind, there), 0);
    assert_false(has_status_to_write(&p));
    json_decref(there);
    /* That of the object which the hub applies is due when it is there. */
    projection_gone(&p, &mesh_edge_kind, EDGE_RESOURCE);
    assert_int_equal(next(&p, 0), RESOURCE_APPLY);
    projection_wrote(&p, item, "5", 0);
    show(&p, "auto", "5", hash, "5");
    assert_true(has_status_to_write(&p));
    json_decref(status);
    projection_reset(&p);
}

/* The resource shows all that is to be written now. */
static void show_all(struct projection *p, struct projection_item *item, json_t *there)
{
    struct resource_part parts[RESOURCE_PARTS_MAX];
    size_t n = projection_parts(parts, item, p->now);

    for (size_t i = 0; i < n; i++) {
        (void)json_object_update(json_object_get(there, "status"), parts[i].status);
        resource_part_deinit(&parts[i]);
    }
    projection_wrote_status(item);
    assert_int_equal(projection_saw(p, &mesh_edge_kind, there), 0);
}

/* What its writer writes itself is left to it, until it stops: then people are told, and the hub
 * tells again what it knows. */
static void test_a_writer_that_stops(void **state)
{
    const int64_t at = 1767225600; /* 2026-01-01T00:00:00Z */
    json_t *status = parse("{\"agent/a\":{\"path\":\"lan\"},\"hub\":{\"state\":\"lan\"},"
                           "\"conditions\":[{\"type\":\"Stale\",\"silent\":{}}]}");
    json_t *own = json_pack("{s:s}", "path", "lan");
    struct projection_item *item;
    char hash[RESOURCE_HASH_MAX];
    struct projection p;
    json_t *there;

    edge_hash("auto", hash);
    begin(&p);
    (void)clock_text(p.now, at);
    tell(&p, "auto", 5);
    there = edge_resource("auto", "3", hash, "5");
    kube_part_stamp(own, at, 300);
    (void)json_object_set_new(there, "status", json_pack("{s:o}", "agent/a", own));
    assert_int_equal(projection_saw(&p, &mesh_edge_kind, there), 0);
    item = projection_find(&p, &mesh_edge_kind, EDGE_RESOURCE);
    assert_int_equal(projection_status(&p, &mesh_edge_kind, EDGE_RESOURCE, status), 0);
    assert_string_equal(parts_of(item), RESOURCE_MANAGER_STATUS " ");
    assert_true(has_status_to_write(&p));
    assert_false(item->is_to_tell);
    show_all(&p, item, there);
    assert_false(has_status_to_write(&p));
    /* Nobody says anything any more. */
    (void)clock_text(p.now, at + 750);
    assert_false(has_status_to_write(&p));
    (void)clock_text(p.now, at + 751);
    assert_true(has_status_to_write(&p));
    assert_true(item->is_to_tell);
    assert_int_equal(item->n_off, 1);
    item->is_to_tell = false;
    show_all(&p, item, there);
    assert_false(has_status_to_write(&p));
    /* It is back. */
    kube_part_stamp(own, at + 760, 300);
    assert_int_equal(projection_saw(&p, &mesh_edge_kind, there), 0);
    assert_true(has_status_to_write(&p));
    assert_false(item->is_to_tell);
    assert_int_equal(item->n_off, 0);
    json_decref(there);
    json_decref(status);
    projection_reset(&p);
}

/* A thousand nodes report at once: twenty writes now, and then twenty a second. */
static void test_status_is_written_slowly(void **state)
{
    json_t *status = parse("{\"hub\":{\"state\":\"up\",\"why\":\"\"}}");
    char hash[RESOURCE_HASH_MAX];
    struct projection_step step;
    unsigned n = 0;
    struct projection p;

    begin(&p);
    for (unsigned i = 0; i < 1000; i++) {
        char name[32];
        json_t *o = edge_object("auto", 5);
        json_t *r = edge_resource("auto", "3", NULL, NULL);
        json_t *nodes = json_pack("[s, o]", "a", json_sprintf("b%u", i));

        (void)snprintf(name, sizeof(name), "default.a--b%u", i);
        (void)json_object_set_new(
            json_object_get(o, "metadata"), "name", json_sprintf("a--b%u", i));
        (void)json_object_set(json_object_get(o, "spec"), "nodes", nodes);
        assert_int_equal(projection_want(&p, &mesh_edge_kind, name, o), 0);
        (void)json_object_set_new(json_object_get(r, "metadata"), "name", json_string(name));
        (void)json_object_set(json_object_get(r, "spec"), "nodes", nodes);
        memcpy(hash, projection_find(&p, &mesh_edge_kind, name)->want.hash, sizeof(hash));
        (void)json_object_set_new(json_object_get(r, "metadata"), "annotations",
            json_pack("{s:s, s:s, s:s}", RESOURCE_SPEC, hash, KUBE_SPEC_ACCEPTED, hash,
                KUBE_SPEC_REVISION, "5"));
        assert_int_equal(projection_saw(&p, &mesh_edge_kind, r), 0);
        assert_int_equal(projection_status(&p, &mesh_edge_kind, name, status), 0);
        json_decref(nodes);
        json_decref(o);
        json_decref(r);
    }
    while (projection_next(&p, NSEC_PER_SEC, &step))
        n++;
    assert_int_equal(n, PROJECTION_STATUS_BURST);
    while (projection_next(&p, 2 * NSEC_PER_SEC, &step))
        n++;
    assert_int_equal(n, PROJECTION_STATUS_BURST + 20);
    projection_reset(&p);
    json_decref(status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_before_both_sides_are_known),
        cmocka_unit_test(test_what_nobody_has),
        cmocka_unit_test(test_a_write_is_to_be_seen),
        cmocka_unit_test(test_a_list_tells_what_is_there),
        cmocka_unit_test(test_a_wish_is_asked_once),
        cmocka_unit_test(test_a_refusal_is_marked_and_stays),
        cmocka_unit_test(test_what_is_not_marked),
        cmocka_unit_test(test_a_refusal_without_an_object_is_asked_again),
        cmocka_unit_test(test_answers_of_the_hub),
        cmocka_unit_test(test_a_refused_removal),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_two_wait),
        cmocka_unit_test(test_damage_deletes_nothing),
        cmocka_unit_test(test_verdict),
        cmocka_unit_test(test_parts_that_are_due),
        cmocka_unit_test(test_no_status_of_what_goes),
        cmocka_unit_test(test_a_writer_that_stops),
        cmocka_unit_test(test_status_is_written_slowly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
