/* fuzz-member.c - any text is a proof that is written again as it was, or none; none verifies. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/containers.h"
#include "wire/member_proof.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A key that the input does not know, and a request that is made of it. */
static void check_verdict(const struct member_proof *proof, const uint8_t *data, size_t len)
{
    static const struct member_proof_key key = {{0x5a, 0xa5}};
    struct member_proof_request rq = {
        .method = "PUT", .path = "/v1/status", .body = data, .body_len = len};
    struct member_proof good = *proof;

    assert(member_proof_make(&good, &key, &rq));
    assert(member_proof_verify(&good, &key, &rq));
    assert(!member_proof_verify(proof, &key, &rq) || memcmp(&good, proof, sizeof(good)) == 0);
}

/* What is taken once is never taken again, in whatever order the numbers come. */
static void check_window(const uint8_t *data, size_t len)
{
    struct seq_window w;
    uint64_t seen[256] = {0};
    bool is_seen[256] = {false};
    size_t n = len < 256 ? len : 256;

    w = (struct seq_window){.highest = 7, .seen = UINT64_MAX};
    for (size_t i = 0; i < n; i++) {
        bool taken = seq_window_take(&w, data[i]);

        assert(!taken || (data[i] > 7 && !is_seen[data[i]]));
        is_seen[data[i]] |= taken;
        seen[i] = w.highest;
        assert(i == 0 || seen[i] >= seen[i - 1]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char text[2 * MEMBER_PROOF_TEXT_MAX];
    char again[MEMBER_PROOF_TEXT_MAX];
    struct member_proof proof;

    check_window(data, len);
    if (len >= sizeof(text))
        return 0;
    memcpy(text, data, len);
    text[len] = '\0';
    if (member_proof_parse(&proof, text)) {
        assert(strcmp(member_proof_format(&proof, again), text) == 0);
        check_verdict(&proof, data, len);
    }
    return 0;
}
