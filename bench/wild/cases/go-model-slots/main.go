// Answers questions with a language model, which another server runs.
package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

type model struct {
	url    string
	client *http.Client
	places chan struct{} // no more questions than these are under way
}

func newModel(url string, most int) *model {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = most
	return &model{url: url, client: &http.Client{Transport: transport}, places: make(chan struct{}, most)}
}

func (m *model) complete(ctx context.Context, prompt string) (int, error) {
	select {
	case m.places <- struct{}{}:
		defer func() { <-m.places }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("X-Prompt", prompt)
	reply, err := m.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	return len(body), err
}

func env(name, usual string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return usual
}

func main() {
	most, err := strconv.Atoi(env("MAX_QUESTIONS", "16"))
	if err != nil {
		log.Fatal(err)
	}
	m := newModel(env("MODEL_URL", "http://127.0.0.1:9517/"), most)
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
		defer cancel()
		length, err := m.complete(ctx, "What is a limit?")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]int{"length": length})
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+env("PORT", "8080"), nil))
}
