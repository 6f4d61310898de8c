module example.org/models

go 1.21
