/*
 * test-flight.c - where a rank is, by the record of its flight recorder.
 *
 * The records are those of test/corpus/flight: "python" is from Python's pickle, the others are
 * written as PyTorch's own pickler does (test/lab/support/flight.py).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "health/flight.h"
#include "mesh/object/fields.h"

/* The times in the records begin then. */
#define BEGUN 1760000000000000000
#define SEC   1000000000

static int decode(struct flight_record *ret, const char *name, int64_t at, struct err *e)
{
    static char bytes[1 << 16];
    const char *root = getenv("WEFT_SOURCE_ROOT");
    char path[4096];
    FILE *f;
    size_t len;

    (void)snprintf(path, sizeof(path), "%s/test/corpus/flight/%s", root ? root : ".", name);
    f = fopen(path, "rb");
    assert_non_null(f);
    len = fread(bytes, 1, sizeof(bytes), f);
    (void)fclose(f);
    return flight_decode(ret, bytes, len, 2, at, e);
}

static struct flight_record record_of(const char *name, int64_t at)
{
    struct flight_record r = {.n = UINT32_MAX};
    struct err e = ERR_NULL;

    if (decode(&r, name, at, &e) != 0)
        fail_msg("%s: %s", name, e.text);
    return r;
}

/* Python's pickler and PyTorch's say the same in other bytes. */
static void test_where_a_rank_waits(void **state)
{
    static const char *const names[] = {"torch", "python"};

    for (unsigned i = 0; i < 2; i++) {
        struct flight_record r = record_of(names[i], BEGUN + 10 * (int64_t)SEC);
        const struct flight_place *p = &r.items[0];

        assert_int_equal(r.n, 1);
        assert_int_equal(p->rank, 2);
        assert_int_equal(p->n_ranks, 3);
        assert_int_equal(p->entered, 4);
        assert_int_equal(p->waits_in, 4);
        assert_int_equal(p->elements, 65536);
        assert_int_equal(p->wait_ms, 9200);
        assert_string_equal(p->group, "default_pg");
        assert_string_equal(p->operation, "all_reduce");
        assert_string_equal(p->type, "Float");
        assert_int_equal(p->key, record_of(names[!i], 0).items[0].key);
    }
}

static void test_a_rank_that_waits_nowhere(void **state)
{
    struct flight_record r = record_of("all-completed", BEGUN);

    assert_int_equal(r.n, 1);
    assert_int_equal(r.items[0].entered, 3);
    assert_int_equal(r.items[0].waits_in, 0);
    assert_string_equal(r.items[0].operation, "");
    assert_int_equal(record_of("empty", BEGUN).n, 0);
    /* Of before PyTorch 2.4, where operations have no number that is the same on all ranks. */
    assert_int_equal(record_of("old", BEGUN).n, 0);
}

/* Sends do not count, an entry of operations that were put together never completes, and a group
 * without a description has its name. */
static void test_several_groups(void **state)
{
    struct flight_record r = record_of("groups", BEGUN + 6 * (int64_t)SEC);

    assert_int_equal(r.n, 3);
    assert_string_equal(r.items[0].group, "mesh_dp");
    assert_int_equal(r.items[0].n_ranks, 2);
    assert_int_equal(r.items[0].entered, 4);
    assert_int_equal(r.items[0].waits_in, 3);
    assert_string_equal(r.items[0].operation, "_reduce_scatter_base");
    assert_string_equal(r.items[0].type, "BFloat16");
    assert_int_equal(r.items[0].elements, 64 * 32 + 2 * 1024 + 1);
    assert_int_equal(r.items[0].wait_ms, 1000);
    assert_string_equal(r.items[1].group, "default_pg");
    assert_int_equal(r.items[1].entered, 2);
    assert_string_equal(r.items[2].group, "2");
    assert_int_equal(r.items[2].n_ranks, 0);
    assert_true(r.items[0].key != r.items[1].key && r.items[1].key != r.items[2].key);
}

/* Those in which it waits go first. */
static void test_more_groups_than_fit(void **state)
{
    struct flight_record r = record_of("many-groups", BEGUN);

    assert_int_equal(r.n, FLIGHT_GROUPS_MAX);
    assert_string_equal(r.items[0].group, "group 11");
    assert_string_equal(r.items[1].group, "group 3");
    assert_string_equal(r.items[2].group, "group 19");
    /* The clock was set back meanwhile. */
    assert_int_equal(r.items[0].wait_ms, 0);
}

static void test_odd_values(void **state)
{
    struct flight_record r = record_of("odd", INT64_MAX);

    assert_int_equal(r.n, 1);
    assert_string_equal(r.items[0].group, "a?b");
    assert_int_equal(r.items[0].elements, INT64_MAX);
    assert_int_equal(r.items[0].wait_ms, FLIGHT_MS_MAX);
    assert_string_equal(r.items[0].type, "");
}

static void test_what_is_no_record(void **state)
{
    static const struct {
        const char *name;
        const char *words;
    } cases[] = {
        {"cut", "the pickle is cut off"},
        {"names", "the pickle has the instruction 0x63, which makes no plain value"},
        {"protocol-4", "the pickle is of protocol 4, and 2 is read"},
        {"no-entries", "the record of a flight recorder has no list \"entries\""},
        {"long", "the pickle has an integer of 11 bytes, and 8 are read"},
        {"mark", "the pickle has more than 32 containers in each other"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct flight_record r = {.n = 77};
        struct err e = ERR_NULL;

        assert_int_equal(decode(&r, cases[i].name, BEGUN, &e), -EINVAL);
        assert_string_equal(e.text, cases[i].words);
        assert_int_equal(r.n, 77);
    }
    /* A list that is in itself is walked once. */
    assert_int_equal(record_of("in-itself", BEGUN).n, 0);
}

static struct flight_places read_again(json_t *flight, int r)
{
    struct flight_places again = {.n = 0};
    json_t *json = json_pack("{s:o*}", "flight", flight);
    struct fields f = fields_make(json, "sample", NULL);

    flight_places_read(&again, &f, "flight");
    assert_int_equal(fields_end(&f), r);
    json_decref(json);
    return again;
}

static void test_as_the_hub_is_told(void **state)
{
    struct flight_places places = {.is_known = true, .n = 2};
    struct flight_places again;

    places.items[0] = (struct flight_place){.key = 0x7fffffffffffffff,
        .rank = 3,
        .n_ranks = 8,
        .age_ms = 2000,
        .wait_ms = 700,
        .entered = 1813,
        .waits_in = 1812,
        .elements = 4096,
        .group = "default_pg",
        .operation = "all_reduce",
        .type = "Float"};
    places.items[1] = (struct flight_place){.key = 5, .rank = 4, .entered = 7, .group = "2"};
    again = read_again(flight_places_encode(&places), 0);
    assert_memory_equal(&again, &places, sizeof(places));
    assert_null(flight_places_encode(&(struct flight_places){.n = 0}));
    again = read_again(flight_places_encode(&(struct flight_places){.is_known = true}), 0);
    assert_true(again.is_known && again.n == 0);
    again = read_again(NULL, 0);
    assert_false(again.is_known);
    /* Nothing that is not so. */
    places.items[0].waits_in = 1814;
    again = read_again(flight_places_encode(&places), -EINVAL);
    assert_false(again.is_known);
    again = read_again(json_pack("{s:[{}]}", "places"), -EINVAL);
    assert_false(again.is_known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_where_a_rank_waits),
        cmocka_unit_test(test_a_rank_that_waits_nowhere),
        cmocka_unit_test(test_several_groups),
        cmocka_unit_test(test_more_groups_than_fit),
        cmocka_unit_test(test_odd_values),
        cmocka_unit_test(test_what_is_no_record),
        cmocka_unit_test(test_as_the_hub_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
