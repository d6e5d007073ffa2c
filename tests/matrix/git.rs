//! git: everything that a day's work does in a repository of its own.

use crate::rig::{Place, Row};

/// Name and address come from the caller's settings, of which nothing else is in the cell, and those
/// of a repository come first.
#[test]
fn git_commits_as_the_caller() {
    let row = Row {
        name: "git_commits_as_the_caller",
        needs: &["git"],
        script: r#"
            set -e
            git init -q r; cd r; git commit -q --allow-empty -m one; git log -1 --format='%an <%ae> %cn'
            git config user.email own@example; git commit -q --allow-empty -m two; git log -1 --format='%an <%ae>'
        "#,
        prints: "Caller \"C\" D <caller@example> Caller \"C\" D\nCaller \"C\" D <own@example>\n",
    };
    let settings =
        "[user]\n\tname = Caller \\\"C\\\" D\n\temail = caller@example # home\n[x]\n\ttoken = t\n";
    row.holds_in(|place: &Place| place.home_file(".gitconfig", settings));
    let place = Place::new();
    place.home_file(".gitconfig", settings);
    let seen = place.confined(&[], "cd; git config --list --global | sort");
    assert_eq!(seen.stdout, "user.email=caller@example\nuser.name=Caller \"C\" D\n", "{seen:?}");
}

rows! {
    git_clone_commit_branch_checkout ["git"] r#"
        set -e
        git init -q -b main origin
        cd origin; git config user.name a; git config user.email a@b
        echo one > file; git add .; git commit -qm one; cd ..
        git clone -q origin copy; cd copy
        git config user.name c; git config user.email c@d
        git checkout -qb topic; echo two >> file; git commit -qam two
        git branch other; git checkout -q main; git merge -q topic
        git tag v1; git log --format=%s; git branch --format='%(refname:short)'; git push -q origin topic
        git -C ../origin log -1 --format=%s topic; git status --short; git fsck --strict
    "# => "two\none\nmain\nother\ntopic\ntwo\n";

    git_worktree ["git"] r#"
        set -e
        git init -q -b main r; cd r; git config user.name a; git config user.email a@b
        echo 1 > f; git add f; git commit -qm one
        git worktree add -q ../tree -b side; cd ../tree
        echo 2 > f; git commit -qam two; cd ../r; git worktree list | wc -l
        git merge -q side; cat f; git worktree remove ../tree; git worktree list | wc -l
    "# => "2\n2\n1\n";

    git_rebase_with_a_conflict ["git"] r#"
        set -e
        git init -q -b main r; cd r; git config user.name a; git config user.email a@b
        echo base > f; git add f; git commit -qm base
        git checkout -qb topic; echo topic > f; git commit -qam topic; echo more > g; git add g; git commit -qm more
        git checkout -q main; echo main > f; git commit -qam main; git checkout -q topic
        git rebase main > /dev/null 2>&1 || echo conflict
        echo both > f; git add f; GIT_EDITOR=true git rebase --continue > /dev/null 2>&1
        git log --format=%s; cat f
    "# => "conflict\nmore\ntopic\nmain\nbase\nboth\n";

    git_stash_bisect_patch_and_gc ["git"] r#"
        set -e
        git init -q -b main r; cd r; git config user.name a; git config user.email a@b
        for i in 1 2 3 4 5 6; do echo $i > f; git add f; git commit -qm c$i; done
        echo x > f; git stash -q; cat f; git stash pop -q; cat f; git checkout -q f
        git bisect start HEAD HEAD~5 > /dev/null
        git bisect run sh -c 'test $(cat f) -lt 4' | grep -c 'is the first bad'; git bisect reset > /dev/null 2>&1
        git format-patch -q -2 -o patches; git reset -q --hard HEAD~2; git am -q patches/*.patch
        cat f; git gc -q; git diff --stat HEAD~1 | tail -1; git archive HEAD f | tar t; git blame -s f | wc -l
    "# => "6\nx\n1\n6\n 1 file changed, 1 insertion(+), 1 deletion(-)\nf\n1\n";

    git_submodule_and_sparse_checkout ["git"] r#"
        set -e
        git init -q -b main inner; cd inner; git config user.name a; git config user.email a@b
        mkdir d e; echo 1 > d/f; echo 2 > e/f; git add .; git commit -qm inner; cd ..
        git init -q -b main outer; cd outer; git config user.name a; git config user.email a@b
        git -c protocol.file.allow=always submodule --quiet add ../inner sub
        git commit -qm outer; git submodule status | wc -l; cd sub
        git sparse-checkout set d; ls
    "# => "1\nd\n";
}
