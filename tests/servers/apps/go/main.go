// A shop that listens on $PORT and shows the menu of a file.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
)

func index(reply http.ResponseWriter, _ *http.Request) {
	menu, err := os.ReadFile("menu.txt")
	if err != nil {
		http.Error(reply, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(reply, "<p>%s</p>\n", menu)
}

func main() {
	http.HandleFunc("/", index)
	log.Fatal(http.ListenAndServe(":"+os.Getenv("PORT"), nil))
}
