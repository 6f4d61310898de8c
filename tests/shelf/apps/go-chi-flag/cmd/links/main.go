package main

import (
	"flag"
	"log"
	"net/http"

	"github.com/go-chi/chi/v5"
)

func main() {
	addr := flag.String("addr", ":8080", "where to listen")
	flag.Parse()
	router := chi.NewRouter()
	router.Get("/", func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("links\n")) })
	log.Fatal(http.ListenAndServe(*addr, router))
}
