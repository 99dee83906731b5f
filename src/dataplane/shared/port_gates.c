/* port_gates.c - see port_gates.h. */
#include "shared/port_gates.h"

#include "shared/device_state.h"
#include "shared/port_state.h"

void port_gates_close(struct port *p, struct device *d)
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

void port_gates_open(struct port *p, struct device *d)
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

void port_gates_pass(struct port *p)
{
    gate_close(&p->gate);
    gate_open(&p->gate);
}

void port_gates_set_filter(struct port *p, port_filter_fn fn, void *ctx)
{
    gate_close(&p->gate);
    p->filter = (struct port_filter){.fn = fn, .ctx = ctx};
    gate_open(&p->gate);
}
