const http = require('http');

http.createServer((request, response) => {
  response.writeHead(200, { 'content-type': 'text/plain' });
  response.end('tides: low\n');
}).listen(3999, '127.0.0.1');
