eval "p $q"; source ./r; . s; bash -c 'u; v'; python3 -c 'w'; awk '{system("x")}' y
git -c alias.z='!a' z; tar --to-command=b -xf c; sed -n '1e d' f; ssh h 'i | j'
