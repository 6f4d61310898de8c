// The page of a museum's collection; visits are counted in a map, under a mutex.
package main

import (
	"html/template"
	"log"
	"net/http"
	"os"
	"sync"
	"time"
)

type object struct {
	Number       int
	Title, Maker string
	Year         int
}

type counter struct {
	mu     sync.Mutex
	visits map[string]int
	recent []string
}

func (c *counter) count(page, visitor string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.visits[page]++
	c.recent = append(c.recent, visitor)
	if len(c.recent) > 1000 {
		c.recent = append(c.recent[:0], c.recent[500:]...)
	}
	return c.visits[page]
}

var page = template.Must(template.New("page").Parse(`<html><body><h1>Collection</h1>
<table>{{range .Objects}}<tr><td>{{.Number}}</td><td>{{.Title}}</td><td>{{.Maker}}</td><td>{{.Year}}</td></tr>
{{end}}</table><p>seen {{.Visits}} times, {{.At}}</p></body></html>`))

func main() {
	visits := counter{visits: map[string]int{}}
	objects := make([]object, 120)
	for n := range objects {
		objects[n] = object{n + 1, "Vase with <flowers> & leaves", "unknown maker", 1600 + n}
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		seen := visits.count(r.URL.Path, r.RemoteAddr)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		page.Execute(w, map[string]any{"Objects": objects, "Visits": seen, "At": time.Now().Format(time.RFC1123)})
		visits.count("shown", r.RemoteAddr)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
