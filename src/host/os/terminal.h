/*
 * terminal.h - what is known of the terminal that something is printed on.
 */
#pragma once

/** terminal_columns() - how wide the terminal behind @fd is; 0: it is none, or does not say. */
unsigned terminal_columns(int fd);
