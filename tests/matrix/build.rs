//! Compilers and build tools, offline, in projects without dependencies of others.

rows! {
    gcc_and_make ["gcc", "make", "ar"] r#"
        set -e
        printf '#include <stdio.h>\nint twice(int);\nint main(void){printf("%%d\\n",twice(21));return 0;}\n' > main.c
        printf 'int twice(int x){return 2*x;}\n' > twice.c
        printf 'OBJECTS = main.o twice.o\nprogram: $(OBJECTS)\n\t$(CC) -o $@ $(OBJECTS)\ntest: program\n\t./program\n' > Makefile
        make -s -j4 test; gcc -O2 -g -flto -o lto main.c twice.c; ./lto; gcc -shared -fPIC -o libtwice.so twice.c
        gcc -o dynamic main.c -L. -ltwice -Wl,-rpath,'$ORIGIN'; ./dynamic; ar rcs lib.a twice.o; gcc -static -o static main.c lib.a; ./static
    "# => "42\n42\n42\n42\n";

    c_threads ["gcc"] r##"
        set -e
        cat > t.c <<'EOF'
#include <pthread.h>
#include <stdio.h>
static long sum; static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *add(void *x) { for (int i = 0; i < 1000; i++) { pthread_mutex_lock(&lock); sum += (long)x; pthread_mutex_unlock(&lock); } return 0; }
int main(void) { pthread_t t[64]; for (long i = 0; i < 64; i++) if (pthread_create(&t[i], 0, add, (void *)1)) return 1;
  for (int i = 0; i < 64; i++) pthread_join(t[i], 0); printf("%ld\n", sum); return 0; }
EOF
        gcc -pthread -o t t.c; ./t
    "## => "64000\n";

    cplusplus ["g++"] r##"
        set -e
        printf '#include <thread>\n#include <iostream>\n#include <filesystem>\nint main(){std::thread t([]{std::cout<<"thread\\n";});t.join();std::cout<<std::filesystem::exists("m.cc")<<"\\n";}\n' > m.cc
        g++ -std=c++17 -O1 -pthread -o m m.cc; ./m
    "## => "thread\n1\n";

    rustc_builds_and_runs ["rustc"] r#"
        set -e
        printf 'fn main() { let t = std::thread::spawn(|| 6 * 7); println!("{}", t.join().unwrap()); }\n' > m.rs; rustc -O m.rs; ./m
    "# => "42\n";

    cargo_builds_tests_and_runs ["cargo", "rustc"] r#"
        set -e
        cargo new --quiet --vcs none --lib inner; cargo new --quiet --vcs none outer; cd outer
        cargo add --quiet --offline --path ../inner 2> /dev/null || printf 'inner = { path = "../inner" }\n' >> Cargo.toml
        printf 'fn main() { println!("{}", inner::add(40, 2)); }\n#[test]\nfn adds() { assert_eq!(inner::add(1, 2), 3); }\n' > src/main.rs
        cargo build --quiet --offline; cargo run --quiet --offline; cargo test --quiet --offline 2> /dev/null | grep -c 'test result: ok. 1 passed'
        cargo doc --quiet --offline --no-deps; test -e target/doc/outer/index.html && echo documented; cargo metadata --offline --format-version 1 | grep -o '"name":"inner"' | head -1
    "# => "42\n1\ndocumented\n\"name\":\"inner\"\n";

    cargo_formats_and_lints ["cargo", "rustfmt", "cargo-clippy"] r#"
        set -e
        cargo new --quiet --vcs none c; cd c; printf 'fn main(){let x=1;println!("{}",x+1);}\n' > src/main.rs; cargo fmt; wc -l < src/main.rs; cargo clippy --quiet --offline 2> /dev/null; cargo build --quiet --release --offline; target/release/c
    "# => "4\n2\n";

    go_builds_and_tests ["go"] r#"
        set -e
        export GOFLAGS=-mod=mod GOTOOLCHAIN=local GOPROXY=off; go mod init demo 2> /dev/null
        printf 'package main\nimport "fmt"\nfunc Twice(x int) int { return 2 * x }\nfunc main() { c := make(chan int); go func() { c <- Twice(21) }(); fmt.Println(<-c) }\n' > main.go
        printf 'package main\nimport "testing"\nfunc TestTwice(t *testing.T) { if Twice(2) != 4 { t.Fail() } }\n' > main_test.go
        go build -o m .; ./m; go test . | cut -f1; go vet . && gofmt -l . | wc -l
    "# => "42\nok  \n2\n";

    java_compiles_and_runs ["java", "javac", "jar"] r#"
        set -e
        printf 'public class Main { public static void main(String[] a) throws Exception { Thread t = new Thread(() -> System.out.println(6 * 7)); t.start(); t.join(); } }\n' > Main.java
        javac Main.java; java Main; java Main.java; jar cfe m.jar Main Main.class; java -jar m.jar
    "# => "42\n42\n42\n";

    cmake_and_ninja ["cmake", "ninja", "gcc"] r#"
        set -e
        printf 'cmake_minimum_required(VERSION 3.10)\nproject(d C)\nadd_executable(m m.c)\nenable_testing()\nadd_test(NAME t COMMAND m)\n' > CMakeLists.txt; printf 'int main(void){return 0;}\n' > m.c
        cmake -G Ninja -B b -S . > /dev/null; cmake --build b > /dev/null; cd b; ctest 2> /dev/null | grep -c '100% tests passed'
    "# => "1\n";

    perl_and_its_modules ["perl"] r#"
        perl -MPOSIX -MFile::Temp=tempfile -e 'my ($h, $n) = tempfile(); print $h "x\n"; close $h; print -s $n, "\n"'
        printf 'use strict; my $pid = fork; if (!$pid) { exit 3 } waitpid $pid, 0; print $? >> 8, "\n";' > f.pl; perl f.pl
    "# => "2\n3\n";
}
