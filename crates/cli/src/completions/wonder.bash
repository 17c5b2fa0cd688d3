# Asks wonder itself what can stand here, so that runs, gates and nodes are completed too.
_wonder() {
    local line=${COMP_LINE:0:COMP_POINT} words candidate current
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    COMPREPLY=()
    while IFS=$'\t' read -r candidate _; do
        COMPREPLY+=("$candidate")
    done < <("${words[0]}" __complete -- "${words[@]:1}" 2> /dev/null)
    # To bash a colon or an equals sign ends a word: what stands before it is there already.
    current=${words[-1]}
    if [[ $current == *[:=]* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*[:=]}"}"}")
    fi
}
complete -o default -F _wonder wonder
