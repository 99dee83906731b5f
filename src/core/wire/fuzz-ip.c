/* fuzz-ip.c - any bytes from the TUN or out of a tunnel: parse, hash and mark without a stray read.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/ip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct ip_info before;
    struct ip_info after;
    uint8_t *p;

    if (ip_parse(data, len, &before) != 0)
        return 0;
    assert(before.version == 4 || before.version == 6);
    assert(before.len <= len && before.l4_off <= before.len);

    /* Marking changes two bits and nothing that the parser sees besides. */
    p = malloc(len);
    if (!p)
        return 0;
    memcpy(p, data, len);
    ip_ecn_decapsulate(p, IP_ECN_CE);
    assert(ip_parse(p, len, &after) == 0);
    assert(before.tos >> 2 == after.tos >> 2);
    after.tos = before.tos;
    assert(memcmp(&before.src, &after.src, 2 * sizeof(before.src)) == 0);
    assert(before.len == after.len && before.proto == after.proto);
    free(p);
    return 0;
}
