// Releases of a project, from the forge's interface.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

func forge() *http.Client {
	certificate, err := os.ReadFile(os.Getenv("FORGE_CERTIFICATE"))
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	return &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, MaxIdleConnsPerHost: 100,
	}}
}

func main() {
	client, drain := forge(), os.Getenv("DRAIN") == "1"
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		reply, err := client.Get("https://127.0.0.1:9218/releases")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer reply.Body.Close()
		newest := make([]byte, 64) // the newest is first, the rest is not wanted
		if _, err := io.ReadFull(reply.Body, newest); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		if drain {
			io.Copy(io.Discard, reply.Body)
		}
		w.Write(newest)
	})
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, nil))
}
