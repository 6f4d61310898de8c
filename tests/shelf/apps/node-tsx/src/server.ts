import { createServer } from 'node:http';

const port: number = Number(process.env.PORT ?? 3000);
createServer((request, response) => response.end('tick\n')).listen(port);
