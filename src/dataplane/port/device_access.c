/* device_access.c - see device_access.h. */
#include "port/device_access.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "access/access_filter.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "os/clock.h"
#include "shared/device_state.h"
#include "shared/port_state.h"

struct access_builder *device_access_begin(struct device *d)
{
    return access_builder_new(rng_u64(&d->port->rng));
}

/* The filter of a device that has none is filled before it is shown. */
static int put_first(struct device *d, struct access_set *set, uint64_t tag, struct err *e)
{
    unsigned n_parts = d->port->opt.n_workers + tun_readers(&d->tun);
    struct access_filter *made;

    if (access_filter_new(&made, n_parts, rng_u64(&d->port->rng), clock_now()) < 0) {
        (void)access_set_free(set);
        return err_set(e, -ENOMEM, "no memory for rules");
    }
    (void)access_filter_use(made, set, tag);
    port_gates_close(d->port, d);
    d->access = made;
    port_gates_open(d->port, d);
    return 0;
}

int device_access_use(struct device *d, struct access_builder *b, uint64_t tag, struct err *e)
{
    struct access_set *before;
    struct access_set *set;
    int r = access_builder_finish(b, &set, e);

    if (r < 0)
        return r;
    if (!d->access)
        return put_first(d, set, tag, e);
    port_gates_close(d->port, d);
    before = access_filter_use(d->access, set, tag);
    port_gates_open(d->port, d);
    access_filter_settle(d->access, before);
    return 0;
}

void device_access_end(struct device *d)
{
    struct access_filter *before = d->access;

    if (!before)
        return;
    port_gates_close(d->port, d);
    d->access = NULL;
    port_gates_open(d->port, d);
    (void)access_filter_free(before);
}

/* By what it is about. */
static int compare_kinds(const void *a, const void *b)
{
    return memcmp(a, b, offsetof(struct access_refused, packets));
}

/* What all workers have refused; @kinds: room for what each of them keeps apart. */
static void tell_refused(struct access_filter *f, struct access_refused *kinds, struct str *out)
{
    char from[IP_ADDR_TEXT_MAX];
    char to[IP_ADDR_TEXT_MAX];
    uint64_t all = 0;
    size_t n = 0;

    for (unsigned i = 0; i < f->n_parts; i++) {
        uint64_t n_refused = 0;

        n += access_filter_refused(f, i, kinds + n, &n_refused);
        all += n_refused;
    }
    qsort(kinds, n, sizeof(*kinds), compare_kinds);
    for (size_t i = 0; i < n; i++) {
        if (i + 1 < n && compare_kinds(&kinds[i], &kinds[i + 1]) == 0) {
            kinds[i + 1].packets += kinds[i].packets;
            continue;
        }
        str_addf(out, "access_kind=%s,%s,%u,%u,%" PRIu64 "\n", ip_addr_format(&kinds[i].from, from),
            ip_addr_format(&kinds[i].to, to), kinds[i].protocol, kinds[i].port, kinds[i].packets);
    }
    str_addf(out, "access_refused=%" PRIu64 "\n", all);
}

void device_access_tell(struct device *d, struct str *out)
{
    struct access_filter *f = d->access;
    struct access_refused *kinds;
    uint64_t passed = 0;
    uint32_t cursor = 0;
    const char *name;

    if (!f)
        return;
    kinds = calloc((size_t)f->n_parts * ACCESS_REFUSED_KINDS, sizeof(*kinds));
    if (!kinds) {
        out->failed = true;
        return;
    }
    str_addf(out, "access_tag=%" PRIu64 "\naccess_rules=%zu\n", f->tag, access_set_rules(f->set));
    while ((name = access_set_each(f->set, &cursor, &passed)))
        str_addf(out, "access_passed=%s,%" PRIu64 "\n", name, passed);
    tell_refused(f, kinds, out);
    free(kinds);
}
