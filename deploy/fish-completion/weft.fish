# Completion of weft(1) for fish. Commands, options and names are asked of the program itself, so
# that what is offered is what this version takes. It does what bash-completion/weft does.

# The first words of the indented table that --help prints.
function __weft_commands
    $argv --help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\)  *[^ ].*/\1/p'
end

function __weft_options
    $argv --help 2>/dev/null | grep -oE -- '(^|[ [])--[a-z][a-z0-9-]*' | tr -d ' [' | sort -u
end

# On a node its peers, on a hub all members.
function __weft_nodes
    begin
        $argv[1] status 2>/dev/null |
            awk '/^$/ { inside = 0 } inside { print $1 } /^PEER / { inside = 1 }'
        $argv[1] nodes 2>/dev/null | awk 'NR > 1 { print $1 }'
    end | sort -u
end

function __weft_networks
    $argv[1] network ls 2>/dev/null | awk 'NR > 1 { print $1 }'
end

function __weft_offers
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    set -l program $words[1]
    set -l path

    # The command's words are those in front of the first option.
    for word in $words[2..-1]
        string match -q -- '-*' $word; and break
        contains -- $word (__weft_commands $program $path); or break
        set -a path $word
    end
    if test "$words[-1]" = --network
        __weft_networks $program
    else if test "$words[-1]" = --nodes
        set -l before (string replace -r -- '[^,]*$' '' "$cur")
        printf "$before%s\n" (__weft_nodes $program)
    else if string match -q -- '-*' "$cur"
        __weft_options $program $path
    else if contains -- "$path" paths bench render 'node rm' 'node set' 'edge set'
        __weft_nodes $program
    else
        __weft_commands $program $path
    end
end

# What the commands take besides are files.
function __weft_complete
    set -l offers (__weft_offers)
    if test (count $offers) -gt 0
        printf '%s\n' $offers
    else
        __fish_complete_path (commandline -ct)
    end
end

complete -c weft -f -a '(__weft_complete)'
