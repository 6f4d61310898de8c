// Weather, from the weather office.
const http = require('http');
const Koa = require('koa');

const agent = new http.Agent({ keepAlive: true });
const office = process.env.OFFICE_URL || 'http://127.0.0.1:9217/';

function forecast() {
  return new Promise((resolve, reject) => {
    http.get(office, { agent }, (res) => {
      let length = 0;
      res.on('data', (piece) => { length += piece.length; });
      res.on('end', () => resolve(length));
    }).on('error', reject);
  });
}

const app = new Koa();
app.use(async (ctx) => { ctx.body = { sun: (await forecast()) > 100 }; });
app.listen(Number(process.env.PORT || 3000), '127.0.0.1');
