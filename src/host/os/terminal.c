/* terminal.c - see terminal.h. */
#include "terminal.h"

#include <sys/ioctl.h>

unsigned terminal_columns(int fd)
{
    struct winsize size = {0};

    return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}
