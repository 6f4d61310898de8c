// Routes requests to the backend of a model; backends come and go.
package main

import (
	"io"
	"log"
	"net/http"
	"os"
	"sync"
)

type router struct {
	mu       sync.Mutex
	backends map[string]string
	client   *http.Client
	snapshot bool // look the backend up under the lock, then let go of it
}

func (rt *router) forward(w http.ResponseWriter, backend string) {
	reply, err := rt.client.Get(backend)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer reply.Body.Close()
	io.Copy(w, reply.Body)
}

func (rt *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rt.mu.Lock()
	backend := rt.backends["default"]
	if rt.snapshot {
		rt.mu.Unlock()
		rt.forward(w, backend)
		return
	}
	defer rt.mu.Unlock()
	rt.forward(w, backend)
}

func main() {
	backend := os.Getenv("BACKEND_URL")
	if backend == "" {
		backend = "http://127.0.0.1:9121/"
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 200
	rt := &router{
		backends: map[string]string{"default": backend},
		client:   &http.Client{Transport: transport},
		snapshot: os.Getenv("ROUTER_SNAPSHOT") == "1",
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), rt))
}
