import { createServer } from 'http';
import { OrdersController } from './orders.controller';
import { routes } from './router';

async function bootstrap(): Promise<void> {
  const table = routes(new OrdersController());
  createServer((request, response) => {
    const handler = table.get(request.url ?? '/');
    response.writeHead(handler ? 200 : 404, { 'content-type': 'application/json' });
    response.end(handler ? JSON.stringify(handler()) : '{}');
  }).listen(Number(process.env.PORT ?? 3000));
}
bootstrap();
