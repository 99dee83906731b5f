/* test-token.c - join tokens survive the round trip, and damage is told in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/content/body.h"
#include "api/content/token.h"
#include "base/err.h"
#include "base/text.h"

static struct token sample(void)
{
    struct token t = {.network = "default", .n_udp = 2, .n_api = 2, .expires_at = 1790000000};

    assert_int_equal(endpoint_parse(&t.udp[0], "203.0.113.10:51820", NULL), 0);
    assert_int_equal(endpoint_parse(&t.udp[1], "[2001:db8::10]:51820", NULL), 0);
    (void)snprintf(t.api[0], sizeof(t.api[0]), "hub.example.org:8443");
    (void)snprintf(t.api[1], sizeof(t.api[1]), "[2001:db8::10]:8443");
    memset(t.pin.b, 0x11, sizeof(t.pin.b));
    memset(t.hub_key.b, 0x22, sizeof(t.hub_key.b));
    memset(t.secret.b, 0x33, sizeof(t.secret.b));
    return t;
}

static void add_other(struct token *t, const char *api)
{
    struct token_other *o = &t->others[t->n_others++];

    o->n_api = 1;
    (void)snprintf(o->api[0], sizeof(o->api[0]), "%s", api);
    memset(o->pin.b, 0x44, sizeof(o->pin.b));
    memset(o->key.b, 0x55, sizeof(o->key.b));
}

/* Further hubs are left out where there is no room for them, the last ones first. */
static void test_others(void **state)
{
    struct token t = sample();
    struct token back = TOKEN_NULL;
    char *text = NULL;

    add_other(&t, "203.0.113.11:8443");
    add_other(&t, "[2001:db8::12]:8443");
    t.others[1].n_api = 2;
    (void)snprintf(t.others[1].api[1], sizeof(t.others[1].api[1]), "hub-c.example.org:8443");
    assert_int_equal(token_encode(&t, &text, NULL), 0);
    assert_int_equal(token_decode(&back, text, NULL), 0);
    assert_memory_equal(&back, &t, sizeof(t));
    free(text);

    t.n_api = TOKEN_ENDPOINTS_MAX;
    for (unsigned i = 0; i < t.n_api; i++) {
        memset(t.api[i], 'h', TOKEN_API_MAX);
        memcpy(t.api[i] + TOKEN_API_MAX - 5, ":8443", sizeof(":8443"));
    }
    for (unsigned i = 0; i < t.n_others; i++) {
        t.others[i].n_api = TOKEN_OTHER_ENDPOINTS_MAX;
        for (unsigned k = 0; k < TOKEN_OTHER_ENDPOINTS_MAX; k++)
            memcpy(t.others[i].api[k], t.api[0], sizeof(t.api[0]));
    }
    assert_int_equal(token_encode(&t, &text, NULL), 0);
    back = (struct token)TOKEN_NULL;
    assert_int_equal(token_decode(&back, text, NULL), 0);
    assert_in_range(back.n_others, 0, 1);
    assert_int_equal(back.n_api, TOKEN_ENDPOINTS_MAX);
    free(text);
}

static void test_round_trip(void **state)
{
    struct token t = sample();
    struct token back = TOKEN_NULL;
    struct err e = ERR_NULL;
    char padded[TOKEN_TEXT_MAX];
    char *text;

    assert_int_equal(token_encode(&t, &text, &e), 0);
    assert_int_equal(strncmp(text, "weft1.", 6), 0);
    (void)snprintf(padded, sizeof(padded), "  %s\r\n", text);
    assert_int_equal(token_decode(&back, padded, &e), 0);
    assert_memory_equal(&back, &t, sizeof(t));
    free(text);
}

static void test_full(void **state)
{
    struct token t = sample();
    struct err e = ERR_NULL;
    char *text = NULL;

    t.n_api = TOKEN_ENDPOINTS_MAX;
    for (unsigned i = 0; i < t.n_api; i++) {
        memset(t.api[i], 'h', TOKEN_API_MAX);
        memcpy(t.api[i] + TOKEN_API_MAX - 5, ":8443", sizeof(":8443"));
    }
    assert_int_equal(token_encode(&t, &text, &e), 0);
    assert_true(strlen(text) <= TOKEN_TEXT_MAX);
    assert_int_equal(token_decode(&t, text, &e), 0);
    free(text);
}

static void assert_refused(const char *text, const char *sentence)
{
    struct token before = sample();
    struct token t = before;
    struct err e = ERR_NULL;

    assert_int_equal(token_decode(&t, text, &e), -EINVAL);
    if (!strstr(e.text, sentence))
        fail_msg("\"%s\" does not say \"%s\"", e.text, sentence);
    assert_memory_equal(&t, &before, sizeof(t));
}

/* A token around any JSON. */
static void assert_json_refused(const char *json, const char *sentence)
{
    char text[2 * TOKEN_TEXT_MAX] = "weft1.";

    base64url_encode(json, strlen(json), text + 6);
    assert_refused(text, sentence);
}

static void test_damage(void **state)
{
    struct token t = sample();
    struct token back;
    struct err e = ERR_NULL;
    char *long_one = malloc((1 << 20) + 1);
    char longer[TOKEN_TEXT_MAX];
    char *text;
    size_t len;

    assert_refused("", "is empty");
    assert_refused(" \n", "is empty");
    assert_refused("weft2.abc", "not a join token");
    assert_refused("https://hub.example:8443/", "not a join token");
    assert_refused("\"weft1.abcd\"", "a quotation mark before");
    assert_refused("weft1.abcd'", "the character ' in it");
    assert_refused("weft1.", "cut short, or damaged at its end");
    assert_refused("weft1.a b", "white space in it");
    assert_refused("weft1.!!!!", "the character ! in it");
    assert_refused("weft1.ab\xc3\xa4", "a character in it that no token has");
    memset(long_one, 'A', 1 << 20);
    long_one[1 << 20] = '\0';
    memcpy(long_one, "weft1.", 6);
    assert_refused(long_one, "more than 4096");
    long_one[TOKEN_TEXT_MAX] = '\0';
    assert_refused(long_one, "cut short, or damaged at its end");
    free(long_one);

    /* Cut anywhere, or with more behind it, it is refused. */
    assert_int_equal(token_encode(&t, &text, &e), 0);
    (void)snprintf(longer, sizeof(longer), "%sxx", text);
    assert_refused(longer, "cut short, or damaged at its end");
    for (len = strlen(text) - 1; len > 6; len--) {
        text[len] = '\0';
        assert_int_equal(token_decode(&back, text, &e), -EINVAL);
        assert_non_null(strstr(e.text, "cut short, or damaged at its end"));
        assert_non_null(strstr(e.text, "copy it again"));
    }
    free(text);
}

static void test_fields(void **state)
{
    static const char tail[] =
        "\"a\":[\"h:1\"],\"t\":\"ERERERERERERERERERERERERERERERERERERERERERE=\","
        "\"k\":\"IiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiI=\","
        "\"s\":\"MzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzM\",\"e\":1}";
    char json[1024];

    assert_json_refused("[]", "cut short, or damaged at its end");
    assert_json_refused("{}", "is damaged");
    (void)snprintf(json, sizeof(json), "{\"n\":\"A B\",\"u\":[\"1.2.3.4:5\"],%s", tail);
    assert_json_refused(json, "is damaged");
    (void)snprintf(json, sizeof(json), "{\"n\":\"d\",\"u\":[],%s", tail);
    assert_json_refused(json, "is damaged");
    (void)snprintf(json, sizeof(json), "{\"n\":\"d\",\"u\":[\"nowhere\"],%s", tail);
    assert_json_refused(json, "is damaged");
    (void)snprintf(json, sizeof(json), "{\"n\":\"d\",\"u\":[7],%s", tail);
    assert_json_refused(json, "is damaged");
    (void)snprintf(json, sizeof(json), "{\"n\":\"d\",\"u\":[\"1.2.3.4:5\"],\"s\":\"AAAA\"}");
    assert_json_refused(json, "is damaged");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_fields),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
