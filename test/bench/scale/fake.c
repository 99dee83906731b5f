/* fake.c - see fake.h. */
#include "fake.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "net/address/sockaddr.h"
#include "os/clock.h"
#include "tunnel.h"

#define PATIENCE_S  30
#define REQUEST_MAX 4096
#define ANSWER_MAX  (16u << 20)
#define NODE_MAX    1024
#define RUN         1790000000123 /* of all agents */

/* As an agent has them: CLIENT_WATCH_PROBE_S in api/client/client.h, WATCH_PATH in hub_link.c. */
#define KEEPALIVE_IDLE_S 4
#define KEEPALIVE_EACH_S 1
#define WATCH_PATH       "/v1/watch"
#define WATCH_QUERY      "?heartbeat=20"
#define KEEPALIVE_PROBES 60

void fake_die(const char *what)
{
    (void)fprintf(stderr, "bench-scale: %s\n", what);
    exit(1);
}

static int set_int(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof(value));
}

/* A connection from @from, an address that this namespace calls local; -1: there is none. */
static int connect_from(const struct ip_addr *from, const struct endpoint *to)
{
    struct endpoint own = {.addr = *from};
    struct timeval patience = {.tv_sec = PATIENCE_S};
    union sockaddr_inet sa;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = sockaddr_from_endpoint(&sa, &own);

    if (fd < 0)
        fake_die("no more sockets");
    (void)set_int(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    (void)set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (bind(fd, &sa.any, len) < 0)
        fake_die("an address of a node is not local here");
    len = sockaddr_from_endpoint(&sa, to);
    if (connect(fd, &sa.any, len) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

/* "HTTP/1.1 200 OK" */
static int status_of(const char *answer, size_t len)
{
    return len > 12 ? (int)strtol(answer + 9, NULL, 10) : 0;
}

/* ---- TLS ------------------------------------------------------------------------------------ */

void fake_hub_init(struct fake_hub *hub, const char *token)
{
    struct err e = ERR_NULL;

    *hub = (struct fake_hub){.tls = SSL_CTX_new(TLS_client_method())};
    if (!hub->tls || token_decode(&hub->token, token, &e) != 0 ||
        endpoint_parse(&hub->api, hub->token.api[0], &e) != 0 ||
        endpoint_parse(&hub->member, "10.42.0.1:1", &e) != 0)
        fake_die(err_text(&e));
    hub->udp = hub->token.udp[0];
    hub->member.port = hub->api.port;
}

/* Is it the key that the token names? */
static bool is_pinned(const SSL *ssl, const struct tls_pin *pin)
{
    X509 *cert = SSL_get1_peer_certificate(ssl);
    unsigned char *der = NULL;
    int len = cert ? i2d_X509_PUBKEY(X509_get_X509_PUBKEY(cert), &der) : -1;
    uint8_t digest[SHA256_DIGEST_LENGTH] = {0};

    if (len > 0)
        (void)SHA256(der, (size_t)len, digest);
    OPENSSL_free(der);
    X509_free(cert);
    return len > 0 && memcmp(digest, pin->b, sizeof(digest)) == 0;
}

/* All of the answer, with a zero behind it; free(). NULL: none came. */
static char *read_answer(SSL *ssl, size_t *ret_len)
{
    size_t cap = 1 << 14;
    size_t len = 0;
    char *text = malloc(cap);
    int n;

    while (text && (n = SSL_read(ssl, text + len, (int)(cap - len - 1))) > 0) {
        len += (size_t)n;
        if (len + 1 < cap)
            continue;
        cap *= 2;
        text = cap <= ANSWER_MAX ? realloc(text, cap) : NULL;
        if (!text)
            fake_die("an answer is too long");
    }
    if (text)
        text[len] = '\0';
    *ret_len = len;
    return text;
}

static char *ask_tls(
    const struct fake_hub *hub, const struct ip_addr *from, const char *request, size_t *ret_len)
{
    int fd = connect_from(from, &hub->api);
    SSL *ssl = fd >= 0 ? SSL_new(hub->tls) : NULL;
    char *answer = NULL;
    int len = (int)strlen(request);

    if (ssl && SSL_set_fd(ssl, fd) == 1 && SSL_connect(ssl) == 1) {
        if (!is_pinned(ssl, &hub->token.pin))
            fake_die("the hub has not the key that the token names");
        if (SSL_write(ssl, request, len) == len)
            answer = read_answer(ssl, ret_len);
        (void)SSL_shutdown(ssl);
    }
    SSL_free(ssl);
    if (fd >= 0)
        (void)close(fd);
    return answer;
}

/* ---- enrolling ------------------------------------------------------------------------------ */

static const char *authorization(struct fake *f, const char *method, const char *path,
    const char *body, char buf[static MEMBER_PROOF_TEXT_MAX])
{
    struct member_proof_request rq = {
        .method = method, .path = path, .body = body, .body_len = strlen(body)};

    if (!member_proof_sign(&f->signer, &rq, buf))
        fake_die("a request cannot be signed");
    return buf;
}

/* The whole request, with a proof, which is not about the query. */
static void write_query(struct fake *f, const char *method, const char *path, const char *query,
    const char *body, char ret[static REQUEST_MAX])
{
    char proof[MEMBER_PROOF_TEXT_MAX];

    (void)snprintf(ret, REQUEST_MAX,
        "%s %s%s HTTP/1.1\r\nHost: 10.42.0.1\r\nAuthorization: %s\r\n"
        "Accept-Encoding: deflate, gzip\r\n"
        "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
        method, path, query, authorization(f, method, path, body, proof), strlen(body), body);
}

static void write_request(struct fake *f, const char *method, const char *path, const char *body,
    char ret[static REQUEST_MAX])
{
    write_query(f, method, path, "", body, ret);
}

/* The node's own address, behind its key in the answer. */
static bool find_address(struct fake *f, const char *answer, const char *key)
{
    static const char field[] = "\"address4\":\"";
    const char *at = strstr(answer, key);
    char text[IP_ADDR_TEXT_MAX] = "";

    at = at ? strstr(at, field) : NULL;
    if (!at)
        return false;
    at += sizeof(field) - 1;
    (void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(at, "\""), at);
    return ip_addr_parse(&f->address, text, NULL) == 0;
}

int fake_enrol(struct fake *f, uint32_t number, const struct fake_hub *hub)
{
    char secret[BASE64_SIZE(sizeof(hub->token.secret.b))];
    char key[X25519_BASE64_MAX];
    struct x25519_public public;
    struct rng rng = rng_kernel();
    struct ip_addr from = tunnel_outer(number);
    char request[REQUEST_MAX];
    char body[512];
    char *answer;
    size_t len = 0;
    int status;

    f->number = number;
    (void)pthread_mutex_init(&f->asking, NULL);
    x25519_secret_make(&f->secret, &rng);
    if (!x25519_derive_public(&f->secret, &public) ||
        !member_proof_signer_init(&f->signer, &f->secret, &hub->token.hub_key))
        fake_die("a key cannot be made");
    base64url_encode(hub->token.secret.b, sizeof(hub->token.secret.b), secret);
    (void)snprintf(body, sizeof(body),
        "{\"secret\":\"%s\",\"publicKey\":\"%s\",\"name\":\"gpu-%05u\",\"labels\":{},"
        "\"engine\":\"userspace\",\"peers\":false}",
        secret, x25519_public_format(&public, key), number);
    write_request(f, "POST", "/v1/enrol", body, request);
    answer = ask_tls(hub, &from, request, &len);
    status = answer ? status_of(answer, len) : 0;
    if (status == 200 && !find_address(f, answer, key))
        fake_die("the answer to an enrolment does not name the node");
    free(answer);
    return status;
}

/* ---- asking as a member --------------------------------------------------------------------- */

/* A short answer, with a zero behind it. How many bytes; 0: none came. */
static size_t ask(struct fake *f, const struct fake_hub *hub, const char *request,
    char answer[static REQUEST_MAX])
{
    int fd = connect_from(&f->address, &hub->member);
    size_t len = 0;
    ssize_t n;

    if (fd < 0)
        return 0;
    if (send(fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request))
        while (len < REQUEST_MAX - 1 && (n = recv(fd, answer + len, REQUEST_MAX - 1 - len, 0)) > 0)
            len += (size_t)n;
    (void)close(fd);
    answer[len] = '\0';
    return len;
}

static uint64_t number_behind(const char *answer, const char *field)
{
    const char *at = strstr(answer, field);

    return at ? strtoull(at + strlen(field), NULL, 10) : 0;
}

bool fake_learn(struct fake *f, const struct fake_hub *hub)
{
    char answer[REQUEST_MAX];
    uint64_t boot;

    if (ask(f, hub, "GET /v1/jobs HTTP/1.1\r\nHost: 10.42.0.1\r\n\r\n", answer) == 0)
        return false;
    boot = number_behind(answer, "\"boot\":");
    member_proof_signer_learn(&f->signer, boot, number_behind(answer, "\"after\":"));
    return boot != 0;
}

/* What a report says of the node itself, for as long as the hub does not know it. */
static const char *node_part(const struct fake *f, char buf[static NODE_MAX])
{
    struct ip_addr outer = tunnel_outer(f->number);
    char from[IP_ADDR_TEXT_MAX];

    (void)snprintf(buf, NODE_MAX,
        "\"node\":{\"engine\":\"userspace\",\"version\":\"0.1.0\",\"candidates\":["
        "{\"type\":\"host\",\"endpoint\":\"%s\"},"
        "{\"type\":\"reflexive\",\"endpoint\":\"%s:51820\"}],"
        "\"paths\":{\"generation\":1790000000123,\"mapping\":\"endpoint-independent\","
        "\"natted\":true},\"aead\":{\"chacha20poly1305\":1300,\"aes256gcm\":2900}},",
        f->at, ip_addr_format(&outer, from));
    return buf;
}

bool fake_report(struct fake *f, const struct fake_hub *hub, const char *endpoint)
{
    char request[REQUEST_MAX];
    char answer[REQUEST_MAX];
    char node[NODE_MAX] = "";
    char body[NODE_MAX + 512];

    (void)pthread_mutex_lock(&f->asking);
    if (endpoint)
        (void)snprintf(f->at, sizeof(f->at), "%s", endpoint);
    (void)snprintf(body, sizeof(body),
        "{%s\"applied\":{\"revision\":1},\"findings\":[],\"edges\":{},\"cpuPercent\":3,"
        "\"run\":%llu,\"number\":%llu%s}",
        endpoint || !f->is_known ? node_part(f, node) : "", (unsigned long long)RUN,
        (unsigned long long)++f->n_reports, f->is_known ? "" : ",\"begins\":true,\"ends\":true");
    write_request(f, "PUT", "/v1/status", body, request);
    f->is_known = status_of(answer, ask(f, hub, request, answer)) == 200;
    (void)pthread_mutex_unlock(&f->asking);
    return f->is_known;
}

void fake_set_probes(int fd, unsigned idle_s)
{
    (void)set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, (int)idle_s);
}

int fake_watch(struct fake *f, const struct fake_hub *hub, const struct fake_known *known)
{
    char request[REQUEST_MAX];
    char query[128] = WATCH_QUERY;
    int fd = connect_from(&f->address, &hub->member);

    if (fd < 0)
        return -1;
    if (known->boot != 0)
        (void)snprintf(query, sizeof(query), WATCH_QUERY "&since=%llu&boot=%llu",
            (unsigned long long)known->revision, (unsigned long long)known->boot);
    (void)pthread_mutex_lock(&f->asking);
    write_query(f, "GET", WATCH_PATH, query, "", request);
    (void)pthread_mutex_unlock(&f->asking);
    (void)set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    (void)set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    (void)set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_EACH_S);
    (void)set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
    if (send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request)) {
        (void)close(fd);
        return -1;
    }
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}
