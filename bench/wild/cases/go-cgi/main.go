// Serves the status page, a script of Perl, as CGI.
package main

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
)

//go:embed status.pl
var script string

type worker struct {
	in  io.Writer
	out *bufio.Reader
}

func started() *worker {
	command := exec.Command("/usr/bin/perl", "-e", script, "stay")
	in, _ := command.StdinPipe()
	out, _ := command.StdoutPipe()
	if err := command.Start(); err != nil {
		log.Fatal(err)
	}
	return &worker{in, bufio.NewReader(out)}
}

func staying(number int) http.HandlerFunc {
	idle := make(chan *worker, number)
	for range make([]struct{}, number) {
		idle <- started()
	}
	return func(w http.ResponseWriter, r *http.Request) {
		one := <-idle
		defer func() { idle <- one }()
		var length int64
		fmt.Fprintln(one.in, "page")
		fmt.Fscanf(one.out, "%d\n", &length)
		io.CopyN(w, one.out, length)
	}
}

func main() {
	var handler http.Handler = &cgi.Handler{Path: "/usr/bin/perl", Args: []string{"-e", script}, Dir: "/"}
	if os.Getenv("STAY") == "1" {
		handler = staying(4)
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, handler))
}
