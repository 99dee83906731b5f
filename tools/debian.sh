# debian.sh - sourced by tools that take packages of another Debian suite than this machine's.
#
# Nothing is installed: apt gets lists of its own, below $WORK, which whoever sources this has set,
# and say() and die() too.

# Print the apt entry, in either form, of this machine's Debian archive with the suite $1, in a file
# below the folder $2; the types of the entry are $3, "deb" or "deb deb-src", and its components $4,
# this machine's without it. Prints the file.
debian_entry() {
    local suite=$1 d=$2 types=$3 components=${4:-} entry type
    entry=$(grep -lsE '^URIs:.*/debian/?[[:space:]]*$' /etc/apt/sources.list.d/*.sources |
        head -1 || true)
    if [ -n "$entry" ]; then
        awk -v RS= '/(^|\n)URIs:[^\n]*\/debian\/?[ \t]*(\n|$)/ { print; exit }' "$entry" |
            sed -E -e '/^#/d' -e "s/^Types:.*/Types: $types/" \
                -e "s/^Suites:.*/Suites: $suite/" \
                -e "s/^Components:.*/Components: ${components:-&}/; s/: Components: /: /" \
                > "$d/$suite.sources"
        echo "$d/$suite.sources"
        return
    fi
    entry=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
        grep -E '^deb[[:space:]].*/debian/?[[:space:]]' | head -1)
    [ -n "$entry" ] || die "apt knows no Debian archive: no entry of it ends in /debian"
    entry=$(sed -E "s#(/debian/?)[[:space:]]+[^[:space:]]+#\1 $suite#; s/^deb[[:space:]]+//" \
        <<< "$entry")
    [ -z "$components" ] ||
        entry="$(sed -E "s#( $suite)[[:space:]].*#\1#" <<< "$entry") $components"
    for type in $types; do printf '%s %s\n' "$type" "$entry"; done > "$d/$suite.list"
    echo "$d/$suite.list"
}

# An apt of our own for the suite $1: this machine's Debian entry with that suite, sources too, and
# the components $2, this machine's without it.
use_apt() {
    local suite=$1 components=${2:-} d=$WORK/apt/$1
    export APT_CONFIG=$d/apt.conf
    [ ! -s "$d/ready" ] || return 0
    mkdir -p "$d"/{lists/partial,cache/archives/partial,parts}
    debian_entry "$suite" "$d/parts" 'deb deb-src' "$components" > /dev/null
    printf '%s;\n' 'Dir::Etc::sourcelist "/dev/null"' "Dir::Etc::sourceparts \"$d/parts\"" \
        "Dir::Etc::preferencesparts \"/dev/null\"" "Dir::State::lists \"$d/lists\"" \
        "Dir::Cache \"$d/cache\"" 'APT::Sandbox::User "root"' > "$d/apt.conf"
    apt-get -q update >&2
    date > "$d/ready"
}

# Unpack the packages $2... into the folder $1.
unpack() {
    local root=$1 packages deb
    shift
    packages=$(mktemp -d "$WORK/packages.XXXXXX")
    (cd "$packages" && apt-get -q download "$@" >&2)
    mkdir -p "$root"
    for deb in "$packages"/*.deb; do dpkg -x "$deb" "$root"; done
    rm -rf "$packages"
}
