// Price list: 400 rows in a template of HTML.
package main

import (
	"fmt"
	"html/template"
	"log"
	"net/http"
	"os"
)

type article struct {
	Number int
	Name   string
	Cents  int
	Tags   []string
}

func (a article) Price() string { return fmt.Sprintf("%d.%02d", a.Cents/100, a.Cents%100) }

var page = template.Must(template.New("prices").Parse(`<!doctype html><title>{{.Title}}</title>
<table>{{range .Articles}}
<tr><td><a href="/article/{{.Number}}" title="{{.Name}}">{{.Name}}</a></td>
<td>{{.Price}}</td><td>{{range .Tags}}<span class="{{.}}">{{.}}</span> {{end}}</td></tr>{{end}}
</table>`))

func main() {
	articles := make([]article, 400)
	for number := range articles {
		articles[number] = article{number, fmt.Sprintf("Bolt & nut <%d>", number), 99 + number, []string{"metal", "small", "new"}}
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		page.Execute(w, map[string]interface{}{"Title": "Prices", "Articles": articles})
	})
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, nil))
}
