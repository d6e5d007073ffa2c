for x in 1 "2" $(three) {4..6}; do echo "$x" >> out; done
while read -r line; do [ -n "$line" ] || continue; done < in
until test -e f; do sleep 1; done; select y in a b; do break; done
for ((i = 0; i < 3; i++)); do :; done
