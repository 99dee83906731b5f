/* socket_room.c - see socket_room.h. */
#include "net/socket/socket_room.h"

#include <sys/socket.h>

/* The forced form needs the privilege; the other is cut to the system's limit, silently. */
static void set_room(int fd, int forced, int usual, int bytes)
{
    if (setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof(bytes)) < 0)
        (void)setsockopt(fd, SOL_SOCKET, usual, &bytes, sizeof(bytes));
}

void socket_set_receive_room(int fd, int bytes)
{
    set_room(fd, SO_RCVBUFFORCE, SO_RCVBUF, bytes);
}

void socket_set_send_room(int fd, int bytes)
{
    set_room(fd, SO_SNDBUFFORCE, SO_SNDBUF, bytes);
}
