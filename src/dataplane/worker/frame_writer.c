/* frame_writer.c - see frame_writer.h. */
#include "worker/frame_writer.h"

#include <assert.h>
#include <errno.h>
#include <sys/uio.h>

#include "base/drop.h"
#include "shared/device_state.h"
#include "wire/ip.h"

void frame_writer_init(struct frame_writer *w, unsigned worker, struct drops *drops)
{
    w->worker = worker;
    w->drops = drops;
    w->device = NULL;
}

/* Stage: write. */
static void write_frame(struct frame_writer *w, struct device *d, struct gro_frame *f)
{
    ssize_t n;

    do
        n = writev(d->tun.fd[w->worker % tun_readers(&d->tun) * d->tun.each], f->iov, (int)f->n);
    while (n < 0 && errno == EINTR);
    if (n >= 0)
        return;
    drop_count(w->drops, DROP_TUN_WRITE, f->n);
    if (errno != EINVAL || f->n == 1)
        return;
    /* The kernel refuses what it said it would take: single packets from now on. */
    refusals_on_merged(d, f->proto == IP_PROTO_TCP ? OFFLOAD_TSO : OFFLOAD_USO);
}

void frame_writer_flush(struct frame_writer *w)
{
    struct device *d = w->device;

    if (!d)
        return;
    gro_finish(&w->gro);
    for (uint32_t i = 0; i < w->gro.n; i++)
        write_frame(w, d, &w->gro.frames[i]);
    gro_clear(&w->gro);
    w->device = NULL;
}

static bool may_merge(const struct device *d, enum offload which)
{
    return d->offloads.on[which] && !refusals_has(&d->refusals, which);
}

/* Stage: merge. Into the frame that it continues, or one of its own. */
void frame_writer_add(
    struct frame_writer *w, struct device *d, uint8_t *p, const struct ip_info *ip)
{
    assert(d);
    if (w->device != d || gro_is_full(&w->gro))
        frame_writer_flush(w);
    if (!w->device) {
        gro_init(&w->gro, may_merge(d, OFFLOAD_TSO), may_merge(d, OFFLOAD_USO));
        w->device = d;
    }
    gro_add(&w->gro, p, ip);
}
