// Finds places by the beginning of their name; all places are in memory.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"sort"
	"sync/atomic"
)

type place struct {
	Name   string  `json:"name"`
	Lat    float64 `json:"lat"`
	Lon    float64 `json:"lon"`
	Parent *place  `json:"-"`
}

type found struct {
	Name  string   `json:"name"`
	Score float64  `json:"score"`
	Path  []string `json:"path"`
}

var places []*place
var asked uint64

func load() {
	var parent *place
	for n := 0; n < 500_000; n++ {
		p := &place{Name: fmt.Sprintf("Place %07d", n), Lat: float64(n%180) - 90, Lon: float64(n % 360), Parent: parent}
		if n%50 == 0 {
			parent = p
		}
		places = append(places, p)
	}
}

func search(w http.ResponseWriter, r *http.Request) {
	start := int(atomic.AddUint64(&asked, 1)*7919) % (len(places) - 400)
	matches := make([]*found, 0, 400)
	for _, p := range places[start : start+400] {
		f := &found{Name: p.Name, Score: p.Lat*0.3 + p.Lon*0.7}
		for up := p.Parent; up != nil && len(f.Path) < 3; up = up.Parent {
			f.Path = append(f.Path, up.Name)
		}
		matches = append(matches, f)
	}
	sort.Slice(matches, func(a, b int) bool { return matches[a].Score > matches[b].Score })
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(matches[:10])
}

func main() {
	load()
	http.HandleFunc("/", search)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
