/* kernel.h - what RCCL's kernels do for sends and receives, by threads of the host.
 *
 * A kernel of NCCL copies between a buffer of the program's and the slots of a connection, and
 * tells the proxy by counters that a slot is full, or empty again. Where the memory of the device
 * is that of the host, threads can do the same. Collectives are not done: a program that asks for
 * one ends.
 */
#pragma once

/** kernel_launch() - @arguments: of a launch of any of RCCL's kernels. Returns at once. */
void kernel_launch(void **arguments);

/** kernel_wait() - until all that was launched is done. */
void kernel_wait(void);
