/*
 * load.c - machines are added to a network at a steady rate, and somebody reads beside them.
 *
 *     bench-store SOCKET RATE SECONDS
 *
 * Requests go to a hub's admin socket, each on a connection of its own. Nodes are added by threads
 * that each wait for their answer, so a hub that is slower than RATE is asked no faster than it
 * answers. The reader asks for the network every 5 ms. Prints JSON: how many were added each
 * second, and the time of a read from before the connection to the end of the answer.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/secret.h"
#include "base/text.h"
#include "os/clock.h"

#define WRITERS   48
#define READ_EACH (5 * NSEC_PER_MSEC)
#define READS_MAX 100000

static const char *path;
static nsec_t began;
static nsec_t each;   /* between two nodes that are added */
static nsec_t length; /* of it all */
static atomic_uint n_asked;
static atomic_uint n_added;
static atomic_uint n_refused;
static nsec_t reads[READS_MAX];

static void wait_until(nsec_t at)
{
    struct timespec ts = {.tv_sec = at / NSEC_PER_SEC, .tv_nsec = at % NSEC_PER_SEC};

    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

/* One request, on a connection of its own. HTTP's status; 0: none was answered. */
static int ask(const char *text)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char answer[16384];
    int status = 0;
    ssize_t n;

    (void)snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
    if (fd < 0)
        return 0;
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 &&
        send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text) &&
        (n = recv(fd, answer, sizeof(answer) - 1, 0)) > 0) {
        answer[n] = '\0';
        /* "HTTP/1.1 200 OK" */
        status = n > 12 ? (int)strtol(answer + 9, NULL, 10) : 0;
        while (recv(fd, answer, sizeof(answer), 0) > 0)
            continue;
    }
    (void)close(fd);
    return status;
}

static void add_node(unsigned number, const struct rng *rng)
{
    uint8_t key[32];
    char text[BASE64_SIZE(sizeof(key))];
    char body[256];
    char request[512];

    rng_fill(rng, key, sizeof(key));
    key[31] &= 0x7f; /* as of every public key */
    base64_encode(key, sizeof(key), text);
    (void)snprintf(body, sizeof(body), "{\"name\":\"gpu-%u\",\"publicKey\":\"%s\"}", number, text);
    (void)snprintf(request, sizeof(request),
        "POST /v1/networks/default/nodes HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n"
        "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
        strlen(body), body);
    if (ask(request) == 201)
        n_added++;
    else
        n_refused++;
}

static void *write_nodes(void *arg)
{
    struct rng rng = rng_kernel();

    for (;;) {
        unsigned number = n_asked++;

        if (number * each >= length || clock_now() - began >= length)
            return NULL;
        wait_until(began + number * each);
        add_node(number, &rng);
    }
}

static int compare(const void *a, const void *b)
{
    const nsec_t *x = a;
    const nsec_t *y = b;

    return (*x > *y) - (*x < *y);
}

static double milliseconds(nsec_t t)
{
    return (double)t / NSEC_PER_MSEC;
}

int main(int argc, char **argv)
{
    static const char read_one[] = "GET /v1/networks/default/objects/Network/default HTTP/1.1\r\n"
                                   "Host: hub\r\nConnection: close\r\n\r\n";
    pthread_t threads[WRITERS];
    uint64_t rate;
    uint64_t seconds;
    size_t n = 0;

    if (argc != 4 || parse_u64(&rate, argv[2], 1, 100000, "the rate", NULL) != 0 ||
        parse_u64(&seconds, argv[3], 1, 600, "the time", NULL) != 0)
        return 2;
    path = argv[1];
    each = NSEC_PER_SEC / (nsec_t)rate;
    length = (nsec_t)seconds * NSEC_PER_SEC;
    began = clock_now();
    for (size_t i = 0; i < WRITERS; i++)
        if (pthread_create(&threads[i], NULL, write_nodes, NULL) != 0)
            return 1;
    while (n < READS_MAX && clock_now() - began < length) {
        nsec_t start = clock_now();

        if (ask(read_one) != 200)
            return 1;
        reads[n++] = clock_now() - start;
        wait_until(start + READ_EACH);
    }
    for (size_t i = 0; i < WRITERS; i++)
        (void)pthread_join(threads[i], NULL);
    qsort(reads, n, sizeof(*reads), compare);
    (void)printf("{\"added\": %.0f, \"refused\": %u, \"reads\": %zu, \"p50\": %.3f, \"p99\": %.3f, "
                 "\"worst\": %.3f}\n",
        n_added * (double)NSEC_PER_SEC / (double)(clock_now() - began), n_refused, n,
        milliseconds(reads[n / 2]), milliseconds(reads[n * 99 / 100]), milliseconds(reads[n - 1]));
    return 0;
}
