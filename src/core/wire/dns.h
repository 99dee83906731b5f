/*
 * dns.h - questions to a name server, and answers of an authoritative one.
 *
 * What the node's resolver (agent/resolver.h) needs and no more: one question of a query, and
 * answers with addresses, with a name, or without any. What is forwarded is never decoded beyond
 * its question.
 *
 * Spec: RFC 1035 section 4.1 (messages), RFC 2308 section 3 (answers without a record), RFC 6891
 * section 6 (EDNS), RFC 3596 (AAAA).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

#define DNS_HEADER_LEN 12
/** Bytes of an answer over UDP to who does not say that he takes more (RFC 1035 section 4.2.1). */
#define DNS_UDP_LEN 512
/** Longest query that is taken. A question has 272 bytes at most; options may follow it. */
#define DNS_QUERY_MAX 1232
/** Longest answer that dns_encode_answer() makes. */
#define DNS_ANSWER_MAX 1024
/** Room for a name in text, with the zero (RFC 1035 section 2.3.4). */
#define DNS_NAME_MAX 256

/** Types of records (RFC 1035 section 3.2.2, RFC 3596). */
#define DNS_TYPE_A    1
#define DNS_TYPE_SOA  6
#define DNS_TYPE_PTR  12
#define DNS_TYPE_AAAA 28
#define DNS_TYPE_ANY  255

/** What an answer says (RFC 1035 section 4.1.1). */
enum dns_rcode {
    DNS_OK = 0,
    DNS_FORMAT_ERROR = 1,
    DNS_SERVER_FAILURE = 2,
    DNS_NO_SUCH_NAME = 3,
    DNS_NOT_IMPLEMENTED = 4,
    DNS_REFUSED = 5,
};

/** A query, and where in it the question ends. */
struct dns_query {
    uint16_t id;
    uint16_t opcode; /* as in the header's second word; the answer has the same */
    bool wants_recursion;
    char name[DNS_NAME_MAX]; /* in lower case, without the last dot; "" is the root */
    uint16_t type;
    uint16_t class;
    size_t question_len; /* bytes of the question, from DNS_HEADER_LEN on */
    uint16_t udp_len;    /* longest answer that is taken over UDP; at least DNS_UDP_LEN */
    bool has_edns;       /* so the answer has it, too */
};

#define DNS_E_OTHER       1 /* no query: whoever sent it gets no answer */
#define DNS_E_MALFORMED   2 /* a query whose bytes contradict each other: DNS_FORMAT_ERROR */
#define DNS_E_UNSUPPORTED 3 /* a query of another kind: DNS_NOT_IMPLEMENTED */

/**
 * dns_decode_query() - a query with one question
 * @p:		@len bytes; any content
 *
 * A label with a dot, a space or what is not ASCII in it is no name of ours and may be one of
 * somebody else's: it stands as "?" in @ret->name, which leads nowhere.
 *
 * Return: 0; DNS_E_OTHER; or DNS_E_MALFORMED or DNS_E_UNSUPPORTED, with @ret's id, opcode
 * and wants_recursion set, and no question.
 */
int dns_decode_query(struct dns_query *ret, const uint8_t *p, size_t len);

/** What the answer to a query says. */
struct dns_answer {
    enum dns_rcode rcode;
    bool is_authoritative;
    const struct ip_addr *addresses; /* borrowed; records of the question's name */
    size_t n_addresses;              /* at most DNS_ADDRESSES_MAX */
    const char *target;              /* borrowed; of a PTR record; NULL: none */
    const char *zone;                /* borrowed; whose SOA record says that nothing more is there;
                                        NULL: none, as when there are records */
};

#define DNS_ADDRESSES_MAX 4

/**
 * dns_encode_answer() - the answer to @q
 * @query:	the bytes that @q was decoded from; the question is repeated from there
 *
 * Return: the bytes written to @out.
 */
size_t dns_encode_answer(const struct dns_query *q, const uint8_t *query,
    const struct dns_answer *a, uint8_t out[static DNS_ANSWER_MAX]);

/**
 * dns_truncate() - make somebody's answer fit into @max bytes by leaving out all but its question
 * @p:		@len bytes; any content. Changed in place when they are more than @max
 *
 * What asked then asks again over TCP (RFC 2181 section 9).
 *
 * Return: the bytes that are left.
 */
size_t dns_truncate(uint8_t *p, size_t len, const struct dns_query *q, size_t max);

/**
 * dns_parse_reverse() - the address that a name below in-addr.arpa or ip6.arpa asks for
 *
 * Spec: RFC 1035 section 3.5, RFC 3596 section 2.5.
 *
 * Return: false if the name is not the whole of one.
 */
bool dns_parse_reverse(struct ip_addr *ret, const char *name);
