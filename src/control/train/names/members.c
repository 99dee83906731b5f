/* members.c - see members.h. */
#include "train/names/members.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "mesh/object/fields.h"

void members_deinit(struct members *r)
{
    free(r->items);
    *r = (struct members)MEMBERS_NULL;
}

static bool has(const struct members *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->items[i].name, name) == 0)
            return true;
    return false;
}

bool members_next_name(const char **list, char ret[static NAME_MAX_LEN + 2])
{
    size_t len = strcspn(*list, ",");

    if (**list == '\0')
        return false;
    (void)snprintf(
        ret, NAME_MAX_LEN + 2, "%.*s", (int)(len > NAME_MAX_LEN ? NAME_MAX_LEN + 1 : len), *list);
    *list += len + ((*list)[len] == ',');
    return true;
}

bool members_takes_part(const char *name, bool is_stock, const char *only)
{
    char item[NAME_MAX_LEN + 2];

    if (!only)
        return !is_stock;
    while (members_next_name(&only, item))
        if (strcmp(item, name) == 0)
            return true;
    return false;
}

bool members_peer_takes_part(const json_t *peer)
{
    const char *name = json_string_value(json_object_get(peer, "name"));

    return name && members_takes_part(name, json_is_true(json_object_get(peer, "stock")), NULL);
}

static int decode_member(struct member *ret, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "the agent's status", e);
    const json_t *fabric = json_object_get(json, "fabric");
    const char *path = json_string_value(json_object_get(json, "path"));
    const char *why = json_string_value(json_object_get(json, "why"));
    struct member m = {.is_up = !path || strcmp(path, "none") != 0};

    fields_name(&f, "name", FIELDS_REQUIRED, m.name);
    fields_address(&f, "address4", FIELDS_REQUIRED, true, &m.address);
    if (!m.is_up)
        (void)snprintf(m.no_path, sizeof(m.no_path), "%.*s", (int)sizeof(m.no_path) - 1,
            why && why[0] != '\0' ? why : "the agent here does not say why");
    fields_bool(&f, "stock", FIELDS_OPTIONAL, &m.is_stock);
    m.has_fabric =
        json_is_object(fabric) && fabric_report_decode(&m.fabric, fabric, m.name, NULL) == 0;
    *ret = m;
    return fields_end(&f);
}

static int take_all(struct members *r, const json_t *status, const char *only, struct err *e)
{
    const json_t *self = json_object_get(status, "self");
    const json_t *peers = json_object_get(status, "peers");
    const json_t *hub = json_object_get(status, "hub");
    const char *hub_name = json_string_value(json_object_get(hub, "name"));
    const char *fault = json_string_value(json_object_get(self, "fault"));
    struct fields f = fields_make(self, "the agent's status", e);
    const char *interface =
        fields_string(&f, "interface", FIELDS_REQUIRED, 1, sizeof(r->interface) - 1);
    const json_t *peer;
    size_t i;
    int ret;

    fields_name(&f, "network", FIELDS_REQUIRED, r->network);
    ret = fields_end(&f);
    if (ret < 0)
        return ret;
    (void)snprintf(r->fault, sizeof(r->fault), "%s", fault ? fault : "");
    /* Without a word of the hub, as of an agent that has heard of none, it is not blamed. */
    if (hub_name && json_is_false(json_object_get(hub, "reachable")))
        (void)snprintf(r->hub_away, sizeof(r->hub_away), "%.*s", NAME_MAX_LEN, hub_name);
    memcpy(r->interface, interface, strlen(interface) + 1);
    ret = decode_member(&r->items[r->n++], self, e);
    json_array_foreach(peers, i, peer) {
        struct member m;

        if (ret == 0)
            ret = decode_member(&m, peer, e);
        if (ret == 0 && members_takes_part(m.name, m.is_stock, only))
            r->items[r->n++] = m;
    }
    return ret;
}

int members_decode(
    struct members *ret, const json_t *status, const char *only, size_t max, struct err *e)
{
    size_t n = json_array_size(json_object_get(status, "peers"));
    struct members r = {.items = calloc(n + 1, sizeof(*r.items))};
    int result = r.items ? take_all(&r, status, only, e) : -ENOMEM;
    char name[NAME_MAX_LEN + 2];

    for (const char *list = only; result == 0 && list && members_next_name(&list, name);)
        if (!has(&r, name))
            result = err_set(e, -EINVAL,
                "\"%s\" is no member of the network %s; weft status lists them", name, r.network);
    if (result == 0 && r.n < 2 && only && n > 0)
        result = err_set(e, -EINVAL,
            "\"%.70s\" is this node itself; name another, which weft status lists", only);
    if (result == 0 && r.n < 2)
        result = err_set(e, -EINVAL, "the network %s has no other member %s", r.network,
            n == 0 ? "yet"
                   : "with an agent: stock WireGuards take part only where --nodes names them");
    if (result == 0 && r.n > max)
        result = err_set(e, -EINVAL,
            "%zu members are more than %zu, which can be measured together; choose with --nodes",
            r.n, max);
    if (result == 0)
        *ret = r;
    else
        members_deinit(&r);
    return result;
}

unsigned members_hostfile(const struct members *m, struct str *out)
{
    char address[IP_ADDR_TEXT_MAX];
    unsigned all = 0;

    for (size_t i = 0; i < m->n; i++) {
        const struct member *member = &m->items[i];
        unsigned slots =
            member->has_fabric && member->fabric.n_gpus > 0 ? member->fabric.n_gpus : 1;

        if (!member->is_up)
            continue;
        ip_addr_format(&member->address, address);
        str_addf(out, "%s slots=%u\n", address, slots);
        all += slots;
    }
    return all;
}

/* ==== rounds of pairs ======================================================================== */

size_t rounds_count(size_t n)
{
    return n < 2 ? 0 : n - 1 + n % 2;
}

size_t rounds_pairs(size_t n)
{
    return n < 2 ? 0 : n * (n - 1) / 2;
}

size_t rounds_get(size_t n, size_t round, struct rounds_pair *ret)
{
    /* Number of members on the circle. With an even @n the last member is in its middle. */
    size_t circle = rounds_count(n);
    size_t n_pairs = 0;

    for (size_t i = 0; n >= 2 && i <= circle / 2; i++) {
        size_t x = (round + i) % circle;
        size_t y = i == 0 ? circle : (round + circle - i) % circle;

        /* With an odd @n the middle is empty, and the member paired with it rests in this round. */
        if (x == y || y >= n)
            continue;
        ret[n_pairs++] =
            x < y ? (struct rounds_pair){.a = x, .b = y} : (struct rounds_pair){.a = y, .b = x};
    }
    return n_pairs;
}

size_t rounds_index(size_t n, size_t a, size_t b)
{
    return a * (2 * n - a - 1) / 2 + (b - a - 1);
}
