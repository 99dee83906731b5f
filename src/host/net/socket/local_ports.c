/* local_ports.c - see local_ports.h. */
#include "net/socket/local_ports.h"

#include <stdio.h>

struct local_ports local_ports_read(void)
{
    struct local_ports ports = {.first = 32768, .last = 60999};
    FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    unsigned first;
    unsigned last;

    if (!f)
        return ports;
    if (fscanf(f, "%u %u", &first, &last) == 2 && first > 0 && first <= last && last <= UINT16_MAX)
        ports = (struct local_ports){.first = (uint16_t)first, .last = (uint16_t)last};
    (void)fclose(f);
    return ports;
}
