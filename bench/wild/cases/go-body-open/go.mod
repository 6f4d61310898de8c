module example.org/releases

go 1.19
