/* fuzz-nccl-log.c - a log of NCCL's, judged against each profile. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "train/profile/nccl_log.h"
#include "train/profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const char *text = (const char *)data;
    struct nccl_log log = {.n_lines = 0};
    const struct profile *p;

    for (size_t off = 0; off < len;) {
        const char *end = memchr(text + off, '\n', len - off);
        size_t n = end ? (size_t)(end - text) - off : len - off;

        if (!nccl_log_take(&log, text + off, n))
            break;
        off += n + 1;
    }
    assert(strlen(log.network) < sizeof(log.network) && strlen(log.cause) < sizeof(log.cause));
    assert(strlen(log.sockets) < sizeof(log.sockets));
    for (size_t i = 0; (p = profile_at(i)); i++) {
        struct str out = STR_NULL;

        (void)nccl_log_assess(&log, p, 4, i % 2 == 0 ? "weft0" : NULL, &out);
        assert(!strpbrk(str_text(&out), "\n\r\x1b"));
        str_deinit(&out);
    }
    return 0;
}
