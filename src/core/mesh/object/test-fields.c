/* test-fields.c - the fields of a JSON object: what each kind takes, and what it says of the rest.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "crypto/x25519.h"
#include "mesh/object/network.h"
#include "mesh/object/fields.h"

/** One JSON object that is read. */
struct reading {
    json_t *json;
    struct fields f;
    struct err e;
};

static struct reading *begin(const char *text)
{
    static struct reading r;

    r.e = (struct err)ERR_NULL;
    r.json = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(r.json);
    r.f = fields_make(r.json, "Thing", &r.e);
    return &r;
}

/* What the reading has come to: @says what is wrong; NULL: nothing is. */
static void end(struct reading *r, const char *says)
{
    assert_int_equal(fields_end(&r->f), says ? -EINVAL : 0);
    if (says)
        assert_string_equal(r->e.text, says);
    json_decref(r->json);
}

static void test_only_an_object_has_fields(void **state)
{
    struct err e = ERR_NULL;
    struct fields f;

    end(begin("{}"), NULL);
    end(begin("[]"), "Thing: is not a JSON object");
    end(begin("7"), "Thing: is not a JSON object");
    f = fields_make(NULL, "Thing", &e);
    assert_int_equal(fields_end(&f), -EINVAL);
}

/* Absent and null are the same, and an error only where the field has to be there. */
static void test_a_field_that_is_absent(void **state)
{
    static const char *const texts[] = {"{}", "{\"n\": null}"};

    for (size_t i = 0; i < 2; i++) {
        struct reading *r = begin(texts[i]);

        assert_null(fields_get(&r->f, "n", FIELDS_OPTIONAL));
        assert_null(fields_string(&r->f, "n", FIELDS_OPTIONAL, 1, 9));
        assert_null(fields_object(&r->f, "n", FIELDS_OPTIONAL));
        assert_null(fields_array(&r->f, "n", FIELDS_OPTIONAL, 1, 9));
        end(r, NULL);
        r = begin(texts[i]);
        assert_null(fields_get(&r->f, "n", FIELDS_REQUIRED));
        end(r, "Thing: \"n\" is missing");
    }
}

/* The first failure is what is told, and nothing is read after it. */
static void test_the_first_failure_counts(void **state)
{
    struct reading *r = begin("{\"a\": 1, \"b\": 2}");
    uint64_t n = 7;

    fields_u64(&r->f, "a", FIELDS_REQUIRED, 2, 9, &n);
    fields_u64(&r->f, "b", FIELDS_REQUIRED, 1, 9, &n);
    fields_fail(&r->f, "something else");
    assert_null(fields_get(&r->f, "b", FIELDS_REQUIRED));
    fields_refuse_unknown(&r->f);
    assert_int_equal(n, 7);
    end(r, "Thing: \"a\" is not a whole number from 2 to 9");
}

static void test_strings(void **state)
{
    static const struct {
        const char *json;
        const char *value;
        const char *says;
    } cases[] = {
        {"{\"s\": \"ab\"}", "ab", NULL},
        {"{\"s\": \"abcd\"}", "abcd", NULL},
        {"{\"s\": \"a\"}", NULL, "Thing: \"s\" has 1 bytes, and 2 to 4 are allowed"},
        {"{\"s\": \"abcde\"}", NULL, "Thing: \"s\" has 5 bytes, and 2 to 4 are allowed"},
        {"{\"s\": 12}", NULL, "Thing: \"s\" is not a string"},
        {"{\"s\": \"a\\nb\"}", NULL, "Thing: \"s\" has a control character, which is not allowed"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct reading *r = begin(cases[i].json);
        const char *text = fields_string(&r->f, "s", FIELDS_REQUIRED, 2, 4);

        if (cases[i].value)
            assert_string_equal(text, cases[i].value);
        else
            assert_null(text);
        end(r, cases[i].says);
    }
}

static void test_a_text_has_to_fit_with_its_end(void **state)
{
    struct reading *r = begin("{\"s\": \"abc\"}");
    char three[3] = "xy";
    char four[4] = "";

    fields_text(&r->f, "s", FIELDS_REQUIRED, 1, sizeof(four), four);
    assert_string_equal(four, "abc");
    fields_text(&r->f, "s", FIELDS_REQUIRED, 1, sizeof(three), three);
    assert_string_equal(three, "xy");
    end(r, "Thing: \"s\" has 3 bytes, and 1 to 2 are allowed");
}

static void test_whole_numbers(void **state)
{
    static const struct {
        const char *json;
        uint64_t value; /* 7: it stays as it was */
    } cases[] = {{"{\"n\": 10}", 10}, {"{\"n\": 20}", 20}, {"{\"n\": 9}", 7}, {"{\"n\": 21}", 7},
        {"{\"n\": -10}", 7}, {"{\"n\": 10.0}", 7}, {"{\"n\": \"10\"}", 7}, {"{\"n\": true}", 7}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct reading *r = begin(cases[i].json);
        uint64_t n = 7;

        fields_u64(&r->f, "n", FIELDS_REQUIRED, 10, 20, &n);
        assert_int_equal(n, cases[i].value);
        end(r, n == 7 ? "Thing: \"n\" is not a whole number from 10 to 20" : NULL);
    }
}

/* Each goes into an integer of its own size, and not into what lies beside that. */
static void test_whole_numbers_of_a_size(void **state)
{
    struct reading *r = begin("{\"n\": 65535, \"m\": 4294967295, \"l\": 281474976710656}");
    uint16_t small[3] = {1, 1, 1};
    uint32_t middle[3] = {1, 1, 1};
    uint64_t large[3] = {1, 1, 1};

    fields_int(&r->f, "n", FIELDS_REQUIRED, 1, UINT16_MAX, &small[1]);
    fields_int(&r->f, "m", FIELDS_REQUIRED, 1, UINT32_MAX, &middle[1]);
    fields_int(&r->f, "l", FIELDS_REQUIRED, 1, INT64_MAX, &large[1]);
    assert_memory_equal(small, ((uint16_t[]){1, UINT16_MAX, 1}), sizeof(small));
    assert_memory_equal(middle, ((uint32_t[]){1, UINT32_MAX, 1}), sizeof(middle));
    assert_memory_equal(large, ((uint64_t[]){1, UINT64_C(1) << 48, 1}), sizeof(large));
    fields_int(&r->f, "o", FIELDS_OPTIONAL, 1, UINT16_MAX, &small[1]);
    assert_int_equal(small[1], UINT16_MAX);
    end(r, NULL);
}

static void test_truths(void **state)
{
    struct reading *r = begin("{\"yes\": true, \"no\": false, \"one\": 1}");
    bool yes = false;
    bool no = true;
    bool none = true;

    fields_bool(&r->f, "yes", FIELDS_REQUIRED, &yes);
    fields_bool(&r->f, "no", FIELDS_REQUIRED, &no);
    fields_bool(&r->f, "none", FIELDS_OPTIONAL, &none);
    assert_true(yes && !no && none);
    fields_bool(&r->f, "one", FIELDS_REQUIRED, &none);
    assert_true(none);
    end(r, "Thing: \"one\" is neither true nor false");
}

static void test_words(void **state)
{
    static const char *const words[] = {"lan", "direct", "relay"};

    for (unsigned i = 0; i < 3; i++) {
        char text[32];
        struct reading *r;
        unsigned value = 9;

        (void)snprintf(text, sizeof(text), "{\"w\": \"%s\"}", words[i]);
        r = begin(text);
        fields_enum(&r->f, "w", FIELDS_REQUIRED, words, 3, &value);
        assert_int_equal(value, i);
        end(r, NULL);
        if (i < 2)
            continue;
        /* The last one is none where there are only two. */
        value = 9;
        r = begin(text);
        fields_enum(&r->f, "w", FIELDS_REQUIRED, words, 2, &value);
        assert_int_equal(value, 9);
        end(r, "Thing: \"w\" is \"relay\", and one of lan, direct is allowed");
    }
}

static void test_names(void **state)
{
    char longest[NAME_MAX_LEN + 1];
    char text[NAME_MAX_LEN + 16];
    char name[NAME_MAX_LEN + 1] = "before";
    struct reading *r;

    memset(longest, 'a', NAME_MAX_LEN);
    longest[NAME_MAX_LEN] = '\0';
    (void)snprintf(text, sizeof(text), "{\"n\": \"%s\"}", longest);
    r = begin(text);
    fields_name(&r->f, "n", FIELDS_REQUIRED, name);
    assert_string_equal(name, longest);
    end(r, NULL);
    (void)snprintf(text, sizeof(text), "{\"n\": \"a%s\"}", longest);
    r = begin(text);
    fields_name(&r->f, "n", FIELDS_REQUIRED, name);
    end(r, "Thing: \"n\" has 64 bytes, and 1 to 63 are allowed");
    r = begin("{\"n\": \"A\"}");
    fields_name(&r->f, "n", FIELDS_REQUIRED, name);
    assert_string_equal(name, longest);
    end(r, "Thing: n \"A\" is not a name: 1 to 63 of a-z, 0-9 and '-', not first or last a '-'");
}

static void test_addresses_of_a_family(void **state)
{
    static const struct {
        const char *json;
        bool v4;
        const char *says;
    } cases[] = {
        {"{\"a\": \"10.0.0.1\"}", true, NULL},
        {"{\"a\": \"fd00::1\"}", false, NULL},
        {"{\"a\": \"10.0.0.1\"}", false,
            "Thing: \"a\" is \"10.0.0.1\", which is not an IPv6 address"},
        {"{\"a\": \"fd00::1\"}", true, "Thing: \"a\" is \"fd00::1\", which is not an IPv4 address"},
        {"{\"a\": \"10.0.0.x\"}", true, "Thing: a: \"10.0.0.x\" is not an IPv4 or IPv6 address"},
        {"{\"a\": \"::\"}", false, "Thing: \"a\" is \"::\", which is not an IPv6 address"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct reading *r = begin(cases[i].json);
        struct ip_addr a = {.b = {9}};

        fields_address(&r->f, "a", FIELDS_REQUIRED, cases[i].v4, &a);
        assert_int_equal(a.b[0] == 9, cases[i].says != NULL);
        end(r, cases[i].says);
    }
}

static void test_blocks_of_a_family(void **state)
{
    static const struct {
        const char *text;
        bool v4;
        const char *says; /* a part of it; NULL: it is one */
    } cases[] = {
        {"10.0.0.0/8", true, NULL},
        {"10.0.0.0/30", true, NULL},
        {"10.0.0.0/7", true, "lengths /8 to /30 are allowed"},
        {"10.0.0.0/31", true, "lengths /8 to /30 are allowed"},
        {"fd00::/32", false, NULL},
        {"fd00::/124", false, NULL},
        {"fd00::/31", false, "lengths /32 to /124 are allowed"},
        {"fd00::/125", false, "lengths /32 to /124 are allowed"},
        {"fd00::/64", true, "which is not IPv4"},
        {"10.0.0.0/16", false, "which is not IPv6"},
        {"10.0.0.1/16", true, "which has bits set after its length"},
        {"127.1.0.0/16", true, "which overlaps 127.0.0.0/8, and nodes cannot have those"},
        {"224.0.0.0/8", true, "which overlaps 224.0.0.0/3, and nodes cannot have those"},
        {"223.0.0.0/8", true, NULL},
        {"fe80::/64", false, "which overlaps fe80::/10, and nodes cannot have those"},
        {"::/64", false, "which overlaps ::/8, and nodes cannot have those"},
        {"10.0.0.x/8", true, "Thing: \"b\": \"10.0.0.x\" is not an IPv4 or IPv6 address"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct ip_prefix block = {.len = 77};
        char text[64];
        struct reading *r;

        (void)snprintf(text, sizeof(text), "{\"b\": \"%s\"}", cases[i].text);
        r = begin(text);
        fields_block(&r->f, "b", FIELDS_REQUIRED, cases[i].v4, &block);
        assert_int_equal(fields_end(&r->f), cases[i].says ? -EINVAL : 0);
        assert_int_equal(block.len == 77, cases[i].says != NULL);
        if (cases[i].says && !strstr(r->e.text, cases[i].says))
            fail_msg("\"%s\" has no \"%s\"", r->e.text, cases[i].says);
        json_decref(r->json);
    }
}

static void test_public_keys(void **state)
{
    static const char *const bad[] = {"{\"k\": \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}",
        "{\"k\": \"\"}", "{\"k\": \"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}"};
    struct x25519_public key = {{7}};
    struct reading *r;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        r = begin(bad[i]);
        fields_public_key(&r->f, "k", FIELDS_REQUIRED, &key);
        assert_int_equal(key.b[0], 7);
        end(r, "Thing: \"k\" is not a public key: 44 characters of base64");
    }
    r = begin("{\"k\": \"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}");
    fields_public_key(&r->f, "none", FIELDS_OPTIONAL, &key);
    assert_int_equal(key.b[0], 7);
    fields_public_key(&r->f, "k", FIELDS_REQUIRED, &key);
    assert_int_equal(key.b[0], 1);
    end(r, NULL);
}

static void test_amounts_in_numbers_and_texts(void **state)
{
    static const struct {
        const char *json;
        double value; /* below 0: it is none */
    } cases[] = {
        {"12", 12},
        {"12.5", 12.5},
        {"\"2000\"", 2000},
        {"\"12.5\"", 12.5},
        {"\"2e12\"", 2e12},
        {"\"2E+3\"", 2000},
        {"\"25e-1\"", 2.5},
        {"\"1.5e2\"", 150},
        {"\"00000000000000000000000000000012\"", 12},
        {"\"000000000000000000000000000000012\"", -1},
        {"\"\"", -1},
        {"\".5\"", -1},
        {"\"5.\"", -1},
        {"\"5e\"", -1},
        {"\"5e+\"", -1},
        {"\"1e2e3\"", -1},
        {"\"1.2.3\"", -1},
        {"\" 1\"", -1},
        {"\"1 \"", -1},
        {"\"-1\"", -1},
        {"\"0x10\"", -1},
        {"\"inf\"", -1},
        {"true", -1},
        {"null", -1},
        {"[]", -1},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        json_t *json = json_loads(cases[i].json, JSON_DECODE_ANY, NULL);
        double value = fields_decimal(json);

        if (cases[i].value < 0 ? !isnan(value) : value != cases[i].value)
            fail_msg("%s is read as %f", cases[i].json, value);
        json_decref(json);
    }
    assert_true(isnan(fields_decimal(NULL)));
}

/* What was read is given whole, or not at all. */
static void test_giving(void **state)
{
    struct reading *r = begin("{\"n\": 1}");
    const char read[] = "new";
    char ret[] = "old";

    assert_int_equal(fields_give(&r->f, ret, read, 2), 0);
    assert_string_equal(ret, "ned");
    fields_fail(&r->f, "no");
    assert_int_equal(fields_give(&r->f, ret, read, 4), -EINVAL);
    assert_string_equal(ret, "ned");
    end(r, "Thing: no");
}

static void test_lists_of_texts(void **state)
{
    json_t *list = json_pack("[i, s, s]", 7, "a", "b");

    assert_true(fields_list_has(list, "a"));
    assert_true(fields_list_has(list, "b"));
    assert_false(fields_list_has(list, "7"));
    assert_false(fields_list_has(list, "c"));
    assert_false(fields_list_has(NULL, "a"));
    json_decref(list);
}

/* What cannot be put together is nothing, and stays so. */
static void test_putting_together(void **state)
{
    json_t *object = json_object();
    json_t *array = json_array();
    json_t *expected = json_pack("{s:i, s:[s, s]}", "n", 1, "list", "a", "b");

    fields_set(&object, "n", json_integer(1));
    fields_append(&array, json_string("a"));
    fields_append(&array, json_string("b"));
    fields_set(&object, "list", json_incref(array));
    assert_true(json_equal(object, expected));
    fields_set(&object, "none", NULL);
    assert_null(object);
    fields_set(&object, "n", json_integer(1));
    assert_null(object);
    fields_append(&array, NULL);
    assert_null(array);
    fields_append(&array, json_string("c"));
    assert_null(array);
    json_decref(expected);
}

static void test_numbers_from_zero(void **state)
{
    struct reading *r = begin("{\"n\": 0, \"m\": 1.0}");
    uint64_t n = 7;

    fields_u64(&r->f, "n", FIELDS_REQUIRED, 0, 9, &n);
    assert_int_equal(n, 0);
    n = 7;
    fields_u64(&r->f, "m", FIELDS_REQUIRED, 0, 9, &n);
    assert_int_equal(n, 7);
    end(r, "Thing: \"m\" is not a whole number from 0 to 9");
}

static void test_rates(void **state)
{
    struct reading *r = begin("{\"r\": \"100Mbit\", \"bad\": \"fast\"}");
    uint64_t rate = 7;

    fields_rate(&r->f, "none", FIELDS_OPTIONAL, &rate);
    assert_int_equal(rate, 7);
    fields_rate(&r->f, "r", FIELDS_REQUIRED, &rate);
    assert_int_equal(rate, 100000000);
    fields_rate(&r->f, "bad", FIELDS_REQUIRED, &rate);
    assert_int_equal(rate, 100000000);
    assert_int_equal(fields_end(&r->f), -EINVAL);
    assert_non_null(strstr(r->e.text, "Thing: \"bad\""));
    json_decref(r->json);
}

static void test_objects_and_arrays(void **state)
{
    static const char text[] = "{\"o\": {\"x\": 1}, \"a\": [1, 2]}";
    static const struct {
        size_t min, max;
        bool is_taken;
    } cases[] = {{2, 2, true}, {0, 9, true}, {3, 9, false}, {0, 1, false}};
    struct reading *r = begin(text);

    assert_non_null(fields_object(&r->f, "o", FIELDS_REQUIRED));
    assert_null(fields_object(&r->f, "a", FIELDS_REQUIRED));
    end(r, "Thing: \"a\" is not an object");
    r = begin(text);
    assert_null(fields_array(&r->f, "o", FIELDS_REQUIRED, 0, 9));
    end(r, "Thing: \"o\" is not an array of 0 to 9 items");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        r = begin(text);
        assert_int_equal(
            fields_array(&r->f, "a", FIELDS_REQUIRED, cases[i].min, cases[i].max) != NULL,
            cases[i].is_taken);
        assert_int_equal(fields_end(&r->f) == 0, cases[i].is_taken);
        json_decref(r->json);
    }
}

/* All that was asked for is known, whether it was there or not. */
static void test_unknown_fields(void **state)
{
    struct reading *r = begin("{\"a\": 1, \"b\": 2}");

    (void)fields_get(&r->f, "a", FIELDS_OPTIONAL);
    (void)fields_get(&r->f, "c", FIELDS_OPTIONAL);
    (void)fields_get(&r->f, "b", FIELDS_OPTIONAL);
    fields_refuse_unknown(&r->f);
    end(r, NULL);
    r = begin("{\"a\": 1, \"b\": 2}");
    (void)fields_get(&r->f, "a", FIELDS_OPTIONAL);
    fields_refuse_unknown(&r->f);
    end(r, "Thing: \"b\" is not a field of it");
}

static void test_reserved_addresses(void **state)
{
    static const struct {
        const char *text;
        const char *block;
    } cases[] = {{"127.0.0.1", "127.0.0.0/8"}, {"169.254.1.1", "169.254.0.0/16"}, {"::1", "::/8"},
        {"ff02::1", "ff00::/8"}, {"10.0.0.1", NULL}, {"2001:db8::1", NULL},
        {"0.1.2.3", "0.0.0.0/8"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct ip_addr a;
        const char *block;

        assert_int_equal(ip_addr_parse(&a, cases[i].text, NULL), 0);
        block = block_find_reserved(&a);
        if (cases[i].block)
            assert_string_equal(block, cases[i].block);
        else
            assert_null(block);
    }
}

/* ---- budgets --------------------------------------------------------------------------------- */

static int decode_budgets(
    const char *list, enum object_mode mode, struct budgets *ret, struct err *e)
{
    char text[4096];
    json_t *json;
    struct fields f;

    (void)snprintf(text, sizeof(text), "{\"budgets\": %s}", list);
    json = json_loads(text, 0, NULL);
    assert_non_null(json);
    f = fields_make(json, "Network \"n\"", e);
    budgets_decode(&f, mode, ret);
    json_decref(json);
    return fields_end(&f);
}

/* They come back as they were, of money and of bytes, of a job and of all. */
static void test_budgets_come_back(void **state)
{
    static const char list[] = "[{\"costPerDay\": 12.5}, {\"job\": \"a\", \"bytesPerDay\": 1},"
                               " {\"job\": \"b\", \"costPerDay\": \"1e15\"}]";
    struct budgets b = {.n = 0};
    json_t *json;
    char *text;

    assert_null(budgets_encode(&b));
    assert_int_equal(decode_budgets(list, OBJECT_STRICT, &b, NULL), 0);
    assert_int_equal(b.n, 3);
    assert_string_equal(b.items[0].job, "");
    assert_true(b.items[0].cost == 12.5);
    assert_int_equal(b.items[0].bytes, 0);
    assert_string_equal(b.items[1].job, "a");
    assert_true(b.items[1].cost == 0);
    assert_int_equal(b.items[1].bytes, 1);
    json = budgets_encode(&b);
    text = json_dumps(json, JSON_COMPACT);
    assert_string_equal(text, "[{\"costPerDay\":12.5},{\"job\":\"a\",\"bytesPerDay\":1},"
                              "{\"job\":\"b\",\"costPerDay\":1000000000000000.0}]");
    free(text);
    json_decref(json);
}

static void test_budgets_that_are_none(void **state)
{
    static const struct {
        const char *list;
        const char *says;
    } cases[] = {
        {"{}", "\"budgets\" is not an array of 0 to 16 items"},
        {"[7]", "is not a JSON object"},
        {"[{}]", "a budget has either \"costPerDay\" or \"bytesPerDay\""},
        {"[{\"costPerDay\": 1, \"bytesPerDay\": 1}]",
            "a budget has either \"costPerDay\" or \"bytesPerDay\""},
        {"[{\"costPerDay\": 0}]", "\"costPerDay\" of a budget is no number above 0 up to 1e+15"},
        {"[{\"costPerDay\": -1}]", "\"costPerDay\" of a budget is no number above 0 up to 1e+15"},
        {"[{\"costPerDay\": 1.1e15}]",
            "\"costPerDay\" of a budget is no number above 0 up to 1e+15"},
        {"[{\"costPerDay\": \"much\"}]",
            "\"costPerDay\" of a budget is no number above 0 up to 1e+15"},
        {"[{\"bytesPerDay\": 0.5}]", "\"bytesPerDay\" of a budget is less than a byte"},
        {"[{\"costPerDay\": 1}, {\"bytesPerDay\": 1}]", "the network has two budgets"},
        {"[{\"job\": \"a\", \"costPerDay\": 1}, {\"job\": \"a\", \"bytesPerDay\": 1}]",
            "job a has two budgets"},
        {"[{\"costPerDay\": 1, \"cap\": \"50Mbit\"}]",
            "\"cap\" of a budget has no effect any more: leave it out"},
        {"[{\"costPerDay\": 1, \"shiny\": 1}]", "\"shiny\" is not a field of it"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct budgets b = {.n = 9};
        struct err e = ERR_NULL;

        assert_int_equal(decode_budgets(cases[i].list, OBJECT_STRICT, &b, &e), -EINVAL);
        assert_int_equal(b.n, 9);
        if (!strstr(e.text, cases[i].says))
            fail_msg("\"%s\" has no \"%s\"", e.text, cases[i].says);
    }
}

/* What was stored with a cap loads, and the cap is kept for the notice, up to its full length. */
static void test_a_stored_budget_may_have_a_cap(void **state)
{
    char cap[TRAFFIC_RATE_TEXT_MAX + 1];
    char list[TRAFFIC_RATE_TEXT_MAX + 64];
    struct budgets b = {.n = 0};

    memset(cap, '1', sizeof(cap) - 1);
    cap[TRAFFIC_RATE_TEXT_MAX] = '\0';
    (void)snprintf(list, sizeof(list), "[{\"costPerDay\": 1, \"cap\": \"%s\", \"x\": 1}]", cap);
    assert_int_equal(decode_budgets(list, OBJECT_LENIENT, &b, NULL), -EINVAL);
    assert_int_equal(b.n, 0);
    cap[TRAFFIC_RATE_TEXT_MAX - 1] = '\0';
    (void)snprintf(list, sizeof(list), "[{\"costPerDay\": 1, \"cap\": \"%s\", \"x\": 1}]", cap);
    assert_int_equal(decode_budgets(list, OBJECT_LENIENT, &b, NULL), 0);
    assert_int_equal(b.n, 1);
    assert_string_equal(b.items[0].ignored_cap, cap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_an_object_has_fields),
        cmocka_unit_test(test_a_field_that_is_absent),
        cmocka_unit_test(test_the_first_failure_counts),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_a_text_has_to_fit_with_its_end),
        cmocka_unit_test(test_whole_numbers),
        cmocka_unit_test(test_whole_numbers_of_a_size),
        cmocka_unit_test(test_truths),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_addresses_of_a_family),
        cmocka_unit_test(test_blocks_of_a_family),
        cmocka_unit_test(test_public_keys),
        cmocka_unit_test(test_amounts_in_numbers_and_texts),
        cmocka_unit_test(test_giving),
        cmocka_unit_test(test_lists_of_texts),
        cmocka_unit_test(test_putting_together),
        cmocka_unit_test(test_numbers_from_zero),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_objects_and_arrays),
        cmocka_unit_test(test_unknown_fields),
        cmocka_unit_test(test_reserved_addresses),
        cmocka_unit_test(test_budgets_come_back),
        cmocka_unit_test(test_budgets_that_are_none),
        cmocka_unit_test(test_a_stored_budget_may_have_a_cap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
