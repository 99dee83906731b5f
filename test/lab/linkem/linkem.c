/*
 * linkem.c - weft-linkem, the link emulator of the lab: command line and start.
 *
 * It carries Ethernet frames between pairs of TAP devices with the delay, jitter, loss, rate,
 * reordering and MTU of a real line. Links are added and changed over the control socket
 * (control.h); each direction is a lane (lane.h).
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "control.h"
#include "emulator.h"

static const char usage[] =
    "usage: weft-linkem --control PATH [--seed N]\n"
    "\n"
    "Carries frames between pairs of TAP devices with delay, jitter, loss, rate and MTU.\n"
    "Commands on the socket PATH (SOCK_SEQPACKET, one packet each):\n"
    "  add LINK TAP TAP [KEY=VALUE...]   create a link between two new TAP devices\n"
    "  set LINK [in.|out.]KEY=VALUE...  delay= jitter= loss= reorder= rate= queue= mtu=\n"
    "  down LINK | up LINK               cut the link, mend it\n"
    "  show LINK                         counters\n";

static int signal_open(int *ret_fd)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
        return -errno;
    *ret_fd = signalfd(-1, &signals, SFD_CLOEXEC);
    return *ret_fd < 0 ? -errno : 0;
}

static int run(const char *control_path, uint64_t seed)
{
    struct emulator em;
    int control_fd = -1;
    int stop_fd = -1;

    /* The default slack of timers, 50 us, would be added to every delay. */
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    int r = emulator_open(&em, seed);
    if (r == 0)
        r = signal_open(&stop_fd);
    if (r == 0)
        r = control_listen(control_path, &control_fd);
    if (r == 0)
        r = emulator_run(&em, control_fd, stop_fd);
    if (r < 0)
        (void)fprintf(stderr, "weft-linkem: error: %s: %s\n", control_path, strerror(-r));

    if (control_fd >= 0) {
        close(control_fd);
        (void)unlink(control_path);
    }
    if (stop_fd >= 0)
        close(stop_fd);
    emulator_close(&em);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"control", required_argument, NULL, 'c'},
        {"seed", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    const char *control_path = NULL;
    uint64_t seed = 1;
    bool is_understood = true;
    char *end;

    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'c':
            control_path = optarg;
            break;
        case 's':
            seed = strtoull(optarg, &end, 10);
            is_understood = end != optarg && *end == '\0';
            break;
        case 'h':
            (void)fputs(usage, stdout);
            return EXIT_SUCCESS;
        default:
            (void)fputs(usage, stderr);
            return EXIT_FAILURE;
        }
    }
    if (!control_path || optind != argc || !is_understood) {
        (void)fputs(usage, stderr);
        return EXIT_FAILURE;
    }
    return run(control_path, seed);
}
