/* html.c - see html.h. */
#include "page/html.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"

#define REPLACEMENT "\xef\xbf\xbd"

/* NULL: it stands for itself. */
static const char *escape(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    }
    return NULL;
}

void html_text(struct str *out, const char *text)
{
    size_t len = strlen(text);

    for (size_t i = 0, n; i < len; i += n) {
        enum text_kind kind;
        const char *escaped;

        n = text_next(text + i, len - i, &kind);
        escaped = kind == TEXT_KIND_PLAIN ? escape(text[i]) : REPLACEMENT;
        if (escaped)
            str_add(out, escaped);
        else
            str_add_bytes(out, text + i, n);
    }
}

void html_begin(struct str *out, const char *title, const char *style, const char *hash)
{
    str_add(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    /* A file has no header that would say so; frame-ancestors is not heeded here. */
    str_addf(out,
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src &#39;none&#39;; "
        "style-src &#39;sha256-%s&#39;; base-uri &#39;none&#39;; form-action &#39;none&#39;\">\n",
        hash);
    str_add(out, "<meta name=\"viewport\" content=\"width=device-width\">\n"
                 "<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
    html_text(out, title);
    str_addf(out, " · weft</title>\n<style>%s</style>\n</head>\n<body>\n", style);
}

void html_end(struct str *out)
{
    str_add(out, "</body>\n</html>\n");
}

void html_table(struct str *out, const char *title, const char *const *heads)
{
    str_add(out, "<h2>");
    html_text(out, title);
    str_add(out, "</h2>\n<table>\n<thead><tr>");
    for (size_t i = 0; heads[i]; i++) {
        bool is_number = heads[i][0] == '+';

        str_add(out, is_number ? "<th class=\"n\">" : "<th>");
        html_text(out, heads[i] + is_number);
        str_add(out, "</th>");
    }
    str_add(out, "</tr></thead>\n<tbody>\n");
}

void html_table_end(struct str *out)
{
    str_add(out, "</tbody>\n</table>\n");
}

void html_cell(struct str *out, const char *text)
{
    str_add(out, "<td>");
    html_text(out, text);
    str_add(out, "</td>");
}

void html_number(struct str *out, const char *format, ...)
{
    char text[128];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    str_add(out, "<td class=\"n\">");
    html_text(out, text);
    str_add(out, "</td>");
}
