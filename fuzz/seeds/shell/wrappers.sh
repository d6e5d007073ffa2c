env -i A=1 nice -n 5 timeout -k 1 2 nohup setsid p q
xargs -0 -I{} sh -c 'p {}' < f; find . -name '*.o' -exec p {} + -delete
parallel -j2 p {} ::: a b ::: c; sudo -u u -- p; command -p q; exec -a r s
