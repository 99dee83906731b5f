/* resolved_link.c - see resolved_link.h. */
#include "agent/resolved_link.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/resolver.h"
#include "agent/state/state.h"
#include "api/content/body.h"
#include "base/err.h"
#include "mesh/names/hosts.h"
#include "mesh/object/fields.h"
#include "net/netlink/netlink.h"
#include "net/netlink/rtnl.h"
#include "os/file.h"
#include "os/process.h"

#define FILE_MAX        4096
#define FILE_MODE       0644
#define RESOLVECTL_MS   10000
#define DOMAIN_TEXT_MAX (NAME_MAX_LEN + 16)

/* ---- the agent's side ----------------------------------------------------------------------- */

bool resolved_link_equal(const struct resolved_link *a, const struct resolved_link *b)
{
    return strcmp(a->interface, b->interface) == 0 && a->index == b->index &&
           strcmp(a->network, b->network) == 0 && ip_addr_equal(&a->address4, &b->address4) &&
           ip_addr_equal(&a->address6, &b->address6);
}

json_t *resolved_link_encode(const struct resolved_link *link)
{
    char a4[IP_ADDR_TEXT_MAX];
    char a6[IP_ADDR_TEXT_MAX];

    return json_pack("{s:s, s:I, s:s, s:s, s:s*}", "interface", link->interface, "index",
        (json_int_t)link->index, "network", link->network, "address4",
        ip_addr_format(&link->address4, a4), "address6",
        ip_addr_is_none(&link->address6) ? NULL : ip_addr_format(&link->address6, a6));
}

void resolved_link_write(const char *path, const char *interface,
    const struct resolver_place *place, struct resolved_link *last)
{
    struct resolved_link link = {.index = if_nametoindex(interface),
        .address4 = place->address4,
        .address6 = place->address6};
    _cleanup_(freep) char *text = NULL;
    json_t *json;

    (void)snprintf(link.interface, sizeof(link.interface), "%s", interface);
    (void)snprintf(link.network, sizeof(link.network), "%s", place->network);
    if (link.index == 0 || resolved_link_equal(&link, last))
        return;
    json = resolved_link_encode(&link);
    text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (text && statefile_replace(path, text, strlen(text), FILE_MODE, NULL) == 0)
        *last = link;
}

/* ---- root's side ---------------------------------------------------------------------------- */

int resolved_link_decode(struct resolved_link *ret, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "the link", e);
    const char *interface = fields_string(&f, "interface", FIELDS_REQUIRED, 1, IF_NAMESIZE - 1);
    struct resolved_link link = {.index = 0};

    fields_int(&f, "index", FIELDS_REQUIRED, 1, INT32_MAX, &link.index);
    fields_name(&f, "network", FIELDS_REQUIRED, link.network);
    fields_address(&f, "address4", FIELDS_REQUIRED, true, &link.address4);
    fields_address(&f, "address6", FIELDS_OPTIONAL, false, &link.address6);
    fields_refuse_unknown(&f);
    if (fields_end(&f) != 0)
        return fields_end(&f);
    (void)snprintf(link.interface, sizeof(link.interface), "%s", interface);
    *ret = link;
    return state_check_interface(link.interface, e);
}

int resolved_link_read(const char *path, struct resolved_link *ret, struct err *e)
{
    _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    json_auto_t *json = NULL;
    char text[FILE_MAX + 1];
    struct stat st;
    ssize_t n;

    if (fd < 0)
        return err_set(e, -errno, "%s cannot be read: %s", path, strerror(errno));
    /* The folder is the agent's: what lies there may be a link, or a pipe that never ends. */
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, -EPERM, "%s is no file", path);
    n = read(fd, text, sizeof(text));
    if (n < 0)
        return err_set(e, -errno, "%s cannot be read: %s", path, strerror(errno));
    if ((size_t)n > FILE_MAX)
        return err_set(e, -EFBIG, "%s is longer than %d bytes", path, FILE_MAX);
    if (body_parse(&json, text, (size_t)n, NULL) != 0)
        return err_set(e, -EINVAL, "%s is damaged", path);
    return resolved_link_decode(ret, json, e);
}

/* Is @address one of the interface's, and within @block? */
static int check_address(const struct resolved_link *link, const struct ip_addr *address,
    const struct ip_prefix *block, struct err *e)
{
    _cleanup_(netlink_close) struct netlink nl = NETLINK_NULL;
    char block_text[IP_PREFIX_TEXT_MAX];
    char text[IP_ADDR_TEXT_MAX];
    unsigned ifindex = 0;
    int r;

    (void)ip_addr_format(address, text);
    if (!ip_prefix_has(block, address))
        return err_set(e, -EPERM, "%s is not in the network's block, %s", text,
            ip_prefix_format(block, block_text));
    r = netlink_open(&nl, NETLINK_ROUTE);
    if (r == 0)
        r = rtnl_find_address(&nl, address, &ifindex);
    if (r < 0)
        return err_set(
            e, r, "the addresses of %s cannot be read: %s", link->interface, strerror(-r));
    if (ifindex != link->index)
        return err_set(e, -EPERM, "%s is no address of %s", text, link->interface);
    return 0;
}

int resolved_link_check(
    const struct resolved_link *link, const struct hosts_rules *rules, struct err *e)
{
    int r;

    if (strcmp(link->network, rules->network) != 0)
        return err_set(e, -EPERM, "the network \"%s\" is not the one that was joined, \"%s\"",
            link->network, rules->network);
    if (if_nametoindex(link->interface) != link->index)
        return err_set(e, -ENODEV, "interface %s is not number %u", link->interface, link->index);
    r = check_address(link, &link->address4, &rules->cidr4, e);
    if (r == 0 && !ip_addr_is_none(&link->address6))
        r = check_address(link, &link->address6, &rules->cidr6, e);
    return r;
}

int resolved_link_tell(const struct resolved_link *link, const char *resolvectl, struct err *e)
{
    char a4[IP_ADDR_TEXT_MAX];
    char a6[IP_ADDR_TEXT_MAX];
    char domain[DOMAIN_TEXT_MAX];
    const char *const calls[][6] = {
        /* "~": names that end so go there, and nothing is completed with it. */
        {resolvectl, "domain", link->interface, domain, NULL},
        {resolvectl, "default-route", link->interface, "false", NULL},
        /* The domain is no one else's, so nobody has signed it; and the tunnel encrypts. */
        {resolvectl, "dnssec", link->interface, "no", NULL},
        {resolvectl, "dnsovertls", link->interface, "no", NULL},
        /* At last: before, other names would be asked there. */
        {resolvectl, "dns", link->interface, ip_addr_format(&link->address4, a4),
            ip_addr_is_none(&link->address6) ? NULL : ip_addr_format(&link->address6, a6), NULL},
    };
    int r = 0;

    (void)snprintf(domain, sizeof(domain), "~%s.weft", link->network);
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls) && r == 0; i++)
        r = process_run(calls[i], RESOLVECTL_MS, e);
    return r;
}
