/* rdzv_members.c - see rdzv_members.h. */
#include "rdzv_members.h"

#include <stdlib.h>

struct rdzv_member {
    struct htab_link link; /* in by_address */
    struct ip_addr address;
};

void rdzv_members_init(struct rdzv_members *m, uint64_t seed)
{
    htab_init(&m->by_address, seed);
}

void rdzv_members_deinit(struct rdzv_members *m)
{
    struct htab_link *next;
    size_t cursor = 0;

    for (struct htab_link *l = htab_each(&m->by_address, &cursor, NULL); l; l = next) {
        next = htab_each(&m->by_address, &cursor, l);
        htab_remove(&m->by_address, l);
        free(container_of(l, struct rdzv_member, link));
    }
    htab_deinit(&m->by_address);
}

static uint64_t hash_of(const struct rdzv_members *m, const struct ip_addr *address)
{
    return hash_bytes(m->by_address.seed, address, sizeof(*address));
}

static struct rdzv_member *find(
    const struct rdzv_members *m, const struct ip_addr *address, uint64_t hash)
{
    for (struct htab_link *l = htab_first(&m->by_address, hash); l; l = htab_next(l, hash)) {
        struct rdzv_member *member = container_of(l, struct rdzv_member, link);

        if (ip_addr_equal(&member->address, address))
            return member;
    }
    return NULL;
}

void rdzv_members_add(struct rdzv_members *m, const struct ip_addr *address)
{
    uint64_t hash = hash_of(m, address);
    struct rdzv_member *member;

    if (find(m, address, hash))
        return;
    member = calloc(1, sizeof(*member));
    if (!member || htab_add(&m->by_address, &member->link, hash) != 0) {
        free(member);
        return;
    }
    member->address = *address;
}

void rdzv_members_remove(struct rdzv_members *m, const struct ip_addr *address)
{
    struct rdzv_member *member = find(m, address, hash_of(m, address));

    if (!member)
        return;
    htab_remove(&m->by_address, &member->link);
    free(member);
}

bool rdzv_members_has(const struct rdzv_members *m, const struct ip_addr *address)
{
    return find(m, address, hash_of(m, address)) != NULL;
}
