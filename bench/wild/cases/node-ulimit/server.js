// The pages of a small museum, read from disk.
const fs = require('fs');
const http = require('http');
const path = require('path');

const page = path.join(__dirname, 'page.html');

http.createServer((req, res) => {
  fs.readFile(page, (error, text) => {
    if (error) {
      res.writeHead(500, { 'Content-Type': 'text/plain' });
      res.end(`${error.code}\n`);
      return;
    }
    res.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' });
    res.end(text);
  });
}).listen(Number(process.env.PORT || 3000), process.env.HOST || '127.0.0.1');
