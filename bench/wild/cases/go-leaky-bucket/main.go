// A gateway that lets requests wait until the rate allows them.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

func rate() int {
	if n, err := strconv.Atoi(os.Getenv("RATE")); err == nil {
		return n
	}
	return 100
}

func main() {
	bucket := time.NewTicker(time.Second / time.Duration(rate()))
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-bucket.C:
			fmt.Fprintln(w, "passed on")
		case <-r.Context().Done():
		}
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
