module example.org/status

go 1.19
