/* test-stun.c - the RFC's own messages, answers byte for byte, and everything that is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/text.h"
#include "wire/stun.h"

#define MSG_MAX 256

struct msg {
    uint8_t b[MSG_MAX];
    size_t len;
};

static struct msg msg(const char *hex)
{
    struct msg m = {.len = strlen(hex) / 2};

    assert_true(m.len <= sizeof(m.b) && hex_decode(hex, m.b, m.len));
    return m;
}

static struct endpoint endpoint(const char *text)
{
    struct err e = ERR_NULL;
    struct endpoint ep;

    assert_int_equal(endpoint_parse(&ep, text, &e), 0);
    return ep;
}

#define HEADER(type, len) type len "2112a442b7e7a701bc34d686fa87dfae"

/* RFC 5769 section 2.1: an ICE connectivity check, with a padding of spaces. */
#define SAMPLE_REQUEST                                                                             \
    HEADER("0001", "0058")                                                                         \
    "802200105354554e207465737420636c69656e74"                                                     \
    "002400046e0001ff"                                                                             \
    "80290008932ff9b151263b36"                                                                     \
    "000600096576746a3a68367659202020"                                                             \
    "000800149aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a2"                                             \
    "80280004e57a3bcf"

/* RFC 5769 section 2.2. */
#define SAMPLE_RESPONSE_V4                                                                         \
    HEADER("0101", "003c")                                                                         \
    "8022000b7465737420766563746f7220"                                                             \
    "002000080001a147e112a643"                                                                     \
    "000800142b91f599fd9e90c38c7489f92af9ba53f06be7d7"                                             \
    "80280004c07d4c96"

/* RFC 5769 section 2.3. */
#define SAMPLE_RESPONSE_V6                                                                         \
    HEADER("0101", "0048")                                                                         \
    "8022000b7465737420766563746f7220"                                                             \
    "002000140002a1470113a9faa5d3f179bc25f4b5bed2b9d9"                                             \
    "00080014a382954e4be67bf11784c97c8292c275bfe3ed41"                                             \
    "80280004c8fb0b4c"

static void test_rfc_request(void **state)
{
    struct msg m = msg(SAMPLE_REQUEST);
    struct stun_request req;

    assert_true(stun_is_request(m.b, m.len));
    assert_int_equal(stun_decode_request(&req, m.b, m.len), 0);
    assert_memory_equal(req.id.b, m.b + 8, sizeof(req.id.b));
    assert_true(req.has_fingerprint);
    /* PRIORITY belongs to ICE, which we do not speak. */
    assert_int_equal(req.n_unknown, 1);
    assert_int_equal(req.unknown[0], 0x0024);
}

static void test_rfc_responses(void **state)
{
    static const struct {
        const char *hex;
        const char *mapped;
    } cases[] = {
        {SAMPLE_RESPONSE_V4, "192.0.2.1:32853"},
        {SAMPLE_RESPONSE_V6, "[2001:db8:1234:5678:11:2233:4455:6677]:32853"},
        /* The first of two counts, whatever the second is. */
        {HEADER("0101", "0018") "002000080001a147e112a643"
                                "002000080001a148e112a644",
            "192.0.2.1:32853"},
        {HEADER("0101", "0018") "002000080001a147e112a643"
                                "002000080003a148e112a644",
            "192.0.2.1:32853"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct msg m = msg(cases[i].hex);
        char buf[ENDPOINT_TEXT_MAX];
        struct stun_response resp;

        assert_int_equal(stun_decode_response(&resp, m.b, m.len), 0);
        assert_string_equal(endpoint_format(&resp.mapped, buf), cases[i].mapped);
        assert_memory_equal(resp.id.b, m.b + 8, sizeof(resp.id.b));
    }
}

/* Answers byte for byte. The address attributes are those of RFC 5769 sections 2.2 and 2.3. */
static void test_answers(void **state)
{
    static const struct {
        const char *request;
        const char *from;
        const char *answer;
    } cases[] = {
        /* a bare request, as most clients send it */
        {HEADER("0001", "0000"), "192.0.2.1:32853",
            HEADER("0101", "000c") "002000080001a147e112a643"},
        {HEADER("0001", "0000"), "[2001:db8:1234:5678:11:2233:4455:6677]:32853",
            HEADER("0101", "0018") "002000140002a1470113a9faa5d3f179bc25f4b5bed2b9d9"},
        /* SOFTWARE, and an unknown attribute that may be ignored */
        {HEADER("0001", "0020") "80220004776566748026001400000000000000000000000000000000"
                                "00000000",
            "192.0.2.1:32853", HEADER("0101", "000c") "002000080001a147e112a643"},
        /* a fingerprint is answered with one */
        {HEADER("0001", "0008") "80280004fdf6ae02", "192.0.2.1:32853",
            HEADER("0101", "0014") "002000080001a147e112a643802800047d281f59"},
        /* one attribute that we do not know, and three of which two must be known */
        {HEADER("0001", "0004") "00240000", "192.0.2.1:1",
            HEADER("0111", "0010") "0009000400000414000a000200240000"},
        {HEADER("0001", "000c") "00240000802500007fff0000", "192.0.2.1:1",
            HEADER("0111", "0010") "0009000400000414000a000400247fff"},
        /* what follows a message integrity is not part of the request */
        {HEADER("0001", "001c") "000800140000000000000000000000000000000000000000"
                                "00240000",
            "192.0.2.1:32853", HEADER("0101", "000c") "002000080001a147e112a643"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct msg in = msg(cases[i].request);
        struct msg want = msg(cases[i].answer);
        struct endpoint from = endpoint(cases[i].from);
        uint8_t out[STUN_ANSWER_MAX];
        struct stun_request req;

        assert_int_equal(stun_decode_request(&req, in.b, in.len), 0);
        assert_int_equal(stun_encode_answer(&req, &from, out), want.len);
        assert_memory_equal(out, want.b, want.len);
    }
}

/* What a client asks, our own server answers, and the client reads. */
static void test_asked_and_answered(void **state)
{
    struct stun_transaction id = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
    struct endpoint mapped = endpoint("192.0.2.7:4711");
    uint8_t request[STUN_REQUEST_SIZE];
    uint8_t answer[STUN_ANSWER_MAX];
    struct stun_request req;
    struct stun_response resp;
    size_t len;

    stun_encode_request(&id, 0, request);
    assert_true(stun_is_request(request, sizeof(request)));
    assert_false(stun_is_answer(request, sizeof(request)));
    assert_int_equal(stun_decode_request(&req, request, sizeof(request)), 0);
    len = stun_encode_answer(&req, &mapped, answer);
    assert_true(stun_is_answer(answer, len));
    assert_false(stun_is_answer(answer, STUN_HEADER_SIZE - 1));
    assert_int_equal(stun_decode_response(&resp, answer, len), 0);
    assert_memory_equal(resp.id.b, id.b, sizeof(id.b));
    assert_true(endpoint_equal(&resp.mapped, &mapped));
}

/* What is taken for a request or an answer before any attribute is looked at. */
static void test_kinds(void **state)
{
    static const struct {
        const char *hex;
        bool is_request;
        bool is_answer;
    } cases[] = {
        {HEADER("0001", "0000"), true, false},
        {HEADER("0101", "0000"), false, true},
        {HEADER("0111", "0000"), false, true},
        {HEADER("0011", "0000"), false, false},
        {"000100002112a443b7e7a701bc34d686fa87dfae", false, false},
        {"010100002112a443b7e7a701bc34d686fa87dfae", false, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct msg m = msg(cases[i].hex);

        assert_int_equal(m.len, STUN_HEADER_SIZE);
        assert_int_equal(stun_is_request(m.b, m.len), cases[i].is_request);
        assert_int_equal(stun_is_answer(m.b, m.len), cases[i].is_answer);
        assert_false(stun_is_request(m.b, m.len - 1));
        assert_false(stun_is_answer(m.b, m.len - 1));
    }
}

/* Requests byte for byte, with and without a port that the answer is to go to. */
static void test_requests(void **state)
{
    static const struct {
        uint16_t port;
        const char *hex;
    } cases[] = {
        {0, HEADER("0001", "0018") "802200147765667420202020202020202020202020202020"},
        {0x10e1, HEADER("0001", "0018") "0027000410e10000"
                                        "8022000c776566742020202020202020"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct msg want = msg(cases[i].hex);
        struct stun_transaction id;
        uint8_t out[STUN_REQUEST_SIZE];

        memcpy(id.b, want.b + 8, sizeof(id.b));
        stun_encode_request(&id, cases[i].port, out);
        assert_int_equal(want.len, sizeof(out));
        assert_memory_equal(out, want.b, sizeof(out));
    }
}

/* Of the attributes that are not understood as many are told as there is room for. */
static void test_unknown_attributes(void **state)
{
    struct msg m = msg(HEADER("0001", "0000"));
    struct stun_request req;

    for (unsigned i = 0; i <= STUN_UNKNOWN_MAX; i++) {
        m.b[3] = (uint8_t)(4 * (i + 1));
        m.b[m.len] = 0x01;
        m.b[m.len + 1] = (uint8_t)i;
        m.len += 4;
        assert_int_equal(stun_decode_request(&req, m.b, m.len), 0);
        assert_int_equal(req.n_unknown, i < STUN_UNKNOWN_MAX ? i + 1 : STUN_UNKNOWN_MAX);
        assert_int_equal(req.unknown[req.n_unknown - 1],
            0x0100 + (i < STUN_UNKNOWN_MAX ? i : STUN_UNKNOWN_MAX - 1));
        assert_false(req.has_fingerprint);
    }
    /* Neither a port nor an unknown one counts behind either message integrity. */
    m = msg(
        HEADER("0001", "0034") "001c00200000000000000000000000000000000000000000000000000000000000"
                               "0000000027000410e1000000240000"
                               "00250000");
    assert_int_equal(stun_decode_request(&req, m.b, m.len), 0);
    assert_int_equal(req.response_port, 0);
    assert_int_equal(req.n_unknown, 0);
}

static void test_longest_answers_fit(void **state)
{
    struct endpoint from = endpoint("[2001:db8::1]:1");
    struct stun_request req = {.has_fingerprint = true};
    struct stun_response resp;
    uint8_t out[STUN_ANSWER_MAX];
    size_t len = stun_encode_answer(&req, &from, out);

    assert_int_equal(len, STUN_ANSWER_MAX);
    assert_int_equal(stun_decode_response(&resp, out, len), 0);
    assert_true(endpoint_equal(&resp.mapped, &from));
    req.n_unknown = STUN_UNKNOWN_MAX;
    assert_true(stun_encode_answer(&req, &from, out) <= STUN_ANSWER_MAX);
}

static void test_requests_refused(void **state)
{
    static const struct {
        const char *hex;
        int outcome;
    } cases[] = {
        {"", STUN_E_OTHER},
        {"0001", STUN_E_OTHER},
        {"000100002112a442b7e7a701bc34d686fa87df", STUN_E_OTHER},
        {"000100002112a443b7e7a701bc34d686fa87dfae", STUN_E_OTHER},
        {HEADER("0011", "0000"), STUN_E_OTHER}, /* an indication wants no answer */
        {HEADER("0101", "0000"), STUN_E_OTHER}, /* nor does a response */
        {HEADER("0003", "0000"), STUN_E_OTHER}, /* TURN */
        {HEADER("0001", "0004"), STUN_E_MALFORMED},
        {HEADER("0001", "0000") "80220000", STUN_E_MALFORMED},
        {HEADER("0001", "0002") "8022", STUN_E_MALFORMED},
        {HEADER("0001", "0004") "80220004", STUN_E_MALFORMED},
        {HEADER("0001", "0004") "8022ffff", STUN_E_MALFORMED},
        {HEADER("0001", "0008") "80280004fdf6ae03", STUN_E_MALFORMED},
        {HEADER("0001", "0004") "80280000", STUN_E_MALFORMED},
        {HEADER("0001", "000c") "80280004fdf6ae0280220000", STUN_E_MALFORMED},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct msg m = msg(cases[i].hex);
        struct stun_request req;

        assert_int_equal(stun_decode_request(&req, m.b, m.len), cases[i].outcome);
    }
}

static void test_responses_refused(void **state)
{
    static const struct {
        const char *hex;
        int outcome;
    } cases[] = {
        {HEADER("0001", "0000"), STUN_E_OTHER},
        {HEADER("0111", "0008") "0009000400000414", STUN_E_OTHER},
        {HEADER("0101", "0000"), STUN_E_MALFORMED},
        {HEADER("0101", "000c") "002000080003a147e112a643", STUN_E_MALFORMED},
        {HEADER("0101", "0008") "002000040001a147", STUN_E_MALFORMED},
        {HEADER("0101", "0010") "0020000c0001a147e112a64300000000", STUN_E_MALFORMED},
        {HEADER("0101", "000c") "002000080002a147e112a643", STUN_E_MALFORMED},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct msg m = msg(cases[i].hex);
        struct stun_response resp;

        assert_int_equal(stun_decode_response(&resp, m.b, m.len), cases[i].outcome);
    }
}

/* Any changed bit of a fingerprinted message is noticed. */
static void test_fingerprint_covers_all(void **state)
{
    struct msg m = msg(HEADER("0001", "0010") "80220004776566748028000400000000");
    struct stun_request req;
    unsigned n_valid = 0;

    assert_int_equal(stun_decode_request(&req, m.b, m.len), STUN_E_MALFORMED);
    m = msg(SAMPLE_REQUEST);
    for (size_t bit = 0; bit < m.len * 8; bit++) {
        struct msg changed = m;

        changed.b[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (stun_decode_request(&req, changed.b, changed.len) == 0 && req.has_fingerprint)
            n_valid++;
    }
    assert_int_equal(n_valid, 0);
}

static void test_response_port(void **state)
{
    struct stun_transaction id = {.b = {1, 2, 3}};
    struct endpoint mapped = endpoint("[2001:db8::7]:4000");
    uint8_t request[STUN_REQUEST_SIZE], answer[STUN_ANSWER_MAX];
    static const char *const refused[] = {
        HEADER("0001", "0008") "0027000400000000", /* port 0 */
        HEADER("0001", "0004") "00270000",
        HEADER("0001", "000c") "0027000610e1000000000000",
        HEADER("0001", "0008") "0027000310e10000",
    };
    struct stun_request req;
    struct msg m;

    stun_encode_request(&id, 4321, request);
    assert_true(stun_is_request(request, sizeof(request)));
    assert_int_equal(stun_decode_request(&req, request, sizeof(request)), 0);
    assert_int_equal(req.response_port, 4321);
    assert_int_equal(req.n_unknown, 0);
    assert_memory_equal(req.id.b, id.b, sizeof(id.b));
    /* Its answer is not longer than itself, or it would be none that is given. */
    assert_true(stun_encode_answer(&req, &mapped, answer) <= sizeof(request));
    /* The length of its value without the padding, as others write it. */
    m = msg(HEADER("0001", "0008") "0027000210e10000");
    assert_int_equal(stun_decode_request(&req, m.b, m.len), 0);
    assert_int_equal(req.response_port, 4321);
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        m = msg(refused[i]);
        assert_int_equal(stun_decode_request(&req, m.b, m.len), STUN_E_MALFORMED);
    }
    m = msg(HEADER("0001", "0000"));
    assert_int_equal(stun_decode_request(&req, m.b, m.len), 0);
    assert_int_equal(req.response_port, 0);
}

/* Where it is not served it is an attribute that is not understood (RFC 5780 section 7.5). */
static void test_response_port_refused(void **state)
{
    struct endpoint from = endpoint("192.0.2.1:1");
    struct msg in = msg(HEADER("0001", "0008") "0027000410e10000");
    struct msg want = msg(HEADER("0111", "0010") "0009000400000414000a000200270000");
    uint8_t out[STUN_ANSWER_MAX];
    struct stun_refusal refusal;
    struct stun_request req;

    assert_int_equal(stun_decode_request(&req, in.b, in.len), 0);
    stun_refuse_port(&req);
    assert_int_equal(req.response_port, 0);
    assert_int_equal(stun_encode_answer(&req, &from, out), want.len);
    assert_memory_equal(out, want.b, want.len);
    assert_int_equal(stun_decode_refusal(&refusal, out, want.len), 0);
    assert_int_equal(refusal.code, STUN_UNKNOWN_ATTRIBUTE);
    assert_memory_equal(refusal.id.b, req.id.b, sizeof(req.id.b));
    /* A request without it is as good as before; one with many others stays within its room. */
    in = msg(HEADER("0001", "0000"));
    assert_int_equal(stun_decode_request(&req, in.b, in.len), 0);
    stun_refuse_port(&req);
    assert_int_equal(req.n_unknown, 0);
    req.response_port = 1;
    req.n_unknown = STUN_UNKNOWN_MAX - 1;
    stun_refuse_port(&req);
    assert_int_equal(req.n_unknown, STUN_UNKNOWN_MAX);
    assert_int_equal(req.unknown[STUN_UNKNOWN_MAX - 1], 0x0027);
    req.response_port = 1;
    stun_refuse_port(&req);
    assert_int_equal(req.response_port, 0);
    assert_int_equal(req.n_unknown, STUN_UNKNOWN_MAX);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *hex;
        int outcome;
        unsigned code;
    } cases[] = {
        {HEADER("0111", "0008") "0009000400000414", 0, 420},
        {HEADER("0111", "000c") "0009000500000500"
                                "6e000000",
            0, 500}, /* with a phrase */
        {HEADER("0111", "0008") "0009000400000300", 0, 300},
        {HEADER("0111", "0008") "0009000400000663", 0, 699},
        {HEADER("0101", "000c") "002000080001a147e112a643", STUN_E_OTHER, 0},
        {HEADER("0001", "0000"), STUN_E_OTHER, 0},
        {HEADER("0111", "0000"), STUN_E_MALFORMED, 0}, /* no code */
        {HEADER("0111", "0008") "0009000400000214", STUN_E_MALFORMED, 0},
        {HEADER("0111", "0008") "0009000400000714", STUN_E_MALFORMED, 0},
        {HEADER("0111", "0008") "0009000400000464", STUN_E_MALFORMED, 0},
        {HEADER("0111", "0004") "00090000", STUN_E_MALFORMED, 0},
        {HEADER("0111", "0008") "0009000800000414", STUN_E_MALFORMED, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct msg m = msg(cases[i].hex);
        struct stun_refusal refusal = {.code = 0};

        assert_int_equal(stun_decode_refusal(&refusal, m.b, m.len), cases[i].outcome);
        assert_int_equal(refusal.code, cases[i].code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rfc_request),
        cmocka_unit_test(test_rfc_responses),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_asked_and_answered),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_unknown_attributes),
        cmocka_unit_test(test_longest_answers_fit),
        cmocka_unit_test(test_response_port),
        cmocka_unit_test(test_response_port_refused),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_requests_refused),
        cmocka_unit_test(test_responses_refused),
        cmocka_unit_test(test_fingerprint_covers_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
