module example.org/gateway

go 1.21
