module example.org/media

go 1.21
