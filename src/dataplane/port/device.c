/* device.c - see device.h: life of a device. */
#include "port/device.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "access/access_filter.h"
#include "base/drop.h"
#include "base/err.h"
#include "base/secret.h"
#include "net/netlink/link_watch.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/log.h"
#include "peer/relay_device.h"
#include "port/device_config.h"
#include "shared/device_state.h"
#include "shared/port_state.h"
#include "worker/tx.h"

#define DEFAULT_MTU 1420

/* Frames that may wait for a tx worker: bursts of small packets, one frame each, are long. */
#define TUN_QUEUE_LEN 1000

/* What NCCL takes for an interface that says nothing, and new kernels say of a TUN interface. */
#define TUN_SPEED_MBIT 10000

/* Of a process that was killed, the kernel closes the UAPI socket first, and the interface a little
 * later: who takes its place waits so long for that. */
#define TAKE_OVER_WAIT (500 * NSEC_PER_MSEC)

static void wait_until_gone(const char *name)
{
    nsec_t until = clock_now() + TAKE_OVER_WAIT;
    struct link_watch watch = LINK_WATCH_NULL;
    struct pollfd polled = {.events = POLLIN};

    if (link_watch_open(&watch) == 0 && link_watch_find(&watch, name, -1) == 0) {
        polled.fd = watch.fd;
        while (watch.state.ifindex != 0 &&
               poll(&polled, 1, (int)(nsec_max(until - clock_now(), 0) / NSEC_PER_MSEC)) > 0)
            (void)link_watch_read(&watch);
    }
    closep(&watch.fd);
}

static int open_interface(struct device *d, const struct device_options *opt, struct err *e)
{
    unsigned n_readers = opt->n_workers ? opt->n_workers : 1;
    int r = tun_open(&d->tun, opt->name, n_readers, &d->offloads, e);

    if (r != -EBUSY || !opt->takes_over)
        return r;
    wait_until_gone(opt->name);
    return tun_open(&d->tun, opt->name, n_readers, &d->offloads, e);
}

static int open_tun(struct device *d, const struct device_options *opt, struct err *e)
{
    unsigned mtu = opt->mtu ? opt->mtu : DEFAULT_MTU;
    int r;

    d->offloads = d->port->opt.offloads;
    if (opt->tun_fd >= 0)
        r = tun_adopt(&d->tun, opt->tun_fd, &d->offloads, e);
    else
        r = open_interface(d, opt, e);
    if (r < 0)
        return r;
    memcpy(d->name, d->tun.name, sizeof(d->name));
    /* Nothing of this is worth failing for: the MTU is told on the link, the rest is a matter of
     * speed, and an interface that stays is removed by who made it. */
    if (opt->takes_over && d->tun.was_there)
        (void)tun_set_persistent(&d->tun, false);
    else if (opt->tun_fd < 0 && tun_set_mtu(&d->tun, mtu) < 0)
        log_warning("%s: cannot set the MTU to %u", d->name, mtu);
    (void)tun_set_queue_len(&d->tun, TUN_QUEUE_LEN);
    (void)tun_set_speed(&d->tun, TUN_SPEED_MBIT);
    for (int i = 0; i < OFFLOAD_N; i++) {
        const char *why = device_offload_why(d, (enum offload)i);

        if (why)
            log_info("%s: the offload %s is off: %s", d->name, offload_names[i], why);
    }
    return 0;
}

static int attach(struct device *d, const struct device_options *opt)
{
    struct port *p = d->port;
    int r = 0;

    (void)pthread_mutex_lock(&p->lock);
    gate_close(&p->gate);
    list_add_tail(&p->devices, &d->siblings);
    gate_open(&p->gate);
    if (p->is_running)
        r = tx_start(d);
    if (r == 0) {
        shaping_config_set(d, &d->shaping.all, opt->rates.all);
        for (unsigned i = 0; i < TRAFFIC_CLASS_N; i++)
            shaping_config_set(d, &d->shaping.classes[i], opt->rates.classes[i]);
        atomic_store(&d->shaping.shows_dscp, opt->shows_dscp);
        device_link_read(d);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return r;
}

int device_new(
    struct device **ret, struct port *port, const struct device_options *opt, struct err *e)
{
    struct device *d = calloc(1, sizeof(*d));
    int r;

    if (!d)
        return err_set(e, -ENOMEM, "no memory for an interface");
    d->port = port;
    d->cipher = opt->cipher;
    d->link.watch = (struct link_watch)LINK_WATCH_NULL;
    d->relay.due = NSEC_NEVER;
    list_init(&d->siblings);
    list_init(&d->peers);
    htab_init(&d->by_key, rng_u64(&port->rng));
    htab_init(&d->by_next_key, rng_u64(&port->rng));
    cookie_checker_set_key(&d->checker, &d->local.public);
    r = open_tun(d, opt, e);
    if (r == 0) {
        r = gate_init(&d->gate, tun_readers(&d->tun));
        if (r == 0)
            r = tx_init(d);
        if (r == 0)
            r = device_link_watch(d);
        if (r == 0)
            r = attach(d, opt);
        if (r < 0)
            (void)err_set(e, r, "cannot run interface %s: %s", d->name, strerror(-r));
    }
    if (r < 0) {
        (void)device_free(d);
        return r;
    }
    *ret = d;
    return 0;
}

/* Throws away what waits for @d, which is about to go. Messages for other devices go with it: their
 * senders repeat in five seconds. */
static void forget_handshakes(struct port *p, const struct device *d)
{
    struct handshake_msg *m;

    while ((m = mpsc_pop(&p->handshakes.ring)) != NULL) {
        if (m->device != d)
            drop_count(&p->drops, DROP_QUEUE_FULL, 1);
        handshake_queue_done(&p->handshakes, m);
    }
}

static void detach(struct device *d)
{
    uint64_t dropped[DROP_REASON_N] = {0};
    struct port *p = d->port;

    (void)pthread_mutex_lock(&p->lock);
    tx_stop(d);
    device_link_stop(d);
    gate_close(&p->gate);
    list_remove(&d->siblings);
    gate_open(&p->gate);
    forget_handshakes(p, d);
    (void)relay_device_set(d, false);
    device_config_remove_peers(d);
    /* What its threads have dropped stays in the port's sum. */
    tx_drops(d, dropped);
    for (int i = 0; i < DROP_REASON_N; i++)
        drop_count(&p->drops, (enum drop_reason)i, dropped[i]);
    (void)pthread_mutex_unlock(&p->lock);
}

struct device *device_free(struct device *d)
{
    if (!d)
        return NULL;
    detach(d);
    tx_deinit(d);
    d->access = access_filter_free(d->access);
    gate_deinit(&d->gate);
    tun_close(&d->tun);
    allowedips_deinit(&d->allowed);
    htab_deinit(&d->by_key);
    htab_deinit(&d->by_next_key);
    if (d->next) {
        secret_wipe(d->next, sizeof(*d->next));
        free(d->next);
    }
    secret_wipe(d, sizeof(*d));
    free(d);
    return NULL;
}

const char *device_offload_why(const struct device *d, enum offload which)
{
    return d->offloads.on[which] ? refusals_why(d, which) : d->offloads.why[which];
}

const char *device_name(const struct device *d)
{
    return d->name;
}

void device_set_accept(struct device *d, const struct device_accept *accept)
{
    struct port *p = d->port;

    (void)pthread_mutex_lock(&p->lock);
    gate_close(&p->gate);
    d->accept = *accept;
    gate_open(&p->gate);
    (void)pthread_mutex_unlock(&p->lock);
}

void device_set_listener(struct device *d, const struct device_listener *listener)
{
    (void)pthread_mutex_lock(&d->port->lock);
    d->listener = *listener;
    (void)pthread_mutex_unlock(&d->port->lock);
}
