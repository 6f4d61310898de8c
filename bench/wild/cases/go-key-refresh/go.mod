module example.org/tokens

go 1.21
