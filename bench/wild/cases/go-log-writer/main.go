// A registry of schemas; each request leaves a line in the audit log, at a service for logs.
package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
)

type remote struct{ url string }

func (r remote) Write(line []byte) (int, error) {
	reply, err := http.Post(r.url, "text/plain", bytes.NewReader(line))
	if err != nil {
		return 0, err
	}
	defer reply.Body.Close()
	io.Copy(io.Discard, reply.Body)
	return len(line), nil
}

type queue chan []byte

func (q queue) Write(line []byte) (int, error) {
	select {
	case q <- bytes.Clone(line):
	default: // full: this line is lost
	}
	return len(line), nil
}

func main() {
	var sink io.Writer = remote{os.Getenv("LOG_SERVICE")}
	if os.Getenv("LOG_QUEUE") == "1" {
		waiting := make(queue, 1000)
		go func(to io.Writer) {
			for line := range waiting {
				to.Write(line)
			}
		}(sink)
		sink = waiting
	}
	audit := log.New(sink, "audit ", log.LstdFlags)
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		audit.Printf("%s read schema 7", r.RemoteAddr)
		fmt.Fprintln(w, `{"type": "record"}`)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
