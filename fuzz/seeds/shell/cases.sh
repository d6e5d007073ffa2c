case "$1" in a | b) one ;; (c*) two ;& d) three ;;& *) four ;; esac
if [[ $x == y* && -n ${z:-} ]]; then five; elif ((x > 1)); then six; else seven; fi
