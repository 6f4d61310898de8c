// Feed of events: the last 1500, as JSON.
const fastify = require('fastify')();

const events = Array.from({ length: 1500 }, (_, number) => ({
  id: number, kind: 'push', actor: { id: number * 7, login: `user-${number}`, url: `https://example.org/users/${number}` },
  repository: { id: number * 3, name: `project/number-${number}` }, made: new Date(1.7e12 + number * 1e7), public: true,
  payload: { size: number % 9, reference: 'refs/heads/main', commits: ['first "words"', 'second\nwords'] },
}));

fastify.get('/', async () => events);
fastify.listen({ port: Number(process.env.PORT || 3000), host: '127.0.0.1' });
