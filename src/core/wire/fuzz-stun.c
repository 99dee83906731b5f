/* fuzz-stun.c - any datagram decodes or not; what decodes is answered, and the answer decodes. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/addr.h"
#include "wire/stun.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Where no other port is served, the request is refused and says why. */
static void check_no_other_port(struct stun_request req)
{
    struct endpoint from = {.port = 1};
    bool must_fail = req.response_port != 0 || req.n_unknown > 0;
    uint8_t out[STUN_ANSWER_MAX];
    struct stun_refusal refusal;
    int e;

    stun_refuse_port(&req);
    e = stun_decode_refusal(&refusal, out, stun_encode_answer(&req, &from, out));
    assert(e == (must_fail ? 0 : STUN_E_OTHER));
    if (e == 0)
        assert(refusal.code == STUN_UNKNOWN_ATTRIBUTE && memcmp(&refusal.id, &req.id, 12) == 0);
}

static void check_request(const uint8_t *data, size_t len)
{
    struct endpoint from = {.port = 32853};
    uint8_t out[STUN_ANSWER_MAX];
    struct stun_response resp;
    struct stun_request req;
    size_t out_len;
    int e = stun_decode_request(&req, data, len);

    assert(stun_is_request(data, len) == (e != STUN_E_OTHER));
    if (e != 0)
        return;
    from.addr = len % 2 ? ip_addr_v4(data) : ip_addr_v6(data);
    out_len = stun_encode_answer(&req, &from, out);
    assert(out_len <= sizeof(out));
    e = stun_decode_response(&resp, out, out_len);
    assert(e == (req.n_unknown > 0 ? STUN_E_OTHER : 0));
    if (e == 0)
        assert(endpoint_equal(&resp.mapped, &from) && memcmp(&resp.id, &req.id, 12) == 0);
    check_no_other_port(req);
}

static void check_response(const uint8_t *data, size_t len)
{
    struct stun_response resp;
    struct stun_response again;
    struct stun_request req = {.has_fingerprint = true};
    uint8_t out[STUN_ANSWER_MAX];

    if (stun_decode_response(&resp, data, len) != 0)
        return;
    req.id = resp.id;
    assert(stun_decode_response(&again, out, stun_encode_answer(&req, &resp.mapped, out)) == 0);
    assert(endpoint_equal(&resp.mapped, &again.mapped));
}

static void check_refusal(const uint8_t *data, size_t len)
{
    struct stun_refusal refusal;

    if (stun_decode_refusal(&refusal, data, len) == 0)
        assert(refusal.code >= 300 && refusal.code <= 699);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    check_request(data, len);
    check_response(data, len);
    check_refusal(data, len);
    return 0;
}
