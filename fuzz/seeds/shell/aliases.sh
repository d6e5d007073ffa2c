shopt -s expand_aliases
alias p='q r'
p s
set -o posix; enable -n echo; hash -p /x p; \p
