/* ifname.c - see ifname.h. */
#include "train/names/ifname.h"

#include <stdio.h>
#include <string.h>

/* ---- NCCL ---------------------------------------------------------------------------------- */

/* Does @name begin with @item, which has @len characters? If @exact, are they equal? */
static bool matches(const char *item, size_t len, const char *name, bool exact)
{
    return strncmp(name, item, len) == 0 && (!exact || name[len] == '\0');
}

/*
 * Does an item of the comma-separated list match @name? Only the part of an item before ':' is
 * compared.
 */
static bool is_listed(const char *list, const char *name, bool exact)
{
    for (const char *p = list; *p != '\0';) {
        size_t item = strcspn(p, ",");
        size_t len = strcspn(p, ",:");

        if (len > 0 && matches(p, len, name, exact))
            return true;
        p += item + (p[item] == ',');
    }
    /* A list without any item matches every name. */
    return list[strspn(list, ",")] == '\0';
}

static bool has(const struct ifname_choice *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->names[i], name) == 0)
            return true;
    return false;
}

/*
 * Gives the interfaces that @list selects. @list is a value of NCCL_SOCKET_IFNAME such as
 * "^docker,lo" or "=weft0". @family is "AF_INET" or "AF_INET6"; any other text stands for both.
 */
static struct ifname_choice take(const struct facts *f, const char *list, const char *family)
{
    static const uint8_t loopback6[16] = {[15] = 1};
    bool want4 = strcmp(family, "AF_INET6") != 0;
    bool want6 = strcmp(family, "AF_INET") != 0;
    struct ifname_choice c = {.n = 0};
    bool inverse = list[0] == '^';
    bool exact;

    list += inverse;
    exact = list[0] == '=';
    list += exact;
    for (size_t i = 0; i < f->n_interfaces && c.n < IFNAME_MAX; i++) {
        const struct facts_interface *itf = &f->interfaces[i];
        bool is_v4 = ip_addr_is_v4(&itf->address);

        if (!itf->running || (is_v4 ? !want4 : !want6) ||
            memcmp(itf->address.b, loopback6, sizeof(loopback6)) == 0 ||
            is_listed(list, itf->name, exact) == inverse || has(&c, itf->name))
            continue;
        memcpy(c.names[c.n++], itf->name, sizeof(itf->name));
    }
    return c;
}

struct ifname_choice ifname_nccl(const struct facts *f, const char *list, const char *family)
{
    static const char *const by_default[] = {"ib", "^docker,lo,virbr", "docker", "lo", "virbr"};
    struct ifname_choice c = {.n = 0};

    if (!family)
        family = "";
    /* NCCL ignores a value of a single character. */
    if (list && strlen(list) > 1)
        return take(f, list, family);
    for (size_t i = 0; i < sizeof(by_default) / sizeof(*by_default) && c.n == 0; i++)
        c = take(f, by_default[i], family);
    return c;
}

/* ---- Gloo ---------------------------------------------------------------------------------- */

/* The interface that is called by the first @len characters of @name, or @name is NULL and it has
 * the machine's own address. NULL: none. */
static const struct facts_interface *find(const struct facts *f, const char *name, size_t len)
{
    for (size_t i = 0; i < f->n_interfaces; i++) {
        const struct facts_interface *itf = &f->interfaces[i];

        if (name ? matches(name, len, itf->name, true)
                 : ip_addr_equal(&itf->address, &f->host_address))
            return itf;
    }
    return NULL;
}

static void add(struct ifname_choice *c, const char *name)
{
    if (c->n < IFNAME_MAX && !has(c, name))
        (void)snprintf(c->names[c->n++], IFNAMSIZ, "%s", name);
}

struct ifname_choice ifname_gloo(const struct facts *f, const char *list)
{
    struct ifname_choice c = {.n = 0};
    const struct facts_interface *own;

    if (!list || list[0] == '\0') {
        /*
         * On Debian the machine's own name often resolves to 127.0.1.1, which no interface has.
         * Gloo then uses the loopback.
         */
        own = find(f, NULL, 0);
        add(&c, own ? own->name : "lo");
        return c;
    }
    for (const char *p = list; *p != '\0';) {
        size_t len = strcspn(p, ",");

        own = find(f, p, len);
        /* Gloo fails if any of the names is not an interface. */
        if (!own)
            return (struct ifname_choice){.n = 0};
        add(&c, own->name);
        p += len + (p[len] == ',');
    }
    return c;
}

/* ---- both ---------------------------------------------------------------------------------- */

bool ifname_is_only(const struct ifname_choice *c, const char *name)
{
    return c->n == 1 && strcmp(c->names[0], name) == 0;
}

const char *ifname_format(const struct ifname_choice *c, char buf[static 128])
{
    size_t len = 0;

    (void)snprintf(buf, 128, "none");
    for (size_t i = 0; i < c->n && len < 100; i++)
        len += (size_t)snprintf(buf + len, 128 - len, "%s%s", i > 0 ? ", " : "", c->names[i]);
    return buf;
}
