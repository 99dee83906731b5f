/* test-public-addresses.c - where a hub says that it is, and where it will be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "hub/networks/public_addresses.h"
#include "net/address/resolve.h"
#include "os/clock.h"
#include "os/log.h"
#include "test/support/captured_log.h"

#define T0 (100 * NSEC_PER_SEC)

static char dir[64];
static char path[96];

static int enter(void **state)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/weft-test-places.XXXXXX");
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/move.json", dir);
    return 0;
}

static int leave(void **state)
{
    (void)unlink(path);
    return rmdir(dir);
}

static void add(struct hub_places *places, const char *text)
{
    struct err e = ERR_NULL;

    assert_int_equal(hub_public_parse(&places->items[places->n++], text, 51820, &e), 0);
}

/* What was announced before a hub ended is so when it is started again. */
static void test_what_is_announced_stays(void **state)
{
    struct public_addresses p = {.look_up_at = 0};
    struct hub_places next = {.n = 0};
    struct err e = ERR_NULL;
    json_t *json, *expected;
    char words[160];

    public_addresses_load(&p, path, 51820);
    assert_int_equal(p.next.n, 0);
    add(&next, "203.0.113.5:4000");
    add(&next, "hub.example.org");
    assert_int_equal(public_addresses_write(&next, path, &e), 0);
    json = json_load_file(path, 0, NULL);
    expected = json_pack("{s:[s, s]}", "public", "203.0.113.5:4000", "hub.example.org:51820");
    assert_true(json_equal(json, expected));
    json_decref(json);
    json_decref(expected);
    public_addresses_load(&p, path, 51820);
    assert_int_equal(p.next.n, 2);
    assert_string_equal(p.next.items[0].text, "203.0.113.5:4000");
    assert_false(p.next.items[0].is_name);
    assert_string_equal(p.next.items[1].text, "hub.example.org:51820");
    assert_true(p.next.items[1].is_name);
    /* It stays where it is. */
    next.n = 0;
    assert_int_equal(public_addresses_write(&next, path, &e), 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(public_addresses_write(&next, path, &e), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(public_addresses_write(&next, path, &e), -EISDIR);
    (void)snprintf(words, sizeof(words), "%s cannot be removed: Is a directory", path);
    assert_string_equal(err_text(&e), words);
    assert_int_equal(rmdir(path), 0);
    add(&next, "203.0.113.5:4000");
    assert_true(public_addresses_write(&next, "/nonexistent/move.json", &e) < 0);
}

static void test_a_damaged_file(void **state)
{
    struct public_addresses p = {.look_up_at = 0};
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    (void)fputs("{\"public\":[\"203.0.113.5\", 7]}", f);
    (void)fclose(f);
    public_addresses_load(&p, path, 51820);
    assert_int_equal(p.next.n, 0);
    assert_int_equal(access(path, F_OK), 0);
}

/* A name that leads to this machine alone is none to announce; addresses are not looked up. */
static void test_names_are_checked(void **state)
{
    struct hub_places next = {.n = 0};
    struct err e = ERR_NULL;

    add(&next, "203.0.113.5:4000");
    assert_int_equal(public_addresses_check(&next, &e), 0);
    add(&next, "localhost:4000");
    assert_int_equal(public_addresses_check(&next, &e), -EINVAL);
    assert_non_null(strstr(err_text(&e), "leads only to addresses at which no other machine"));
}

/* Names are looked up again each half minute; one that leads nowhere changes nothing. */
static void test_names_are_looked_up_again(void **state)
{
    struct public_addresses p = {.look_up_at = 0};
    nsec_t deadline = clock_now() + 30 * NSEC_PER_SEC;
    struct hub_places next = {.n = 0};
    char text[ENDPOINT_TEXT_MAX];
    struct captured_log said;

    add(&p.here, "203.0.113.5:4000");
    assert_false(public_addresses_tick(&p, T0));
    assert_null(p.task);
    add(&p.here, "localhost:4000");
    assert_int_equal(endpoint_parse(&p.here.items[1].at[0], "198.51.100.7:4000", NULL), 0);
    p.here.items[1].n = 1;
    assert_false(public_addresses_tick(&p, T0 + 30 * NSEC_PER_SEC - 1));
    assert_null(p.task);
    assert_false(public_addresses_tick(&p, T0 + 30 * NSEC_PER_SEC));
    assert_non_null(p.task);
    said = captured_log_begin();
    while (p.task) {
        assert_true(clock_now() < deadline);
        assert_false(public_addresses_tick(&p, T0 + 40 * NSEC_PER_SEC));
        (void)poll(NULL, 0, 1);
    }
    captured_log_end(&said,
        "warning: test: the name localhost:4000 leads nowhere now, nodes are told what they were: "
        "no other machine reaches this one at its addresses\n");
    assert_int_equal(p.here.items[1].n, 1);
    assert_string_equal(endpoint_format(&p.here.items[1].at[0], text), "198.51.100.7:4000");
    /* What is announced is looked up with the next tick. */
    add(&next, "localhost:5000");
    public_addresses_set_next(&p, &next);
    assert_int_equal(p.next.n, 1);
    assert_false(public_addresses_tick(&p, T0 + 41 * NSEC_PER_SEC));
    assert_non_null(p.task);
    p.task = resolve_task_free(p.task);
    assert_null(p.task);
    p.task = resolve_task_free(p.task);
}

/* A name that leads to one address: that one itself, which is looked up like any other. */
static void add_name(struct hub_places *places, const char *text)
{
    add(places, text);
    places->items[places->n - 1].is_name = true;
}

/* Ticks until the answer has been taken in: has it changed anything? */
static bool look_up(struct public_addresses *p, nsec_t now)
{
    nsec_t deadline = clock_now() + 30 * NSEC_PER_SEC;
    bool changed = public_addresses_tick(p, now);

    assert_non_null(p->task);
    while (p->task) {
        assert_true(clock_now() < deadline);
        (void)poll(NULL, 0, 1);
        changed |= public_addresses_tick(p, now);
    }
    return changed;
}

/* Nodes are told where a name leads now, of both places, and that it has changed. */
static void test_names_that_lead_elsewhere(void **state)
{
    struct public_addresses p = {.look_up_at = 0};
    struct endpoint before, after;
    struct captured_log said;
    struct err e = ERR_NULL;

    assert_int_equal(endpoint_parse(&before, "198.51.100.7:4000", NULL), 0);
    add(&p.here, "203.0.113.8:4000");
    add_name(&p.here, "203.0.113.9:4000");
    add_name(&p.next, "203.0.113.10:4000");
    assert_int_equal(public_addresses_check(&p.here, &e), 0);
    for (unsigned i = 0; i < 2; i++) {
        struct hub_public *place = i == 0 ? &p.here.items[1] : &p.next.items[0];

        after = place->at[0];
        place->at[0] = before;
        place->n = 1;
        said = captured_log_begin();
        assert_true(look_up(&p, T0 + 2 * i * 30 * NSEC_PER_SEC));
        captured_log_end(&said,
            i == 0 ? "info: test: the name 203.0.113.9:4000 leads to 203.0.113.9:4000 now\n"
                   : "info: test: the name 203.0.113.10:4000 leads to 203.0.113.10:4000 now\n");
        assert_int_equal(place->n, 1);
        assert_true(endpoint_equal(&place->at[0], &after));
        assert_false(look_up(&p, T0 + (2 * i + 1) * 30 * NSEC_PER_SEC));
    }
    /* One address more, or none yet, is another answer. */
    p.here.items[1].at[1] = before;
    p.here.items[1].n = 2;
    assert_true(look_up(&p, T0 + 200 * NSEC_PER_SEC));
    assert_int_equal(p.here.items[1].n, 1);
    p.here.items[1].n = 0;
    assert_true(look_up(&p, T0 + 300 * NSEC_PER_SEC));
    assert_int_equal(p.here.items[1].n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_announced_stays, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_damaged_file, enter, leave),
        cmocka_unit_test(test_names_are_checked),
        cmocka_unit_test(test_names_are_looked_up_again),
        cmocka_unit_test(test_names_that_lead_elsewhere),
    };

    log_init("test", LOG_LEVEL_INFO);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
