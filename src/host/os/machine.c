/* machine.c - see machine.h. */
#include "os/machine.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/if_arp.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "crypto/hash.h"
#include "os/file.h"

#define MAC_LEN 6

/* ---- the place ------------------------------------------------------------------------------ */

/* The first bytes of a file. Return: how many; 0: it cannot be read. */
static size_t read_head(const char *path, char *buf, size_t cap)
{
    _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, cap);

    return n > 0 ? (size_t)n : 0;
}

void machine_place(char ret[static MACHINE_PLACE_MAX])
{
    char boot[64];
    size_t n = read_head("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
    struct blake2s_digest d;
    struct stat st;
    uint64_t namespace[2];

    ret[0] = '\0';
    if (n == 0 || stat("/proc/self/ns/net", &st) < 0)
        return;
    namespace[0] = st.st_dev;
    namespace[1] = st.st_ino;
    blake2s_hash(boot, n, namespace, sizeof(namespace), &d);
    hex_encode(d.b, (MACHINE_PLACE_MAX - 1) / 2, ret);
}

/* ---- traits --------------------------------------------------------------------------------- */

static void hash_trait(const char *what, const void *p, size_t len, char ret[MACHINE_TRAIT_MAX])
{
    struct blake2s_digest d;

    blake2s_hash(what, strlen(what), p, len, &d);
    hex_encode(d.b, (MACHINE_TRAIT_MAX - 1) / 2, ret);
}

/* The address that the hardware has. Bridges, tunnels and the ends of virtual cables have none. */
static bool read_permanent(int fd, const char *name, uint8_t ret[static MAC_LEN])
{
    static const uint8_t none[MAC_LEN];
    struct {
        struct ethtool_perm_addr head;
        uint8_t data[32];
    } ask = {.head = {.cmd = ETHTOOL_GPERMADDR, .size = sizeof(ask.data)}};
    struct ifreq rq = {.ifr_data = (void *)&ask};

    (void)snprintf(rq.ifr_name, sizeof(rq.ifr_name), "%s", name);
    if (ioctl(fd, SIOCETHTOOL, &rq) < 0 || ask.head.size != MAC_LEN ||
        memcmp(ask.data, none, MAC_LEN) == 0)
        return false;
    memcpy(ret, ask.data, MAC_LEN);
    return true;
}

static void add_card(struct machine_traits *t, const uint8_t mac[static MAC_LEN])
{
    if (t->n_cards < MACHINE_CARDS_MAX)
        hash_trait("card", mac, MAC_LEN, t->cards[t->n_cards++]);
}

/* Adds the cards; @permanent: by the addresses of their hardware alone. */
static void add_cards(struct machine_traits *t, const struct ifaddrs *all, int fd, bool permanent)
{
    uint8_t mac[MAC_LEN];

    for (const struct ifaddrs *each = all; each; each = each->ifa_next) {
        const struct sockaddr_ll *link = (const struct sockaddr_ll *)(const void *)each->ifa_addr;

        if (!link || link->sll_family != AF_PACKET || link->sll_hatype != ARPHRD_ETHER ||
            link->sll_halen != MAC_LEN)
            continue;
        if (permanent && read_permanent(fd, each->ifa_name, mac))
            add_card(t, mac);
        else if (!permanent)
            add_card(t, link->sll_addr);
    }
}

void machine_traits_read(struct machine_traits *ret)
{
    _cleanup_(closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifaddrs *all = NULL;
    char id[64];
    size_t n = read_head("/etc/machine-id", id, sizeof(id));

    *ret = (struct machine_traits){.n_cards = 0};
    if (n > 0)
        hash_trait("machine-id", id, n, ret->id);
    if (getifaddrs(&all) < 0)
        return;
    add_cards(ret, all, fd, true);
    /* A container has nothing of hardware, and gets other addresses when it is made anew. */
    if (ret->n_cards == 0)
        add_cards(ret, all, fd, false);
    freeifaddrs(all);
}

bool machine_traits_agree(const struct machine_traits *a, const struct machine_traits *b)
{
    if (strcmp(a->id, b->id) != 0)
        return false;
    for (unsigned i = 0; i < a->n_cards; i++)
        for (unsigned k = 0; k < b->n_cards; k++)
            if (strcmp(a->cards[i], b->cards[k]) == 0)
                return true;
    return a->n_cards == 0 && b->n_cards == 0;
}

json_t *machine_traits_encode(const struct machine_traits *t)
{
    json_t *cards = json_array();

    for (unsigned i = 0; i < t->n_cards; i++)
        (void)json_array_append_new(cards, json_string(t->cards[i]));
    return json_pack("{s:s, s:o}", "id", t->id, "cards", cards);
}

static bool is_trait(const char *text)
{
    return text && strlen(text) == MACHINE_TRAIT_MAX - 1;
}

bool machine_traits_decode(struct machine_traits *ret, const json_t *json)
{
    struct machine_traits t = {.n_cards = 0};
    const char *id = json_string_value(json_object_get(json, "id"));
    const json_t *cards = json_object_get(json, "cards");

    if (!id || (id[0] != '\0' && !is_trait(id)) || !json_is_array(cards) ||
        json_array_size(cards) > MACHINE_CARDS_MAX)
        return false;
    (void)snprintf(t.id, sizeof(t.id), "%s", id);
    for (; t.n_cards < json_array_size(cards); t.n_cards++) {
        const char *card = json_string_value(json_array_get(cards, t.n_cards));

        if (!is_trait(card))
            return false;
        (void)snprintf(t.cards[t.n_cards], MACHINE_TRAIT_MAX, "%s", card);
    }
    *ret = t;
    return true;
}
