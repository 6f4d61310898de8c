module example.org/labels

go 1.19
