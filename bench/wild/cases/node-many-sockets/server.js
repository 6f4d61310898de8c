// The departures of a station, as its boards ask for them: many boards, each with a connection of its own.
'use strict';
const http = require('node:http');

const trains = Array.from({ length: 90 }, (_, n) => ({
  number: 1000 + n * 7, to: `town ${n % 37}`, track: n % 12, minute: (n * 53) % 1440, late: n % 9,
}));

function departures(now) {
  return trains
    .map((train) => ({ ...train, due: (train.minute + train.late - now + 1440) % 1440 }))
    .sort((a, b) => a.due - b.due)
    .slice(0, 40)
    .map((train) => ({ ...train, at: `${String(Math.floor(train.minute / 60)).padStart(2, '0')}:${String(train.minute % 60).padStart(2, '0')}` }));
}

const server = http.createServer((request, response) => {
  const now = Math.floor(Date.now() / 60000) % 1440;
  const body = JSON.stringify({ station: 'Centraal', trains: departures(now) });
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  response.end(body);
});
server.keepAliveTimeout = 60_000;
server.listen(Number(process.env.PORT), '127.0.0.1', 4096);
