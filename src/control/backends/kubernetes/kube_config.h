/*
 * kube_config.h - where the Kubernetes API is, and who we are there.
 *
 * From the URL of the store, "kubernetes:" and perhaps "?namespace=NAME&kubeconfig=FILE". Without a
 * file it is that of $KUBECONFIG; in a pod, without either, the pod's ServiceAccount.
 *
 * Of a kubeconfig the current context is taken: its cluster's server and authority; its user's
 * token, token file or client certificate. Programs that make tokens ("exec") are not started.
 */
#pragma once

#include <stdbool.h>

struct err;

/** Longest name of a namespace. */
#define KUBE_NAMESPACE_MAX 63

struct kube_config {
    char *file;       /* owns: the kubeconfig; NULL: it is the pod's account */
    char *server;     /* owns: "https://HOST:PORT" */
    char *ca_file;    /* owns; NULL: the system's authorities */
    char *cert_file;  /* owns; NULL: no certificate of ours */
    char *key_file;   /* owns; likewise */
    char *token;      /* owns; NULL: none, or in @token_file */
    char *token_file; /* owns; read anew from time to time; NULL: none */
    char namespace[KUBE_NAMESPACE_MAX + 1];
    int fds[3]; /* owns; the files that a kubeconfig held inline; -1: none */
};

#define KUBE_CONFIG_NULL                                                                           \
    {                                                                                              \
        .fds = { -1, -1, -1 }                                                                      \
    }

/**
 * kube_config_check() - is @where, which follows "kubernetes:", well-formed?
 *
 * No file is read. Return: 0, or -EINVAL with words.
 */
int kube_config_check(const char *where, struct err *e);

/**
 * kube_config_read() - read the files that @where names
 * @ret:	for kube_config_deinit(), also after a failure
 *
 * Return: 0; -EINVAL with words that name the file and what is wrong in it; negative errno with
 * words.
 */
int kube_config_read(struct kube_config *ret, const char *where, struct err *e);

/** kube_config_deinit() - wipes the token; idempotent. */
void kube_config_deinit(struct kube_config *c);
