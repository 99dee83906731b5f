/*
 * machine.h - on which machine does this process run?
 *
 * Two questions. Is another process in the same place, which means the same start of the same
 * kernel, and the same network namespace? And is this the machine on which a file was written: a
 * disk may have been moved or copied, a container may have been made anew. The answer to the second
 * is a guess by what a machine keeps over a restart: the number that its installation gave it, and
 * the addresses of its network cards. A copied image has the first, and its own of the second.
 *
 * Only hashes are kept and told, so that nobody learns the numbers themselves.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/** Room for a place, a text of 30 hex digits. */
#define MACHINE_PLACE_MAX 31

/** machine_place() - where this process runs; "": /proc does not say. */
void machine_place(char ret[static MACHINE_PLACE_MAX]);

/** Most network cards that are looked at. */
#define MACHINE_CARDS_MAX 8

/** Room for the hash of a trait, a text of 16 hex digits. */
#define MACHINE_TRAIT_MAX 17

/** What a machine keeps over a restart. */
struct machine_traits {
    char id[MACHINE_TRAIT_MAX];                       /* of /etc/machine-id; "": there is none */
    char cards[MACHINE_CARDS_MAX][MACHINE_TRAIT_MAX]; /* of network cards */
    unsigned n_cards;
};

/** machine_traits_read() - of this machine, or of this container. */
void machine_traits_read(struct machine_traits *ret);

/** machine_traits_agree() - are they of one machine? Also when one card was taken out. */
bool machine_traits_agree(const struct machine_traits *a, const struct machine_traits *b);

/** machine_traits_encode() - as JSON; NULL: no memory. */
json_t *machine_traits_encode(const struct machine_traits *t);

/** machine_traits_decode() - false: it is no such JSON, and @ret is untouched. */
bool machine_traits_decode(struct machine_traits *ret, const json_t *json);
