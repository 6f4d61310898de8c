// Orders; logs what it does.
const fs = require('fs');
const http = require('http');

const debug = (process.env.LOG_LEVEL || 'debug') === 'debug';
function log(text, details) {
  // As pino does unless it is asked otherwise: no line is lost.
  if (debug) fs.writeSync(1, `${JSON.stringify({ at: new Date().toISOString(), text, ...details })}\n`);
}

let count = 0;
http.createServer((req, res) => {
  count += 1;
  log('request', { method: req.method, url: req.url, headers: req.headers });
  log('customer found', { customer: count % 100, rights: ['order', 'cancel'] });
  log('order made', { order: count, lines: [{ good: 1, number: 2 }, { good: 7, number: 1 }] });
  res.setHeader('Content-Type', 'application/json');
  res.end(JSON.stringify({ order: count }));
  log('reply', { status: res.statusCode });
}).listen(process.env.PORT || 3000, '127.0.0.1');
