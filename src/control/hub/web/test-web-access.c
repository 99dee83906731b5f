/* test-web-access.c - logins are used once and in time, sessions end, and who guesses is held off.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "hub/enrol/admin_tokens.h"
#include "hub/web/web_access.h"

#define START (1000 * NSEC_PER_SEC)
#define A43   "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

static uint64_t seed = 7;
static struct web_access w;
static struct ip_addr here;

static int enter(void **state)
{
    struct rng rng = rng_seeded(&seed);

    web_access_init(&w, &rng);
    return ip_addr_parse(&here, "198.51.100.7", NULL);
}

static int leave(void **state)
{
    web_access_deinit(&w);
    return 0;
}

static void offer(const char *network, char ret[static WEB_SECRET_MAX])
{
    struct web_grant grant = {.role = ROLE_VIEWER, .maker = "uid:0", .maker_mark = 1};

    (void)snprintf(grant.network, sizeof(grant.network), "%s", network);
    web_access_offer(&w, &grant, WEB_LOGIN_TTL, START, ret);
    assert_int_equal(strlen(ret), WEB_SECRET_MAX - 1);
}

/* The session's cookie in @cookie. */
static enum web_verdict login(const char *text, nsec_t now, char cookie[static 80])
{
    const struct web_session *s = NULL;
    char secret[WEB_SECRET_MAX] = "";
    enum web_verdict verdict = web_access_login(&w, text, &here, now, &s, secret);

    assert_true((verdict == WEB_TAKEN) == (s != NULL));
    (void)snprintf(cookie, 80, "%s=%s", WEB_COOKIE, secret);
    return verdict;
}

static void test_a_login_is_used_once(void **state)
{
    const struct web_session *s;
    char text[WEB_SECRET_MAX];
    char cookie[80];
    char again[80];

    offer("default", text);
    assert_int_equal(login(text, START, cookie), WEB_TAKEN);
    s = web_access_find(&w, cookie, START);
    assert_non_null(s);
    assert_int_equal(s->grant.role, ROLE_VIEWER);
    assert_string_equal(s->grant.network, "default");
    assert_ptr_equal(web_access_find_id(&w, s->id, START), s);
    assert_int_equal(login(text, START, again), WEB_UNKNOWN);
    /* A login is no session, nor the other way round. */
    (void)snprintf(again, sizeof(again), "%s=%s", WEB_COOKIE, text);
    assert_null(web_access_find(&w, again, START));
    assert_int_equal(login(cookie + sizeof(WEB_COOKIE), START, again), WEB_UNKNOWN);
}

static void test_a_login_is_used_in_time(void **state)
{
    char text[WEB_SECRET_MAX];
    char other[WEB_SECRET_MAX];
    char cookie[80];

    offer("", text);
    offer("", other);
    assert_string_not_equal(text, other);
    assert_int_equal(login(text, START + WEB_LOGIN_TTL * NSEC_PER_SEC - 1, cookie), WEB_TAKEN);
    assert_int_equal(login(other, START + WEB_LOGIN_TTL * NSEC_PER_SEC, cookie), WEB_EXPIRED);
}

static void test_a_session_ends(void **state)
{
    const struct web_session *s;
    char text[WEB_SECRET_MAX];
    char cookie[80];
    uint64_t id;

    offer("", text);
    assert_int_equal(login(text, START, cookie), WEB_TAKEN);
    assert_non_null(web_access_find(&w, cookie, START + WEB_SESSION_LIFE - 1));
    assert_null(web_access_find(&w, cookie, START + WEB_SESSION_LIFE));
    s = web_access_find(&w, cookie, START);
    id = s->id;
    web_access_end(&w, id);
    assert_null(web_access_find(&w, cookie, START));
    assert_null(web_access_find_id(&w, id, START));
    web_access_end(&w, id);
    /* What was none never is one: the cookie of no session is not that of an empty place. */
    assert_null(web_access_find(&w, WEB_COOKIE "=" A43, START));
    assert_null(web_access_find_id(&w, 0, START));
}

static void test_who_guesses_is_held_off(void **state)
{
    struct ip_addr other;
    const struct web_session *s;
    char text[WEB_SECRET_MAX];
    char secret[WEB_SECRET_MAX];
    char cookie[80];

    offer("", text);
    for (unsigned i = 0; i < GUESSES_BURST; i++)
        assert_int_equal(login(i % 2 ? A43 : "nonsense", START, cookie), WEB_UNKNOWN);
    /* Even the right one is not looked at, and stays good for who comes from elsewhere, or later.
     */
    assert_int_equal(login(text, START, cookie), WEB_LIMITED);
    assert_int_equal(login(text, START + GUESSES_EACH / 2, cookie), WEB_LIMITED);
    assert_int_equal(ip_addr_parse(&other, "203.0.113.9", NULL), 0);
    assert_int_equal(web_access_login(&w, "nonsense", &other, START, &s, secret), WEB_UNKNOWN);
    assert_int_equal(login(text, START + 2 * GUESSES_EACH, cookie), WEB_TAKEN);
}

/* Those that end first make space. */
static void test_they_are_few(void **state)
{
    char texts[WEB_LOGINS_MAX + 1][WEB_SECRET_MAX];
    char cookies[WEB_SESSIONS_MAX + 1][80];
    char text[WEB_SECRET_MAX];
    char cookie[80];

    for (unsigned i = 0; i <= WEB_LOGINS_MAX; i++) {
        struct web_grant grant = {.role = ROLE_VIEWER, .maker_mark = 1};

        web_access_offer(&w, &grant, 100 + i, START, texts[i]);
    }
    assert_int_equal(login(texts[0], START, cookie), WEB_UNKNOWN);
    assert_int_equal(login(texts[1], START, cookie), WEB_TAKEN);
    assert_int_equal(login(texts[WEB_LOGINS_MAX], START, cookie), WEB_TAKEN);
    web_access_deinit(&w);
    for (unsigned i = 0; i <= WEB_SESSIONS_MAX; i++) {
        offer("", text);
        assert_int_equal(login(text, START + i, cookies[i]), WEB_TAKEN);
    }
    assert_null(web_access_find(&w, cookies[0], START));
    for (unsigned i = 1; i <= WEB_SESSIONS_MAX; i++)
        assert_non_null(web_access_find(&w, cookies[i], START));
}

static void test_cookies(void **state)
{
    static const struct {
        const char *header;
        const char *value; /* NULL: none */
    } rows[] = {
        {WEB_COOKIE "=" A43, A43},
        {"a=b; " WEB_COOKIE "=" A43, A43},
        {"a=b;" WEB_COOKIE "=" A43 "; c=d", A43},
        {"", NULL},
        {"a=b", NULL},
        {WEB_COOKIE, NULL},
        {WEB_COOKIE "=", NULL},
        {WEB_COOKIE "=" A43 "A", NULL},
        {WEB_COOKIE "x=" A43, NULL},
        {"x" WEB_COOKIE "=" A43, NULL},
        {"__host-weft=" A43, NULL},
        {WEB_COOKIE "=" A43 "; " WEB_COOKIE "=" A43, NULL},
    };
    char value[WEB_SECRET_MAX];

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        bool is = web_cookie_read(rows[i].header, value);

        if (is != (rows[i].value != NULL))
            fail_msg("row %zu: %s", i, rows[i].header);
        if (is)
            assert_string_equal(value, rows[i].value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_login_is_used_once, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_login_is_used_in_time, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_session_ends, enter, leave),
        cmocka_unit_test_setup_teardown(test_who_guesses_is_held_off, enter, leave),
        cmocka_unit_test_setup_teardown(test_they_are_few, enter, leave),
        cmocka_unit_test(test_cookies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
