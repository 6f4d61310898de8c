module example.org/prices

go 1.19
