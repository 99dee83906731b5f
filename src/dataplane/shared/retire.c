/* retire.c - see retire.h. */
#include "shared/retire.h"

#include "noise/keypair.h"
#include "os/clock.h"
#include "shared/port_gates.h"
#include "shared/port_state.h"

/* They are freed this soon, or when this many wait. */
#define RECLAIM_DELAY (200 * NSEC_PER_MSEC)
#define RECLAIM_MANY  1024

void retire_keypairs(struct port *p, const struct keypairs_evicted *evicted)
{
    struct retired *r = &p->retired;

    for (size_t i = 0; i < 3; i++) {
        struct keypair *kp = evicted->kp[i];

        if (!kp)
            continue;
        index_release(&p->index, kp->local_index);
        kp->link.next = r->first;
        r->first = &kp->link;
        r->n++;
        if (r->due == NSEC_NEVER)
            r->due = clock_now() + RECLAIM_DELAY;
    }
}

void retire_reclaim(struct port *p)
{
    struct retired *r = &p->retired;

    port_gates_pass(p);
    while (r->first) {
        struct keypair *kp = container_of(r->first, struct keypair, link);

        r->first = kp->link.next;
        (void)keypair_unref(kp);
    }
    index_reclaim(&p->index);
    *r = (struct retired)RETIRED_NULL;
}

nsec_t retire_tick(struct port *p, nsec_t now)
{
    if (p->retired.due <= now || p->retired.n >= RECLAIM_MANY)
        retire_reclaim(p);
    return p->retired.due;
}
