module example.org/pages

go 1.21
