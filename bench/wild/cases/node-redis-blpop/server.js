// Inbox: waits a moment for a new message of the caller's queue.
const http = require('http');
const Redis = require('ioredis');

const first = new Redis(process.env.REDIS_URL);
const clients = [first];
for (let more = 1; more < Number(process.env.REDIS_CLIENTS || 1); more += 1) clients.push(first.duplicate());

let asked = 0;
http.createServer(async (req, res) => {
  const client = clients[asked % clients.length];
  asked += 1;
  const message = await client.blpop(`inbox:${asked % 5000}`, 0.05);
  res.setHeader('Content-Type', 'application/json');
  res.end(JSON.stringify({ message: message ? message[1] : null }));
}).listen(process.env.PORT || 3000, '127.0.0.1');
