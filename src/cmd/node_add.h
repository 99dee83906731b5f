/* node_add.h - weft node add, among the commands of node.c. */
#pragma once

/** cmd_node_add() - as a cmd_fn; argv[0] is "add". */
int cmd_node_add(int argc, char **argv);
