/* origin.c - see origin.h. */
#include "origin.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

/* Is @host the address @own: as "ADDRESS", "ADDRESS:PORT", "[ADDRESS]" or "[ADDRESS]:PORT"? */
static bool names_address(const char *host, const struct ip_addr *own)
{
    struct endpoint ep = {.port = 0};
    struct ip_addr address;
    size_t len = strnlen(host, ENDPOINT_TEXT_MAX);
    char inner[ENDPOINT_TEXT_MAX];

    if (len >= ENDPOINT_TEXT_MAX)
        return false;
    if (endpoint_parse(&ep, host, NULL) == 0)
        return ip_addr_equal(&ep.addr, own);
    if (ip_addr_parse(&address, host, NULL) == 0)
        return ip_addr_equal(&address, own);
    if (len < 2 || host[0] != '[' || host[len - 1] != ']')
        return false;
    (void)snprintf(inner, sizeof(inner), "%.*s", (int)len - 2, host + 1);
    return ip_addr_parse(&address, inner, NULL) == 0 && ip_addr_equal(&address, own);
}

/* A name of one label, as "localhost" is. */
static bool is_label(const char *host)
{
    return host[0] != '\0' && strpbrk(host, ".:[]") == NULL;
}

int origin_check(const struct origin *o, struct err *e)
{
    char text[IP_ADDR_TEXT_MAX];

    if (o->access == API_ACCESS_PUBLIC)
        return 0;
    if (o->origin)
        return err_set(e, -EPERM,
            "\"Origin: %.80s\" says that a web page asks, and this is no access for web pages",
            o->origin);
    if (o->access == API_ACCESS_OVERLAY && o->host && !names_address(o->host, &o->own))
        return err_set(e, -EPERM, "\"Host: %.80s\" is not this hub's overlay address, %s", o->host,
            ip_addr_format(&o->own, text));
    if (o->is_unix && o->host && !is_label(o->host))
        return err_set(e, -EPERM,
            "\"Host: %.80s\" is a name of the network, and this is a socket of this machine: "
            "\"localhost\" is its name",
            o->host);
    return 0;
}
