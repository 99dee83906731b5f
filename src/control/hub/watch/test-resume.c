/* test-resume.c - watches that go on where others broke off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/record/record.h"
#include "hub/watch/reports.h"
#include "hub/watch/view.h"
#include "hub/watch/watch.h"
#include "store/store.h"
#include "test/support/audience.h"
#include "test/support/store_now.h"

static struct watch_known known_now(void)
{
    return (struct watch_known){
        .boot = audience_hub.hub->model.boot, .revision = store_revision(audience_hub.hub->store)};
}

static struct stream *open_at(const char *name, const struct watch_known *known)
{
    struct stream *s = watch_open(&audience_hub.hub->watcher, audience_node(name),
        WATCH_HEARTBEAT_SLOW, known, audience_hub.now);

    assert_non_null(s);
    watch_turn(&audience_hub.hub->watcher, audience_hub.now);
    s->on_drained(s, audience_hub.now);
    return s;
}

/* What a watch of that node that knows so much is told first. */
static const char *resume(const char *name, const struct watch_known *known)
{
    struct stream *s = open_at(name, known);
    static char all[1 << 16];
    size_t n = 0;

    while (s->n > 0)
        n += (size_t)snprintf(all + n, sizeof(all) - n, "%s", audience_take(s));
    audience_end(s);
    return all;
}

/* It is told of what has changed as it is now, once, and that it was all. */
static void test_resume(void **state)
{
    struct watch_known known = known_now();
    const char *text;

    audience_add("d");
    audience_add("e");
    audience_remove("e");
    watch_tell_status(&audience_hub.hub->watcher, audience_node("b"), audience_hub.now);
    watch_tell_status(&audience_hub.hub->watcher, audience_node("b"), audience_hub.now);
    text = resume("a", &known);
    assert_int_equal(audience_count(text, "snapshot"), 0);
    /* d and b; c, which was the last at that revision, may come once more. */
    assert_int_equal(audience_count(text, "\"AGQB"), 1);
    assert_int_equal(audience_count(text, "\"AGIB"), 1);
    assert_int_equal(audience_count(text, "\"AGEB"), 0);
    assert_int_equal(audience_count(text, "\"delete\""), 1);
    assert_int_equal(audience_count(text, "\"name\":\"e\""), 1);
    assert_int_equal(audience_count(text, "heartbeat"), 1);
    assert_non_null(strstr(strstr(text, "\"delete\""), "heartbeat"));
    assert_int_equal(audience_hub.hub->watcher.n_resumed, 1);
    /* It goes on as any other. */
    known = known_now();
    text = resume("a", &known);
    assert_int_equal(audience_count(text, "snapshot"), 0);
    assert_int_equal(audience_count(text, "heartbeat"), 1);
}

/* Who may see whom has changed meanwhile. */
static void test_resume_of_what_is_seen(void **state)
{
    struct watch_known known = known_now();
    const char *text;

    audience_set_edge("off");
    text = resume("a", &known);
    assert_int_equal(audience_count(text, "snapshot"), 0);
    assert_int_equal(audience_count(text, "\"AGIB"), 0);
    assert_int_equal(audience_count(text, "\"a--b\""), 1);
    assert_int_equal(audience_count(text, "\"delete\""), 1);
    assert_non_null(strstr(text, "\"name\":\"b\""));
    text = resume("c", &known);
    assert_int_equal(audience_count(text, "a--b"), 0);
    assert_int_equal(audience_count(text, "\"delete\""), 0);
    known = known_now();
    audience_set_edge("auto");
    text = resume("a", &known);
    assert_int_equal(audience_count(text, "\"AGIB"), 1);
    assert_int_equal(audience_count(text, "\"a--b\""), 1);
    assert_true(strstr(text, "\"AGIB") < strstr(text, "\"a--b\""));
}

/* A run that is not known, too long ago, or a revision that is still to come: a snapshot. */
static void test_resume_is_not_possible(void **state)
{
    struct watch_known known = known_now();
    struct watch_known other = known;
    struct watched_network *net = audience_network()->watched;

    other.boot ^= 1;
    assert_int_equal(audience_count(resume("a", &other), "snapshot"), 1);
    other.takes_any_run = true;
    assert_int_equal(audience_count(resume("a", &other), "snapshot"), 1);
    other = known;
    other.revision++;
    assert_int_equal(audience_count(resume("a", &other), "snapshot"), 1);
    /* Objects that there are no more. */
    for (unsigned i = 0; i < WATCHED_GONE_MAX + 1; i++)
        watched_add_gone(net, &node_kind, "x", known.revision);
    net->ready = net->serial;
    assert_int_equal(audience_count(resume("a", &known), "snapshot"), 1);
    assert_int_equal(audience_hub.hub->watcher.n_resumed, 0);
}

/* All of a network has changed, and still there is no snapshot. */
static void test_long_resume(void **state)
{
    struct watch_known known = known_now();
    const char *text;
    char name[8];

    for (unsigned i = 0; i < 64; i++) {
        (void)snprintf(name, sizeof(name), "%c%c", (int)('a' + i % 16), (int)('a' + i / 16));
        audience_add(name);
    }
    audience_hub.hub->watcher.n_sending = WATCH_SNAPSHOTS_MAX;
    text = resume("a", &known);
    audience_hub.hub->watcher.n_sending = 0;
    assert_int_equal(audience_count(text, "snapshot"), 0);
    assert_true(audience_count(text, "\"put\"") >= 64);
    assert_int_equal(audience_count(text, "heartbeat"), 1);
}

/* What is the same for all is one text in memory; one that lacks more has another. */
static void test_resumes_share_their_texts(void **state)
{
    struct watch_known known = known_now();
    struct stream *s[3];
    struct line *first;

    audience_add("d");
    audience_add("e");
    audience_remove("e");
    for (unsigned i = 0; i < 2; i++) {
        s[i] = open_at(i ? "c" : "a", &known);
    }
    assert_true(s[0]->n > 0);
    assert_int_equal(s[0]->n, s[1]->n);
    assert_ptr_equal(s[0]->queue[s[0]->first], s[1]->queue[s[1]->first]);
    first = line_ref(s[0]->queue[s[0]->first]);
    audience_add("f");
    s[2] = open_at("b", &known);
    assert_ptr_not_equal(first, s[2]->queue[s[2]->first]);
    assert_non_null(strstr(audience_take(s[2]), "\"AGYB"));
    (void)line_unref(first);
    for (unsigned i = 0; i < 3; i++)
        audience_end(s[i]);
}

/* Two nodes go in one commit, and their edge with them. One is added again while its agent is away,
 * which goes on with its watch. */
static void test_an_edge_without_nodes(void **state)
{
    static const struct {
        enum record_kind kind;
        const char *name;
    } gone[] = {{RECORD_NODE, "a"}, {RECORD_NODE, "b"}, {RECORD_EDGE, "a--b"}};
    char keys[3][RECORD_KEY_MAX];
    struct store_op ops[3];
    struct watch_known known;
    struct err e = ERR_NULL;
    const char *text;

    audience_set_edge("relay");
    audience_add("d");
    known = known_now();
    for (unsigned i = 0; i < 3; i++)
        ops[i] = (struct store_op){.kind = STORE_OP_DELETE,
            .key = record_key(keys[i], gone[i].kind, "default", gone[i].name),
            .expect = STORE_EXPECT_ANY};
    assert_int_equal(
        store_now_commit(audience_hub.hub->store, ops, 3, audience_hub.now, NULL, NULL, &e), 0);
    assert_null(model_find_node(audience_network(), "a"));
    audience_add("a");
    text = resume("a", &known);
    assert_int_equal(audience_count(text, "snapshot"), 0);
    assert_int_equal(audience_count(text, "\"MeshEdge\",\"name\":\"a--b\""), 1);
}

/* ---- after a restart ------------------------------------------------------------------------ */

static int enter_disk(void **state)
{
    audience_hub = (struct sample_hub){.now = NSEC_PER_SEC};
    sample_hub_make_dir(&audience_hub, true);
    sample_hub_open(&audience_hub);
    audience_add("a");
    audience_add("b");
    audience_add("c");
    return 0;
}

static void restart(void)
{
    sample_hub_close(&audience_hub);
    sample_hub_open(&audience_hub);
}

/* The store as it is now, kept aside, and put back. */
static void keep(bool is_back)
{
    char command[256];

    (void)snprintf(command, sizeof(command), "cd %s && cp -p %s %s", audience_hub.dir,
        is_back ? "kept.db" : "hub.db", is_back ? "hub.db" : "kept.db");
    assert_int_equal(system(command), 0);
}

/* A hub that is started anew knows from its store what has changed since, and says first which run
 * this is. */
static void test_restart(void **state)
{
    struct watch_known known;
    uint64_t boot = audience_hub.hub->model.boot;
    const char *text;
    char run[48];

    audience_add("e");
    known = known_now();
    known.takes_any_run = true;
    audience_add("d");
    audience_remove("e");
    audience_set_edge("off");
    restart();
    assert_int_not_equal(audience_hub.hub->model.boot, boot);
    text = resume("a", &known);
    (void)snprintf(
        run, sizeof(run), "\"boot\":%llu", (unsigned long long)audience_hub.hub->model.boot);
    assert_int_equal(audience_count(text, "snapshot"), 0);
    assert_non_null(strstr(text, run));
    assert_true(strstr(text, run) < strchr(text, '\n'));
    assert_int_equal(audience_count(text, "\"AGQB"), 1);
    assert_int_equal(audience_count(text, "\"name\":\"e\""), 1);
    assert_int_equal(audience_count(text, "\"a--b\""), 1);
    assert_int_equal(audience_count(text, "heartbeat"), 2);
    /* Twice, and what was told by then is not told again. */
    restart();
    text = resume("a", &known);
    assert_int_equal(audience_count(text, "snapshot"), 0);
    assert_int_equal(audience_count(text, "\"AGQB"), 1);
    assert_int_equal(audience_hub.hub->watcher.n_resumed, 1);
    known = known_now();
    known.takes_any_run = true;
    restart();
    text = resume("c", &known);
    assert_int_equal(audience_count(text, "snapshot"), 0);
    assert_int_equal(audience_count(text, "publicKey"), 0);
    assert_int_equal(audience_count(text, "delete"), 0);
    /* An agent that does not understand it. */
    known.takes_any_run = false;
    assert_int_equal(audience_count(resume("a", &known), "snapshot"), 1);
}

/* What the store knows is in the order in which it happened, deletions among the rest. */
static void test_restart_keeps_the_order(void **state)
{
    const struct watched_change *c;
    uint64_t revision = 0;
    char names[256] = "";

    audience_add("e");
    audience_add("d");
    audience_remove("e");
    audience_set_edge("off");
    audience_add("f");
    restart();
    list_foreach(c, &audience_network()->watched->changes, link) {
        size_t n = strlen(names);

        assert_true(c->revision >= revision);
        revision = c->revision;
        (void)snprintf(names + n, sizeof(names) - n, "%s%s ", c->is_gone ? "-" : "", c->name);
    }
    if (!strstr(names, " c d -e a--b f "))
        sample_hub_fail("%s", names);
}

/* What a node has reported, and was not told before the hub ended, is told then. */
static void test_restart_with_a_report(void **state)
{
    struct watch_known known;
    struct model_node *b = audience_node("b");
    struct err e = ERR_NULL;

    for (unsigned i = 0; i < WATCH_STATUS_BURST + 1; i++) {
        free(b->reported->heard.report.candidates);
        b->reported->heard.report.candidates = strdup(i % 2 ? "[]" : "[{}]");
        watch_tell_status(&audience_hub.hub->watcher, b, audience_hub.now);
        watch_turn(&audience_hub.hub->watcher, audience_hub.now);
    }
    /* It is held, and written meanwhile; nobody says that he knows more. */
    b->reported->is_unsaved = true;
    list_add_tail(&audience_hub.hub->reports.unsaved, &b->reported->unsaved);
    assert_int_equal(reports_flush(&audience_hub.hub->reports, audience_hub.now, &e), 0);
    assert_true(view_revision(audience_network()) < store_revision(audience_hub.hub->store));
    known = (struct watch_known){.boot = audience_hub.hub->model.boot,
        .revision = view_revision(audience_network()),
        .takes_any_run = true};
    restart();
    assert_int_equal(audience_count(resume("a", &known), "\"AGIB"), 1);
}

/* A store that was set back has another history from there on, even if it counts as far. */
static void test_restart_from_a_backup(void **state)
{
    struct watch_known before;
    struct watch_known known;

    sample_hub_close(&audience_hub);
    keep(false);
    sample_hub_open(&audience_hub);
    before = known_now();
    before.takes_any_run = true;
    audience_add("d");
    audience_add("e");
    known = known_now();
    known.takes_any_run = true;
    sample_hub_close(&audience_hub);
    keep(true);
    sample_hub_open(&audience_hub);
    audience_add("f");
    audience_add("g");
    audience_add("h");
    assert_true(known.revision < store_revision(audience_hub.hub->store));
    assert_int_equal(audience_count(resume("a", &known), "snapshot"), 1);
    assert_int_equal(audience_count(resume("a", &before), "snapshot"), 1);
    restart();
    assert_int_equal(audience_count(resume("a", &known), "snapshot"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_resume, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(
            test_resume_of_what_is_seen, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(
            test_resume_is_not_possible, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(
            test_resumes_share_their_texts, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_an_edge_without_nodes, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_long_resume, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_restart, enter_disk, audience_leave),
        cmocka_unit_test_setup_teardown(test_restart_keeps_the_order, enter_disk, audience_leave),
        cmocka_unit_test_setup_teardown(test_restart_with_a_report, enter_disk, audience_leave),
        cmocka_unit_test_setup_teardown(test_restart_from_a_backup, enter_disk, audience_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
