module example.org/notify

go 1.21
