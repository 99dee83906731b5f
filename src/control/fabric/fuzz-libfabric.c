/* fuzz-libfabric.c - any bytes as the output of fi_info: the lists stay bounded and printable. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/fabric.h"
#include "test/support/fuzz_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *text = fuzz_text(data, len);
    struct libfabric l;

    libfabric_parse(&l, text);
    assert(strlen(l.providers) < sizeof(l.providers) && l.n_efa <= LIBFABRIC_DOMAINS_MAX);
    assert(!strpbrk(l.providers, "\n\x1b "));
    free(text);
    return 0;
}
