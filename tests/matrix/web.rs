//! node and npm, and a server that a test starts and calls.

rows! {
    node_runs_tests_and_workers ["node"] r##"
        set -e
        cat > m.js <<'EOF'
const { Worker, isMainThread, parentPort } = require("worker_threads");
if (isMainThread) {
  new Worker(__filename).on("message", m => {
    console.log(m);
    console.log(require("child_process").execSync("echo child").toString().trim());
    require("http").createServer((q, a) => a.end("served")).listen(0, "127.0.0.1", function () {
      require("http").get({ port: this.address().port, host: "127.0.0.1" }, a => a.on("data", d => { console.log(d.toString()); process.exit(0); }));
    });
  });
} else parentPort.postMessage("worker");
EOF
        node m.js; printf 'const t = require("node:test"); t("adds", () => require("assert").equal(1 + 1, 2));\n' > x.test.js
        node --test x.test.js | grep -c '^# pass 1'
    "## => "worker\nchild\nserved\n1\n";

    npm_installs_a_local_package_and_tests ["node", "npm"] r#"
        set -e
        mkdir lib app; printf '{"name":"lib","version":"1.0.0","main":"i.js"}' > lib/package.json; printf 'module.exports = x => 2 * x;\n' > lib/i.js
        cd lib; npm pack --silent > /dev/null; cd ../app; printf '{"name":"app","version":"1.0.0","scripts":{"test":"node t.js","build":"echo built"}}' > package.json
        printf 'console.log(require("lib")(21));\n' > t.js; npm install --silent --offline --no-audit --no-fund ../lib/lib-1.0.0.tgz
        npm test --silent; npm run --silent build; npm ls --parseable | wc -l; npm ci --silent --offline --no-audit --no-fund; npm test --silent
    "# => "42\nbuilt\n2\n42\n";

    a_server_and_its_client_in_one_call ["python3", "curl"] r#"
        echo page > index.html; python3 -m http.server --bind 127.0.0.1 8765 > /dev/null 2>&1 &
        for i in $(seq 100); do curl -sf http://127.0.0.1:8765/ && break; sleep 0.05; done; curl -sf http://localhost:8765/index.html; kill $!
    "# => "page\npage\n";
}
