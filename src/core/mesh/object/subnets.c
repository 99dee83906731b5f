/* subnets.c - see subnets.h. */
#include "mesh/object/subnets.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "mesh/config/wg_config.h"
#include "mesh/object/fields.h"
#include "mesh/object/network.h"

/* Shortest prefix. A default route is no subnet: it would take the way to the hub as well. */
#define SUBNETS_LEN4_MIN 8
#define SUBNETS_LEN6_MIN 16

int subnet_parse(struct ip_prefix *ret, const char *text, struct err *e)
{
    struct ip_prefix p;
    struct ip_prefix whole;
    char meant[IP_PREFIX_TEXT_MAX];
    const char *other;
    unsigned min;

    if (ip_prefix_parse(&p, text, e) < 0)
        return err_prefix(e, "route \"%.60s\"", text);
    whole = ip_prefix_mask(&p);
    other = block_find_reserved_part(&whole);
    min = ip_addr_is_v4(&p.addr) ? SUBNETS_LEN4_MIN : SUBNETS_LEN6_MIN;
    if (p.len == 0)
        return err_set(e, -EINVAL,
            "route \"%.60s\" is every address there is, the hub's too: only subnets can be routed",
            text);
    if (p.len < min)
        return err_set(
            e, -EINVAL, "route \"%.60s\" is wider than /%u, the widest allowed", text, min);
    if (!ip_prefix_equal(&p, &whole))
        return err_set(e, -EINVAL,
            "route \"%.60s\" has bits set after its length: the subnet is %s", text,
            ip_prefix_format(&whole, meant));
    if (other)
        return err_set(e, -EINVAL,
            "route \"%.60s\" overlaps %s, which no network routes: it is loopback, link-local, "
            "multicast or reserved",
            text, other);
    *ret = p;
    return 0;
}

const struct ip_prefix *subnets_find(const struct subnets *s, const struct ip_prefix *p)
{
    for (unsigned i = 0; i < s->n; i++)
        if (ip_prefix_overlaps(&s->items[i], p))
            return &s->items[i];
    return NULL;
}

bool subnets_has(const struct subnets *s, const struct ip_prefix *p)
{
    const struct ip_prefix *other = subnets_find(s, p);

    return other && ip_prefix_equal(other, p);
}

struct subnets subnets_without(const struct subnets *s, const struct subnets *others)
{
    struct subnets rest = SUBNETS_NULL;

    for (unsigned i = 0; i < s->n; i++)
        if (!subnets_has(others, &s->items[i]))
            rest.items[rest.n++] = s->items[i];
    return rest;
}

bool subnets_covers(const struct subnets *s, const struct ip_prefix *p)
{
    const struct ip_prefix *other = subnets_find(s, p);

    return other && other->len <= p->len;
}

int subnets_add(struct subnets *s, const struct ip_prefix *p, struct err *e)
{
    const struct ip_prefix *other = subnets_find(s, p);
    char given[IP_PREFIX_TEXT_MAX];
    char held[IP_PREFIX_TEXT_MAX];
    unsigned at;

    if (other && ip_prefix_equal(other, p))
        return 0;
    if (other)
        return err_set(e, -EINVAL, "route %s overlaps route %s of the same list",
            ip_prefix_format(p, given), ip_prefix_format(other, held));
    if (s->n == SUBNETS_MAX)
        return err_set(e, -EINVAL, "route %s is one too many: %d are allowed",
            ip_prefix_format(p, given), SUBNETS_MAX);
    for (at = s->n; at > 0 && ip_prefix_compare(p, &s->items[at - 1]) < 0; at--)
        s->items[at] = s->items[at - 1];
    s->items[at] = *p;
    s->n++;
    return 0;
}

int subnets_parse(struct subnets *s, const char *text, struct err *e)
{
    struct subnets all = *s;
    struct ip_prefix p;
    int r = 0;

    for (const char *end = text; r == 0 && end; text = end + 1) {
        char part[IP_PREFIX_TEXT_MAX + 16];

        end = strchr(text, ',');
        /* A part that is too long for a subnet is cut; what is left of it is too long as well, and
         * refused. */
        (void)snprintf(part, sizeof(part), "%.*s",
            end ? (int)(end - text) : (int)strnlen(text, sizeof(part)), text);
        r = subnet_parse(&p, part, e);
        if (r == 0)
            r = subnets_add(&all, &p, e);
        if (!end)
            break;
    }
    if (r == 0)
        *s = all;
    return r;
}

bool subnets_equal(const struct subnets *a, const struct subnets *b)
{
    if (a->n != b->n)
        return false;
    for (unsigned i = 0; i < a->n; i++)
        if (!ip_prefix_equal(&a->items[i], &b->items[i]))
            return false;
    return true;
}

const char *const subnets_accept_names[] = {"private", "all", "none"};
_Static_assert(sizeof(subnets_accept_names) / sizeof(*subnets_accept_names) == SUBNETS_ACCEPT_N,
    "a name each");

int subnets_accept_parse(enum subnets_accept *ret, const char *text, struct err *e)
{
    size_t i = parse_word(text, subnets_accept_names, SUBNETS_ACCEPT_N);

    if (i == SUBNETS_ACCEPT_N)
        return err_set(e, -EINVAL, "\"%.20s\" is none of private, all, none", text);
    *ret = (enum subnets_accept)i;
    return 0;
}

static bool is_private(const struct ip_prefix *p)
{
    static const char *const blocks[] = {
        "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"};

    for (unsigned i = 0; i < sizeof(blocks) / sizeof(*blocks); i++) {
        struct ip_prefix b;

        if (ip_prefix_parse(&b, blocks[i], NULL) == 0 && ip_prefix_overlaps(&b, p))
            return b.len <= p->len;
    }
    return false;
}

bool subnets_accepts(enum subnets_accept a, const struct ip_prefix *p)
{
    return a == SUBNETS_ACCEPT_ALL || (a == SUBNETS_ACCEPT_PRIVATE && is_private(p));
}

int subnets_check_network(const struct ip_prefix *p, const struct network *n, struct err *e)
{
    const struct ip_prefix *own = ip_prefix_overlaps(p, &n->cidr4)   ? &n->cidr4
                                  : ip_prefix_overlaps(p, &n->cidr6) ? &n->cidr6
                                                                     : NULL;
    char given[IP_PREFIX_TEXT_MAX];
    char block[IP_PREFIX_TEXT_MAX];

    if (!own)
        return 0;
    return err_set(e, -EINVAL,
        "route %s overlaps %s, from which network \"%s\" gives its nodes "
        "their addresses",
        ip_prefix_format(p, given), ip_prefix_format(own, block), n->meta.name);
}

void subnets_decode(struct fields *f, const char *name, struct subnets *ret)
{
    const json_t *list = fields_array(f, name, FIELDS_OPTIONAL, 0, SUBNETS_MAX);
    struct subnets all = SUBNETS_NULL;
    struct ip_prefix p;
    struct err e = ERR_NULL;
    int r = 0;

    if (!list)
        return;
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));

        if (!text) {
            fields_fail(f, "\"%s\" is not a list of texts", name);
            return;
        }
        r = subnet_parse(&p, text, &e);
        if (r == 0)
            r = subnets_add(&all, &p, &e);
    }
    if (r < 0)
        fields_fail(f, "%s", err_text(&e));
    else
        *ret = all;
}

json_t *subnets_encode(const struct subnets *s)
{
    char text[IP_PREFIX_TEXT_MAX];
    json_t *list = json_array();

    for (unsigned i = 0; i < s->n; i++)
        fields_append(&list, json_string(ip_prefix_format(&s->items[i], text)));
    return list;
}

const char *subnets_format(const struct subnets *s, char buf[static SUBNETS_TEXT_MAX])
{
    char text[IP_PREFIX_TEXT_MAX];
    size_t len = 0;

    buf[0] = '\0';
    for (unsigned i = 0; i < s->n; i++)
        len += (size_t)snprintf(buf + len, SUBNETS_TEXT_MAX - len, "%s%s", i ? ", " : "",
            ip_prefix_format(&s->items[i], text));
    return buf;
}
