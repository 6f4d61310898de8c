// A counter of downloads; connections are closed so that restarts are quick.
const http = require('http');

const server = http.createServer((req, res) => {
  if (process.env.KEEP_ALIVE !== '1') res.setHeader('Connection', 'close');
  res.setHeader('Content-Type', 'application/json');
  res.end('{"downloads": 1204}');
});
server.listen(process.env.PORT || 3000, '127.0.0.1');
process.on('SIGTERM', () => server.close(() => process.exit(0)));
