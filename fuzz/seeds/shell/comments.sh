# one 'quote
p a#b # two "quote
: <<'#'
three
#
q
