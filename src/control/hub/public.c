/* public.c - one place at which a hub is to be reached; see publics.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "hub/publics.h"
#include "mesh/block.h"
#include "net/resolve.h"

static int refuse_reserved(const struct ip_addr *a, const char *text, struct err *e)
{
    const char *block = block_find_reserved(a);

    if (!block)
        return 0;
    return err_set(e, -EINVAL,
        "%.60s is in %s, where no other machine reaches this one: nodes need an address of it that "
        "they can send to",
        text, block);
}

static int parse_host(struct hub_public *ret, const char *text, uint16_t dflt_port, struct err *e)
{
    int n = strchr(text, ':') ? snprintf(ret->text, sizeof(ret->text), "%s", text)
                              : snprintf(ret->text, sizeof(ret->text), "%s:%u", text, dflt_port);

    if (n < 0 || n > HOST_PORT_MAX || host_port_check(ret->text, NULL) != 0)
        return err_set(e, -EINVAL, "\"%.80s\" is not HOST or HOST:PORT", text);
    ret->is_name = true;
    return 0;
}

int hub_public_parse(struct hub_public *ret, const char *text, uint16_t dflt_port, struct err *e)
{
    struct hub_public p = {.n = 0};
    struct ip_addr address;
    char buf[ENDPOINT_TEXT_MAX];
    int r = resolve_check(text, &address, e);

    if (r == 0 && ip_addr_is_none(&address)) {
        r = parse_host(&p, text, dflt_port, e);
    } else if (r == 0) {
        r = resolve_host(text, dflt_port, p.at, 1, &p.n, e);
        if (r == 0)
            r = refuse_reserved(&p.at[0].addr, text, e);
        (void)snprintf(p.text, sizeof(p.text), "%s", endpoint_format(&p.at[0], buf));
    }
    if (r == 0)
        *ret = p;
    return r;
}
