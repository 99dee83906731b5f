/* zone.c - see zone.h. */
#include "mesh/names/zone.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLASS_IN  1
#define CLASS_ANY 255

#define WHITE " \t"

/** A name of a line. */
struct zone_record {
    const char *name; /* borrowed from the zone's text */
    struct ip_addr address;
};

void zone_deinit(struct zone *z)
{
    free(z->text);
    free(z->records);
    free(z->reverse);
    *z = (struct zone)ZONE_NULL;
}

/* ---- making one ----------------------------------------------------------------------------- */

/* By name; among records of one name IPv4 comes first, since its mapped form begins with zeroes. */
static int compare_records(const void *a, const void *b)
{
    const struct zone_record *x = a;
    const struct zone_record *y = b;
    int by_name = strcmp(x->name, y->name);

    return by_name != 0 ? by_name : memcmp(&x->address, &y->address, sizeof(x->address));
}

static int compare_addresses(const void *a, const void *b)
{
    return memcmp(&((const struct zone_record *)a)->address,
        &((const struct zone_record *)b)->address, sizeof(struct ip_addr));
}

static void take_line(struct zone *z, char *line)
{
    char *rest = NULL;
    const char *word = strtok_r(line, WHITE, &rest);
    struct ip_addr address;
    bool is_first = true;

    if (!word || ip_addr_parse(&address, word, NULL) < 0)
        return;
    while ((word = strtok_r(NULL, WHITE, &rest))) {
        struct zone_record record = {.name = word, .address = address};

        if (is_first)
            z->reverse[z->n_reverse++] = record;
        z->records[z->n++] = record;
        is_first = false;
    }
}

int zone_make(struct zone *ret, const char *network, const struct ip_prefix blocks[static 2],
    const char *lines)
{
    struct zone z = {.blocks = {blocks[0], blocks[1]}};
    size_t cap = 1;
    char *rest = NULL;

    /* Words are at most as many as blanks and newlines, and so are lines. */
    for (const char *c = lines; *c; c++)
        cap += *c == ' ' || *c == '\t' || *c == '\n';
    (void)snprintf(z.name, sizeof(z.name), "%.*s." HOSTS_DOMAIN, NAME_MAX_LEN, network);
    z.text = strdup(lines);
    z.records = calloc(cap, sizeof(*z.records));
    z.reverse = calloc(cap, sizeof(*z.reverse));
    if (!z.text || !z.records || !z.reverse) {
        zone_deinit(&z);
        return -ENOMEM;
    }
    for (char *line = strtok_r(z.text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        take_line(&z, line);
    qsort(z.records, z.n, sizeof(*z.records), compare_records);
    qsort(z.reverse, z.n_reverse, sizeof(*z.reverse), compare_addresses);
    *ret = z;
    return 0;
}

/* ---- questions ------------------------------------------------------------------------------ */

static int compare_name(const void *name, const void *record)
{
    return strcmp(name, ((const struct zone_record *)record)->name);
}

/* The first record of a name; NULL: there is none. */
static const struct zone_record *find(const struct zone *z, const char *name)
{
    const struct zone_record *r =
        z->n > 0 ? bsearch(name, z->records, z->n, sizeof(*r), compare_name) : NULL;

    while (r && r > z->records && strcmp(r[-1].name, name) == 0)
        r--;
    return r;
}

/* Is it the zone's own name, or below it? */
static bool is_below(const struct zone *z, const char *name)
{
    size_t len = strlen(name);
    size_t zone_len = strlen(z->name);

    return len >= zone_len && strcmp(name + len - zone_len, z->name) == 0 &&
           (len == zone_len || name[len - zone_len - 1] == '.');
}

static void add_addresses(const struct zone *z, const struct zone_record *r,
    const struct dns_query *q, struct zone_answer *ret)
{
    const char *name = r->name;

    for (; r < z->records + z->n && strcmp(r->name, name) == 0; r++) {
        uint16_t type = ip_addr_is_v4(&r->address) ? DNS_TYPE_A : DNS_TYPE_AAAA;

        if (ret->dns.n_addresses < DNS_ADDRESSES_MAX &&
            (q->type == DNS_TYPE_ANY || q->type == type))
            ret->addresses[ret->dns.n_addresses++] = r->address;
    }
    ret->dns.addresses = ret->addresses;
}

/* An address of the network: whose is it? */
static void add_target(const struct zone *z, const struct ip_addr *address,
    const struct dns_query *q, struct zone_answer *ret)
{
    struct zone_record key = {.address = *address};
    const struct zone_record *r =
        z->n_reverse > 0 ? bsearch(&key, z->reverse, z->n_reverse, sizeof(*r), compare_addresses)
                         : NULL;

    if (!r)
        ret->dns.rcode = DNS_NO_SUCH_NAME;
    else if (q->type == DNS_TYPE_PTR || q->type == DNS_TYPE_ANY)
        ret->dns.target = r->name;
}

bool zone_answer(const struct zone *z, const struct dns_query *q, struct zone_answer *ret)
{
    const struct zone_record *r = find(z, q->name);
    struct ip_addr address;
    bool is_reverse;

    if (z->name[0] == '\0' || (q->class != CLASS_IN && q->class != CLASS_ANY))
        return false;
    is_reverse = dns_parse_reverse(&address, q->name) &&
                 (ip_prefix_has(&z->blocks[0], &address) || ip_prefix_has(&z->blocks[1], &address));
    if (!r && !is_reverse && !is_below(z, q->name))
        return false;
    *ret = (struct zone_answer){.dns = {.is_authoritative = true}};
    if (r)
        add_addresses(z, r, q, ret);
    else if (is_reverse)
        add_target(z, &address, q, ret);
    else if (strcmp(q->name, z->name) != 0)
        ret->dns.rcode = DNS_NO_SUCH_NAME;
    if (ret->dns.n_addresses == 0 && !ret->dns.target)
        ret->dns.zone = z->name;
    return true;
}
