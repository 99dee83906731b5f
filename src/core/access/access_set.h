/*
 * access_set.h - the rules of a network as one node's data plane goes by them.
 *
 * They come as lines of text, from an agent that knows the network (docs/RULES.md is about the
 * rules themselves):
 *
 *     self 10.42.0.2,fd00::2      the node's own addresses
 *     refuse in                   what no rule lets in is refused; the same of out
 *     set 10.42.0.1,fd00::1       some nodes' addresses: set 0
 *     set 10.42.0.3,10.42.0.4     set 1
 *     more 10.42.0.5              and more of them
 *     rule ssh                    a rule, by which is counted; without a name: what is never
 * refused allow tcp/22-22,icmp        what it allows; any, icmp, tcp/FIRST-LAST, udp/FIRST-LAST in
 * set:1 10.42.0.2/32       from those of set 1 to that block in others:10.42.0.0/16 10.42.0.2/32
 * from those in the block that are not in set 0 out set:1                   to those of set 1
 *     out 10.9.0.0/24             to that block
 *     open 40005                  TCP ports of the node's own addresses that no job has closed
 *     shut 40001,40100-40200 1,2  those that only nodes of these sets reach, whatever rules allow;
 *                                 of "open" and "shut" the first that has the port decides
 *
 * Theory of operation. A packet's other end is in some sets, as many as it has labels, and in some
 * blocks; both are found by its address. Of each, and of the block that the packet is for, the
 * rules are one list: of ports, in order, without overlaps. So a packet costs a few look-ups,
 * however many rules there are, and the lists are together about as long as the rules; equal ones
 * are kept once.
 *
 * Pure. Threads: who builds one has it alone; then any may ask, and what they count is atomic.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "access/access_packet.h"
#include "base/parse.h"

struct access_builder;
struct access_set;
struct err;

/** No rule, as a rule's number. */
#define ACCESS_NO_RULE UINT32_MAX

/* Most of each; more are refused. */
#define ACCESS_SETS_LIMIT      65536
#define ACCESS_BLOCKS_LIMIT    65536
#define ACCESS_RULES_LIMIT     16384
#define ACCESS_SERVICES_LIMIT  64        /* of one rule */
#define ACCESS_ADDRESSES_LIMIT (1 << 20) /* of all sets */
#define ACCESS_PAIRS_LIMIT     (1 << 20) /* lines "in" and "out" */
#define ACCESS_SEGMENTS_LIMIT  (1 << 20) /* ranges of ports of all lists */
#define ACCESS_SHUT_LIMIT      65536     /* lines "open" and "shut" */

/** access_builder_new() - nothing is said yet; NULL: no memory. @seed: random, unknown to
 * strangers.
 */
struct access_builder *access_builder_new(uint64_t seed);

/** access_builder_free() - release; safe on NULL. */
struct access_builder *access_builder_free(struct access_builder *b);

/** access_builder_line() - the next line. 0; -EINVAL or -E2BIG with words that name it; -ENOMEM. */
int access_builder_line(struct access_builder *b, const char *line, struct err *e);

/**
 * access_builder_finish() - all lines as a set; the builder can only be freed then
 *
 * Return: 0; -E2BIG with words: together they allow too much; -ENOMEM.
 */
int access_builder_finish(struct access_builder *b, struct access_set **ret, struct err *e);

/** access_set_free() - release; safe on NULL. */
struct access_set *access_set_free(struct access_set *s);

/** access_set_find() - the number of a rule that lets the packet pass; ACCESS_NO_RULE: none. */
uint32_t access_set_find(const struct access_set *s, const struct access_packet *p);

/** access_set_is_shut() - is the packet for a port that is shut to its sender? */
bool access_set_is_shut(const struct access_set *s, const struct access_packet *p);

/** access_set_refuses() - is refused what no rule lets pass that way? */
bool access_set_refuses(const struct access_set *s, enum access_way way);

/** access_set_count() - rule number @rule has let something in. Any thread. */
void access_set_count(const struct access_set *s, uint32_t rule);

/** access_set_add_counts() - what @before has counted is counted here, by the rules' names. */
void access_set_add_counts(struct access_set *s, const struct access_set *before);

/** access_set_each() - walk the rules that have a name, and have counted something
 * @cursor:	0 at first; advanced
 *
 * Return: the next one's name, lent; NULL at the end.
 */
const char *access_set_each(const struct access_set *s, uint32_t *cursor, uint64_t *ret_passed);

/** access_set_rules() - how many rules with a name there are. */
size_t access_set_rules(const struct access_set *s);
