# Asks wonder itself what can stand here, so that runs, gates and nodes are completed too.
function __wonder_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] __complete -- $words[2..-1] 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c wonder -f -a '(__wonder_complete)'
