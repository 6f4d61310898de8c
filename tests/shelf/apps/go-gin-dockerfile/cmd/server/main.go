package main

import (
	"net/http"

	"example.com/catalogue/internal/items"
	"github.com/gin-gonic/gin"
)

func main() {
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.GET("/", func(c *gin.Context) { c.JSON(http.StatusOK, items.All()) })
	router.Run() // PORT, or 8080
}
