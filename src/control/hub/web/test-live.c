/*
 * test-live.c - what an open page is told: all at first, then what changes; again after its
 * connection broke; and not more pages than there may be. A whole hub in this process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/server/stream.h"
#include "base/err.h"
#include "hub/watch/reports.h"
#include "hub/web/live.h"
#include "os/clock.h"
#include "test/support/audience.h"

static struct hub *hub;
static struct live *live;
static struct stream *open_streams[LIVE_STREAMS_MAX];
static unsigned n_open;

static int enter(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    int r = audience_enter(state);

    hub = audience_hub.hub;
    live = &hub->live;
    handlers_web_begin(&hub->handlers, &hub->web, live);
    for (unsigned i = 0; i < 3; i++)
        audience_node(names[i])->spec.stock = false;
    n_open = 0;
    return r;
}

static int leave(void **state)
{
    while (n_open > 0)
        audience_end(open_streams[--n_open]);
    return audience_leave(state);
}

/* A report with ' for ". */
static void say(const char *name, const char *text)
{
    struct report rp = REPORT_NULL;
    struct err e = ERR_NULL;
    char copy[512];
    json_t *json;

    (void)snprintf(copy, sizeof(copy), "%s", text);
    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    json = json_loads(copy, 0, NULL);
    if (!json || report_decode(&rp, json, clock_wall_s(), &e) != 0)
        fail_msg("%s: %s", text, err_text(&e));
    json_decref(json);
    (void)reports_take(&hub->reports, audience_node(name), &rp, clock_wall_s());
}

static struct stream *open_page(uint64_t session, const char *last_event, struct err *e)
{
    const struct live_asker asker = {.session = session, .last_event = last_event};
    struct stream *s = live_open(live, audience_network(), &asker, audience_hub.now, e);

    if (s)
        open_streams[n_open++] = s;
    return s;
}

/* The events that it is sent now: the rows of the last one, a new reference; NULL: none. */
static json_t *take(struct stream *s, char id[static 64])
{
    const char *text = audience_take(s);
    const char *data = strstr(text, "data: ");
    json_t *json;

    if (!data)
        return NULL;
    assert_memory_equal(text, "id: ", 4);
    (void)snprintf(id, 64, "%.*s", (int)strcspn(text + 4, "\n"), text + 4);
    assert_string_equal(text + strlen(text) - 2, "\n\n");
    json = json_loads(data + 6, JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(json);
    return json;
}

static void tick(unsigned seconds)
{
    for (unsigned i = 0; i < seconds; i++) {
        audience_hub.now += NSEC_PER_SEC;
        live_tick(live, audience_hub.now);
    }
}

static const char *text_at(const json_t *event, const char *row)
{
    return json_string_value(json_object_get(json_object_get(event, "rows"), row));
}

static void test_all_and_then_changes(void **state)
{
    struct stream *s = open_page(0, NULL, NULL);
    const json_t *names;
    const json_t *node;
    char id[64];
    json_t *event = take(s, id);

    assert_string_equal(s->type, "text/event-stream");
    assert_true(json_is_true(json_object_get(event, "all")));
    names = json_object_get(json_object_get(event, "rows"), "names");
    assert_int_equal(json_array_size(names), 4);
    assert_string_equal(json_string_value(json_array_get(names, 0)), "a");
    node = json_object_get(json_object_get(event, "rows"), "n/hub");
    assert_string_equal(json_string_value(json_object_get(node, "kind")), "hub");
    assert_string_equal(text_at(event, "m/a"), ",,");
    json_decref(event);
    /* Nothing has changed, so nothing is sent. */
    tick(3);
    assert_null(take(s, id));
    say("a", "{'applied':{'revision':1},'edges':{'b':{'path':'direct','handshakeAgeSeconds':4,"
             "'lossIn':{'lost':100,'packets':10000,'seconds':60,'periods':6}}}}");
    say("b", "{'applied':{'revision':1},'edges':{'a':{'path':'direct','handshakeAgeSeconds':4,"
             "'lossIn':{'lost':0,'packets':90000,'seconds':60,'periods':0}}}}");
    say("a", "{'owner':'probe/a','edges':{'b':{'tunnel':'reached','tunnelRttMs':1.5}}}");
    tick(3);
    event = take(s, id);
    assert_null(json_object_get(event, "all"));
    assert_string_equal(text_at(event, "m/a"), "kR15oX0Y7ps,,");
    assert_null(json_object_get(json_object_get(event, "rows"), "n/hub"));
    json_decref(event);
}

/* What is dead has no number. */
static void test_a_machine_that_is_down(void **state)
{
    struct stream *s;
    json_t *event;
    char id[64];

    say("a", "{'applied':{'revision':1},'edges':{'b':{'path':'direct'}}}");
    say("b", "{'applied':{'revision':1},'edges':{'a':{'path':'direct'}}}");
    say("a", "{'owner':'probe/a','edges':{'b':{'tunnel':'reached','tunnelRttMs':1.5}}}");
    audience_node("b")->reported->is_down = true;
    s = open_page(0, NULL, NULL);
    event = take(s, id);
    assert_null(strchr(text_at(event, "m/a"), 'R'));
    assert_int_equal(text_at(event, "m/a")[0], 'a' + EDGE_STATE_SILENT);
    json_decref(event);
}

static void test_a_node_that_is_gone(void **state)
{
    struct stream *s = open_page(0, NULL, NULL);
    char id[64];
    json_t *event = take(s, id);

    json_decref(event);
    audience_remove("c");
    audience_add("d");
    tick(3);
    event = take(s, id);
    assert_true(json_is_null(json_object_get(json_object_get(event, "rows"), "n/c")));
    assert_non_null(json_object_get(json_object_get(event, "rows"), "n/d"));
    assert_non_null(json_object_get(json_object_get(event, "rows"), "names"));
    json_decref(event);
}

/* A browser whose connection broke goes on where it was. */
static void test_it_goes_on(void **state)
{
    struct stream *s = open_page(0, NULL, NULL);
    char id[64];
    char unused[64];
    json_t *event = take(s, id);

    json_decref(event);
    audience_end(open_streams[--n_open]);
    audience_add("d");
    tick(3);
    s = open_page(0, id, NULL);
    event = take(s, id);
    assert_null(json_object_get(event, "all"));
    assert_null(json_object_get(json_object_get(event, "rows"), "n/a"));
    assert_int_equal(live->n_resumed, 1);
    json_decref(event);
    /* With the newest id there is nothing to tell but that the hub is there. */
    s = open_page(0, id, NULL);
    assert_string_equal(audience_take(s), ":\n\n");
    /* Of another run, or nonsense: all. */
    s = open_page(0, "77.12", NULL);
    event = take(s, unused);
    assert_true(json_is_true(json_object_get(event, "all")));
    json_decref(event);
    s = open_page(0, "nonsense", NULL);
    event = take(s, unused);
    assert_true(json_is_true(json_object_get(event, "all")));
    json_decref(event);
    assert_int_equal(live->n_resumed, 2);
}

/* What nobody looks at is not kept for ever, and then what a page has known is not known. */
static void test_what_is_kept(void **state)
{
    char id[64];
    char unused[64];
    json_t *event = take(open_page(0, NULL, NULL), id);

    json_decref(event);
    audience_end(open_streams[--n_open]);
    tick((unsigned)(LIVE_KEPT / NSEC_PER_SEC) + 2);
    assert_int_equal(live->networks.n, 0);
    event = take(open_page(0, id, NULL), unused);
    assert_true(json_is_true(json_object_get(event, "all")));
    json_decref(event);
}

static void test_they_are_few(void **state)
{
    struct err e = ERR_NULL;

    for (unsigned i = 0; i < LIVE_STREAMS_EACH; i++)
        assert_non_null(open_page(5, NULL, &e));
    assert_null(open_page(5, NULL, &e));
    assert_int_equal(e.code, -EBUSY);
    while (n_open < LIVE_STREAMS_MAX)
        assert_non_null(open_page(0, NULL, &e));
    assert_null(open_page(0, NULL, &e));
    assert_int_equal(e.code, -EBUSY);
    audience_end(open_streams[--n_open]);
    assert_non_null(open_page(0, NULL, &e));
    assert_int_equal(live->n_streams, LIVE_STREAMS_MAX);
}

/* A page that does not take what it is sent has it once, however much changes. */
static void test_a_slow_page(void **state)
{
    struct stream *s = open_page(0, NULL, NULL);
    char name[3] = "d0";

    for (unsigned i = 0; i < 9; i++) {
        name[1] = (char)('0' + i);
        audience_add(name);
        tick(3);
    }
    assert_int_equal(s->n, 1);
    (void)audience_take(s);
    assert_int_equal(s->n, 1);
    assert_int_equal(audience_count(audience_take(s), "\"n/d"), 9);
    assert_int_equal(s->n, 0);
}

/* A comment now and then; without a session a stream ends by itself, with one when that is over. */
static void test_silence_and_the_end(void **state)
{
    const struct web_session *session = NULL;
    struct web_grant grant = {.role = ROLE_VIEWER, .maker = "uid:0", .maker_mark = 1};
    struct ip_addr from;
    char text[WEB_SECRET_MAX];
    char secret[WEB_SECRET_MAX];
    struct stream *with;
    struct stream *without;

    assert_int_equal(ip_addr_parse(&from, "192.0.2.9", NULL), 0);
    web_access_offer(&hub->web, &grant, WEB_LOGIN_TTL, audience_hub.now, text);
    assert_int_equal(
        web_access_login(&hub->web, text, &from, audience_hub.now, &session, secret), WEB_TAKEN);
    with = open_page(session->id, NULL, NULL);
    without = open_page(0, NULL, NULL);
    (void)audience_take(with);
    (void)audience_take(without);
    tick((unsigned)(LIVE_SILENCE / NSEC_PER_SEC));
    assert_string_equal(audience_take(with), ":\n\n");
    (void)audience_take(without);
    for (unsigned i = 0; i < LIVE_LIFE / LIVE_SILENCE + 1; i++) {
        tick((unsigned)(LIVE_SILENCE / NSEC_PER_SEC));
        (void)audience_take(with);
        (void)audience_take(without);
    }
    assert_true(without->ended);
    assert_false(with->ended);
    web_access_end(&hub->web, session->id);
    tick(1);
    assert_true(with->ended);
}

/* Two hundred nodes, each of which says something of all others. */
static void say_all(const char *const *names, unsigned n, unsigned self, bool is_probe)
{
    json_t *edges = json_object();
    json_t *json = json_object();
    struct report rp = REPORT_NULL;
    struct err e = ERR_NULL;
    char owner[NAME_MAX_LEN + 8];

    for (unsigned i = 0; i < n; i++)
        if (i != self)
            (void)json_object_set_new(edges, names[i],
                is_probe ? json_pack("{s:s, s:f}", "tunnel", "reached", "tunnelRttMs",
                               0.1 + (i * 37 + self * 11) % 9000 / 100.0)
                         : json_pack("{s:s, s:i}", "path", "direct", "handshakeAgeSeconds", 4));
    (void)json_object_set_new(json, "edges", edges);
    (void)snprintf(owner, sizeof(owner), "probe/%.*s", NAME_MAX_LEN, names[self]);
    if (is_probe)
        (void)json_object_set_new(json, "owner", json_string(owner));
    else
        (void)json_object_set_new(json, "applied", json_pack("{s:i}", "revision", 1));
    if (report_decode(&rp, json, clock_wall_s(), &e) != 0)
        fail_msg("%s", err_text(&e));
    json_decref(json);
    (void)reports_take(&hub->reports, audience_node(names[self]), &rp, clock_wall_s());
}

#define MANY 196

static void test_how_much_of_200_nodes(void **state)
{
    static char texts[MANY][16];
    const char *names[MANY];
    struct stream *s;
    nsec_t begun_at;

    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(texts[i], sizeof(texts[i]), "%c%c-gpu-%03u", 'd' + i / 26, 'a' + i % 26, i);
        names[i] = texts[i];
        audience_add(names[i]);
        audience_node(names[i])->spec.stock = false;
    }
    for (unsigned i = 0; i < MANY; i++) {
        say_all(names, MANY, i, false);
        say_all(names, MANY, i, true);
    }
    begun_at = clock_now();
    s = open_page(0, NULL, NULL);
    print_message("FIGURE page, 200 nodes: made in %.1f ms, first data %zu bytes\n",
        (double)(clock_now() - begun_at) / (double)NSEC_PER_MSEC, s->queue[s->first]->len);
    assert_true(s->queue[s->first]->len > 100000);
    assert_true(s->queue[s->first]->len < 300000);
}

static void test_ids(void **state)
{
    static const char *const none[] = {"", ".", "1", "1.", ".1", "1.x", "0.1", "1.0", "-1.1",
        "1.1.1", "99999999999999999999999.1", "18446744073709551616.1"};
    uint64_t run = 0;
    uint64_t number = 0;

    assert_true(live_id_read("12.34", &run, &number));
    assert_int_equal(run, 12);
    assert_int_equal(number, 34);
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
        if (live_id_read(none[i], &run, &number))
            fail_msg("%s", none[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_and_then_changes, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_machine_that_is_down, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_node_that_is_gone, enter, leave),
        cmocka_unit_test_setup_teardown(test_it_goes_on, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_kept, enter, leave),
        cmocka_unit_test_setup_teardown(test_they_are_few, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_slow_page, enter, leave),
        cmocka_unit_test_setup_teardown(test_silence_and_the_end, enter, leave),
        cmocka_unit_test_setup_teardown(test_how_much_of_200_nodes, enter, leave),
        cmocka_unit_test(test_ids),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
