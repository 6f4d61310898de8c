// A shop that listens on process.env.PORT, with a template and a file to which it writes.
"use strict";

const fs = require("node:fs");
const http = require("node:http");
const path = require("node:path");
const Mustache = require("mustache");

const view = fs.readFileSync(path.join(__dirname, "views", "index.html"), "utf8");

http
  .createServer((request, response) => {
    fs.appendFile("visits.log", `${request.url}\n`, (error) => {
      response.statusCode = error ? 500 : 200;
      response.setHeader("Content-Type", "text/html");
      response.end(error ? `${error.message}\n` : Mustache.render(view, { item: "soup" }));
    });
  })
  .listen(process.env.PORT);
