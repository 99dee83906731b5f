/* peer_seen.h - what the engine shows of one peer: a fact that the agent brings to path_driver.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "crypto/x25519.h"

struct peer_seen {
    struct x25519_public key;
    struct endpoint endpoint; /* where its packets go; none: unknown */
    struct endpoint heard;    /* where its last authentic packet came from; none: unknown */
    nsec_t handshake_at;      /* time of the last handshake, monotonic; 0: never */
    bool has_session;         /* that handshake's session can still carry packets */
    uint64_t rx_bytes;        /* counted from some start on */
    uint64_t tx_bytes;
};
