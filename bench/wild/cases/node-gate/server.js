// Covers of books, fetched from a library's catalogue.
const http = require('http');
const { Gate } = require('./gate');

const gate = new Gate(Number(process.env.CATALOGUE_PLACES || 4));
const agent = new http.Agent({ keepAlive: true });
const catalogue = process.env.CATALOGUE_URL || 'http://127.0.0.1:9412/';

function fetchCover() {
  return new Promise((resolve, reject) => {
    http.get(catalogue, { agent }, (res) => {
      let bytes = 0;
      res.on('data', (chunk) => { bytes += chunk.length; });
      res.on('end', () => resolve(bytes));
    }).on('error', reject);
  });
}

http.createServer(async (req, res) => {
  try {
    const bytes = await gate.run(fetchCover);
    res.writeHead(200, { 'Content-Type': 'application/json' });
    res.end(JSON.stringify({ isbn: '978-3-16-148410-0', bytes }));
  } catch (error) {
    res.writeHead(502);
    res.end(String(error));
  }
}).listen(Number(process.env.PORT || 3000), process.env.HOST || '127.0.0.1');
