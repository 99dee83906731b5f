/*
 * fuzz-hosts.c - whatever a hosts file holds, a block goes in once, stays as it is when it is put
 * there again, and leaves no trace when it goes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "mesh/names/hosts.h"

#define OWNER "default/n1/5f02a1b3"
#define BLOCK "10.42.0.2\tn1.default.weft n1\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* @from with the block put in, or taken out. */
static struct str replaced(const char *from, size_t len, const char *block)
{
    struct str out = STR_NULL;

    hosts_replace(&out, from, len, OWNER, block);
    return out;
}

static bool has_marker(const struct str *s)
{
    static const char marker[] = "\n# weft begin " OWNER "\n";
    const size_t n = strlen(marker);

    return memmem(str_text(s), s->len, marker, n) ||
           (s->len >= n - 1 && memcmp(str_text(s), marker + 1, n - 1) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str once = replaced((const char *)data, size, BLOCK);
    struct str twice = replaced(str_text(&once), once.len, BLOCK);
    struct str gone = replaced(str_text(&twice), twice.len, NULL);

    if (once.len != twice.len || memcmp(str_text(&once), str_text(&twice), once.len) != 0)
        abort();
    if (!has_marker(&once) || has_marker(&gone))
        abort();
    str_deinit(&once);
    str_deinit(&twice);
    str_deinit(&gone);
    return 0;
}
