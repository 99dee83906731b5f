/* test-hub-ask.c - one call of a hub's members' API. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <cmocka.h>
#include <uv.h>

#include "agent/hublink/hub_link.h"
#include "base/err.h"
#include "wire/member_proof.h"

/* Only a refusal of the stamp, with all that is needed to make another one. */
static void test_what_is_learned_of_a_refusal(void **state)
{
    static const struct {
        int result;
        int status;
        const char *body;
        bool learns;
    } cases[] = {
        {CLIENT_E_REFUSED, 401, "{\"boot\": 1, \"after\": 0}", true},
        {CLIENT_E_REFUSED, 401, "{\"boot\": 9, \"after\": 6}", true},
        {0, 401, "{\"boot\": 1, \"after\": 0}", false},
        {CLIENT_E_UNREACHABLE, 401, "{\"boot\": 1, \"after\": 0}", false},
        {CLIENT_E_REFUSED, 403, "{\"boot\": 1, \"after\": 0}", false},
        {CLIENT_E_REFUSED, 401, "{\"boot\": 0, \"after\": 0}", false},
        {CLIENT_E_REFUSED, 401, "{\"boot\": -1, \"after\": 0}", false},
        {CLIENT_E_REFUSED, 401, "{\"boot\": 1, \"after\": -1}", false},
        {CLIENT_E_REFUSED, 401, "{\"boot\": \"1\", \"after\": 0}", false},
        {CLIENT_E_REFUSED, 401, "{\"boot\": 1, \"after\": \"0\"}", false},
        {CLIENT_E_REFUSED, 401, "{\"boot\": 1}", false},
        {CLIENT_E_REFUSED, 401, "{\"after\": 1}", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct client_answer answer = {
            .status = cases[i].status, .body = json_loads(cases[i].body, 0, NULL)};
        uint64_t boot = (uint64_t)json_integer_value(json_object_get(answer.body, "boot"));
        struct member_proof_signer signer = {.boot = 55, .next = 3};
        uint64_t after = (uint64_t)json_integer_value(json_object_get(answer.body, "after"));

        assert_int_equal(hub_ask_learn(&signer, cases[i].result, &answer), cases[i].learns);
        assert_int_equal(signer.boot, cases[i].learns ? boot : 55);
        assert_int_equal(signer.next, cases[i].learns ? after + 1 : 3);
        client_answer_deinit(&answer);
    }
}

static void test_no_hub_to_ask(void **state)
{
    const struct hub_link_listener listener = {.on_event = NULL};
    struct member_proof_signer signer = {.boot = 0};
    struct hub_ask *ask = NULL;
    struct err e = ERR_NULL;
    struct hub_link *link;
    uv_loop_t loop;

    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(hub_link_new(&link, &loop, "lo", &signer, &listener, NULL), 0);
    assert_int_equal(
        hub_link_ask(link, "GET", "/v1/jobs", NULL, 1000, NULL, NULL, &ask, &e), -ENOTCONN);
    assert_string_equal(e.text, "this node knows of no hub yet");
    assert_null(ask);
    (void)hub_link_free(link);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_learned_of_a_refusal),
        cmocka_unit_test(test_no_hub_to_ask),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
