const http = require('http');

const port = process.env.PORT || 3000;
http.createServer((request, response) => {
  response.writeHead(200, { 'content-type': 'text/plain' });
  response.end('weather: fine\n');
}).listen(port, () => console.log(`listening on ${port}`));
