/* port_gates.c - closing the gates around what the data threads read: see port_internal.h. */
#include "dataplane/port_internal.h"

void port__close_gates(struct port *p, struct device *d)
{
    struct device *each;

    gate_close(&p->gate);
    if (d) {
        gate_close(&d->gate);
        return;
    }
    list_foreach(each, &p->devices, siblings)
        gate_close(&each->gate);
}

void port__open_gates(struct port *p, struct device *d)
{
    struct device *each;

    if (d) {
        gate_open(&d->gate);
    } else {
        list_foreach(each, &p->devices, siblings)
            gate_open(&each->gate);
    }
    gate_open(&p->gate);
}

void port__set_filter(struct port *p, port_filter_fn fn, void *ctx)
{
    gate_close(&p->gate);
    p->filter = fn;
    p->filter_ctx = ctx;
    gate_open(&p->gate);
}

void port_quiesce(struct port *p)
{
    (void)pthread_mutex_lock(&p->lock);
    gate_close(&p->gate);
    gate_open(&p->gate);
    (void)pthread_mutex_unlock(&p->lock);
}
