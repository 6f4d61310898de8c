package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
)

func main() {
	serve := flag.NewFlagSet("serve", flag.ExitOnError)
	title := serve.String("title", "", "what is served")
	serve.Parse(os.Args[2:])
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, *title) })
	http.ListenAndServe(":"+os.Getenv("PORT"), nil)
}
