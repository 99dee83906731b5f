/*
 * test-tls-front.c - links that end while somebody else has their descriptors too.
 *
 * What goes wrong there is a look at memory that was freed, which the address sanitizer sees.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/server/tls_front.h"
#include "base/err.h"

#define LINKS 16

static char dir[] = "/tmp/weft-test-tls-front.XXXXXX";
static char key[64];
static char certificate[64];

static struct tls_front *begin(void)
{
    struct identity id = IDENTITY_NULL;
    struct tls_front *f = NULL;
    struct err e = ERR_NULL;

    assert_non_null(mkdtemp(dir));
    (void)snprintf(key, sizeof(key), "%s/key", dir);
    (void)snprintf(certificate, sizeof(certificate), "%s/crt", dir);
    assert_int_equal(identity_open(&id, key, certificate, &e), 0);
    assert_int_equal(tls_front_new(&f, &id, &e), 0);
    identity_close(&id);
    return f;
}

static void end(struct tls_front *f)
{
    assert_null(tls_front_free(f));
    (void)unlink(key);
    (void)unlink(certificate);
    assert_int_equal(rmdir(dir), 0);
}

/* A second descriptor of the connection, as a process has that was just forked. */
static void test_a_descriptor_that_stays(void **state)
{
    struct tls_front *f = begin();
    int others[LINKS];
    int kept[LINKS];

    for (unsigned i = 0; i < LINKS; i++) {
        struct pollfd ended = {.events = POLLIN};
        int pair[2];
        int plain;

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        others[i] = pair[1];
        kept[i] = dup(pair[0]);
        assert_int_equal(tls_front_wrap(f, pair[0], &plain), 0);
        /* It is no TLS: the link ends, and its plain end with it. */
        assert_int_equal(write(others[i], "no TLS at all\n", 14), 14);
        ended.fd = plain;
        assert_int_equal(poll(&ended, 1, 5000), 1);
        (void)close(plain);
    }
    /* Events of what has ended. */
    for (unsigned i = 0; i < LINKS; i++) {
        assert_int_equal(write(others[i], "more", 4), 4);
        (void)close(others[i]);
    }
    end(f);
    for (unsigned i = 0; i < LINKS; i++)
        (void)close(kept[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_descriptor_that_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
