module example.org/meters

go 1.19
