shopt -s extglob; p *.c [a-z]? !(x|y) @(a|b) ~/d ~user/e +([0-9]); ls /b?n/l[s]
