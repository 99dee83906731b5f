/*
 * tsan_suppressions.c - races that ThreadSanitizer sees and that are none: in libraries which are
 * not compiled with it, and one that is accepted. One reason each.
 *
 * They are in each program of a build with ThreadSanitizer, and not in a file that its runtime
 * reads at the start: a program that another, confined one has started may not read that.
 */

/* The runtime's, sanitizer/tsan_interface.h, which gcc does not install. */
const char *__tsan_default_suppressions(void); /* NOLINT(bugprone-reserved-identifier): its name */

const char *__tsan_default_suppressions(void) /* NOLINT(bugprone-reserved-identifier): its name */
{
    return
        /* Tests that move the clock preload it: every thread that reads the clock reads its file
         * into the same buffer, which holds the same text. */
        "race:libfaketime.so.1\n"
        /* libcurl 7.88 closes a socket that is still connecting before it has us stop watching it;
         * libuv's EPOLL_CTL_DEL then looks for a number that another thread's new socket may have,
         * and finds nothing, since that one is in no epoll set. All of this file runs on its
         * loop's thread. */
        "race:src/control/api/client/client.c\n"
        /* Who a stream's UDP end is connected to may be set by any thread while its own receives:
         * the kernel locks the socket, and what comes from before is a datagram lost. */
        "race:stream_pump_connect\n";
}
