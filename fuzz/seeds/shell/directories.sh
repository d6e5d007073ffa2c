cd a && cd ../b || exit; pushd c; popd; cd -; (cd d; rm -rf e); cd "$HOME"/f; rm ~/g ./h ../i
