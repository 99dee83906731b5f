/* test-tun.c - what a TUN interface says of itself, in a network namespace of our own. */
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "sys/offload.h"
#include "sys/tun.h"

/* By the old call, so that it is the kernel that says it. */
static unsigned speed_of(const struct tun *t)
{
    struct ethtool_cmd cmd = {.cmd = ETHTOOL_GSET};
    struct ifreq ifr = {.ifr_data = (char *)&cmd};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    memcpy(ifr.ifr_name, t->name, IFNAMSIZ);
    assert_int_equal(ioctl(fd, SIOCETHTOOL, &ifr), 0);
    (void)close(fd);
    return ethtool_cmd_speed(&cmd);
}

static void test_speed(void **state)
{
    struct offloads offloads = {0};
    struct err e = ERR_NULL;
    struct tun t = TUN_NULL;

    if (unshare(CLONE_NEWNET) < 0 || access("/dev/net/tun", W_OK) < 0)
        skip();
    if (tun_open(&t, "weft%d", 1, &offloads, &e) != 0)
        fail_msg("%s", err_text(&e));
    assert_int_equal(tun_set_speed(&t, 25000), 0);
    assert_int_equal(speed_of(&t), 25000);
    assert_int_equal(tun_set_speed(&t, 10000), 0);
    assert_int_equal(speed_of(&t), 10000);
    tun_close(&t);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_speed)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
