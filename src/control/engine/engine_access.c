/* engine_access.c - see engine_access.h. */
#include "engine/engine_access.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "base/err.h"
#include "base/text.h"
#include "engine/uapi_client.h"

void engine_access_deinit(struct engine_access *a)
{
    free(a->rules);
    free(a->kinds);
    *a = (struct engine_access){.is_on = false};
}

void engine_access_encode(const char *lines, uint64_t tag, struct str *out)
{
    if (!lines) {
        str_add(out, "set=1\naccess=off\n\n");
        return;
    }
    str_add(out, "set=1\naccess=begin\n");
    while (*lines != '\0') {
        size_t len = strcspn(lines, "\n");

        str_add(out, "access=");
        str_add_bytes(out, lines, len);
        str_add(out, "\n");
        lines += len + (lines[len] == '\n');
    }
    str_addf(out, "access=end %" PRIu64 "\n\n", tag);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* "ssh,5" */
static int take_rule(struct engine_access *a, const char *value, struct err *e)
{
    struct engine_access_rule rule = {.passed = 0};
    const char *number = text_part(value, ',', rule.name, sizeof(rule.name));
    struct engine_access_rule *items;

    if (!number || parse_u64(&rule.passed, number, 0, UINT64_MAX, "count", NULL) < 0)
        return -EBADMSG;
    if (a->n_rules == ENGINE_ACCESS_MAX)
        return err_set(e, -E2BIG, "the engine answered with more than %d rules", ENGINE_ACCESS_MAX);
    items = sorted_open(a->rules, a->n_rules, sizeof(*items), a->n_rules, &a->cap_rules);
    if (!items)
        return -ENOMEM;
    a->rules = items;
    items[a->n_rules++] = rule;
    return 0;
}

/* "10.42.0.3,10.42.0.2,6,23,5" */
static int take_kind(struct engine_access *a, const char *value, struct err *e)
{
    struct engine_access_kind kind = {.packets = 0};
    char from[IP_ADDR_TEXT_MAX] = "";
    char to[IP_ADDR_TEXT_MAX] = "";
    char protocol[8] = "";
    char port[8] = "";
    struct engine_access_kind *items;
    uint64_t number = 0;
    uint64_t at = 0;

    value = text_part(value, ',', from, sizeof(from));
    value = text_part(value, ',', to, sizeof(to));
    value = text_part(value, ',', protocol, sizeof(protocol));
    value = text_part(value, ',', port, sizeof(port));
    if (!value || ip_addr_parse(&kind.from, from, NULL) < 0 ||
        ip_addr_parse(&kind.to, to, NULL) < 0 ||
        parse_u64(&number, protocol, 0, UINT8_MAX, "protocol", NULL) < 0 ||
        parse_u64(&at, port, 0, UINT16_MAX, "port", NULL) < 0 ||
        parse_u64(&kind.packets, value, 0, UINT64_MAX, "count", NULL) < 0)
        return -EBADMSG;
    kind.protocol = (uint8_t)number;
    kind.port = (uint16_t)at;
    if (a->n_kinds == ENGINE_ACCESS_MAX)
        return err_set(e, -E2BIG, "the engine answered with more than %d kinds", ENGINE_ACCESS_MAX);
    items = sorted_open(a->kinds, a->n_kinds, sizeof(*items), a->n_kinds, &a->cap_kinds);
    if (!items)
        return -ENOMEM;
    a->kinds = items;
    items[a->n_kinds++] = kind;
    return 0;
}

static int take_tag(struct engine_access *a, const char *value, struct err *e)
{
    a->is_on = true;
    return parse_u64(&a->tag, value, 0, UINT64_MAX, "tag", NULL) < 0 ? -EBADMSG : 0;
}

static int take_refused(struct engine_access *a, const char *value, struct err *e)
{
    return parse_u64(&a->refused, value, 0, UINT64_MAX, "count", NULL) < 0 ? -EBADMSG : 0;
}

static const struct {
    const char *key; /* with its "=" */
    int (*take)(struct engine_access *a, const char *value, struct err *e);
} keys[] = {
    {"access_kind=", take_kind},
    {"access_passed=", take_rule},
    {"access_refused=", take_refused},
    {"access_tag=", take_tag},
};

static int take_line(struct engine_access *a, const char *line, struct err *e)
{
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        size_t len = strlen(keys[i].key);
        int r;

        if (strncmp(line, keys[i].key, len) != 0)
            continue;
        r = keys[i].take(a, line + len, e);
        return r == -EBADMSG ? err_set(e, r, "the engine answered with \"%.80s\"", line) : r;
    }
    return 0;
}

int engine_access_decode(struct engine_access *ret, const char *text, size_t len, struct err *e)
{
    struct engine_access a = {.is_on = false};
    char line[UAPI_CLIENT_LINE_MAX + 1];
    /* The verdict is at the end, and comes first: what was refused is no answer. */
    int r = uapi_client_result(text, len, e);

    for (size_t off = 0; r == 0 && off < len;) {
        const char *end = memchr(text + off, '\n', len - off);
        size_t n = end ? (size_t)(end - text) - off : len - off;

        if (n > UAPI_CLIENT_LINE_MAX) {
            r = err_set(e, -EBADMSG, "the engine answered with a line of %zu bytes", n);
            break;
        }
        memcpy(line, text + off, n);
        line[n] = '\0';
        r = take_line(&a, line, e);
        off += n + 1;
    }
    if (r < 0) {
        engine_access_deinit(&a);
        return r;
    }
    *ret = a;
    return 0;
}
