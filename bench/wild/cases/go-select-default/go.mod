module example.org/alerts

go 1.21
