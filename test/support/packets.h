/*
 * packets.h - building and checking inner packets, slowly and without the
 * code under test. Shared by the tests of gso.c and gro.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What a test packet is made of. */
struct test_flow {
    bool v6;
    bool udp;
    uint8_t host;  /* last byte of the source address */
    uint16_t port; /* source port; destination is 5201 */
    uint16_t id;   /* IPv4 identification of the next packet */
    uint32_t seq;  /* TCP: of the next byte */
    uint32_t ack;  /* TCP */
    uint8_t tos;
    bool timestamps; /* TCP: with 12 bytes of options */
};

#define TEST_PACKET_MAX 65600

/** test_packet() - a packet with @payload bytes that depend on the flow and the sequence; advances
 * the flow. @flags: TCP flags. Returns its length. */
uint32_t test_packet(struct test_flow *f, uint32_t payload, uint8_t flags, uint8_t *ret);

/** test_check() - lengths and checksums are right, byte by byte; fails the test if not. */
void test_check(const uint8_t *p, uint32_t len);

/** test_header_len() - of IP and TCP or UDP together. */
uint32_t test_header_len(const uint8_t *p);
