x=aaaaaaaa; x=$x$x; x=$x$x; x=$x$x; x=$x$x; x=$x$x; p $x$x "$x" ${x}{1..9}$x
