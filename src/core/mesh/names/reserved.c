/* reserved.c - see reserved.h. */
#include "mesh/names/reserved.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* In byte order, for bsearch(3). */
static const char *const names[] = {"alertmanager", "alt", "api", "apt", "arpa", "artifactory",
    "auth", "broadcasthost", "ceph", "clickhouse", "consul", "containerd", "corp", "dhcp", "dns",
    "docker", "elasticsearch", "etcd", "example", "ftp", "gateway", "gerrit", "git", "gitea",
    "github", "gitlab", "grafana", "harbor", "home", "hub", "huggingface", "imap", "influxdb",
    "instance-data", "internal", "invalid", "ipa", "isatap", "jaeger", "jenkins", "jupyter",
    "kafka", "kdc", "kerberos", "keycloak", "krb5", "kubernetes", "lan", "ldap", "ldaps", "local",
    "localdomain", "localhost", "localhost4", "localhost6", "localnet", "loghost", "loki",
    "loopback", "mail", "mailhost", "mariadb", "memcached", "metadata", "minio", "mirror", "mlflow",
    "mongo", "mongodb", "mqtt", "mysql", "nats", "nexus", "nfs", "ns", "ntp", "onion", "opensearch",
    "otel", "pool", "pop3", "postgres", "postgresql", "prometheus", "proxy", "pushgateway", "pypi",
    "rabbitmq", "redis", "registry", "resolver", "router", "smtp", "squid", "ssh", "sso", "statsd",
    "syslog", "tempo", "tensorboard", "test", "time", "timehost", "tracker", "vault", "wandb",
    "weft", "wpad", "www", "zookeeper"};

static int compare(const void *name, const void *item)
{
    return strcmp(name, *(const char *const *)item);
}

/* Would inet_aton(3) take it for an address? It reads decimal, octal and hexadecimal numbers. */
static bool is_number(const char *name)
{
    bool is_hex = name[0] == '0' && name[1] == 'x';
    const char *digits = is_hex ? "0123456789abcdef" : "0123456789";

    return strspn(name + (is_hex ? 2 : 0), digits) == strlen(name) - (is_hex ? 2 : 0);
}

bool reserved_is(const char *name)
{
    return strncmp(name, "ip6-", 4) == 0 || is_number(name) ||
           bsearch(name, names, sizeof(names) / sizeof(*names), sizeof(*names), compare) != NULL;
}

size_t reserved_count(void)
{
    return sizeof(names) / sizeof(*names);
}

int reserved_check(const char *name, struct err *e)
{
    if (!reserved_is(name))
        return 0;
    return err_set(e, -EINVAL,
        "node name \"%s\" is reserved, because programs reach something else by it; \"%s-1\" may "
        "be had, for example",
        name, strncmp(name, "ip6-", 4) == 0 || is_number(name) ? "node" : name);
}
