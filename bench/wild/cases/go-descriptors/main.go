// Readings of a meter, which answers after 20 ms.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"time"
)

func reading() int {
	time.Sleep(20 * time.Millisecond) // the meter's line
	return time.Now().Nanosecond() % 1000
}

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "{\"watts\": %d}\n", reading())
	})
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, nil))
}
