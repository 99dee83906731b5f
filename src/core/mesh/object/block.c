/* block.c - see block.h. */
#include "mesh/object/block.h"

#include <errno.h>

#include "base/err.h"

/* What RFC 6890 and RFC 4291 keep for other uses. */
static const char *const reserved[] = {
    "0.0.0.0/8",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "224.0.0.0/3",
    "::/8",
    "fe80::/10",
    "ff00::/8",
};

const char *block_find_reserved_part(const struct ip_prefix *p)
{
    for (unsigned i = 0; i < sizeof(reserved) / sizeof(*reserved); i++) {
        struct ip_prefix r;

        if (ip_prefix_parse(&r, reserved[i], NULL) == 0 && ip_prefix_overlaps(p, &r))
            return reserved[i];
    }
    return NULL;
}

int block_parse(struct ip_prefix *ret, const char *text, bool v4, const char *what, struct err *e)
{
    unsigned min = v4 ? BLOCK_LEN4_MIN : BLOCK_LEN6_MIN;
    unsigned max = v4 ? BLOCK_LEN4_MAX : BLOCK_LEN6_MAX;
    struct ip_prefix p;
    struct ip_prefix whole;
    const char *other;

    if (ip_prefix_parse(&p, text, e) < 0)
        return err_prefix(e, "%s", what);
    whole = ip_prefix_mask(&p);
    other = block_find_reserved_part(&whole);
    if (ip_addr_is_v4(&p.addr) != v4)
        return err_set(e, -EINVAL, "%s is \"%s\", which is not IPv%c", what, text, v4 ? '4' : '6');
    if (p.len < min || p.len > max)
        return err_set(
            e, -EINVAL, "%s is \"%s\", and lengths /%u to /%u are allowed", what, text, min, max);
    if (!ip_prefix_equal(&p, &whole))
        return err_set(e, -EINVAL, "%s is \"%s\", which has bits set after its length", what, text);
    if (other)
        return err_set(e, -EINVAL, "%s is \"%s\", which overlaps %s, and nodes cannot have those",
            what, text, other);
    *ret = p;
    return 0;
}

const char *block_find_reserved(const struct ip_addr *a)
{
    struct ip_prefix whole = {.addr = *a, .len = ip_addr_is_v4(a) ? 32 : 128};

    return block_find_reserved_part(&whole);
}
