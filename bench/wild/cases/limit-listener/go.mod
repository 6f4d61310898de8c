module example.org/edge

go 1.21

require golang.org/x/net v0.35.0
