// Recipes as pages.
package main

import (
	"bytes"
	"html/template"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

type recipe struct {
	Title  string
	Time   int
	Things []string
	Steps  []string
}

type site struct {
	folder string
	parsed *template.Template // nil: read the files for each page
}

var functions = template.FuncMap{"upper": strings.ToUpper}

var soup = recipe{
	Title:  "Pea soup",
	Time:   90,
	Things: []string{"peas", "leek", "carrots", "celeriac", "smoked sausage", "bay leaf"},
	Steps:  []string{"Soak the peas.", "Cut the vegetables.", "Cook all for an hour.", "Add the sausage."},
}

func (s *site) templates() (*template.Template, error) {
	if s.parsed != nil {
		return s.parsed, nil
	}
	return template.New("layout.html").Funcs(functions).ParseGlob(filepath.Join(s.folder, "*.html"))
}

func (s *site) page(w http.ResponseWriter, r *http.Request) {
	templates, err := s.templates()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	var out bytes.Buffer
	if err := templates.ExecuteTemplate(&out, "layout.html", soup); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Write(out.Bytes())
}

func main() {
	s := &site{folder: "templates"}
	if os.Getenv("PARSE_ONCE") == "1" {
		parsed, err := s.templates()
		if err != nil {
			log.Fatal(err)
		}
		s.parsed = parsed
	}
	http.HandleFunc("/", s.page)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
