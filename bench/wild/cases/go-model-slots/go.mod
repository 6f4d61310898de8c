module example.org/chat

go 1.21
