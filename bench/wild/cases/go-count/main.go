// The first page of a search: ten rows, and how many there are.
package main

import (
	"database/sql"
	"fmt"
	"log"
	"net/http"
	"os"

	_ "github.com/lib/pq"
)

const exact = "select count(*) from go_count_torrents where not hidden"
const estimate = "select reltuples::bigint from pg_class where relname = 'go_count_torrents'"

func main() {
	db, err := sql.Open("postgres", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(8)
	count := exact
	if os.Getenv("ESTIMATE") == "1" {
		count = estimate
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		var total int64
		if err := db.QueryRowContext(r.Context(), count).Scan(&total); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "rows 1 to 10 of %d\n", total)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
