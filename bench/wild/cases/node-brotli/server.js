// A report as JSON, compressed for those who take it.
const http = require('http');
const zlib = require('zlib');

const options = {};
if (process.env.BROTLI_QUALITY) {
  options.params = { [zlib.constants.BROTLI_PARAM_QUALITY]: Number(process.env.BROTLI_QUALITY) };
}

function report() {
  const rows = [];
  for (let row = 0; row < 300; row += 1) {
    rows.push({ day: `2026-11-${1 + (row % 28)}`, shop: `shop ${row % 17}`, sold: Math.floor(Math.random() * 1000), note: 'none' });
  }
  return JSON.stringify({ made: Date.now(), rows });
}

http.createServer((req, res) => {
  const body = report();
  res.setHeader('Content-Type', 'application/json');
  if (!/\bbr\b/.test(req.headers['accept-encoding'] || '')) { res.end(body); return; }
  zlib.brotliCompress(body, options, (error, packed) => {
    if (error) { res.statusCode = 500; res.end(); return; }
    res.setHeader('Content-Encoding', 'br');
    res.end(packed);
  });
}).listen(process.env.PORT || 3000, '127.0.0.1');
