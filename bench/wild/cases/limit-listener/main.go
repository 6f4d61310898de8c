// A small API whose listener bounds the number of open connections.
package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"golang.org/x/net/netutil"
)

func main() {
	connections := 10
	if n, err := strconv.Atoi(os.Getenv("CONNECTIONS")); err == nil {
		connections = n
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(20 * time.Millisecond) // the device takes so long
		io.WriteString(w, "ready\n")
	})
	log.Fatal(http.Serve(netutil.LimitListener(listener, connections), nil))
}
