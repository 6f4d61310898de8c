// Opinions on a product, from an engine that thinks for 60 ms.
'use strict';
const fs = require('node:fs');
const http = require('node:http');

http.createServer((request, response) => {
  setTimeout(() => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ stars: 4.2, opinions: 218 }));
  }, 60);
}).listen(9541, '127.0.0.1', () => {
  if (process.argv[2]) fs.writeFileSync(process.argv[2], ''); // nginx may start
});
