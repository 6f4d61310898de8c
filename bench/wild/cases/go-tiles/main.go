// Tiles of a map of heights, drawn for each request.
package main

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"log"
	"math"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
)

var drawn uint64

func tile(w http.ResponseWriter, r *http.Request) {
	x := float64(atomic.AddUint64(&drawn, 1) % 512)
	picture := image.NewNRGBA(image.Rect(0, 0, 256, 256))
	for row := 0; row < 256; row++ {
		for column := 0; column < 256; column++ {
			height := math.Sin((x+float64(column)/256)*1.7)*math.Cos(float64(row)/81) + math.Sin(float64(row*column)/9000)
			shade := uint8(128 + 60*height)
			picture.SetNRGBA(column, row, color.NRGBA{shade / 2, shade, 255 - shade, 255})
		}
	}
	var body bytes.Buffer
	if err := png.Encode(&body, picture); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "image/png")
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.Write(body.Bytes())
}

func main() {
	http.HandleFunc("/", tile)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
