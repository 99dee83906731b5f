/*
 * rx_data.h - data messages on their way in: from a run of datagrams to the interface.
 *
 *   look up   the keypair, by the receiver index
 *   open      all messages of the run, in place
 *   check     the counters, against the replay window, once for the run
 *   deliver   inner header and source, then to the interface (frame_writer.h)
 *   learn     what the peer's state has of authentic packets
 *
 * Several workers may have packets of one peer at once (IPv4 and IPv6, or a
 * move); what they share is locked once a run.
 */
#pragma once

struct run_part;
struct rx_worker;

/**
 * rx_data_take() - take data messages through all stages
 * @part:	of kind RUN_DATA; they are opened in place
 *
 * Each ends in the worker's frame_writer or in a drop.
 *
 * Threads: the worker's, inside the gate.
 */
void rx_data_take(struct rx_worker *w, const struct run_part *part);
