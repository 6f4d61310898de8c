// The front page; its stories come from the content service, behind a breaker.
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
	"time"
)

var errOpen = errors.New("the content service is given a rest")

// breaker stops calls for a while after several failures in a row.
type breaker struct {
	mu       sync.Mutex
	failures int
	opens    time.Time
}

func (b *breaker) call(task func() error) error {
	b.mu.Lock()
	rests := time.Now().Before(b.opens)
	b.mu.Unlock()
	if rests {
		return errOpen
	}
	err := task()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.failures = 0
		return nil
	}
	b.failures++
	if b.failures >= 5 {
		b.failures = 0
		b.opens = time.Now().Add(400 * time.Millisecond)
	}
	return err
}

func main() {
	content := os.Getenv("CONTENT_URL")
	if content == "" {
		content = "http://127.0.0.1:9420/"
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 100
	client := &http.Client{Transport: transport, Timeout: 300 * time.Millisecond}
	guard := &breaker{}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		var stories int64
		err := guard.call(func() error {
			reply, err := client.Get(content)
			if err != nil {
				return err
			}
			defer reply.Body.Close()
			stories, err = io.Copy(io.Discard, reply.Body)
			return err
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, "stories: %d bytes\n", stories)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
