// Dashboard: twelve tiles, each from the statistics service.
const http = require('http');
const fastify = require('fastify')();

const agent = new http.Agent({ keepAlive: true, maxSockets: 1000 });
const statistics = process.env.STATISTICS_URL || 'http://127.0.0.1:9216/';
const tiles = ['orders', 'returns', 'visits', 'carts', 'stock', 'prices', 'mails', 'calls', 'sales', 'costs', 'staff', 'news'];

function ask(tile) {
  return new Promise((resolve, reject) => {
    http.get(`${statistics}${tile}`, { agent }, (res) => {
      let length = 0;
      res.on('data', (piece) => { length += piece.length; });
      res.on('end', () => resolve({ tile, length }));
    }).on('error', reject);
  });
}

fastify.get('/', async () => {
  if (process.env.ALL_AT_ONCE === '1') return Promise.all(tiles.map(ask));
  const found = [];
  for (const tile of tiles) found.push(await ask(tile));
  return found;
});
fastify.listen({ port: Number(process.env.PORT || 3000), host: '127.0.0.1' });
