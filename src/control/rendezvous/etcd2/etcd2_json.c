/* etcd2_json.c - see etcd2_json.h. */
#include "etcd2_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void add(struct etcd2_json *j, const void *p, size_t len)
{
    if (j->text && len > 0)
        memcpy(j->text + j->len, p, len);
    j->len += len;
}

void etcd2_json_raw(struct etcd2_json *j, const char *text)
{
    add(j, text, strlen(text));
}

void etcd2_json_number(struct etcd2_json *j, uint64_t v)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRIu64, v);
    etcd2_json_raw(j, text);
}

/* The length of the UTF-8 sequence at @p, bytes; 0: there is none (RFC 3629, section 4). */
static size_t sequence(const uint8_t *p, size_t len)
{
    static const struct {
        uint8_t first;  /* of the first byte: from */
        uint8_t last;   /* to */
        uint8_t low;    /* of the second byte: from */
        uint8_t high;   /* to */
        uint8_t length; /* bytes */
    } forms[] = {
        {0x00, 0x7f, 0, 0, 1},
        {0xc2, 0xdf, 0x80, 0xbf, 2},
        {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3},
        {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4},
        {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    size_t i = 0;

    while (i < sizeof(forms) / sizeof(*forms) && !(p[0] >= forms[i].first && p[0] <= forms[i].last))
        i++;
    if (i == sizeof(forms) / sizeof(*forms) || forms[i].length > len)
        return 0;
    if (forms[i].length > 1 && (p[1] < forms[i].low || p[1] > forms[i].high))
        return 0;
    for (size_t n = 2; n < forms[i].length; n++)
        if ((p[n] & 0xc0) != 0x80)
            return 0;
    return forms[i].length;
}

static void add_escaped(struct etcd2_json *j, uint8_t c)
{
    static const char from[] = "\"\\\b\f\n\r\t";
    static const char to[] = "\"\\bfnrt";
    const char *at = c ? strchr(from, c) : NULL;
    char text[8];

    if (at)
        (void)snprintf(text, sizeof(text), "\\%c", to[at - from]);
    else
        (void)snprintf(text, sizeof(text), "\\u%04x", c);
    etcd2_json_raw(j, text);
}

void etcd2_json_string(struct etcd2_json *j, const char *p, size_t len)
{
    const uint8_t *at = (const uint8_t *)p;
    const uint8_t *end = at + len;
    const uint8_t *plain = at; /* from here to @at the bytes need no escape */

    etcd2_json_raw(j, "\"");
    while (at < end && j->len <= j->max) {
        size_t n;

        if (*at >= ' ' && *at < 0x80 && *at != '"' && *at != '\\') {
            at++;
            continue;
        }
        n = sequence(at, (size_t)(end - at));
        if (n > 1) {
            at += n;
            continue;
        }
        add(j, plain, (size_t)(at - plain));
        if (n == 1)
            add_escaped(j, *at);
        else
            etcd2_json_raw(j, "\\ufffd");
        plain = ++at;
    }
    add(j, plain, (size_t)(at - plain));
    etcd2_json_raw(j, "\"");
}
