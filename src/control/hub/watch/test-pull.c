/* test-pull.c - readers of every speed: each is told all that counts, and holds up nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "hub/watch/view.h"
#include "hub/watch/watch.h"
#include "mesh/snapshot/watch_event.h"
#include "test/support/audience.h"

/* A node whose connection takes so many bytes at a time. */
struct reader {
    struct stream *stream;
    struct snapshot held; /* as its agent has it */
    struct str part;      /* of a line that is not whole yet */
    size_t bytes;         /* each time; 0: none */
    unsigned every;       /* of so many rounds it reads in one */
    unsigned n_lines;
    unsigned n_snapshots;
};

static void hear_line(struct reader *rd, const char *line, size_t len)
{
    struct watch_event ev = WATCH_EVENT_NULL;
    struct err e = ERR_NULL;

    rd->n_lines++;
    if (watch_event_decode(&ev, line, len, &e) != 0)
        sample_hub_fail("\"%.*s\": %s", (int)len, line, err_text(&e));
    rd->n_snapshots += ev.kind == WATCH_EVENT_SNAPSHOT;
    if (watch_event_apply(&rd->held, &ev, &e) != 0)
        sample_hub_fail("\"%.*s\": %s", (int)len, line, err_text(&e));
}

static size_t read_some(struct reader *rd)
{
    char buf[4096];
    size_t n = stream_take(
        rd->stream, buf, rd->bytes < sizeof(buf) ? rd->bytes : sizeof(buf), audience_hub.now);
    const char *start = buf;

    for (size_t i = 0; i < n; i++) {
        if (buf[i] != '\n')
            continue;
        str_add_bytes(&rd->part, start, (size_t)(buf + i - start));
        hear_line(rd, str_text(&rd->part), rd->part.len);
        str_deinit(&rd->part);
        start = buf + i + 1;
    }
    str_add_bytes(&rd->part, start, (size_t)(buf + n - start));
    if (rd->stream->n == 0)
        rd->stream->on_drained(rd->stream, audience_hub.now);
    return n;
}

static void open_reader(struct reader *rd, const char *name, const struct watch_known *known)
{
    rd->stream =
        watch_open(&audience_hub.hub->watcher, audience_node(name), 0, known, audience_hub.now);
    assert_non_null(rd->stream);
    watch_turn(&audience_hub.hub->watcher, audience_hub.now);
    rd->stream->on_drained(rd->stream, audience_hub.now);
}

static void end_reader(struct reader *rd)
{
    audience_end(rd->stream);
    snapshot_deinit(&rd->held);
    str_deinit(&rd->part);
    *rd = (struct reader){.stream = NULL};
}

/* It holds what a fresh snapshot says. */
static void assert_up_to_date(struct reader *rd, const char *name)
{
    struct watch_event ev = WATCH_EVENT_NULL;
    char *text = view_snapshot_text(audience_node(name));
    struct err e = ERR_NULL;
    json_t *is;
    json_t *should;

    rd->bytes = SIZE_MAX;
    watch_turn(&audience_hub.hub->watcher, audience_hub.now);
    while (read_some(rd) > 0)
        continue;
    assert_int_equal(watch_event_decode(&ev, text, strlen(text), &e), 0);
    is = snapshot_encode(&rd->held);
    should = snapshot_encode(&ev.snapshot);
    (void)json_object_del(is, "revision");
    (void)json_object_del(should, "revision");
    if (!json_equal(is, should))
        sample_hub_fail("%s has %s\nand not %s", name, json_dumps(is, 0), json_dumps(should, 0));
    json_decref(is);
    json_decref(should);
    watch_event_deinit(&ev);
    free(text);
}

/* Something changes. */
static void change(struct rng *rng)
{
    static const char *const paths[] = {"auto", "relay", "off"};
    struct watcher *w = &audience_hub.hub->watcher;
    char name[3] = {(char)('d' + rng_u32(rng) % 12), (char)('a' + rng_u32(rng) % 12), '\0'};
    struct model_node *node = model_find_node(audience_network(), name);

    switch (rng_u32(rng) % 6) {
    case 0:
        audience_set_edge(paths[rng_u32(rng) % 3]);
        break;
    case 1:
        watch_tell_status(w, audience_node("c"), audience_hub.now);
        break;
    case 2:
        audience_hub.now += NSEC_PER_SEC;
        watch_tick(w, audience_hub.now);
        break;
    default:
        if (node)
            audience_remove(name);
        else
            audience_add(name);
        break;
    }
}

/* Whatever a connection takes, in the end its node knows everything; and the more slowly it reads,
 * the fewer lines that needs. */
static void test_speeds(void **state)
{
    uint64_t seed = 3;
    static struct reader readers[] = {
        {.bytes = SIZE_MAX, .every = 1}, {.bytes = 40, .every = 1}, {.bytes = 700, .every = 5}};
    static const char *const names[] = {"a", "b", "c"};
    struct rng rng = rng_seeded(&seed);

    for (unsigned i = 0; i < 3; i++)
        open_reader(&readers[i], names[i], &audience_nothing);
    for (unsigned round = 0; round < 2000; round++) {
        change(&rng);
        watch_turn(&audience_hub.hub->watcher, audience_hub.now);
        for (unsigned i = 0; i < 3; i++)
            if (round % readers[i].every == 0)
                (void)read_some(&readers[i]);
        /* What waits for one of them is bounded. */
        for (unsigned i = 0; i < 3; i++)
            assert_true(readers[i].stream->bytes < 2 * WATCH_AHEAD);
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_up_to_date(&readers[i], names[i]);
        assert_int_equal(readers[i].n_snapshots, 1);
    }
    assert_true(readers[0].n_lines > readers[2].n_lines);
    assert_true(readers[2].n_lines > readers[1].n_lines);
    assert_int_equal(audience_hub.hub->watcher.n_overrun, 0);
    for (unsigned i = 0; i < 3; i++)
        end_reader(&readers[i]);
}

/* One that reads nothing is no burden, and is told of an object once. */
static void test_one_that_never_reads(void **state)
{
    struct watcher *w = &audience_hub.hub->watcher;
    struct reader never = {.bytes = 0};
    struct reader usual = {.bytes = SIZE_MAX};

    open_reader(&never, "a", &audience_nothing);
    open_reader(&usual, "b", &audience_nothing);
    (void)read_some(&usual);
    for (unsigned i = 0; i < 3000; i++) {
        watch_tell_node(w, audience_node("c"));
        watch_turn(w, audience_hub.now);
        assert_true(read_some(&usual) > 0);
    }
    /* Its snapshot is still there, and nothing else. */
    assert_int_equal(never.stream->n, never.stream->n_free);
    assert_up_to_date(&never, "a");
    assert_int_equal(never.n_lines, 2);
    end_reader(&never);
    end_reader(&usual);
}

/* One that does not get its snapshot in time is ended, since others wait for its place. */
static void test_one_that_takes_its_snapshot_too_slowly(void **state)
{
    struct watcher *w = &audience_hub.hub->watcher;
    struct reader slow = {.bytes = 1};

    open_reader(&slow, "a", &audience_nothing);
    audience_hub.now += WATCH_SNAPSHOT_WITHIN;
    watch_tick(w, audience_hub.now);
    assert_int_equal(read_some(&slow), 1);
    assert_false(slow.stream->aborted);
    audience_hub.now++;
    watch_tick(w, audience_hub.now);
    assert_true(slow.stream->aborted);
    end_reader(&slow);
}

/* One that falls behind what is kept begins anew, once its connection has taken what there was. */
static void test_one_that_falls_behind(void **state)
{
    struct watched_network *net = audience_network()->watched;
    struct reader slow = {.bytes = SIZE_MAX};
    struct watcher *w = &audience_hub.hub->watcher;

    open_reader(&slow, "a", &audience_nothing);
    while (read_some(&slow) > 0)
        continue;
    audience_add("d");
    watch_turn(w, audience_hub.now);
    assert_int_equal(slow.stream->n, 1);
    for (unsigned i = 0; i < WATCHED_GONE_MAX + 2; i++)
        watched_add_gone(net, &node_kind, "x", view_revision(audience_network()));
    audience_add("e");
    watch_turn(w, audience_hub.now);
    assert_int_equal(w->n_overrun, 1);
    assert_int_equal(slow.stream->n, 1);
    assert_up_to_date(&slow, "a");
    assert_int_equal(slow.n_snapshots, 2);
    /* It goes on as any other. */
    audience_add("f");
    assert_up_to_date(&slow, "a");
    assert_int_equal(slow.n_snapshots, 2);
    end_reader(&slow);
}

/* A node that is gone is gone at once, also where one of its name has come that is not told of
 * yet. */
static void test_one_that_comes_again(void **state)
{
    struct watcher *w = &audience_hub.hub->watcher;
    struct reader rd = {.bytes = SIZE_MAX};

    audience_add("d");
    open_reader(&rd, "a", &audience_nothing);
    audience_remove("d");
    audience_add("d");
    assert_int_equal(w->n_pending, 1);
    while (read_some(&rd) > 0)
        continue;
    assert_null(snapshot_find_node(&rd.held, "d"));
    assert_up_to_date(&rd, "a");
    assert_non_null(snapshot_find_node(&rd.held, "d"));
    end_reader(&rd);
}

/* Changes until the next one has serial @serial. */
static void change_until(uint64_t serial)
{
    const struct watched_network *net = audience_network()->watched;

    while (net->serial + 1 < serial)
        watch_tell_node(&audience_hub.hub->watcher, audience_node("c"));
}

/* One text is shared by all who read the same entries, but not by who comes when its first object
 * has changed again: that reader was told already that it knows more than this text's lines say. */
static void test_revisions_of_shared_texts(void **state)
{
    struct watcher *w = &audience_hub.hub->watcher;
    struct reader early = {.bytes = SIZE_MAX};
    struct reader late = {.bytes = SIZE_MAX};

    audience_add("d");
    open_reader(&late, "a", &audience_nothing);
    audience_add("e");
    change_until(WATCHED_READ_MAX);
    watch_turn(w, audience_hub.now);
    open_reader(&early, "b", &audience_nothing);
    change_until(WATCHED_READ_MAX + 1);
    audience_add("f");
    audience_add("g");
    change_until(2 * WATCHED_READ_MAX + 1);
    assert_up_to_date(&early, "b");
    watch_tell_node(w, audience_node("f"));
    /* It refuses a line with an earlier revision than that of the line before. */
    assert_up_to_date(&late, "a");
    end_reader(&early);
    end_reader(&late);
}

/* Connections that break anywhere, in the midst of a line too, go on there. */
static void test_connections_that_break(void **state)
{
    uint64_t seed = 9;
    struct rng rng = rng_seeded(&seed);
    struct reader rd = {.bytes = 300, .every = 1};
    struct watch_known known = {.boot = audience_hub.hub->model.boot};

    open_reader(&rd, "a", &audience_nothing);
    while (rd.n_snapshots == 0)
        (void)read_some(&rd);
    for (unsigned round = 0; round < 3000; round++) {
        change(&rng);
        watch_turn(&audience_hub.hub->watcher, audience_hub.now);
        (void)read_some(&rd);
        if (rng_u32(&rng) % 4 != 0)
            continue;
        audience_end(rd.stream);
        str_deinit(&rd.part);
        known.revision = rd.held.revision;
        open_reader(&rd, "a", &known);
    }
    assert_up_to_date(&rd, "a");
    assert_int_equal(rd.n_snapshots, 1);
    end_reader(&rd);
}

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

/* A hub that is started anew, again and again: whoever comes back is told what it lacks, and no
 * more. */
static void test_one_that_comes_after_a_restart(void **state)
{
    uint64_t seed = 5;
    struct rng rng = rng_seeded(&seed);
    struct reader rd = {.bytes = SIZE_MAX};

    open_reader(&rd, "a", &audience_nothing);
    while (read_some(&rd) > 0)
        continue;
    for (unsigned round = 0; round < 10; round++) {
        struct watch_known known = {.takes_any_run = true};

        audience_end(rd.stream);
        for (unsigned i = 0; i < 20 * round; i++)
            change(&rng);
        sample_hub_close(&audience_hub);
        sample_hub_open(&audience_hub);
        known.boot = rd.held.boot;
        known.revision = rd.held.revision;
        open_reader(&rd, "a", &known);
        assert_up_to_date(&rd, "a");
        assert_int_equal(rd.held.boot, audience_hub.hub->model.boot);
        assert_int_equal(audience_hub.hub->watcher.n_resumed, 1);
    }
    assert_int_equal(rd.n_snapshots, 1);
    end_reader(&rd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_speeds, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_one_that_never_reads, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(
            test_one_that_takes_its_snapshot_too_slowly, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_one_that_falls_behind, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_one_that_comes_again, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(
            test_revisions_of_shared_texts, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(
            test_connections_that_break, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(
            test_one_that_comes_after_a_restart, enter_disk, audience_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
