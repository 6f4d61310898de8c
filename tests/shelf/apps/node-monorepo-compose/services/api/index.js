const { createServer } = require('node:http');
const { parseArgs } = require('node:util');

const { values } = parseArgs({ options: { port: { type: 'string', default: '4000' } } });
createServer((request, response) => response.end('api\n')).listen(Number(values.port));
