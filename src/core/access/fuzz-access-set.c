/* fuzz-access-set.c - any text as the lines of rules, and any bytes as a packet that they decide
 * about. */
#include <stdint.h>
#include <string.h>

#include "access/access_set.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* The first 64 bytes are the packet. */
#define PACKET 64
#define LINE   1024

static void ask(const struct access_set *s, const uint8_t *p, enum access_way way)
{
    struct access_packet packet;
    struct ip_info ip;

    if (ip_parse(p, PACKET, &ip) != 0)
        return;
    access_packet_read(&packet, p, PACKET, &ip, way);
    (void)access_set_is_shut(s, &packet);
    (void)access_set_find(s, &packet);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct access_builder *b = access_builder_new(1);
    struct access_set *s = NULL;
    uint8_t packet[PACKET] = {0};
    char line[LINE + 1];

    if (!b)
        return 0;
    memcpy(packet, data, len < PACKET ? len : PACKET);
    for (size_t off = PACKET; off < len;) {
        const uint8_t *end = memchr(data + off, '\n', len - off);
        size_t n = end ? (size_t)(end - data) - off : len - off;

        off += n + 1;
        if (n > LINE)
            continue;
        memcpy(line, data + off - n - 1, n);
        line[n] = '\0';
        (void)access_builder_line(b, line, NULL);
    }
    if (access_builder_finish(b, &s, NULL) == 0) {
        ask(s, packet, ACCESS_IN);
        ask(s, packet, ACCESS_OUT);
    }
    (void)access_set_free(s);
    (void)access_builder_free(b);
    return 0;
}
