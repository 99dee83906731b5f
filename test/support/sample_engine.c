/* sample_engine.c - see sample_engine.h. */
#include "test/support/sample_engine.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "os/clock.h"
#include "os/wakeup.h"

static struct sample_engine *of_frames(struct engine_frames *ef)
{
    return (struct sample_engine *)((uint8_t *)ef - offsetof(struct sample_engine, frames));
}

static int send_frame(struct engine_frames *ef, const struct engine_frame *frame)
{
    struct sample_engine *se = of_frames(ef);
    size_t len = frame->len < sizeof(se->sent[0]) ? frame->len : sizeof(se->sent[0]);

    if (se->is_gone)
        return ENGINE_FRAMES_E_GONE;
    assert_true(se->n_sent < SAMPLE_ENGINE_SENT_MAX);
    memcpy(se->sent[se->n_sent], frame->data, len);
    se->sent_to[se->n_sent++] = frame->remote;
    return 0;
}

static int receive_frame(struct engine_frames *ef, struct engine_frame *ret)
{
    struct sample_engine *se = of_frames(ef);

    if (se->is_gone)
        return ENGINE_FRAMES_E_GONE;
    if (!se->has_in)
        return ENGINE_FRAMES_E_EMPTY;
    assert_true(wakeup_clear(ef->fd));
    *ret = se->in;
    se->has_in = false;
    return 0;
}

static void close_frames(struct engine_frames *ef)
{
    of_frames(ef)->n_open--;
}

static int open_frames(
    struct engine *engine, struct engine_frames **ret, uint16_t port, struct err *e)
{
    struct sample_engine *se = (struct sample_engine *)engine;

    if (se->refuses)
        return err_set(e, -EBUSY, "port %u is refused", port);
    se->n_open++;
    se->n_opened++;
    *ret = &se->frames;
    return 0;
}

static const struct engine_frames_ops frames_ops = {
    .send = send_frame, .receive = receive_frame, .close = close_frames};

static const struct engine_ops ops[ENGINE_KIND_N] = {
    [ENGINE_KIND_USERSPACE] = {.kind = ENGINE_KIND_USERSPACE, .open_frames = open_frames},
    [ENGINE_KIND_KERNEL] = {.kind = ENGINE_KIND_KERNEL, .open_frames = open_frames},
};

void sample_engine_init(struct sample_engine *se, enum engine_kind kind)
{
    memset(se, 0, sizeof(*se));
    se->engine.ops = &ops[kind];
    se->frames = (struct engine_frames){.ops = &frames_ops, .fd = wakeup_open()};
    assert_true(se->frames.fd >= 0);
}

void sample_engine_deinit(struct sample_engine *se)
{
    assert_int_equal(se->n_open, 0);
    (void)close(se->frames.fd);
}

void sample_engine_put(
    struct sample_engine *se, const struct endpoint *remote, const uint8_t *data, size_t len)
{
    assert_false(se->has_in);
    se->in = (struct engine_frame){.remote = *remote, .received_at = clock_now(), .len = len};
    memcpy(se->in.data, data, len);
    se->has_in = true;
    wakeup_signal(se->frames.fd);
}
