// Alerts of a monitoring service. Some feeds wait for orders to reload, and each has a goroutine.
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

type alert struct {
	ID    int       `json:"id"`
	Host  string    `json:"host"`
	Text  string    `json:"text"`
	Since time.Time `json:"since"`
}

type feed struct {
	reload chan os.Signal
	stop   chan struct{}
	loads  atomic.Int64
}

func (f *feed) run(block bool) {
	for {
		if block {
			select {
			case <-f.reload:
				f.loads.Add(1)
			case <-f.stop:
				return
			}
			continue
		}
		select {
		case <-f.reload:
			f.loads.Add(1)
		case <-f.stop:
			return
		default:
		}
	}
}

func main() {
	feeds := make([]*feed, 6)
	for n := range feeds {
		feeds[n] = &feed{reload: make(chan os.Signal, 1), stop: make(chan struct{})}
		signal.Notify(feeds[n].reload, syscall.SIGHUP)
		go feeds[n].run(os.Getenv("FEEDS_BLOCK") == "1")
	}
	since := time.Now()
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		alerts := make([]alert, 40)
		for n := range alerts {
			alerts[n] = alert{n, "db" + string(rune('a'+n%20)), "disk is at 91 percent", since}
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(alerts)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
