// Checks tokens with keys that are fetched anew all the time, since the issuer changes them often.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
	"time"
)

type keys struct {
	mu    sync.RWMutex
	key   []byte
	url   string
	aside bool
}

func (k *keys) fetch() []byte {
	reply, err := http.Get(k.url)
	if err != nil {
		return nil
	}
	defer reply.Body.Close()
	body, _ := io.ReadAll(reply.Body)
	sum := sha256.Sum256(body)
	return sum[:]
}

func (k *keys) refresh() {
	if k.aside {
		fresh := k.fetch()
		k.mu.Lock()
		k.key = fresh
		k.mu.Unlock()
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.key = k.fetch()
}

func (k *keys) sign(token string) string {
	k.mu.RLock()
	defer k.mu.RUnlock()
	mac := hmac.New(sha256.New, k.key)
	io.WriteString(mac, token)
	return hex.EncodeToString(mac.Sum(nil))
}

func main() {
	issuer := os.Getenv("ISSUER_URL")
	if issuer == "" {
		issuer = "http://127.0.0.1:9524/"
	}
	set := &keys{url: issuer, aside: os.Getenv("FETCH_ASIDE") == "1"}
	go func() {
		for {
			set.refresh()
			time.Sleep(25 * time.Millisecond)
		}
	}()
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "{\"active\": true, \"mac\": %q}\n", set.sign("token of "+r.RemoteAddr))
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
