$(echo p) -x "$(printf '%s' q)"; echo 'r s' | bash -e; echo t | xargs -I{} mv {} {}.old
parallel bash -c ::: 'u v'; cat <<W | sh
x=1; y=$x$x
W
