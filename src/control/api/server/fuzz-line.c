/* fuzz-line.c - the header Accept-Encoding as a stranger sends it; what is packed unpacks. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "api/server/stream.h"
#include "test/support/fuzz_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Packs it with the head and the end of a stream, and unpacks it. */
static void turn_around(struct line *l)
{
    struct line *packed = line_packed(l);
    size_t n = LINE_PACKED_HEAD + packed->len + LINE_PACKED_END;
    uLongf n_text = l->len + 1;
    char *stream = malloc(n);
    char *text = malloc(n_text);

    assert(stream && text);
    line_packed_head(stream);
    memcpy(stream + LINE_PACKED_HEAD, packed->text, packed->len);
    line_packed_end(
        line_checksum_add(LINE_CHECKSUM_NONE, packed), stream + LINE_PACKED_HEAD + packed->len);
    assert(uncompress((Bytef *)text, &n_text, (const Bytef *)stream, n) == Z_OK);
    assert(n_text == l->len && memcmp(text, l->text, l->len) == 0);
    free(text);
    free(stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *header = fuzz_text(data, len);
    struct line *l = line_new((const char *)data, len);

    (void)line_accepts_packed(header);
    if (l)
        turn_around(l);
    line_unref(l);
    free(header);
    return 0;
}
