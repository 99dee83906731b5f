/*
 * fuzz-offload.c - any frame from the interface, cut up; then the pieces merged again.
 *
 * The first ten bytes are the kernel's note. Neither side may read or write
 * outside its packet, whatever note and headers say.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "packet/gro.h"
#include "packet/gso.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define PIECES_MAX 40

static void merge(
    uint8_t *pieces[static PIECES_MAX], const uint32_t lens[static PIECES_MAX], unsigned n)
{
    static struct gro gro;

    gro_init(&gro, true, true);
    for (unsigned i = 0; i < n && gro.n < GRO_FRAMES_MAX; i++) {
        struct ip_info ip;

        if (ip_parse(pieces[i] + GRO_HEADROOM, lens[i], &ip) == 0)
            gro_add(&gro, pieces[i] + GRO_HEADROOM, &ip);
    }
    gro_finish(&gro);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    uint8_t *pieces[PIECES_MAX];
    uint32_t lens[PIECES_MAX];
    struct virtio_net_hdr note;
    struct gso_plan plan;
    struct ip_info ip;
    unsigned n = 0;
    uint8_t *p;

    if (len <= sizeof(note) || len > 65535)
        return 0;
    memcpy(&note, data, sizeof(note));
    /* Of exact size on the heap, so that a sanitizer sees one byte too far. */
    p = malloc(len - sizeof(note));
    assert(p);
    memcpy(p, data + sizeof(note), len - sizeof(note));
    if (ip_parse(p, len - sizeof(note), &ip) == 0 && gso_plan_make(&plan, &note, p, &ip)) {
        for (; n < plan.n && n < PIECES_MAX; n++) {
            lens[n] = gso_len(&plan, n);
            pieces[n] = malloc(GRO_HEADROOM + lens[n]);
            assert(pieces[n]);
            gso_cut(&plan, p, &ip, n, pieces[n] + GRO_HEADROOM);
        }
        merge(pieces, lens, n);
    }
    while (n > 0)
        free(pieces[--n]);
    free(p);
    return 0;
}
