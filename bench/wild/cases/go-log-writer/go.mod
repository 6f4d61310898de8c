module example.org/registry

go 1.21
