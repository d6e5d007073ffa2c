//! Programs that copy, pack, search and store files.

rows! {
    copies_keep_modes_times_and_links ["cp"] r#"
        set -e
        mkdir -p a/b; echo x > a/b/f; chmod 750 a/b/f; ln -s f a/b/l; ln a/b/f a/h; touch -d '2001-02-03 04:05:06 UTC' a/b/f
        cp -a a c; stat -c '%a %Y' c/b/f; readlink c/b/l; test c/h -ef c/b/f && echo linked
        mv c d; mkdir e; mv d e/; ls e/d; cp --reflink=auto -r e g; install -m 700 a/h i; stat -c %a i; rm -rf e; truncate -s 5 t; stat -c %s t
    "# => "750 981173106\nf\nlinked\nb\nh\n700\n5\n";

    tar_round_trip ["tar", "gzip"] r#"
        set -e
        mkdir -p a/b; echo x > a/b/f; chmod 640 a/b/f; ln -s f a/b/l; ln a/b/f a/h; umask 022
        tar czf a.tgz a; mkdir out; tar xzf a.tgz -C out; tar tzf a.tgz | sort | head -1; stat -c %a out/a/b/f
        readlink out/a/b/l; test out/a/h -ef out/a/b/f && echo linked; diff -r a out/a && echo same; tar c a | tar x -C out
    "# => "a/\n640\nf\nlinked\nsame\n";

    zip_and_compressors ["xz", "gzip", "bzip2"] r#"
        set -e
        seq 10000 > f; gzip -k f; xz -k f; bzip2 -k f; rm f; gzip -dk f.gz; wc -l < f; rm f; xz -d f.xz; wc -l < f; rm f; bunzip2 f.bz2; wc -l < f
    "# => "10000\n10000\n10000\n";

    rsync_copies_a_tree ["rsync"] r#"
        set -e
        mkdir -p a/b; echo x > a/b/f; chmod 640 a/b/f; ln -s f a/b/l; echo y > a/skip.o
        rsync -a --exclude '*.o' a/ c/; find c | sort; stat -c %a c/b/f; echo z > c/extra; rsync -a --delete a/ c/; find c | sort | wc -l
    "# => "c\nc/b\nc/b/f\nc/b/l\n640\n5\n";

    sqlite_in_both_journal_modes ["sqlite3"] r#"
        set -e
        sqlite3 d.db 'create table t(x); insert into t values (1),(2); select sum(x) from t'
        sqlite3 d.db 'pragma journal_mode=wal; insert into t values (3); select count(*) from t'; sqlite3 d.db '.mode list' 'select * from t' | tail -1
    "# => "3\nwal\n3\n3\n";

    jq_reads_and_writes ["jq"] r#"
        echo '{"a":[1,{"b":"ä"}]}' > f; jq -r '.a[1].b' f; jq -c '.a[0] += 1' f; jq -n '[range(3)] | add'
    "# => "ä\n{\"a\":[2,{\"b\":\"ä\"}]}\n3\n";

    ripgrep_searches_with_threads ["rg"] r#"
        mkdir -p d/e; for i in $(seq 200); do echo "line $i" > d/e/$i; done; echo secret > d/.hidden
        rg -c 'line 1$' d; rg -l 'line' d | wc -l; rg -l secret d || echo none; echo abc | rg -o b; rg --files d | wc -l
    "# => "d/e/1:1\n200\nnone\nb\n200\n";

    find_grep_and_locks ["find", "grep", "flock"] r#"
        set -e
        mkdir -p a/.b; echo x1 > a/f; echo x2 > a/.b/g; find . -name '[fg]' -newermt 2000-01-01 | sort; grep -rn x2 . ; grep -rlE 'x[12]' . | wc -l
        flock a/f echo locked; exec 9> lock; flock -n 9 && echo own; (flock -n 8 || echo busy) 8> lock
        find a -type f -print0 | xargs -0 cat | sort; find a -name g -delete; ls -A a/.b | wc -l; dd if=/dev/zero of=z bs=1M count=3 status=none; stat -c %s z; du -s --apparent-size -BM z | cut -f1
    "# => "./a/.b/g\n./a/f\n./a/.b/g:1:x2\n2\nlocked\nown\nbusy\nx1\nx2\n0\n3145728\n3M\n";

    names_of_every_kind [] r#"
        set -e
        touch -- -dash 'with space' $'new\nline' $'\xff\xfe' 'ünï'; ls | wc -l; mkdir -p "$(printf 'd%.0s' $(seq 200))"; rm -- -dash; find . -type f -print0 | tr -cd '\0' | wc -c
        chmod 444 ünï; stat -c %a ünï; ln -s 'with space' l; cat l; rm l; diff <(ls -b) <(ls -b) && echo stable
    "# => "6\n4\n444\nstable\n";

    patches_and_editors ["patch", "diff"] r#"
        printf 'a\nb\nc\n' > f; sed 's/b/B/' f > g; diff -u f g > p || true; patch -s f p; cmp f g && echo patched
        perl -pi -e 's/c/C/' f; tail -1 f; printf '1i\nfirst\n.\nwq\n' | ed -s f 2> /dev/null; tail -1 f; md5sum < g | cut -c1-4; sha256sum g > s; sha256sum -c --quiet s && echo checked; file --brief /dev/null > /dev/null 2>&1; base64 <<< x | base64 -d
    "# => "patched\nC\nC\nb0bf\nchecked\nx\n";
}
