import Fastify from 'fastify';

export default function build() {
  const app = Fastify();
  app.get('/', async () => ({ price: 9.5 }));
  return app;
}
