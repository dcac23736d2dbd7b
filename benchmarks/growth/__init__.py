"""How building and asking grow with the number of passages: a made-up corpus, its stages, and the exponents."""
