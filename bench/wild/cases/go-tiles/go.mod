module example.org/tiles

go 1.19
