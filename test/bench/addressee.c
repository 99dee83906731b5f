/*
 * addressee.c - what a handshake message costs a hub that has several networks.
 *
 *     bench-addressee [NETWORKS]     prints JSON: ns for each message, on this core
 *
 * "every" tries each network in turn, as addressee.h did not exist; "garbage" is a flood from
 * forged addresses, 1,000,000 a second, "known" a message from who was right before, in between.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/secret.h"
#include "os/clock.h"
#include "shared/device_state.h"
#include "wire/wg.h"
#include "worker/addressee.h"

#define N_MESSAGES 200000

static struct x25519_public key_of(unsigned i)
{
    struct x25519_public key = {{(uint8_t)i, (uint8_t)(i >> 8), 1}};

    return key;
}

static struct ip_addr address(uint32_t n)
{
    return ip_addr_v4(
        (const uint8_t[4]){(uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n});
}

static double try_every(struct list *devices, const struct wg_initiation *msg)
{
    nsec_t start = clock_now();
    struct device *d;
    unsigned n = 0;

    for (unsigned i = 0; i < N_MESSAGES; i++)
        list_foreach(d, devices, siblings)
            n += cookie_check_mac1(&d->checker, msg, sizeof(*msg));
    return n == 0 ? (double)(clock_now() - start) / N_MESSAGES : -1;
}

static double find_all(struct addressee *a, struct list *devices, const struct wg_initiation *msg,
    uint32_t step, nsec_t *now)
{
    nsec_t start = clock_now();
    enum drop_reason why;

    for (unsigned i = 0; i < N_MESSAGES; i++) {
        struct ip_addr from = address(7 + i * step);

        *now += NSEC_PER_SEC / 1000000;
        (void)addressee_find(a, devices, &from, (const uint8_t *)msg, sizeof(*msg), *now, &why);
    }
    return (double)(clock_now() - start) / N_MESSAGES;
}

int main(int argc, char **argv)
{
    unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 10;
    struct device *owned = calloc(n, sizeof(*owned));
    struct wg_initiation good = {.type = le32_make(WG_TYPE_INITIATION)};
    struct wg_initiation garbage = {.type = le32_make(WG_TYPE_INITIATION)};
    struct x25519_public last = key_of(n - 1);
    struct cookie_maker maker;
    struct addressee a;
    struct list devices;
    nsec_t now = NSEC_PER_SEC;
    double every;
    double flood;
    double known;

    if (!owned || n == 0 || addressee_init(&a, 11) != 0)
        return 1;
    list_init(&devices);
    for (unsigned i = 0; i < n; i++) {
        struct x25519_public key = key_of(i);

        cookie_checker_set_key(&owned[i].checker, &key);
        list_add_tail(&devices, &owned[i].siblings);
    }
    maker = (struct cookie_maker){0};
    cookie_add_macs(&maker, &last, &good, sizeof(good), 0);
    every = try_every(&devices, &garbage);
    flood = find_all(&a, &devices, &garbage, 2654435761u, &now);
    now += NSEC_PER_SEC;
    known = find_all(&a, &devices, &good, 0, &now);
    (void)printf(
        "{\"networks\": %u, \"every_ns\": %.0f, \"garbage_ns\": %.0f, \"known_ns\": %.0f}\n", n,
        every, flood, known);
    addressee_deinit(&a);
    free(owned);
    return 0;
}
