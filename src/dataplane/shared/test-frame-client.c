/* test-frame-client.c - when path frames reach the client. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/rate.h"
#include "net/socket/udp_batch.h"
#include "shared/frame_client.h"

static const nsec_t now = 7 * NSEC_PER_SEC;
static uint8_t frame[] = {0x80, 1, 2, 3};

static struct udp_run one_frame(void)
{
    struct udp_run one = {.buf = frame, .len = sizeof(frame), .seg = sizeof(frame)};

    one.path.remote.addr = ip_addr_v4((const uint8_t[4]){192, 0, 2, 1});
    one.path.remote.port = 51820;
    one.path.ifindex = 3;
    return one;
}

static void test_longer_than_any_is_unknown(void **state)
{
    struct frame_client client = {.fd = 0}; /* not written to */
    struct udp_run one = one_frame();
    struct rate rate = {0};
    enum drop_reason why;

    one.len = FRAME_SOCKET_FRAME_MAX + 1;
    assert_false(frame_client_offer(&client, &rate, &one, now, &why));
    assert_int_equal(why, DROP_UNKNOWN_TYPE);
}

static void test_without_a_client_it_is_unknown(void **state)
{
    struct frame_client none = {.fd = -1};
    struct udp_run one = one_frame();
    struct rate rate = {0};
    enum drop_reason why;

    assert_false(frame_client_offer(&none, &rate, &one, now, &why));
    assert_int_equal(why, DROP_UNKNOWN_TYPE);
}

static void test_it_arrives_with_its_way(void **state)
{
    uint8_t msg[sizeof(struct frame_socket_header) + sizeof(frame) + 1];
    struct frame_socket_header header;
    struct udp_run one = one_frame();
    struct rate rate = {0};
    struct frame_client client;
    enum drop_reason why;
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    client = (struct frame_client){.fd = fds[0]};
    assert_true(frame_client_offer(&client, &rate, &one, now, &why));
    assert_int_equal(recv(fds[1], msg, sizeof(msg), 0), sizeof(header) + sizeof(frame));
    memcpy(&header, msg, sizeof(header));
    assert_memory_equal(header.remote, one.path.remote.addr.b, sizeof(header.remote));
    assert_int_equal(header.port, 51820);
    assert_int_equal(header.ifindex, 3);
    assert_int_equal(header.received_at, now);
    assert_memory_equal(msg + sizeof(header), frame, sizeof(frame));
    (void)close(fds[0]);
    (void)close(fds[1]);
}

/* One that does not read fills its socket; one that reads has so many a second. */
static void test_it_has_limits(void **state)
{
    struct udp_run one = one_frame();
    struct rate rate = {0};
    struct frame_client client;
    enum drop_reason why;
    unsigned n = 0;
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    client = (struct frame_client){.fd = fds[0]};
    while (frame_client_offer(&client, &rate, &one, now, &why))
        n++;
    assert_true(n > 0 && n < FRAME_SOCKET_RATE);
    assert_int_equal(why, DROP_PATH_QUEUE_FULL);
    rate = (struct rate){0};
    for (n = 0;; n++) {
        uint8_t msg[128];

        (void)recv(fds[1], msg, sizeof(msg), MSG_DONTWAIT);
        if (!frame_client_offer(&client, &rate, &one, now, &why))
            break;
    }
    assert_int_equal(n, FRAME_SOCKET_RATE);
    assert_int_equal(why, DROP_PATH_QUOTA);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_longer_than_any_is_unknown),
        cmocka_unit_test(test_without_a_client_it_is_unknown),
        cmocka_unit_test(test_it_arrives_with_its_way),
        cmocka_unit_test(test_it_has_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
