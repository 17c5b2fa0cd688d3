#compdef wonder
# Asks wonder itself what can stand here, so that runs, gates and nodes are completed too.
_wonder() {
    local line
    local -a described
    for line in "${(@f)$("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2> /dev/null)}"; do
        [[ -n $line ]] && described+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    if (( $#described )); then
        _describe -V wonder described
    else
        _files
    fi
}
if [[ $funcstack[1] == _wonder ]]; then
    _wonder "$@"
else
    compdef _wonder wonder
fi
