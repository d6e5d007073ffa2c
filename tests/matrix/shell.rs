//! The shell itself: pipes, jobs, descriptors, documents, temporary files, signals, locale and time.

rows! {
    pipes_and_counts [] "set -e; touch a b c; ls | wc -l; ls | sort -r | head -1" => "3\nc\n";

    process_substitution_and_descriptors [] r#"
        set -e
        printf '2\n1\n' > a; printf '1\n2\n' > b
        diff <(sort a) <(sort b) && echo same
        exec 5< a; cat /dev/fd/5; cat /proc/self/fd/0 < b; echo out > /dev/stdout; echo err > /dev/stderr
        tee >(wc -l > lines) < a > /dev/null; sleep 0.2; cat lines; test -r /dev/fd/5 && echo open
    "# => "same\n2\n1\n1\n2\nout\n2\nopen\n";

    here_documents [] r#"
        cat <<EOF
value $((1 + 2))
EOF
        cat <<'EOF'
value $((1 + 2))
EOF
        tr a-z A-Z <<< word; head -c 200000 /dev/zero | tr '\0' x > big; cat <<EOF | wc -c
$(cat big)
EOF
    "# => "value 3\nvalue $((1 + 2))\nWORD\n200001\n";

    background_jobs [] r#"
        set -e
        for i in 1 2 3; do (sleep 0.1; echo $i > job$i) & done
        echo started; wait; cat job*; sleep 30 & kill $!; wait $! || echo ended $?
        nohup sleep 0 2> /dev/null; timeout 5 true; coproc cat; echo hi >&"${COPROC[1]}"; read -r line <&"${COPROC[0]}"; echo $line
    "# => "started\n1\n2\n3\nended 143\nhi\n";

    traps_and_signals [] r#"
        cat > t.sh <<'EOF'
trap 'echo usr1' USR1; kill -USR1 $$; trap 'rm -f f; echo cleaned' EXIT; touch f
sh -c 'trap "" TERM; kill -TERM $$; echo survived'; bash -c 'kill -9 $$'; echo $?
EOF
        bash t.sh 2> /dev/null; ls f 2> /dev/null || sleep 30 & kill $!; wait $!; echo $?
    "# => "usr1\nsurvived\n137\ncleaned\n143\n";

    large_pipes [] "head -c 300000000 /dev/zero | tee >(wc -c >&2) | cat | cat | wc -c" => "300000000\n";

    sort_with_temporary_files [] r#"
        set -e
        seq 400000 -1 1 | sort -n -S 1M | sed -n '1p;$p'; seq 400000 -1 1 > f
        sort -n -S 1M -T "$TMPDIR" f -o f; head -1 f; seq 5 | shuf | sort | tail -1
    "# => "1\n400000\n1\n5\n";

    temporary_directories [] r#"
        set -e
        d=$(mktemp -d); f=$(mktemp); t=$(mktemp /tmp/x.XXXXXX); v=$(mktemp /var/tmp/x.XXXXXX)
        echo 1 > "$d/f"; echo 2 > "$f"; echo 3 > $t; echo 4 > $v; cat "$d/f" "$f" $t $v; rm -r "$d" "$f" $t $v
        echo shared > /dev/shm/stoplog-matrix.$$; cat /dev/shm/stoplog-matrix.$$; rm /dev/shm/stoplog-matrix.$$
    "# => "1\n2\n3\n4\nshared\n";

    parallel_processes ["xargs"] r#"
        set -e
        seq 100 | xargs -P 8 -n 1 sh -c 'echo $0' | sort -n | tail -1
        find . -maxdepth 0 -exec sh -c 'echo found' \; ; mkfifo p; echo through > p & cat p; nproc > /dev/null
    "# => "100\nfound\nthrough\n";

    devices [] r#"
        echo gone > /dev/null; head -c 4 /dev/zero | od -An -tx1; test "$(head -c 8 /dev/urandom | wc -c)" = 8 && echo random
        echo x 2> /dev/null > /dev/full || echo full; test -c /dev/null && echo device
    "# => " 00 00 00 00\nrandom\nfull\ndevice\n";

    own_processes ["ps"] r#"
        ps -o comm= -p $$; cat /proc/self/comm; test -r /proc/cpuinfo && test -r /proc/meminfo && echo facts
        nice -n 5 nice; ulimit -n 64; ulimit -n; tr '\0' '\n' < /proc/$$/cmdline | sed -n 2p
    "# => "bash\ncat\nfacts\n5\n64\n-c\n";

    names_of_users [] r#"
        test "$(id -u)" = "$(stat -c %u .)" && echo owner; test -n "$(hostname)" && echo host; getent passwd root | cut -d: -f1
        getent services https | tr -s ' '
    "# => "owner\nhost\nroot\nhttps 443/tcp\n";

    locale_data [] r#"
        locale charmap; printf 'ä\n' | LC_ALL=C.UTF-8 wc -m; LC_ALL=C wc -m <<< ä; printf 'é\nz\na\n' | LC_ALL=C sort | head -1
        printf 'straße' | LC_ALL=C.UTF-8 awk '{ print length($0) > "/dev/stdout" }' > /dev/null; LC_ALL=C.UTF-8 bash -c 'x=straße; echo ${#x}'
    "# => "UTF-8\n2\n3\na\n6\n";

    time_zone_data ["zdump"] r#"
        TZ=Europe/Berlin date -d @0 +%H:%M%z; TZ=America/New_York date -d @1700000000 +%Z
        test -e /etc/localtime && date +%s | wc -c
    "# => "01:00+0100\nEST\n11\n";

    text_tools ["sed", "awk"] r#"
        set -e
        printf 'a b\nc d\n' > f; sed -i 's/a/x/' f; cat f; sed -i.bak 's/c/y/' f; cat f.bak | tail -1
        awk '{ print $2 }' f; cut -d' ' -f1 f; paste -sd, f; tr -d ' ' < f; comm -12 f f | wc -l; join f f | wc -l; grep -c . f
    "# => "x b\nc d\nc d\nb\nd\nx\ny\nx b,y d\nxb\nyd\n2\n2\n2\n";
}
