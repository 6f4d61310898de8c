// Sign-in: the password is derived with scrypt, off the event loop.
const http = require('http');
const { scrypt } = require('crypto');

http.createServer((req, res) => {
  scrypt('correct horse', 'salt-9f1c1f', 32, { N: 16384, r: 8, p: 1 }, (error, key) => {
    res.writeHead(error ? 500 : 200, { 'Content-Type': 'text/plain' });
    res.end(error ? error.message : key.toString('hex'));
  });
}).listen(process.env.PORT || 3000, '127.0.0.1');
