/* test-frame-client.c - the port follows the engine: opened, closed, and opened anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <uv.h>

#include "agent/paths/socket/path_sockets.h"
#include "os/log.h"
#include "test/support/captured_log.h"
#include "test/support/sample_engine.h"

#define SEC NSEC_PER_SEC

struct world {
    uv_loop_t loop;
    struct sample_engine engine;
    struct frame_client port;
    unsigned n_frames;
    struct engine_frame last;
    bool closes; /* whoever gets a frame closes the port */
};

static void on_frame(void *ctx, const struct engine_frame *frame)
{
    struct world *w = ctx;

    w->n_frames++;
    w->last = *frame;
    if (w->closes)
        frame_client_close(&w->port);
}

static int set_up(void **state)
{
    static struct world w;

    w = (struct world){.n_frames = 0};
    sample_engine_init(&w.engine, ENGINE_KIND_USERSPACE);
    assert_int_equal(uv_loop_init(&w.loop), 0);
    w.port = (struct frame_client){.loop = &w.loop, .fn = on_frame, .ctx = &w};
    *state = &w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    frame_client_close(&w->port);
    (void)uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    sample_engine_deinit(&w->engine);
    return 0;
}

static void arrive(struct world *w)
{
    const struct endpoint from = {.addr = ip_addr_v4((const uint8_t[4]){192, 0, 2, 1}), .port = 9};
    const uint8_t data[] = {0x80, 1};

    sample_engine_put(&w->engine, &from, data, sizeof(data));
    (void)uv_run(&w->loop, UV_RUN_NOWAIT);
}

static void test_it_follows_the_engine(void **state)
{
    struct world *w = *state;

    /* Neither without an engine nor before it listens. */
    assert_false(frame_client_keep(&w->port, NULL, 51820, SEC));
    assert_false(frame_client_keep(&w->port, &w->engine.engine, 0, SEC));
    assert_true(frame_client_keep(&w->port, &w->engine.engine, 51820, SEC));
    assert_false(frame_client_keep(&w->port, &w->engine.engine, 51820, 2 * SEC));
    assert_int_equal(w->engine.n_opened, 1);
    /* On another port, or for another engine, it is another one. */
    assert_true(frame_client_keep(&w->port, &w->engine.engine, 51821, 3 * SEC));
    assert_int_equal(w->engine.n_opened, 2);
    assert_int_equal(w->engine.n_open, 1);
    assert_false(frame_client_keep(&w->port, NULL, 0, 4 * SEC));
    assert_null(w->port.frames);
}

static void test_another_engine_is_another_one(void **state)
{
    static struct sample_engine other;
    struct world *w = *state;

    sample_engine_init(&other, ENGINE_KIND_USERSPACE);
    assert_true(frame_client_keep(&w->port, &w->engine.engine, 51820, SEC));
    assert_true(frame_client_keep(&w->port, &other.engine, 51820, SEC));
    assert_int_equal(w->engine.n_open, 0);
    assert_int_equal(other.n_open, 1);
    frame_client_close(&w->port);
    assert_int_equal(other.n_open, 0);
    sample_engine_deinit(&other);
}

static void test_what_is_refused_is_tried_again_later(void **state)
{
    struct world *w = *state;
    struct captured_log said = captured_log_begin();

    w->engine.refuses = true;
    assert_false(frame_client_keep(&w->port, &w->engine.engine, 51820, 10 * SEC));
    captured_log_end(&said, "warning: test: paths cannot be looked for, trying again: port 51820 "
                            "is refused\n");
    w->engine.refuses = false;
    assert_false(frame_client_keep(&w->port, &w->engine.engine, 51820, 10 * SEC + SEC / 2));
    assert_true(frame_client_keep(&w->port, &w->engine.engine, 51820, 11 * SEC));
    /* What has worked since is opened anew at once. */
    frame_client_close(&w->port);
    assert_true(frame_client_keep(&w->port, &w->engine.engine, 51820, 11 * SEC));
}

static void test_frames_arrive(void **state)
{
    struct world *w = *state;
    struct engine_frame out = {.len = 1};

    assert_int_equal(frame_client_send(&w->port, &out), 0);
    assert_int_equal(w->engine.n_sent, 0);
    assert_true(frame_client_keep(&w->port, &w->engine.engine, 51820, SEC));
    arrive(w);
    assert_int_equal(w->n_frames, 1);
    assert_int_equal(w->last.len, 2);
    assert_int_equal(w->last.data[0], 0x80);
    assert_int_equal(w->last.remote.port, 9);
    assert_int_equal(frame_client_send(&w->port, &out), 0);
    assert_int_equal(w->engine.n_sent, 1);
    /* The receiver may close it. */
    w->closes = true;
    arrive(w);
    assert_int_equal(w->n_frames, 2);
    assert_int_equal(w->engine.n_open, 0);
}

static void test_an_engine_that_is_gone(void **state)
{
    struct world *w = *state;
    struct engine_frame out = {.len = 1};

    assert_true(frame_client_keep(&w->port, &w->engine.engine, 51820, SEC));
    w->engine.is_gone = true;
    assert_int_equal(frame_client_send(&w->port, &out), ENGINE_FRAMES_E_GONE);
    assert_null(w->port.frames);
    w->engine.is_gone = false;
    assert_true(frame_client_keep(&w->port, &w->engine.engine, 51820, SEC));
    w->engine.is_gone = true;
    arrive(w);
    assert_null(w->port.frames);
    assert_int_equal(w->n_frames, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_it_follows_the_engine, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_engine_is_another_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_what_is_refused_is_tried_again_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_frames_arrive, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_engine_that_is_gone, set_up, tear_down),
    };

    log_init("test", LOG_LEVEL_INFO);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
