/* fuzz-addr.c - text that parses must survive a round trip through its formatter. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_endpoint(const char *text)
{
    struct err e = ERR_NULL;
    struct endpoint a;
    struct endpoint b;
    char buf[ENDPOINT_TEXT_MAX];

    if (endpoint_parse(&a, text, &e) != 0)
        return;
    assert(endpoint_parse(&b, endpoint_format(&a, buf), &e) == 0);
    /* The scope of a v4 address has no meaning and no text. */
    assert(ip_addr_is_v4(&a.addr) || endpoint_equal(&a, &b));
}

static void check_prefix(const char *text)
{
    struct err e = ERR_NULL;
    struct ip_prefix a;
    struct ip_prefix b;
    char buf[IP_PREFIX_TEXT_MAX];

    if (ip_prefix_parse(&a, text, &e) != 0)
        return;
    assert(ip_prefix_parse(&b, ip_prefix_format(&a, buf), &e) == 0);
    assert(ip_prefix_equal(&a, &b));
    assert(ip_prefix_has(&a, &a.addr));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *text = strndup((const char *)data, len);

    if (!text)
        return 0;
    check_endpoint(text);
    check_prefix(text);
    free(text);
    return 0;
}
