// The score of a player of a game, with the ten best; every request leaves a line in the log.
'use strict';
const http = require('node:http');

const players = Array.from({ length: 200_000 }, (_, n) => ({ name: `player ${n}`, won: (n * 7919) % 1009, lost: (n * 104729) % 503 }));
const rating = (player) => 1000 + 12 * player.won - 9 * player.lost + Math.sqrt(player.won + player.lost);
const STEPWISE = process.env.STEPWISE === '1';
let best = [];

function rankAll() {
  best = [...players].sort((a, b) => rating(b) - rating(a) || a.name.localeCompare(b.name)).slice(0, 10);
  setTimeout(rankAll, 60);
}

let at = 0;
let found = [];
function rankSome() { // the same, 500 players at a time
  found = found.concat(players.slice(at, at + 500)).sort((a, b) => rating(b) - rating(a)).slice(0, 10);
  at += 500;
  if (at >= players.length) {
    best = found;
    found = [];
    at = 0;
  }
  setTimeout(rankSome, 10);
}

if (STEPWISE) rankSome(); else rankAll();

http.createServer((request, response) => {
  const began = process.hrtime.bigint();
  const player = players[Math.floor(Math.random() * players.length)];
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ player, rating: rating(player), best: best.map((one) => one.name) }));
  const line = { level: 'info', url: request.url, status: 200, us: Number((process.hrtime.bigint() - began) / 1000n) };
  console.log(JSON.stringify(line));
}).listen(Number(process.env.PORT), '127.0.0.1');
