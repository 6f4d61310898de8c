// Prints labels: orders go to the printer service through one channel.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
)

type order struct {
	text   string
	answer chan result
}

type result struct {
	bytes int64
	err   error
}

type desk struct {
	orders  chan order
	client  *http.Client
	printer string
	spawn   bool // the desk only hands orders out, and does not wait for the printer itself
}

func (d *desk) print(o order) {
	reply, err := d.client.Get(d.printer)
	if err != nil {
		o.answer <- result{err: err}
		return
	}
	defer reply.Body.Close()
	n, err := io.Copy(io.Discard, reply.Body)
	o.answer <- result{bytes: n, err: err}
}

func (d *desk) loop() {
	for o := range d.orders {
		if d.spawn {
			go d.print(o)
		} else {
			d.print(o)
		}
	}
}

func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o := order{text: r.URL.Path, answer: make(chan result, 1)}
	d.orders <- o
	done := <-o.answer
	if done.err != nil {
		http.Error(w, done.err.Error(), http.StatusBadGateway)
		return
	}
	fmt.Fprintf(w, "printed, %d bytes\n", done.bytes)
}

func main() {
	printer := os.Getenv("PRINTER_URL")
	if printer == "" {
		printer = "http://127.0.0.1:9419/"
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 100
	d := &desk{
		orders:  make(chan order),
		client:  &http.Client{Transport: transport},
		printer: printer,
		spawn:   os.Getenv("DESK_SPAWNS") == "1",
	}
	go d.loop()
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), d))
}
