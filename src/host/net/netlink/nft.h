/*
 * nft.h - the kernel's packet filter, by libnftables; never by a program.
 *
 * Every use has a table of its own, named TABLE in family FAMILY, so that it is
 * replaced and removed whole, and nobody else's rules are touched.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/**
 * nft_replace_table() - have exactly these contents in a table
 * @family:	"ip", "ip6" or "inet"
 * @table:	ours alone; "weft_" and what it is for
 * @body:	its chains, as nft(8) has them between the braces; NULL: removes the table
 *
 * A table to be removed that is not there is fine.
 *
 * One transaction: a packet meets the old table or the new one. The words come
 * from addresses and numbers that were parsed, never from outside as they are.
 *
 * Return: 0; or negative errno with the first thing that nft complains of.
 */
int nft_replace_table(const char *family, const char *table, const char *body, struct err *e);

/**
 * nft_run() - make changes in one transaction
 * @commands:	as nft(8) has them, a line each; of a table of ours
 *
 * Return: as nft_replace_table().
 */
int nft_run(const char *commands, struct err *e);

/**
 * nft_list() - what is in a table
 * @what:	@n times what nft(8) lists of a table: "counters", or "set NAME"
 * @ret:	gives; an array of what libnftables-json(5) calls objects, in the order of @what
 *
 * Return: 0; or negative errno with words, also where the library has no JSON.
 */
int nft_list(const char *family, const char *table, const char *const *what, size_t n, json_t **ret,
    struct err *e);

/** nft_counter_fn - takes one counter; @name: borrowed for the call. */
typedef void (*nft_counter_fn)(void *ctx, const char *name, uint64_t packets);

/**
 * nft_each_counter() - what the counters of a table have counted
 *
 * The kernel is asked for them alone, without libnftables, which reads all else in the table
 * before: of 1,000 counters among as many chains that takes some 50 times as long.
 *
 * @family:	"ip", "ip6" or "inet"
 * @fn:		called for each that has a name, in no order
 *
 * Return: 0, also where there is no such table; or negative errno with words.
 */
int nft_each_counter(
    const char *family, const char *table, nft_counter_fn fn, void *ctx, struct err *e);
