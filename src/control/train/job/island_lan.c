/* island_lan.c - see island_lan.h. */
#include "train/job/island_lan.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "train/islands/islands.h"

/* ---- from a status -------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *field)
{
    const char *text = json_string_value(json_object_get(object, field));

    return text ? text : "";
}

/* Reads a peer. False when it is not reached over the private network, or not well formed. */
static bool take_mate(struct island_mate *ret, const json_t *peer)
{
    struct island_mate m = {0};
    struct endpoint at;

    if (strcmp(text_of(peer, "path"), "lan") != 0 ||
        endpoint_parse(&at, text_of(peer, "endpoint"), NULL) != 0 ||
        ip_addr_is_link_local(&at.addr) || parse_name(text_of(peer, "name"), "name", NULL) != 0)
        return false;
    (void)snprintf(m.name, sizeof(m.name), "%s", text_of(peer, "name"));
    m.lan = at.addr;
    /* One that is not well formed is in no line of a hosts file. */
    (void)ip_addr_parse(&m.overlay4, text_of(peer, "address4"), NULL);
    (void)ip_addr_parse(&m.overlay6, text_of(peer, "address6"), NULL);
    *ret = m;
    return true;
}

/* @facts: in the order of the status, this node first. */
static int take_mates(struct island_lan *ret, const json_t *status, const struct islands *islands)
{
    const json_t *peers = json_object_get(status, "peers");
    struct island_lan l = {.mates = calloc(json_array_size(peers) + 1, sizeof(*l.mates))};
    size_t own = islands->of[0];
    const struct island *island = own == SIZE_MAX ? NULL : &islands->items[own];
    const json_t *peer;
    size_t i;

    if (!l.mates)
        return -ENOMEM;
    if (island && (island->is_declared || island->state != ISLANDS_CONTRADICTED))
        json_array_foreach(peers, i, peer)
            if (islands->of[i + 1] == own && take_mate(&l.mates[l.n], peer))
                l.n++;
    *ret = l;
    return 0;
}

int island_lan_of_status(struct island_lan *ret, const json_t *status)
{
    struct islands islands = ISLANDS_NULL;
    struct islands_facts facts;
    int r = islands_facts_of_status(&facts, status);

    if (r < 0)
        return r;
    r = islands_find(&islands, facts.nodes, facts.n_nodes, facts.pairs, facts.n_pairs);
    if (r == 0)
        r = take_mates(ret, status, &islands);
    islands_deinit(&islands);
    islands_facts_deinit(&facts);
    return r;
}

void island_lan_deinit(struct island_lan *l)
{
    free(l->mates);
    *l = (struct island_lan)ISLAND_LAN_NULL;
}

/* ---- as text -------------------------------------------------------------------------------- */

void island_lan_format(const struct island_lan *l, struct str *out)
{
    char address[IP_ADDR_TEXT_MAX];

    for (size_t i = 0; i < l->n; i++)
        str_addf(out, "%s\t%s\n", ip_addr_format(&l->mates[i].lan, address), l->mates[i].name);
}

/* The address that a line begins with. @ret_len: of its text. False: it begins with none. */
static bool line_address(const char *line, size_t len, struct ip_addr *ret_address, size_t *ret_len)
{
    char text[IP_ADDR_TEXT_MAX];
    size_t n = 0;

    while (n < len && line[n] != ' ' && line[n] != '\t')
        n++;
    if (n == 0 || n == len || n >= sizeof(text))
        return false;
    memcpy(text, line, n);
    text[n] = '\0';
    *ret_len = n;
    return ip_addr_parse(ret_address, text, NULL) == 0;
}

static const struct island_mate *mate_at(const struct island_lan *l, const struct ip_addr *overlay)
{
    if (ip_addr_is_none(overlay))
        return NULL;
    for (size_t i = 0; i < l->n; i++)
        if (ip_addr_equal(&l->mates[i].overlay4, overlay) ||
            ip_addr_equal(&l->mates[i].overlay6, overlay))
            return &l->mates[i];
    return NULL;
}

/* @line: with its line feed, if it has one. */
static void add_line(const struct island_lan *l, struct str *out, const char *line, size_t len)
{
    const struct island_mate *mate = NULL;
    char address[IP_ADDR_TEXT_MAX];
    struct ip_addr overlay;
    size_t n = 0;

    if (line_address(line, len, &overlay, &n))
        mate = mate_at(l, &overlay);
    if (!mate) {
        str_add_bytes(out, line, len);
        return;
    }
    if (ip_addr_is_v4(&mate->lan) != ip_addr_is_v4(&overlay))
        return;
    str_add(out, ip_addr_format(&mate->lan, address));
    str_add_bytes(out, line + n, len - n);
}

void island_lan_hosts(const struct island_lan *l, struct str *out, const char *old, size_t len)
{
    str_add(out, ISLAND_LAN_MARK);
    for (size_t off = 0; off < len;) {
        const char *end = memchr(old + off, '\n', len - off);
        size_t n = end ? (size_t)(end - (old + off)) + 1 : len - off;

        add_line(l, out, old + off, n);
        off += n;
    }
}
