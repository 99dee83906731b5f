/* fuzz-hosts-check.c - whatever is taken holds no line but those of the network's addresses. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mesh/names/hosts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hosts_rules rules = {.network = "default", .node = "n1"};
    const char *text = (const char *)data;

    (void)ip_prefix_parse(&rules.cidr4, "10.42.0.0/16", NULL);
    (void)ip_prefix_parse(&rules.cidr6, "fd5a:1::/64", NULL);
    if (hosts_check_block(&rules, text, size, NULL) != 0 || size == 0)
        return 0;
    if (text[size - 1] != '\n' || memchr(text, '#', size) || memchr(text, '\0', size))
        abort();
    return 0;
}
