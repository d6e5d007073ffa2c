coproc N { p; }; wait "$!"; kill %1; time -p q; time { r; }; ! s &
