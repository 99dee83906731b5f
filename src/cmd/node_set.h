/* node_set.h - weft node set: what a node may do. */
#pragma once

/** cmd_node_set() - as the others of cmd.h; argv[0] is "set". */
int cmd_node_set(int argc, char **argv);
