// Notifications: a request waits until there is one, or for some seconds.
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

type hub struct {
	mu      sync.Mutex
	last    int
	changed chan struct{} // closed with the next notification
}

func newHub() *hub {
	return &hub{changed: make(chan struct{})}
}

func (h *hub) publish() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *hub) state() (int, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last, h.changed
}

func (h *hub) wait(w http.ResponseWriter, r *http.Request) {
	seconds, err := strconv.Atoi(r.URL.Query().Get("wait"))
	if err != nil {
		seconds = 2
	}
	_, changed := h.state()
	timer := time.NewTimer(time.Duration(seconds) * time.Second)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-r.Context().Done():
		return
	}
	last, _ := h.state()
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]int{"last": last})
}

func main() {
	h := newHub()
	go func() {
		for range time.Tick(700 * time.Millisecond) {
			h.publish()
		}
	}()
	http.HandleFunc("/", h.wait)
	http.HandleFunc("/health", func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("ok")) })
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
