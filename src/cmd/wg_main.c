/*
 * wg_main.c - weft-wg, the data plane alone.
 *
 * A program of its own, so that the process which stays for months loads no
 * more than it uses: with the control half's libraries mapped, an idle
 * interface held 4 MiB more. It is also the one word that wg-quick(8) takes as
 * WG_QUICK_USERSPACE_IMPLEMENTATION.
 */
#include "cmd/cmd.h"

int main(int argc, char **argv)
{
    return cmd_wg(argc, argv);
}
