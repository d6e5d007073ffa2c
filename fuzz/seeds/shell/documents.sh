cat <<A <<-'B' | sh
one $x $(two)
A
	three `four`
	B
bash <<< "five $six"
