/* fuzz-stream.c - any bytes are frames or not, in whatever pieces they come; and a claim or not. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* What decodes is written again as it was. */
static void check_frames(const uint8_t *data, size_t len)
{
    uint8_t *again = malloc(len + 1);
    struct writer out = writer_make(again, len);
    struct reader in = reader_make(data, len);
    const uint8_t *datagram;
    size_t n;
    int r;

    assert(again);
    while ((r = stream_frame_next(&in, &datagram, &n)) == 0) {
        if (n == 0)
            writer_be16(&out, 0);
        else
            stream_frame_put(&out, datagram, n, n);
    }
    assert(r == STREAM_FRAME_E_MORE || r == STREAM_FRAME_E_INVALID);
    assert(!out.failed && writer_len(&out) == len - reader_left(&in));
    assert(memcmp(again, data, writer_len(&out)) == 0);
    free(again);
}

/* A piece less never gives a frame more. */
static void check_cut(const uint8_t *data, size_t len)
{
    struct reader whole = reader_make(data, len);
    struct reader cut = reader_make(data, len / 2);
    const uint8_t *a = NULL;
    const uint8_t *b = NULL;
    size_t n_a = 0;
    size_t n_b = 0;

    while (stream_frame_next(&cut, &b, &n_b) == 0) {
        assert(stream_frame_next(&whole, &a, &n_a) == 0);
        assert(a == b && n_a == n_b);
    }
}

static void check_claim(const uint8_t *data, size_t len)
{
    char text[STREAM_PROOF_TEXT_MAX];
    char again[STREAM_PROOF_TEXT_MAX];
    struct stream_claim claim;

    if (len >= sizeof(text))
        return;
    memcpy(text, data, len);
    text[len] = '\0';
    if (stream_claim_parse(&claim, text))
        assert(strcmp(stream_claim_format(&claim, again), text) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    check_frames(data, len);
    check_cut(data, len);
    check_claim(data, len);
    return 0;
}
