// A server that counts its requests, and tells how many at /counts.
const counts = { requests: 0, body_bytes: 0 };
const server = require('http').createServer((request, response) => {
  if (request.url === '/counts') return response.end(JSON.stringify(counts));
  let bytes = 0;
  request.on('data', (part) => { bytes += part.length; });
  request.on('end', () => {
    counts.requests += 1;
    counts.body_bytes += bytes;
    response.setHeader('Content-Length', 8);
    response.end('counted\n');
  });
});
server.keepAliveTimeout = 0;
server.listen(Number(process.argv[2]), '127.0.0.1', 1024);
