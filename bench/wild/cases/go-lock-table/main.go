// Moves stock between stores; each movement gets its line in the log of changes.
package main

import (
	"database/sql"
	"encoding/json"
	"log"
	"net/http"
	"os"

	_ "github.com/lib/pq"
)

type shop struct {
	db        *sql.DB
	lockTable bool // so that readers of the log never miss a line that commits late
}

func (s *shop) move(store int) (line int64, err error) {
	tx, err := s.db.Begin()
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	if s.lockTable {
		if _, err = tx.Exec("lock table changes in exclusive mode"); err != nil {
			return 0, err
		}
	}
	if err = tx.QueryRow("insert into changes (store) values ($1) returning line", store).Scan(&line); err != nil {
		return 0, err
	}
	// The rest of the movement: prices, batches, the triggers of the sync.
	if _, err = tx.Exec("select pg_sleep(0.01)"); err != nil {
		return 0, err
	}
	return line, tx.Commit()
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	line, err := s.move(4)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]int64{"line": line})
}

func main() {
	db, err := sql.Open("postgres", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(10)
	db.SetMaxIdleConns(10)
	if _, err = db.Exec("create unlogged table if not exists changes (line bigserial, store int)"); err != nil {
		log.Fatal(err)
	}
	s := &shop{db: db, lockTable: os.Getenv("LOCK_CHANGES") != "0"}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), s))
}
