/*
 * addr.h - one address type for both families.
 *
 * IPv4 is kept as v4-mapped IPv6 (::ffff:a.b.c.d), so a table or a packet
 * needs one field and one comparison. Text follows RFC 4291 and RFC 5952.
 * sockaddr conversion is in net/address/sockaddr.h, below the I/O line.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;

/** An IPv4 or IPv6 address. All zeroes ("::") also means "none". */
struct ip_addr {
    uint8_t b[16]; /* network order; v4 in b[12..15] after 10 zeroes and ff ff */
};

/** Where datagrams go: address and UDP port. Port 0 means "none". */
struct endpoint {
    struct ip_addr addr; /* as above */
    uint32_t scope;      /* interface index of a link-local v6 address, else 0 */
    uint16_t port;       /* host order */
};

/** A block of addresses. */
struct ip_prefix {
    struct ip_addr addr; /* host bits may be set: an interface address keeps them */
    uint8_t len;         /* in the family's own count: 0..32 for v4, 0..128 for v6 */
};

#define IP_ADDR_TEXT_MAX   46                      /* with the terminating zero */
#define ENDPOINT_TEXT_MAX  (IP_ADDR_TEXT_MAX + 24) /* "[addr%scope]:port" */
#define IP_PREFIX_TEXT_MAX (IP_ADDR_TEXT_MAX + 4)

/** ip_addr_v4(), ip_addr_v6() - from the bytes as a header has them, in network order. */
struct ip_addr ip_addr_v4(const uint8_t b[static 4]);
struct ip_addr ip_addr_v6(const uint8_t b[static 16]);

/** ip_addr_is_v4() - is it an IPv4 address, v4-mapped inside? */
bool ip_addr_is_v4(const struct ip_addr *a);

/** ip_addr_is_none() - all zeroes, which is no address of anybody. */
bool ip_addr_is_none(const struct ip_addr *a);

/** ip_addr_equal() - the same family and bytes. */
bool ip_addr_equal(const struct ip_addr *a, const struct ip_addr *b);

/** ip_addr_block() - what one host may have whole, and so is counted as one: an IPv4 address, or
 * the /64 of an IPv6 one. */
struct ip_addr ip_addr_block(const struct ip_addr *a);

/** ip_addr_is_link_local() - 169.254/16 or fe80::/10. */
bool ip_addr_is_link_local(const struct ip_addr *a);

/** ip_addr_parse() - "10.0.0.1" or "fd00::1". 0 or -EINVAL with words. */
int ip_addr_parse(struct ip_addr *ret, const char *text, struct err *e);

/** ip_addr_format() - into @buf; returns @buf. */
const char *ip_addr_format(const struct ip_addr *a, char buf[static IP_ADDR_TEXT_MAX]);

/** endpoint_equal() - the same address, port and scope. */
bool endpoint_equal(const struct endpoint *a, const struct endpoint *b);

/** endpoint_is_none() - port 0: where is not known. */
bool endpoint_is_none(const struct endpoint *ep);

/** endpoint_parse() - "1.2.3.4:51820" or "[fd00::1]:51820"; no names. 0 or -EINVAL with words. */
int endpoint_parse(struct endpoint *ret, const char *text, struct err *e);

/** Longest "HOST:PORT" with a name, without the terminating zero. */
#define HOST_PORT_MAX 261

/** host_port_check() - "HOST:PORT", "1.2.3.4:PORT" or "[v6]:PORT"? 0 or -EINVAL with words. */
int host_port_check(const char *text, struct err *e);

/**
 * host_port_complete() - "HOST:PORT" of a text that may lack the port
 * @text:	as for host_port_check(); or "HOST", "1.2.3.4", "[v6]" or "v6"
 * @port:	taken where @text says none
 *
 * Return: 0, or -EINVAL with words.
 */
int host_port_complete(
    char ret[static HOST_PORT_MAX + 1], const char *text, uint16_t port, struct err *e);

/** endpoint_format() - into @buf; returns @buf; "(none)" for none, as wg(8) prints it. */
const char *endpoint_format(const struct endpoint *ep, char buf[static ENDPOINT_TEXT_MAX]);

/** ip_prefix_parse() - "10.0.0.0/24"; without "/len" the whole address. 0 or -EINVAL with words. */
int ip_prefix_parse(struct ip_prefix *ret, const char *text, struct err *e);

/** ip_prefix_format() - "10.0.0.0/24" into @buf; returns @buf. */
const char *ip_prefix_format(const struct ip_prefix *p, char buf[static IP_PREFIX_TEXT_MAX]);

/** ip_prefix_mask() - the same block with its host bits zero. */
struct ip_prefix ip_prefix_mask(const struct ip_prefix *p);

/** ip_prefix_equal() - the same address and length. */
bool ip_prefix_equal(const struct ip_prefix *a, const struct ip_prefix *b);

/** ip_prefix_has() - does the address lie in the block? */
bool ip_prefix_has(const struct ip_prefix *p, const struct ip_addr *a);

/** ip_prefix_overlaps() - some address is in both; never across families. */
bool ip_prefix_overlaps(const struct ip_prefix *a, const struct ip_prefix *b);

/** ip_prefix_nth() - address number @n of the block (0 is the network's own); false if outside. */
bool ip_prefix_nth(const struct ip_prefix *p, uint64_t n, struct ip_addr *ret);

/** ip_prefix_size() - how many addresses, UINT64_MAX where that does not fit. */
uint64_t ip_prefix_size(const struct ip_prefix *p);
