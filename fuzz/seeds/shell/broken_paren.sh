find . ( -name x -o -name <y> )
