module example.org/frontpage

go 1.19
