module example.org/hello

go 1.21
