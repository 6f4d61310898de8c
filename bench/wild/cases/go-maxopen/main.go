// Reports for a back office, out of PostgreSQL.
package main

import (
	"database/sql"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"

	_ "github.com/lib/pq"
)

func limit(name string, fallback int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return fallback
}

func main() {
	db, err := sql.Open("postgres", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(limit("DB_MAX_OPEN", 5))
	db.SetMaxIdleConns(limit("DB_MAX_OPEN", 5))
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		var total int
		err := db.QueryRowContext(r.Context(), "select 7 from pg_sleep(0.04)").Scan(&total)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "total %d\n", total)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
