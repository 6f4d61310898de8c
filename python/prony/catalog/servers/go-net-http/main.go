// Command server answers like the app hello, with the standard library's HTTP server.
package main

import (
	"crypto/tls"
	"flag"
	"log"
	"net/http"
	"strconv"
)

var greeting = []byte("Hello, world!\n")

func main() {
	address := flag.String("address", "127.0.0.1:8000", "host and port to listen on")
	idleTimeout := flag.Duration("idle-timeout", 0, "how long an idle connection is kept open; 0: without end")
	noKeepAlive := flag.Bool("no-keep-alive", false, "close each connection after its reply")
	certificate := flag.String("certificate", "", "speak TLS with this certificate, a PEM file")
	key := flag.String("key", "", "its key")
	http2 := flag.Bool("http2", false, "agree on HTTP/2 with those who offer it; with TLS only")
	flag.Parse()

	server := &http.Server{Addr: *address, Handler: http.HandlerFunc(answer), IdleTimeout: *idleTimeout}
	server.SetKeepAlivesEnabled(!*noKeepAlive)
	if *certificate == "" {
		if *http2 {
			log.Fatal("-http2 needs a -certificate and its -key")
		}
		log.Fatal(server.ListenAndServe())
	}
	if !*http2 {
		// Without this the server agrees on HTTP/2 with whoever offers it.
		server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	log.Fatal(server.ListenAndServeTLS(*certificate, *key))
}

func answer(writer http.ResponseWriter, request *http.Request) {
	if request.URL.Path != "/" {
		http.NotFound(writer, request)
		return
	}
	writer.Header().Set("Content-Type", "text/plain")
	writer.Header().Set("Content-Length", strconv.Itoa(len(greeting)))
	writer.Write(greeting)
}
