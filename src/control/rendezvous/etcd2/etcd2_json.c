/* etcd2_json.c - see etcd2_json.h. */
#include "etcd2_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

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
        enum text_kind kind;
        size_t n;

        if (*at >= ' ' && *at < 0x80 && *at != '"' && *at != '\\') {
            at++;
            continue;
        }
        n = text_next((const char *)at, (size_t)(end - at), &kind);
        if (n > 1) {
            at += n;
            continue;
        }
        add(j, plain, (size_t)(at - plain));
        if (kind == TEXT_KIND_INVALID)
            etcd2_json_raw(j, "\\ufffd");
        else
            add_escaped(j, *at);
        plain = ++at;
    }
    add(j, plain, (size_t)(at - plain));
    etcd2_json_raw(j, "\"");
}
