// Profiles; a worker ends after so many requests, against a leak of memory.
const cluster = require('cluster');
const http = require('http');

const limit = Number(process.env.WORKER_REQUESTS || 400);

if (cluster.isPrimary) {
  for (let n = 0; n < 3; n += 1) cluster.fork();
  cluster.on('exit', () => cluster.fork());
} else {
  const profiles = new Map();
  for (let n = 0; n < 100000; n += 1) profiles.set(`user${n}`, { name: `User ${n}`, visits: n % 7 });
  const most = limit + Math.round(Math.random() * limit);
  let requests = 0;
  http.createServer((req, res) => {
    requests += 1;
    if (requests === most) process.exit(0);
    setTimeout(() => {
      res.setHeader('Content-Type', 'application/json');
      res.end(JSON.stringify(profiles.get('user42')));
    }, 10);
  }).listen(process.env.PORT || 3000, '127.0.0.1');
}
