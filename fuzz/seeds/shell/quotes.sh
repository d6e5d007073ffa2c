p 'a b' "c $d" $'e\x41\'f' \g h"i"'j' "k\"l" m\
n "$(o "p $(q)")"
