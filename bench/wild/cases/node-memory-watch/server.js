// Items of a catalogue that is kept in memory, with a watch on the memory.
'use strict';
const http = require('node:http');
const v8 = require('node:v8');
const vm = require('node:vm');

const LIMIT_MB = Number(process.env.MEMORY_LIMIT_MB || 120);
const catalogue = new Map();
for (let n = 0; n < 260_000; n += 1) {
  catalogue.set(n, { sku: `sku-${n}`, cents: 100 + n, tags: [`tag-${n % 500}`, `colour-${n % 12}`], stock: { here: n % 9, there: n % 4 } });
}

v8.setFlagsFromString('--expose-gc');
const collect = vm.runInNewContext('gc');
let served = 0;

function watch() {
  served += 1;
  if (served % 20 !== 0) return;
  const used = process.memoryUsage().rss / 1048576;
  if (used > LIMIT_MB) collect(); // the host stops us at 1 GB, and once did
}

http.createServer((request, response) => {
  const first = Math.floor(Math.random() * 250_000);
  const items = [];
  for (let n = first; n < first + 30; n += 1) items.push({ ...catalogue.get(n), page: first });
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(items));
  watch();
}).listen(Number(process.env.PORT), '127.0.0.1');
